/* SPDX-License-Identifier: MIT */
/*
 * Where library code sends what the user should know but what is no error: a wrong index
 * that was ignored, time that went back, a kernel facility that is missing. The library
 * never prints; whoever owns the struct ky_log decides. A NULL log drops everything.
 */
#ifndef KY_BASE_LOG_H
#define KY_BASE_LOG_H

#include "base/strbuf.h"

enum ky_log_level {
	KY_LOG_INFO,
	KY_LOG_WARNING,
};

struct ky_log {
	/* @text: one line without its line feed; valid during the call only. */
	void (*write)(void *data, enum ky_log_level level, const char *text);
	void *data;
};

/*
 * A log that keeps what it is told, for work in another thread: tell it later, in order.
 * Threads: one at a time per log.
 */
struct ky_log_keep {
	struct ky_log log;
	struct ky_strbuf kept; /* a byte for the level, the line, NUL; and so on */
};

void ky_log_keep_init(struct ky_log_keep *keep);
void ky_log_keep_fini(struct ky_log_keep *keep);
/* Pass on what was kept to @log (may be NULL), and forget it. */
void ky_log_keep_tell(struct ky_log_keep *keep, const struct ky_log *log);

void ky_log_info(const struct ky_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void ky_log_warning(const struct ky_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
