/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *kymo_status_text(int status)
{
	switch (status) {
#define STATUS_CASE(name, value, text) \
	case value:                    \
		return text;
		KYMO_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
	default:
		return status > 0 ? "success" : "unknown status";
	}
}

void ky_error_clear(struct kymo_error *err)
{
	if (!err)
		return;
	err->code = KYMO_OK;
	err->line = 0;
	err->column = 0;
	err->offset = KYMO_NO_OFFSET;
	err->packet = KYMO_NO_OFFSET;
	err->event = KYMO_NO_OFFSET;
	err->path[0] = '\0';
	err->message[0] = '\0';
	err->hint[0] = '\0';
}

int ky_error_set(struct kymo_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	ky_error_clear(err);
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	return code;
}

static int status_of_errno(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return KYMO_E_NOT_FOUND;
	case EACCES:
	case EPERM:
		return KYMO_E_PERMISSION;
	case ENOMEM:
		return KYMO_E_MEMORY;
	case EINTR:
		return KYMO_E_INTERRUPTED;
	case EAGAIN:
		return KYMO_E_AGAIN;
	default:
		return KYMO_E_IO;
	}
}

int ky_error_errno(struct kymo_error *err, int errnum, const char *fmt, ...)
{
	int code = status_of_errno(errnum);
	char text[128];
	va_list ap;
	size_t len;

	if (!err)
		return code;
	ky_error_clear(err);
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	len = strlen(err->message);
	snprintf(err->message + len, sizeof(err->message) - len, ": %s",
		 strerror_r(errnum, text, sizeof(text)));
	if (errnum == EMFILE)
		ky_error_hint(err, "raise the limit of open files (ulimit -n)");
	else if (errnum == ENFILE)
		ky_error_hint(err, "the machine has no more open files (sysctl fs.file-max)");
	return code;
}

void ky_error_input(struct kymo_error *err, const char *input)
{
	char path[64];

	snprintf(path, sizeof(path), "<%s>", input);
	ky_error_path(err, path);
}

void ky_error_path(struct kymo_error *err, const char *path)
{
	if (err)
		snprintf(err->path, sizeof(err->path), "%s", path ? path : "");
}

void ky_error_offset(struct kymo_error *err, uint64_t offset_bytes)
{
	if (err)
		err->offset = offset_bytes;
}

void ky_error_line(struct kymo_error *err, uint32_t line, uint32_t column)
{
	if (!err)
		return;
	err->line = line;
	err->column = column;
}

void ky_error_hint(struct kymo_error *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
}

int ky_error_nomem(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_MEMORY, "out of memory");
}
