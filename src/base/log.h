/* SPDX-License-Identifier: MIT */
/*
 * The log of library code: notices for the user that are not errors, such as a wrong index that the
 * library ignored, time that went back, or a missing feature of the kernel. The library never
 * prints; the owner of the struct ky_log decides. A NULL log drops all notices.
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
 * A log that keeps its lines, for work in another thread. The owner passes them on later, in order.
 * Threads: one at a time per log.
 */
struct ky_log_keep {
	struct ky_log log;
	struct ky_strbuf kept; /* for each line: a byte for the level, the line, NUL */
};

void ky_log_keep_init(struct ky_log_keep *keep);
void ky_log_keep_fini(struct ky_log_keep *keep);
/* Passes the kept lines on to @log (may be NULL) and removes them. */
void ky_log_keep_tell(struct ky_log_keep *keep, const struct ky_log *log);

void ky_log_info(const struct ky_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void ky_log_warning(const struct ky_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
