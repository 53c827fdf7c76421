/* SPDX-License-Identifier: MIT */
/* Results in the words of LAMI 1.0 to tables as those of kymo report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "ctf/json/json.h"
#include "view/session/programs.h"

#define MAX_TABLES  64
#define MAX_COLUMNS 64
#define MAX_ROWS    10000

/* How a column of LAMI's class appears: the class of the page. */
static const struct lami_class {
	const char *lami, *page;
} lami_classes[] = {
	{"number", "number"},	  {"ratio", "ratio"}, {"timestamp", "timestamp"},
	{"duration", "duration"}, {"size", "size"},   {"bitrate", "number"},
	{"process", "process"},	  {"cpu", "cpu"},     {"irq", "irq"},
	{"time-range", NULL}, /* two columns */
};

struct lami_report {
	const struct ky_json *classes; /* of tables: of the metadata */
	struct ky_strbuf *out;
};

struct lami_table {
	const struct ky_json *title, *columns;
};

/* ---- values of JSON ------------------------------------------------------------------------ */

static const struct ky_json *lami_get(const struct ky_json *object, const char *key,
				      enum ky_json_kind kind)
{
	const struct ky_json *found =
		object && object->kind == KY_JSON_OBJECT ? ky_json_get(object, key) : NULL;

	return found && found->kind == kind ? found : NULL;
}

static bool lami_is(const struct ky_json *text, const char *wanted)
{
	return text && text->string.len == strlen(wanted) &&
	       memcmp(text->string.data, wanted, text->string.len) == 0;
}

static void lami_put_text(struct ky_strbuf *out, const struct ky_json *text, const char *otherwise)
{
	if (text)
		ky_json_put_text(out, text->string.data, text->string.len);
	else
		ky_json_put_text(out, otherwise, strlen(otherwise));
}

/* A finite number, as it is in @value or in its member @key. */
static bool lami_number(const struct ky_json *value, const char *key, double *number)
{
	if (value && value->kind == KY_JSON_OBJECT)
		value = ky_json_get(value, key);
	if (!value)
		return false;
	if (value->kind == KY_JSON_INTEGER)
		*number = value->integer.negative ? (double)(int64_t)value->integer.u
						  : (double)value->integer.u;
	else if (value->kind == KY_JSON_REAL || value->kind == KY_JSON_BIG)
		*number = strtod(value->number, NULL);
	else
		return false;
	return isfinite(*number);
}

/* An integer of 64 bits with a sign. */
static bool lami_integer(const struct ky_json *value, const char *key, int64_t *number)
{
	if (value && value->kind == KY_JSON_OBJECT)
		value = ky_json_get(value, key);
	if (!value || value->kind != KY_JSON_INTEGER ||
	    (!value->integer.negative && value->integer.u > INT64_MAX))
		return false;
	*number = (int64_t)value->integer.u;
	return true;
}

/* ---- cells as text ------------------------------------------------------------------------- */

static const struct ky_json *lami_string_of(const struct ky_json *cell)
{
	static const char *const keys[] = {"value", "name", "path"};

	if (cell->kind == KY_JSON_STRING)
		return cell;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct ky_json *found = lami_get(cell, keys[i], KY_JSON_STRING);

		if (found)
			return found;
	}
	return NULL;
}

static void lami_add_number(struct ky_strbuf *text, const struct ky_json *cls, double number)
{
	if (lami_is(cls, "duration"))
		ky_render_duration(text, number);
	else if (lami_is(cls, "ratio"))
		ky_strbuf_addf(text, "%.1f %%", 100 * number);
	else
		ky_strbuf_addf(text, "%.12g", number);
}

/* Any cell, as a JSON string or null. */
static void lami_put_any(struct ky_strbuf *out, const struct ky_json *cell)
{
	static const char *const keys[] = {"value", "id", "fd", "nr", "low", "high", "tid", "pid"};
	const struct ky_json *cls = lami_get(cell, "class", KY_JSON_STRING);
	const struct ky_json *string = lami_string_of(cell);
	struct ky_strbuf text = KY_STRBUF_INIT;
	double number;

	if (cell->kind == KY_JSON_BOOL || lami_get(cell, "value", KY_JSON_BOOL)) {
		const struct ky_json *yes =
			cell->kind == KY_JSON_BOOL ? cell : ky_json_get(cell, "value");

		ky_strbuf_adds(&text, yes->boolean ? "yes" : "no");
	} else if (string) {
		ky_strbuf_add(&text, string->string.data, string->string.len);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!lami_number(cell, keys[i], &number))
			continue;
		if (text.len)
			ky_strbuf_adds(&text, strcmp(keys[i], "high") == 0 ? " – " : ", ");
		lami_add_number(&text, cls, number);
		if (cell->kind != KY_JSON_OBJECT)
			break;
	}
	if (text.len)
		ky_json_put_text(out, ky_strbuf_text(&text), text.len);
	else
		ky_strbuf_adds(out, "null");
	ky_strbuf_fini(&text);
}

/* ---- cells of the page's classes ----------------------------------------------------------- */

static void lami_put_integer(struct ky_strbuf *out, const struct ky_json *cell, const char *key)
{
	int64_t number;

	if (lami_integer(cell, key, &number))
		ky_strbuf_addi(out, number);
	else
		ky_strbuf_adds(out, "null");
}

static void lami_put_process(struct ky_strbuf *out, const struct ky_json *cell)
{
	ky_strbuf_adds(out, "{\"name\": ");
	lami_put_text(out, lami_get(cell, "name", KY_JSON_STRING), "");
	ky_strbuf_adds(out, ", \"pid\": ");
	lami_put_integer(out, cell, "pid");
	ky_strbuf_adds(out, ", \"tid\": ");
	lami_put_integer(out, cell, "tid");
	ky_strbuf_adds(out, ", \"host\": null}");
}

static void lami_put_irq(struct ky_strbuf *out, const struct ky_json *cell)
{
	const struct ky_json *hard = lami_get(cell, "hard", KY_JSON_BOOL);

	ky_strbuf_addf(out,
		       "{\"kind\": \"%s\", \"nr\": ", hard && !hard->boolean ? "softirq" : "irq");
	lami_put_integer(out, cell, "nr");
	ky_strbuf_adds(out, ", \"name\": ");
	lami_put_text(out, lami_get(cell, "name", KY_JSON_STRING), "");
	ky_strbuf_adds(out, "}");
}

static void lami_put_cell(struct ky_strbuf *out, const struct ky_json *cell, const char *page)
{
	int64_t integer;
	double number;

	if (lami_is(lami_get(cell, "class", KY_JSON_STRING), "unknown"))
		ky_strbuf_adds(out, "null");
	else if (strcmp(page, "text") == 0)
		lami_put_any(out, cell);
	else if (strcmp(page, "process") == 0 && cell->kind == KY_JSON_OBJECT)
		lami_put_process(out, cell);
	else if (strcmp(page, "irq") == 0 && cell->kind == KY_JSON_OBJECT)
		lami_put_irq(out, cell);
	else if (strcmp(page, "timestamp") == 0 || strcmp(page, "cpu") == 0)
		lami_put_integer(out, cell, page[0] == 'c' ? "id" : "value");
	else if (lami_integer(cell, "value", &integer))
		ky_strbuf_addi(out, integer);
	else if (lami_number(cell, "value", &number))
		ky_strbuf_addf(out, "%.17g", number);
	else if (strcmp(page, "number") == 0)
		lami_put_any(out, cell); /* from a low to a high value */
	else
		ky_strbuf_adds(out, "null");
}

/* ---- tables -------------------------------------------------------------------------------- */

/* The class on the page; NULL: two columns of a range of time. */
static const char *lami_page_class(const struct ky_json *column)
{
	const struct ky_json *cls = lami_get(column, "class", KY_JSON_STRING);

	for (size_t i = 0; cls && i < sizeof(lami_classes) / sizeof(*lami_classes); i++) {
		if (lami_is(cls, lami_classes[i].lami))
			return lami_classes[i].page;
	}
	return "text";
}

static void lami_put_column(struct ky_strbuf *out, const struct ky_json *column, size_t i)
{
	static const char *const ends[] = {"begin", "end"};
	const struct ky_json *title = lami_get(column, "title", KY_JSON_STRING);
	const struct ky_json *unit = lami_get(column, "unit", KY_JSON_STRING);
	const char *page = lami_page_class(column);
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t k = 0; k < (page ? 1 : 2); k++) {
		ky_strbuf_clear(&text);
		if (title)
			ky_strbuf_add(&text, title->string.data, title->string.len);
		if (!page)
			ky_strbuf_addf(&text, ", %s", ends[k]);
		else if (unit && unit->string.len)
			ky_strbuf_addf(&text, " (%s)", unit->string.data);
		ky_strbuf_addf(out, "%s{\"name\": \"c%zu%s\", \"title\": ", i + k ? ", " : "", i,
			       k ? "e" : "");
		ky_json_put_text(out, ky_strbuf_text(&text), text.len);
		ky_strbuf_addf(out, ", \"class\": \"%s\"}", page ? page : "timestamp");
	}
	ky_strbuf_fini(&text);
}

static void lami_put_row(struct ky_strbuf *out, const struct lami_table *table,
			 const struct ky_json *row)
{
	const struct ky_json *column = table->columns ? table->columns->list.first : NULL;
	const struct ky_json *cell = row->list.first;

	ky_strbuf_adds(out, "{");
	for (size_t i = 0; column && cell && i < MAX_COLUMNS;
	     i++, column = column->next, cell = cell->next) {
		const char *page = lami_page_class(column);

		ky_strbuf_addf(out, "%s\"c%zu\": ", i ? ", " : "", i);
		if (page) {
			lami_put_cell(out, cell, page);
			continue;
		}
		lami_put_integer(out, lami_get(cell, "begin", KY_JSON_OBJECT), "value");
		ky_strbuf_addf(out, ", \"c%zue\": ", i);
		lami_put_integer(out, lami_get(cell, "end", KY_JSON_OBJECT), "value");
	}
	ky_strbuf_adds(out, "}");
}

/* The title and columns of a result: of its own class, or of the metadata's. */
static struct lami_table lami_table_of(const struct lami_report *report,
				       const struct ky_json *result)
{
	const struct ky_json *own = ky_json_get(result, "class");
	const struct ky_json *name =
		own && own->kind == KY_JSON_STRING ? own : lami_get(own, "inherit", KY_JSON_STRING);
	const struct ky_json *base =
		name ? lami_get(report->classes, name->string.data, KY_JSON_OBJECT) : NULL;
	struct lami_table table = {lami_get(own, "title", KY_JSON_STRING),
				   lami_get(own, "column-descriptions", KY_JSON_ARRAY)};

	if (!table.title)
		table.title = lami_get(base, "title", KY_JSON_STRING);
	if (!table.columns)
		table.columns = lami_get(base, "column-descriptions", KY_JSON_ARRAY);
	return table;
}

static void lami_put_table(const struct lami_report *report, const struct ky_json *result, size_t i)
{
	const struct ky_json *data = lami_get(result, "data", KY_JSON_ARRAY);
	struct lami_table table = lami_table_of(report, result);
	struct ky_strbuf *out = report->out;
	size_t n = 0;

	ky_strbuf_addf(out, "%s{\"name\": \"t%zu\", \"title\": ", i ? ",\n" : "", i);
	lami_put_text(out, table.title, "");
	ky_strbuf_adds(out, ", \"columns\": [");
	for (const struct ky_json *column = table.columns ? table.columns->list.first : NULL;
	     column && n < MAX_COLUMNS; column = column->next)
		lami_put_column(out, column, n++);
	ky_strbuf_adds(out, "], \"rows\": [");
	n = 0;
	for (const struct ky_json *row = data ? data->list.first : NULL; row; row = row->next) {
		if (row->kind != KY_JSON_ARRAY || n++ >= MAX_ROWS)
			continue;
		ky_strbuf_adds(out, n > 1 ? ",\n" : "");
		lami_put_row(out, &table, row);
	}
	ky_strbuf_addf(out, "], \"omitted\": %zu}", n > MAX_ROWS ? n - MAX_ROWS : 0);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Behind lines of progress. NULL: @text is no object. */
static struct ky_json *lami_read(const struct ky_strbuf *text, struct ky_arena *arena,
				 struct kymo_error *err)
{
	const char *at = ky_strbuf_text(text), *end = at + text->len;
	struct ky_json_reader reader = {
		.line = 1, .arena = arena, .err = err, .depth_left = KY_JSON_DEPTH};
	struct ky_json *json;

	while (at < end && *at != '{') {
		const char *line = memchr(at, '\n', (size_t)(end - at));

		at = line ? line + 1 : end;
	}
	reader.at = reader.line_begin = at;
	reader.end = end;
	if (at == end) {
		ky_error_set(err, KYMO_E_FORMAT, "it has no result");
		return NULL;
	}
	json = ky_json_read(&reader);
	return json && json->kind == KY_JSON_OBJECT ? json : NULL;
}

bool ky_program_error(const struct ky_strbuf *results, struct ky_strbuf *out)
{
	const struct ky_json *message;
	struct kymo_error ignored;
	struct ky_arena arena;

	ky_arena_init(&arena);
	ky_error_clear(&ignored);
	message = lami_get(lami_read(results, &arena, &ignored), "error-message", KY_JSON_STRING);
	if (message)
		ky_strbuf_add(out, message->string.data,
			      message->string.len < 300 ? message->string.len : 300);
	ky_arena_fini(&arena);
	return message != NULL;
}

static int lami_put_report(const char *name, const struct ky_json *metadata,
			   const struct ky_json *results, struct ky_strbuf *out,
			   struct kymo_error *err)
{
	const struct lami_report report = {lami_get(metadata, "table-classes", KY_JSON_OBJECT),
					   out};
	const struct ky_json *list = lami_get(results, "results", KY_JSON_ARRAY);
	const struct ky_json *about = lami_get(metadata, "description", KY_JSON_STRING);
	size_t n = 0;

	if (!list)
		return ky_error_set(err, KYMO_E_FORMAT, "it has no results");
	ky_strbuf_adds(out, "{\"events\": 0, \"reports\": [{\"name\": ");
	ky_json_put_text(out, name, strlen(name));
	ky_strbuf_adds(out, ", \"summary\": ");
	lami_put_text(out, lami_get(metadata, "title", KY_JSON_STRING), name);
	ky_strbuf_adds(out, ", \"notes\": [");
	if (about)
		lami_put_text(out, about, "");
	ky_strbuf_adds(out, "], \"tables\": [");
	for (const struct ky_json *one = list->list.first; one; one = one->next) {
		if (one->kind == KY_JSON_OBJECT && n < MAX_TABLES)
			lami_put_table(&report, one, n++);
	}
	ky_strbuf_adds(out, "]}]}\n");
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}

int ky_program_report(const char *name, const struct ky_strbuf *metadata,
		      const struct ky_strbuf *results, struct ky_strbuf *out,
		      struct kymo_error *err)
{
	struct kymo_error why;
	struct ky_arena arena;
	const struct ky_json *about, *found = NULL;
	int ret;

	ky_error_clear(&why);
	ky_arena_init(&arena);
	about = lami_read(metadata, &arena, &why);
	if (about)
		found = lami_read(results, &arena, &why);
	ret = found ? lami_put_report(name, about, found, out, &why)
		    : (why.code ? why.code : KYMO_E_FORMAT);
	ky_arena_fini(&arena);
	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0)
		return ky_error_set(err, ret, "%s does not write LAMI 1.0: %s", name, why.message);
	return KYMO_OK;
}
