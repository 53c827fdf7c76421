/* SPDX-License-Identifier: MIT */
/*
 * journald's export format: entries of lines FIELD=value, or FIELD and, behind a line feed, a length of 64 bits (little-endian) and
 * that many bytes; an empty line ends an entry.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "import/logs/log-format.h"

/* A field of an entry, as places in `texts`, which grows. */
struct journal_field {
	size_t name, name_len, value, len;
};

/* What is kept of an entry; the trace takes less. */
#define ENTRY_BYTES_MAX (1u << 20)

struct journal {
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	struct ky_strbuf texts;
	KY_VEC(struct journal_field) fields;
	int64_t ns;
	bool is_cut;	/* the entry has more than what is kept */
	bool has_piece; /* the last line is a piece: the next one goes on with it */
};

static bool journal_probe(const char *line, size_t len)
{
	return len > 9 && memcmp(line, "__CURSOR=", 9) == 0;
}

static int journal_begin(struct ky_log_file *log)
{
	struct journal *journal = calloc(1, sizeof(*journal));

	log->state = journal;
	if (!journal)
		return ky_error_nomem(log->err);
	ky_strbuf_init(&journal->texts);
	return KYMO_OK;
}

static int journal_flush(struct ky_log_file *log)
{
	struct journal *journal = log->state;
	struct ky_log_value *values = journal->values;
	const char *texts = ky_strbuf_text(&journal->texts);
	uint64_t n_shortened = log->n_shortened;
	size_t n = 0;
	int ret;

	ky_vec_foreach(&journal->fields, field)
		values[n++] = ky_log_guess(texts + field->name, field->name_len,
					   texts + field->value, field->len);
	if (!n)
		return KYMO_OK;
	ret = ky_log_event(log, "log", journal->ns ? journal->ns : log->last_ns, values, n);
	ky_vec_clear(&journal->fields);
	ky_strbuf_clear(&journal->texts);
	journal->ns = 0;
	/* Once, also where the trace cuts what is left. */
	log->n_shortened += journal->is_cut && log->n_shortened == n_shortened;
	journal->is_cut = false;
	return ret;
}

/* Microseconds. */
static int64_t journal_time(const char *value, size_t len)
{
	char number[24] = "";
	int64_t us;

	if (ky_log_is_number(value, len, &us) && us < INT64_MAX / 1000)
		return us * 1000;
	memcpy(number, value, len < sizeof(number) - 1 ? len : sizeof(number) - 1);
	return __builtin_mul_overflow(strtoll(number, NULL, 10), 1000, &us) ? 0 : us;
}

static bool journal_is_time(const char *name, size_t name_len)
{
	return name_len == 20 && memcmp(name, "__REALTIME_TIMESTAMP", 20) == 0;
}

static int journal_add(struct ky_log_file *log, const char *name, size_t name_len,
		       const char *value, size_t len)
{
	struct journal *journal = log->state;
	struct journal_field field = {.name = journal->texts.len, .name_len = name_len};
	size_t room = ENTRY_BYTES_MAX - journal->texts.len;

	if (journal_is_time(name, name_len)) {
		journal->ns = journal_time(value, len);
		return KYMO_OK;
	}
	if (journal->fields.len == KY_LOG_FIELDS_MAX || name_len > room) {
		journal->is_cut = true;
		return KYMO_OK;
	}
	if (len > room - name_len) {
		journal->is_cut = true;
		len = room - name_len;
	}
	ky_strbuf_add(&journal->texts, name, name_len);
	field.value = journal->texts.len;
	field.len = len;
	ky_strbuf_add(&journal->texts, value, len);
	if (ky_strbuf_failed(&journal->texts) || ky_vec_push(&journal->fields, field) < 0)
		return ky_error_nomem(log->err);
	return KYMO_OK;
}

/* The line was a name alone: its value's length and bytes follow, and a line feed. */
static int journal_binary(struct ky_log_file *log, const char *line, size_t name_len)
{
	struct journal *journal = log->state;
	char name[256];
	const char *bytes;
	uint64_t len = 0, kept;
	int ret;

	if (name_len >= sizeof(name))
		return 0;
	memcpy(name, line, name_len);
	bytes = ky_log_bytes(log, 8);
	if (!bytes)
		return log->err->code;
	for (int i = 7; i >= 0; i--)
		len = len << 8 | (uint8_t)bytes[i];
	if (len >= log->file.size_bytes - log->at)
		return ky_foreign_bad(&log->file, log->at - 8,
				      "a field is cut: the file ends before", log->err);
	kept = len < ENTRY_BYTES_MAX / 2 ? len : ENTRY_BYTES_MAX / 2;
	bytes = ky_log_bytes(log, kept);
	if (!bytes)
		return log->err->code;
	journal->is_cut |= kept < len;
	ret = journal_add(log, name, name_len, bytes, (size_t)kept);
	/* The line feed, too. */
	log->at += len - kept + 1;
	return ret < 0 ? ret : 1;
}

static int journal_line(struct ky_log_file *log, const char *line, size_t len)
{
	const char *equals = memchr(line, '=', len);
	int ret;

	if (!len)
		ret = journal_flush(log);
	else if (equals)
		ret = journal_add(log, line, (size_t)(equals - line), equals + 1,
				  (size_t)(line + len - equals - 1));
	else
		return journal_binary(log, line, len);
	return ret < 0 ? ret : 1;
}

/* ---- entries in one piece ------------------------------------------------------------- */

/* The length of the name that the line at @at begins with; 0: the line is no FIELD=value. The next field of the last entry's is likely. */
static inline size_t journal_name(const struct ky_log_shape *shape, size_t i, const char *at,
				  const char *stop, const char **name)
{
	size_t likely = shape && i < shape->n ? shape->fields[i].name_len : 0;
	const char *equals;

	if (likely && (size_t)(stop - at) > likely && at[likely] == '=' &&
	    memcmp(at, shape->fields[i].name, likely) == 0) {
		*name = shape->fields[i].name;
		return likely;
	}
	equals = memchr(at, '=', (size_t)(stop - at));
	*name = at;
	return equals ? (size_t)(equals - at) : 0;
}

static inline void journal_put(struct ky_log_value *value, const char *name, size_t name_len,
			       const char *text, size_t len)
{
	value->name = name;
	value->name_len = name_len;
	value->text = text;
	value->len = len;
	value->kind = ky_log_is_number(text, len, &value->number) ? KY_MAKER_S64 : KY_MAKER_TEXT;
}

/* The next entry, if it is whole in the window and has nothing but lines. 1: it is an event; 0: it is not that simple. */
static int journal_entry(struct ky_log_file *log)
{
	struct journal *journal = log->state;
	size_t left, n = 0, n_lines = 0, name_len;
	const char *begin = ky_log_window(log, &left), *at = begin, *end, *stop, *name;
	int64_t ns = log->last_ns;
	int ret = KYMO_OK;

	if (!begin)
		return 0;
	for (end = at + left; at < end && (stop = memchr(at, '\n', (size_t)(end - at)));
	     at = stop + 1, n_lines++) {
		if (stop == at) {
			if (n)
				ret = ky_log_event(log, "log", ns, journal->values, n);
			log->at += (size_t)(stop + 1 - begin);
			log->line_number += n_lines + 1;
			return ret < 0 ? ret : 1;
		}
		name_len = journal_name(log->shape, n, at, stop, &name);
		if (!name_len || n == KY_LOG_FIELDS_MAX || stop[-1] == '\r' ||
		    stop - at > KY_LOG_LINE_MAX)
			return 0;
		at += name_len + 1;
		if (journal_is_time(name, name_len))
			ns = journal_time(at, (size_t)(stop - at));
		else
			journal_put(&journal->values[n++], name, name_len, at, (size_t)(stop - at));
	}
	return 0;
}

/* The next line that is no rest of a line that was cut. 1, 0, negative. */
static int journal_next_line(struct ky_log_file *log, const char **line, size_t *len)
{
	struct journal *journal = log->state;
	bool is_rest;
	int ret;

	do {
		uint64_t n_cut = log->n_cut;

		ret = ky_log_next_line(log, line, len);
		is_rest = journal->has_piece;
		journal->is_cut |= is_rest;
		journal->has_piece = log->n_cut > n_cut;
	} while (ret > 0 && is_rest);
	return ret;
}

/* The lines of one entry. 1; 0: the file has none. */
static int journal_lines(struct ky_log_file *log)
{
	const char *line;
	size_t len;
	int ret;

	do {
		ret = journal_next_line(log, &line, &len);
		if (ret <= 0)
			return ret;
		ret = journal_line(log, line, len);
		if (ret == 0 && len)
			ret = ky_log_stray(log, line, len);
	} while (ret >= 0 && len);
	return ret < 0 ? ret : 1;
}

static int journal_file(struct ky_log_file *log)
{
	int ret;

	do {
		ret = journal_entry(log);
		if (ret == 0)
			ret = journal_lines(log);
	} while (ret > 0);
	return ret;
}

static void journal_end(struct ky_log_file *log)
{
	struct journal *journal = log->state;

	if (!journal)
		return;
	/* The last entry may have no empty line behind it. */
	if (log->maker)
		(void)journal_flush(log);
	ky_strbuf_fini(&journal->texts);
	ky_vec_fini(&journal->fields);
	free(journal);
}

const struct ky_log_format ky_log_journal = {
	.name = "journal",
	.description = "what journalctl -o export prints",
	.probe = journal_probe,
	.begin = journal_begin,
	.file = journal_file,
	.end = journal_end,
};
