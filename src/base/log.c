/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* ---- for later ------------------------------------------------------------------------------ */

static void keep_write(void *data, enum ky_log_level level, const char *text)
{
	struct ky_log_keep *keep = data;

	ky_strbuf_addc(&keep->kept, (char)level);
	ky_strbuf_add(&keep->kept, text, strlen(text) + 1);
}

void ky_log_keep_init(struct ky_log_keep *keep)
{
	*keep = (struct ky_log_keep){.log = {keep_write, keep}};
}

void ky_log_keep_fini(struct ky_log_keep *keep)
{
	ky_strbuf_fini(&keep->kept);
}

void ky_log_keep_tell(struct ky_log_keep *keep, const struct ky_log *log)
{
	size_t at = 0;

	/* Out of memory: what was kept before that is whole. */
	while (log && log->write && at < keep->kept.len) {
		const char *line = keep->kept.data + at + 1;

		log->write(log->data, (enum ky_log_level)keep->kept.data[at], line);
		at += strlen(line) + 2;
	}
	ky_strbuf_clear(&keep->kept);
}
