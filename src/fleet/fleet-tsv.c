/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-tsv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define COLUMNS_MAX    10000

void ky_fleet_tsv_init(struct ky_fleet_tsv *tsv, const struct ky_sql_sink *sink)
{
	*tsv = (struct ky_fleet_tsv){.sink = sink, .line = KY_STRBUF_INIT, .cells = KY_STRBUF_INIT};
}

void ky_fleet_tsv_fini(struct ky_fleet_tsv *tsv)
{
	ky_strbuf_fini(&tsv->line);
	ky_strbuf_fini(&tsv->cells);
	ky_vec_fini(&tsv->at);
	ky_vec_fini(&tsv->types);
	ky_vec_fini(&tsv->row);
}

void ky_fleet_tsv_put_quoted(struct ky_strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			ky_strbuf_addc(out, '\\');
		ky_strbuf_addc(out, *text);
	}
}

static char unescaped(char c)
{
	static const char from[] = "bfrnt0", to[] = "\b\f\r\n\t";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : c;
}

static int add_cell(struct ky_fleet_tsv *tsv, const char *text, size_t n)
{
	bool is_null = n == 2 && memcmp(text, "\\N", 2) == 0;

	if (tsv->at.len == COLUMNS_MAX ||
	    ky_vec_push(&tsv->at, is_null ? SIZE_MAX : tsv->cells.len) < 0)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n && !is_null; i++) {
		bool is_escaped = text[i] == '\\' && i + 1 < n;

		ky_strbuf_addc(&tsv->cells, is_escaped ? unescaped(text[++i]) : text[i]);
	}
	ky_strbuf_addc(&tsv->cells, '\0');
	return ky_strbuf_failed(&tsv->cells) ? KYMO_E_MEMORY : KYMO_OK;
}

static int fleet_tsv_split(struct ky_fleet_tsv *tsv, const char *line, size_t n)
{
	const char *end = line + n, *tab;
	int ret = KYMO_OK;

	ky_strbuf_clear(&tsv->cells);
	ky_vec_clear(&tsv->at);
	do {
		tab = memchr(line, '\t', (size_t)(end - line));
		ret = add_cell(tsv, line, (size_t)((tab ? tab : end) - line));
		line = tab ? tab + 1 : end;
	} while (tab && !ret);
	return ret;
}

static const char *fleet_tsv_text_of(const struct ky_fleet_tsv *tsv, size_t i)
{
	return tsv->at.data[i] == SIZE_MAX ? "" : ky_strbuf_text(&tsv->cells) + tsv->at.data[i];
}

static int on_names(struct ky_fleet_tsv *tsv, struct kymo_error *err)
{
	const char **names = calloc(tsv->at.len + 1, sizeof(*names));
	int ret;

	if (!names)
		return ky_error_nomem(err);
	tsv->n_columns = tsv->at.len;
	for (size_t i = 0; i < tsv->at.len; i++)
		names[i] = fleet_tsv_text_of(tsv, i);
	ret = tsv->sink->columns(tsv->sink->data, names, tsv->at.len, err);
	free(names);
	return ret;
}

static int on_types(struct ky_fleet_tsv *tsv, struct kymo_error *err)
{
	for (size_t i = 0; i < tsv->at.len; i++) {
		const char *type = fleet_tsv_text_of(tsv, i);
		uint8_t is = KY_SQL_TEXT;

		if (strncmp(type, "Nullable(", 9) == 0)
			type += 9;
		if (strncmp(type, "Int", 3) == 0 || strncmp(type, "UInt", 4) == 0)
			is = KY_SQL_INTEGER;
		else if (strncmp(type, "Float", 5) == 0)
			is = KY_SQL_REAL;
		if (ky_vec_push(&tsv->types, is) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static struct ky_sql_value value_of(const struct ky_fleet_tsv *tsv, size_t i)
{
	const char *text = fleet_tsv_text_of(tsv, i);
	struct ky_sql_value value = {.type = tsv->types.data[i], .text = text};

	value.len = strlen(text);
	if (tsv->at.data[i] == SIZE_MAX)
		value.type = KY_SQL_NULL;
	errno = 0;
	if (value.type == KY_SQL_INTEGER)
		value.integer = strtoll(text, NULL, 10);
	else if (value.type == KY_SQL_REAL)
		value.real = strtod(text, NULL);
	/* An unsigned number beyond 2^63 - 1. */
	if (value.type == KY_SQL_INTEGER && errno)
		value.type = KY_SQL_TEXT;
	return value;
}

static int on_line(struct ky_fleet_tsv *tsv, const char *line, size_t n, struct kymo_error *err)
{
	if (fleet_tsv_split(tsv, line, n) < 0)
		return ky_error_nomem(err);
	if (tsv->n_lines++ == 0)
		return on_names(tsv, err);
	/* The sink has room for as many as there are names. */
	if (tsv->at.len != tsv->n_columns)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a row of the server's answer has %zu columns instead of %zu",
				    tsv->at.len, tsv->n_columns);
	if (tsv->n_lines == 2)
		return on_types(tsv, err);
	ky_vec_clear(&tsv->row);
	for (size_t i = 0; i < tsv->at.len; i++)
		if (ky_vec_push(&tsv->row, value_of(tsv, i)) < 0)
			return ky_error_nomem(err);
	return tsv->sink->row(tsv->sink->data, tsv->row.data, tsv->row.len, err);
}

int ky_fleet_tsv_take(void *data, const char *bytes, size_t n, struct kymo_error *err)
{
	struct ky_fleet_tsv *tsv = data;
	int ret = KYMO_OK;

	while (n && !ret) {
		const char *end = memchr(bytes, '\n', n);
		size_t len = end ? (size_t)(end - bytes) : n;

		if (tsv->line.len + len > LINE_MAX_BYTES)
			return ky_error_set(err, KYMO_E_LIMIT, "a row of more than 64 MiB");
		ky_strbuf_add(&tsv->line, bytes, len);
		if (ky_strbuf_failed(&tsv->line))
			return ky_error_nomem(err);
		if (end) {
			ret = on_line(tsv, ky_strbuf_text(&tsv->line), tsv->line.len, err);
			ky_strbuf_clear(&tsv->line);
			len++;
		}
		bytes += len;
		n -= len;
	}
	return ret;
}

int ky_fleet_tsv_end(struct ky_fleet_tsv *tsv, struct kymo_error *err)
{
	return tsv->line.len ? ky_error_set(err, KYMO_E_FORMAT, "the server's answer is cut")
			     : KYMO_OK;
}
