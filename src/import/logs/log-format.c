/* SPDX-License-Identifier: MIT */
#include "import/logs/log-format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"

/* Lines of JSON may have several KiB. */
#define HEAD_BYTES    65536
#define CONSOLE_BYTES (1u << 20)
#define ZEROS_MAX     16 /* noise of a serial line */

static const struct ky_log_format *const formats[] = {
	&ky_log_chrome, &ky_log_journal, &ky_log_syslog_5424, &ky_log_syslog,  &ky_log_dmesg,
	&ky_log_strace, &ky_log_ftrace,	 &ky_log_systrace,    &ky_log_program, &ky_log_access,
	&ky_log_audit,	&ky_log_json,	 &ky_log_logfmt,
};

const struct ky_log_format *ky_log_format_at(size_t i)
{
	return i < sizeof(formats) / sizeof(formats[0]) ? formats[i] : NULL;
}

const struct ky_log_format *ky_log_format_find(const char *name, size_t len)
{
	for (size_t i = 0; ky_log_format_at(i); i++)
		if (strlen(formats[i]->name) == len && memcmp(formats[i]->name, name, len) == 0)
			return formats[i];
	return NULL;
}

/* ---- which format --------------------------------------------------------------------- */

static const struct ky_log_format *log_format_probe(const char *line, size_t len)
{
	for (size_t i = 0; ky_log_format_at(i); i++)
		if (formats[i]->probe && formats[i]->probe(line, len))
			return formats[i];
	return NULL;
}

static const struct ky_log_format *log_format_of_head(const char *head, size_t len)
{
	for (size_t i = 0; ky_log_format_at(i); i++)
		if (formats[i]->probe_head && formats[i]->probe_head(head, len))
			return formats[i];
	return NULL;
}

/* No later line can win. */
static bool log_format_is_sure(const struct ky_log_format *format)
{
	return format && format != &ky_log_program && format != &ky_log_strace;
}

/*
 * Of the first lines that are not empty, one of the first ten has to be plain; no byte may be NUL. A line of syslog without a tag may look like
 * one of another program, and the kernel's log may quote a line of strace, so later lines of these logs win.
 */
static bool log_format_wins(const struct ky_log_format *found, const struct ky_log_format *before)
{
	return (before == &ky_log_program && found == &ky_log_syslog) ||
	       (before == &ky_log_strace && (found == &ky_log_syslog || found == &ky_log_dmesg));
}

static const struct ky_log_format *log_format_of_text(const char *text, size_t len, bool is_whole)
{
	const struct ky_log_format *format = NULL, *found;
	const char *end = text + len;

	for (int n = 0; text < end && n < 10 && !log_format_is_sure(format); n++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		/* A file of one long line is known by its begin. */
		if (!stop && !is_whole && n)
			break;
		stop = stop ? stop : end;
		/* Text has no NUL, but what follows journald's lines. */
		if (memchr(text, '\0', (size_t)(stop - text)))
			return format;
		found = stop > text ? log_format_probe(text, (size_t)(stop - text)) : NULL;
		if (!format || log_format_wins(found, format))
			format = found;
		text = stop + 1;
	}
	return format;
}

/*
 * A serial console: what the firmware says stands before the kernel's first line, "[    0.000000] Linux version ...", which may be thousands of
 * lines further down.
 */
static const struct ky_log_format *log_format_of_console(struct ky_foreign_file *file,
							 uint64_t begin)
{
	static const char first[] = "\n[    0.000000]";
	uint64_t len = file->size_bytes - begin;
	const uint8_t *bytes, *at;
	size_t n_zeros = 0;

	len = len < CONSOLE_BYTES ? len : CONSOLE_BYTES;
	bytes = len ? ky_foreign_bytes(file, begin, len, "the head", NULL) : NULL;
	at = bytes ? memmem(bytes, (size_t)len, first, sizeof(first) - 1) : NULL;
	/* Images of memory have such lines, too. */
	for (; at && bytes < at && n_zeros <= ZEROS_MAX; bytes++)
		n_zeros += !*bytes;
	return at && n_zeros <= ZEROS_MAX ? &ky_log_dmesg : NULL;
}

/* Where the first data are: a log that was cut while its program went on writing begins with a hole. */
static uint64_t log_format_behind_hole(const struct ky_foreign_file *file)
{
	off_t data = lseek(file->fd, 0, SEEK_DATA);

	return data > 0 && (uint64_t)data < file->size_bytes ? (uint64_t)data : 0;
}

const struct ky_log_format *ky_log_format_of(const char *path)
{
	struct ky_foreign_file file;
	const struct ky_log_format *format = NULL;
	const uint8_t *bytes;
	uint64_t len, begin;

	if (ky_foreign_open(&file, path, -1, NULL) < 0)
		return NULL;
	begin = log_format_behind_hole(&file);
	len = file.size_bytes - begin < HEAD_BYTES ? file.size_bytes - begin : HEAD_BYTES;
	bytes = len ? ky_foreign_bytes(&file, begin, len, "the head", NULL) : NULL;
	for (; bytes && len && !*bytes && begin; bytes++)
		len--;
	/* Editors and other systems put a byte order mark in front. */
	if (bytes && ky_log_has_bom(bytes, (size_t)len)) {
		bytes += KY_LOG_BOM_BYTES;
		len -= KY_LOG_BOM_BYTES;
	}
	if (bytes)
		format = log_format_of_head((const char *)bytes, (size_t)len);
	if (bytes && !format)
		format = log_format_of_text((const char *)bytes, (size_t)len,
					    file.size_bytes - begin <= HEAD_BYTES);
	if (bytes && !format)
		format = log_format_of_console(&file, begin);
	ky_foreign_close(&file);
	return format;
}

/* ---- lines ---------------------------------------------------------------------------- */

/* The next line as ky_log_next_line(), with what stands before it. */
static int log_format_line(struct ky_log_file *log, const char **line, size_t *len)
{
	uint64_t left = log->file.size_bytes - log->at;
	size_t want = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX;
	const uint8_t *bytes, *stop;

	if (!left)
		return 0;
	/* Most lines are in the window; one that is not makes it move. */
	if (log->at >= log->file.window_at &&
	    log->at < log->file.window_at + log->file.window_bytes) {
		size_t in = (size_t)(log->file.window_at + log->file.window_bytes - log->at);

		bytes = log->file.window + (log->at - log->file.window_at);
		stop = memchr(bytes, '\n', in < want ? in : want);
		if (stop)
			goto found;
	}
	bytes = ky_foreign_bytes(&log->file, log->at, want, "a line", log->err);
	if (!bytes)
		return log->err && log->err->code ? log->err->code : KYMO_E_IO;
	stop = memchr(bytes, '\n', want);
found:
	log->line_at = log->at;
	*line = (const char *)bytes;
	*len = stop ? (size_t)(stop - bytes) : want;
	log->n_cut += !stop && want == KY_LOG_LINE_MAX && want < left;
	log->at += stop ? *len + 1 : *len;
	if (*len && bytes[*len - 1] == '\r')
		--*len;
	return 1;
}

/* Where the file has data again, from log->at on, which is in a hole or is a zero. */
static uint64_t log_format_data(const struct ky_log_file *log, const char *line, size_t len)
{
	off_t data = lseek(log->file.fd, (off_t)log->line_at, SEEK_DATA);
	size_t zeros = 0;

	if (data < 0 && errno == ENXIO)
		return log->file.size_bytes;
	if (data > 0 && (uint64_t)data > log->line_at)
		return (uint64_t)data < log->file.size_bytes ? (uint64_t)data
							     : log->file.size_bytes;
	while (zeros < len && !line[zeros])
		zeros++;
	return log->line_at + zeros;
}

/* A log that was cut while its program went on writing begins with a hole; a machine that lost its power leaves zeros. */
int ky_log_next_line(struct ky_log_file *log, const char **line, size_t *len)
{
	uint64_t n_cut = log->n_cut;
	int ret;

	while ((ret = log_format_line(log, line, len)) > 0 && *len && !**line) {
		log->at = log_format_data(log, *line, *len);
		log->hole_bytes += log->at - log->line_at;
		log->n_cut = n_cut;
	}
	log->line_number += ret > 0;
	return ret;
}

const char *ky_log_window(const struct ky_log_file *log, size_t *len)
{
	const struct ky_foreign_file *file = &log->file;

	*len = 0;
	if (!file->window || log->at < file->window_at ||
	    log->at > file->window_at + file->window_bytes)
		return "";
	*len = (size_t)(file->window_at + file->window_bytes - log->at);
	return (const char *)file->window + (log->at - file->window_at);
}

const char *ky_log_bytes(struct ky_log_file *log, uint64_t len)
{
	const uint8_t *bytes =
		ky_foreign_bytes(&log->file, log->at, len ? len : 1, "a field", log->err);

	if (bytes)
		log->at += len;
	return (const char *)bytes;
}

/* ---- words ---------------------------------------------------------------------------- */

bool ky_log_is_number(const char *text, size_t len, int64_t *number)
{
	bool is_negative = len && *text == '-';
	uint64_t value = 0;

	text += is_negative;
	len -= is_negative;
	/* Numbers with a zero in front are names: of files, of hosts. */
	if (!len || len > 18 || (len > 1 && *text == '0'))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned int digit = (unsigned int)(unsigned char)text[i] - '0';

		if (digit > 9)
			return false;
		value = value * 10 + digit;
	}
	*number = is_negative ? -(int64_t)value : (int64_t)value;
	return true;
}

struct ky_log_value ky_log_guess(const char *name, size_t name_len, const char *text, size_t len)
{
	struct ky_log_value value = {
		.name = name,
		.name_len = name_len,
		.kind = KY_MAKER_TEXT,
		.text = text,
		.len = len,
	};

	if (ky_log_is_number(text, len, &value.number))
		value.kind = KY_MAKER_S64;
	return value;
}

/* The value in quotes; @at is behind the first one. Returns the place behind the second. */
static const char *log_format_quoted(const char *at, const char *end, struct ky_log_value *value)
{
	const char *from = at;

	for (; at < end && *at != '"'; at++) {
		if (*at == '\\' && at + 1 < end) {
			value->is_escaped = true;
			at++;
		}
	}
	value->kind = KY_MAKER_TEXT;
	value->text = from;
	value->len = (size_t)(at - from);
	return at < end ? at + 1 : at;
}

bool ky_log_pair(const char **text, const char *end, struct ky_log_value *value)
{
	const char *at = *text, *name, *from;

	while (at < end && (isspace((unsigned char)*at) || *at == '='))
		at++;
	if (at >= end)
		return false;
	name = at;
	while (at < end && *at != '=' && !isspace((unsigned char)*at))
		at++;
	*value = (struct ky_log_value){
		.name = name, .name_len = (size_t)(at - name), .kind = KY_MAKER_S64, .number = 1};
	*text = at;
	if (at >= end || *at != '=')
		return true;
	at++;
	if (at < end && *at == '"') {
		*text = log_format_quoted(at + 1, end, value);
		return true;
	}
	from = at;
	while (at < end && !isspace((unsigned char)*at))
		at++;
	*value = ky_log_guess(value->name, value->name_len, from, (size_t)(at - from));
	*text = at;
	return true;
}

/* @n hexadecimal digits; -1: there are not so many. */
static int32_t log_format_hex(const char *at, const char *end, int n)
{
	int32_t value = 0;

	if (end - at < n)
		return -1;
	for (int i = 0; i < n; i++) {
		int c = tolower((unsigned char)at[i]);

		if (!isxdigit(c))
			return -1;
		value = value << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return value;
}

/* The code behind "\u"; @at goes behind it, and behind the second one of a pair. */
static int32_t log_format_code(const char **at, const char *end)
{
	int32_t code = log_format_hex(*at, end, 4), low = -1;

	if (code < 0)
		return code;
	*at += 4;
	if (code < 0xd800 || code > 0xdfff)
		return code;
	if (code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u')
		low = log_format_hex(*at + 2, end, 4);
	if (low < 0xdc00 || low > 0xdfff)
		return 0xfffd; /* half of a pair */
	*at += 6;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* What stands behind a backslash. Returns the place behind it. */
static const char *log_format_escape(struct ky_strbuf *to, const char *at, const char *end)
{
	static const char letters[] = "ntrbfav", codes[] = "\n\t\r\b\f\a\v";
	const char c = *at++, *letter = c ? strchr(letters, c) : NULL;
	int32_t code = -1;
	char utf8[4];

	if (letter) {
		ky_strbuf_addc(to, codes[letter - letters]);
	} else if (c == 'x' && (code = log_format_hex(at, end, 2)) >= 0) {
		ky_strbuf_addc(to, (char)code);
		at += 2;
	} else if (c == 'u' && (code = log_format_code(&at, end)) >= 0) {
		ky_strbuf_add(to, utf8, ky_utf8_put(utf8, (uint32_t)code));
	} else {
		ky_strbuf_addc(to, c);
	}
	return at;
}

void ky_log_unescape(struct ky_strbuf *to, const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	while (at < end) {
		const char *slash = memchr(at, '\\', (size_t)(end - at));

		if (!slash || slash + 1 == end)
			slash = end;
		ky_strbuf_add(to, at, (size_t)(slash - at));
		at = slash < end ? log_format_escape(to, slash + 1, end) : end;
	}
}
