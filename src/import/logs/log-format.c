/* SPDX-License-Identifier: MIT */
#include "import/logs/log-format.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/error.h"

#define HEAD_BYTES	  65536
#define FIRST_LINES_BYTES 8192
/* A log whose lines have more sets of fields than this has no sets, but chance: a trace of so many kinds of events helps nobody. */
#define SHAPES_MAX 8192

static const struct ky_log_format *const formats[] = {
	&ky_log_chrome,	 &ky_log_journal, &ky_log_syslog_5424, &ky_log_syslog,
	&ky_log_dmesg,	 &ky_log_strace,  &ky_log_ftrace,      &ky_log_systrace,
	&ky_log_program, &ky_log_access,  &ky_log_json,	       &ky_log_logfmt,
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

/* Of the first lines that are not empty, one of the first ten has to be plain; no byte may be NUL. */
static const struct ky_log_format *log_format_of_text(const char *text, size_t len, bool is_whole)
{
	const struct ky_log_format *format = NULL;
	const char *end = text + len;

	for (int n = 0; text < end && n < 10 && !format; n++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		/* A file of one long line is known by its begin. */
		if (!stop && !is_whole && n)
			break;
		stop = stop ? stop : end;
		/* Text has no NUL, but what follows journald's lines. */
		if (memchr(text, '\0', (size_t)(stop - text)))
			return NULL;
		if (stop > text)
			format = log_format_probe(text, (size_t)(stop - text));
		text = stop + 1;
	}
	return format;
}

const struct ky_log_format *ky_log_format_of(const char *path)
{
	struct ky_foreign_file file;
	const struct ky_log_format *format = NULL;
	const uint8_t *bytes;
	uint64_t len;

	if (ky_foreign_open(&file, path, -1, NULL) < 0)
		return NULL;
	len = file.size_bytes < HEAD_BYTES ? file.size_bytes : HEAD_BYTES;
	bytes = len ? ky_foreign_bytes(&file, 0, len, "the head", NULL) : NULL;
	if (bytes)
		format = log_format_of_head((const char *)bytes, (size_t)len);
	if (bytes && len > FIRST_LINES_BYTES)
		len = FIRST_LINES_BYTES;
	if (bytes && !format)
		format = log_format_of_text((const char *)bytes, (size_t)len,
					    len == file.size_bytes);
	ky_foreign_close(&file);
	return format;
}

/* ---- lines ---------------------------------------------------------------------------- */

int ky_log_next_line(struct ky_log_file *log, const char **line, size_t *len)
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
	log->line_number++;
	*line = (const char *)bytes;
	*len = stop ? (size_t)(stop - bytes) : want;
	log->n_cut += !stop && want == KY_LOG_LINE_MAX && want < left;
	log->at += stop ? *len + 1 : *len;
	if (*len && bytes[*len - 1] == '\r')
		--*len;
	return 1;
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

/* ---- events --------------------------------------------------------------------------- */

/* The same for the same fields in any order: some formats write them as a hash table has them. */
static uint64_t log_format_hash(const char *name, const struct ky_log_value *values, size_t n)
{
	uint64_t hash = ky_hash_bytes(name, strlen(name));

	for (size_t i = 0; i < n; i++)
		hash += ky_hash_u64(ky_hash_bytes(values[i].name, values[i].name_len) ^
				    (uint64_t)values[i].kind << 56);
	return hash;
}

static inline bool log_format_is_field(const struct ky_log_shape_field *field,
				       const struct ky_log_value *value)
{
	return field->kind == value->kind && field->name_len == value->name_len &&
	       (field->name == value->name ||
		memcmp(field->name, value->name, field->name_len) == 0);
}

/* Puts the values into the shape's order. False: they are other fields; then the order is undefined. */
static inline bool log_format_fits(const struct ky_log_shape *shape, const char *name,
				   struct ky_log_value *values, size_t n)
{
	if (!shape || shape->n != n || (shape->event != name && strcmp(shape->event, name) != 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct ky_log_value value = values[i];
		size_t j = i;

		if (__builtin_expect(log_format_is_field(&shape->fields[i], &values[i]), 1))
			continue;
		while (++j < n && !log_format_is_field(&shape->fields[i], &values[j]))
			;
		if (j >= n)
			return false;
		values[i] = values[j];
		values[j] = value;
	}
	return true;
}

static struct ky_log_shape *log_format_new_shape(struct ky_log_file *log, const char *name,
						 const struct ky_log_value *values, size_t n)
{
	struct ky_log_shape *shape =
		ky_arena_alloc(&log->arena, sizeof(*shape) + n * sizeof(shape->fields[0]));

	if (!shape)
		return NULL;
	shape->event = ky_arena_strdup(&log->arena, name);
	shape->n = n;
	for (size_t i = 0; i < n; i++) {
		shape->fields[i].name =
			ky_arena_strndup(&log->arena, values[i].name, values[i].name_len);
		shape->fields[i].name_len = values[i].name_len;
		shape->fields[i].kind = values[i].kind;
		if (!shape->fields[i].name)
			return NULL;
	}
	return shape->event ? shape : NULL;
}

static int log_format_new_class(struct ky_log_file *log, const char *name,
				const struct ky_log_value *values, size_t n)
{
	struct ky_log_shape *shape = log_format_new_shape(log, name, values, n);
	struct ky_maker_field fields[KY_LOG_FIELDS_MAX];

	if (!shape)
		return ky_error_nomem(log->err);
	for (size_t i = 0; i < n; i++)
		fields[i] = (struct ky_maker_field){.kind = values[i].kind,
						    .name = shape->fields[i].name};
	shape->number = ky_maker_event(log->maker, name, fields, n, log->err);
	if (shape->number < 0)
		return shape->number;
	if (ky_map_set(&log->classes, log_format_hash(name, values, n), shape) < 0)
		return ky_error_nomem(log->err);
	log->shape = shape;
	return KYMO_OK;
}

/* One text of all fields, instead of a shape of its own. */
static void log_format_join(struct ky_log_file *log, struct ky_log_value *values, size_t n)
{
	struct ky_strbuf *text = &log->joined;

	ky_strbuf_clear(text);
	for (size_t i = 0; i < n; i++) {
		ky_strbuf_adds(text, i ? " " : "");
		ky_strbuf_add(text, values[i].name, values[i].name_len);
		if (values[i].kind == KY_MAKER_TEXT) {
			ky_strbuf_adds(text, "=\"");
			ky_strbuf_add(text, values[i].text, values[i].len);
			ky_strbuf_adds(text, "\"");
		} else if (values[i].kind == KY_MAKER_DOUBLE) {
			ky_strbuf_addf(text, "=%.17g", values[i].real);
		} else {
			ky_strbuf_addf(text, "=%lld", (long long)values[i].number);
		}
	}
	values[0] = ky_log_text("fields", ky_strbuf_text(text), text->len);
}

/* The shape of other fields than the last event had. */
static int log_format_find_shape(struct ky_log_file *log, const char *name,
				 struct ky_log_value *values, size_t *n)
{
	log->shape = ky_map_get(&log->classes, log_format_hash(name, values, *n));
	if (log_format_fits(log->shape, name, values, *n))
		return KYMO_OK;
	if (log->classes.len < SHAPES_MAX || *n < 2)
		return log_format_new_class(log, name, values, *n);
	log_format_join(log, values, *n);
	*n = 1;
	log->shape = ky_map_get(&log->classes, log_format_hash(name, values, *n));
	return log_format_fits(log->shape, name, values, *n)
		       ? KYMO_OK
		       : log_format_new_class(log, name, values, *n);
}

int ky_log_begin(struct ky_log_file *log, const char *name, int64_t ns, struct ky_log_value *values,
		 size_t n)
{
	int ret = KYMO_OK;

	n = n < KY_LOG_FIELDS_MAX ? n : KY_LOG_FIELDS_MAX;
	if (!log_format_fits(log->shape, name, values, n))
		ret = log_format_find_shape(log, name, values, &n);
	if (ret < 0)
		return ret;
	/* The clock counts from 1970 on. */
	log->last_ns = ns < 0 ? 0 : ns;
	ky_maker_begin(log->maker, log->stream, log->shape->number, (uint64_t)log->last_ns);
	return KYMO_OK;
}

static void log_format_put_text(struct ky_log_file *log, const struct ky_log_value *value)
{
	const char *at = value->text ? value->text : "", *end = at + value->len;

	if (!value->is_escaped) {
		ky_maker_text(log->maker, at, value->len);
		return;
	}
	ky_strbuf_clear(&log->unescaped);
	for (; at < end; at++) {
		char c = *at;

		if (c == '\\' && at + 1 < end) {
			c = *++at;
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
		}
		ky_strbuf_addc(&log->unescaped, c);
	}
	ky_maker_text(log->maker, ky_strbuf_text(&log->unescaped), log->unescaped.len);
}

int ky_log_put(struct ky_log_file *log, const struct ky_log_value *values, size_t n)
{
	for (size_t i = 0; i < n && i < KY_LOG_FIELDS_MAX; i++) {
		if (values[i].kind == KY_MAKER_DOUBLE)
			ky_maker_double(log->maker, values[i].real);
		else if (values[i].kind == KY_MAKER_TEXT)
			log_format_put_text(log, &values[i]);
		else
			ky_maker_number(log->maker, (uint64_t)values[i].number);
	}
	return ky_maker_commit(log->maker, log->err);
}

int ky_log_event(struct ky_log_file *log, const char *name, int64_t ns, struct ky_log_value *values,
		 size_t n)
{
	int ret = ky_log_begin(log, name, ns, values, n);

	return ret < 0 ? ret : ky_log_put(log, values, n);
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

bool ky_log_pair(const char **text, const char *end, struct ky_log_value *value)
{
	const char *at = *text, *name, *from;

	for (;;) {
		while (at < end && isspace((unsigned char)*at))
			at++;
		name = at;
		while (at < end && *at != '=' && !isspace((unsigned char)*at))
			at++;
		if (at >= end)
			return false;
		/* A word alone. */
		if (*at == '=' && at > name)
			break;
		at++;
	}
	*value = (struct ky_log_value){.name = name, .name_len = (size_t)(at - name)};
	at++;
	if (at < end && *at == '"') {
		from = ++at;
		for (; at < end && *at != '"'; at++) {
			if (*at == '\\' && at + 1 < end) {
				value->is_escaped = true;
				at++;
			}
		}
		value->kind = KY_MAKER_TEXT;
		value->text = from;
		value->len = (size_t)(at - from);
		*text = at < end ? at + 1 : at;
		return true;
	}
	from = at;
	while (at < end && !isspace((unsigned char)*at))
		at++;
	*value = ky_log_guess(value->name, value->name_len, from, (size_t)(at - from));
	*text = at;
	return true;
}
