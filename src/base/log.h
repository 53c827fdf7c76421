/* SPDX-License-Identifier: MIT */
/*
 * Where library code sends what the user should know but what is no error: a wrong index
 * that was ignored, time that went back, a kernel facility that is missing. The library
 * never prints; whoever owns the struct ky_log decides. A NULL log drops everything.
 */
#ifndef KY_BASE_LOG_H
#define KY_BASE_LOG_H

enum ky_log_level {
	KY_LOG_INFO,
	KY_LOG_WARNING,
};

struct ky_log {
	/* @text: one line without its line feed; valid during the call only. */
	void (*write)(void *data, enum ky_log_level level, const char *text);
	void *data;
};

void ky_log_info(const struct ky_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void ky_log_warning(const struct ky_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
