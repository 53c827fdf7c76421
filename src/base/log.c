/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static void log_write(const struct ky_log *log, enum ky_log_level level, const char *fmt,
		      va_list ap)
{
	char text[2048];

	if (!log || !log->write)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	log->write(log->data, level, text);
}

void ky_log_info(const struct ky_log *log, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(log, KY_LOG_INFO, fmt, ap);
	va_end(ap);
}

void ky_log_warning(const struct ky_log *log, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(log, KY_LOG_WARNING, fmt, ap);
	va_end(ap);
}
