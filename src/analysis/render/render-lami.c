/* SPDX-License-Identifier: MIT */
/* Results in the words of LAMI 1.0. */
#include "analysis/render/lami.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <kymo/version.h>

#include "analysis/tables/jansson-text.h"

/* ---- columns ----------------------------------------------------------------------------- */

static const char *class_text(enum ky_cell_class cls)
{
	switch (cls) {
	case KY_CELL_COUNT:
	case KY_CELL_NUMBER:
	case KY_CELL_RATE:
		return "number";
	case KY_CELL_TEXT:
	case KY_CELL_TALLY:
	case KY_CELL_HEAT:
	case KY_CELL_ADDRESS:
		return "string";
	default: /* the others are called alike */
		return ky_cell_class_text(cls);
	}
}

static bool is_time(const struct ky_column *column, const char *name)
{
	return column->cls == KY_CELL_TIMESTAMP && strcmp(column->name, name) == 0;
}

/* Do columns @c and @c + 1 make one of time ranges? */
static bool is_time_range(const struct ky_table_def *def, size_t c)
{
	return c + 1 < def->n_columns && is_time(&def->columns[c], "begin") &&
	       is_time(&def->columns[c + 1], "end");
}

/* The first column that is one: headings are in titles. */
static size_t first_column(const struct ky_table_def *def)
{
	return def->columns[0].group ? 1 : 0;
}

static json_t *render_lami_columns_json(const struct ky_table_def *def)
{
	json_t *array = json_array();

	for (size_t c = first_column(def); c < def->n_columns; c++) {
		bool range = is_time_range(def, c);

		json_array_append_new(
			array, json_pack("{s:s, s:s}", "title",
					 range ? "Time range" : def->columns[c].title, "class",
					 range ? "time-range" : class_text(def->columns[c].cls)));
		c += range;
	}
	return array;
}

/* ---- cells ------------------------------------------------------------------------------- */

static json_t *object(const char *cls, const char *key, json_t *value)
{
	return json_pack("{s:s, s:o}", "class", cls, key, value);
}

static json_t *render_lami_unknown(void)
{
	return json_pack("{s:s}", "class", "unknown");
}

static json_t *timestamp(int64_t ns)
{
	return object("timestamp", "value", json_integer(ns));
}

static json_t *time_range(int64_t begin_ns, int64_t end_ns)
{
	return json_pack("{s:s, s:o, s:o}", "class", "time-range", "begin", timestamp(begin_ns),
			 "end", timestamp(end_ns));
}

static json_t *render_lami_process_json(const struct ky_process *process)
{
	json_t *json = json_pack("{s:s}", "class", "process");
	struct ky_strbuf name = KY_STRBUF_INIT;

	/* Hosts have no place of their own in it. */
	ky_strbuf_addf(&name, "%s%s%s", process->comm, process->host ? "@" : "",
		       process->host ? process->host : "");
	json_object_set_new(json, "name", ky_jansson_text(ky_strbuf_text(&name)));
	ky_strbuf_fini(&name);
	if (process->pid >= 0)
		json_object_set_new(json, "pid", json_integer(process->pid));
	if (process->tid >= 0)
		json_object_set_new(json, "tid", json_integer(process->tid));
	return json;
}

/* The number is not optional: -1 for an interrupt that has none. */
static json_t *render_lami_irq_json(const struct ky_irq_id *irq)
{
	json_t *json = json_pack("{s:s, s:b, s:i}", "class", "irq", "hard",
				 strcmp(irq->kind, "soft") != 0, "nr", irq->nr < 0 ? -1 : irq->nr);

	if (irq->name[0])
		json_object_set_new(json, "name", ky_jansson_text(irq->name));
	return json;
}

static json_t *render_lami_tally_json(const struct ky_tally *tally)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	json_t *json;

	for (size_t i = 0; i < tally->n_items; i++)
		ky_strbuf_addf(&text, "%s%s %" PRIu64, i ? ", " : "", tally->items[i].name,
			       tally->items[i].count);
	json = object("string", "value", ky_jansson_text(ky_strbuf_text(&text)));
	ky_strbuf_fini(&text);
	return json;
}

static json_t *text_json(const char *cls, const char *text)
{
	bool named = strcmp(cls, "syscall") == 0 || strcmp(cls, "disk") == 0 ||
		     strcmp(cls, "netif") == 0;

	return object(cls,
		      strcmp(cls, "path") == 0 ? "path"
		      : named		       ? "name"
					       : "value",
		      ky_jansson_text(text));
}

static json_t *render_lami_u64_json(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *number_json(enum ky_cell_class cls, const struct ky_cell *cell)
{
	const char *text = class_text(cls);
	char digits[24];
	json_t *value;

	if (cell->type == KY_VALUE_F64 && !isfinite(cell->f))
		return render_lami_unknown();
	if (strcmp(text, "string") == 0) {
		snprintf(digits, sizeof(digits), "0x%" PRIx64, cell->u);
		return object(text, "value", json_string(digits));
	}
	value = cell->type == KY_VALUE_U64   ? render_lami_u64_json(cell->u)
		: cell->type == KY_VALUE_I64 ? json_integer(cell->s)
					     : json_real(cell->f);
	return object(text, cls == KY_CELL_CPU ? "id" : "value", value);
}

static json_t *render_lami_cell_json(enum ky_cell_class cls, const struct ky_cell *cell)
{
	switch (cell->type) {
	case KY_VALUE_U64:
	case KY_VALUE_I64:
	case KY_VALUE_F64:
		return number_json(cls, cell);
	case KY_VALUE_TEXT:
		return text_json(class_text(cls), cell->text);
	case KY_VALUE_PROCESS:
		return render_lami_process_json(cell->process);
	case KY_VALUE_TALLY:
		return render_lami_tally_json(cell->tally);
	case KY_VALUE_IRQ:
		return render_lami_irq_json(cell->irq);
	case KY_VALUE_HEAT: /* of reports that LAMI does not have */
	case KY_VALUE_NONE:
		break;
	}
	return json_null();
}

static json_t *range_json(const struct ky_cell *begin, const struct ky_cell *end)
{
	if (begin->type == KY_VALUE_NONE || end->type == KY_VALUE_NONE)
		return json_null();
	return time_range(begin->s, end->s);
}

/* ---- tables ------------------------------------------------------------------------------ */

static json_t *row_json(const struct ky_table_def *def, const struct ky_cell *cells)
{
	json_t *row = json_array();

	for (size_t c = first_column(def); c < def->n_columns; c++) {
		if (is_time_range(def, c)) {
			json_array_append_new(row, range_json(&cells[c], &cells[c + 1]));
			c++;
		} else {
			json_array_append_new(
				row, render_lami_cell_json(def->columns[c].cls, &cells[c]));
		}
	}
	return row;
}

/* What a heading says: "sh (323, TID: 325)", "ttyS0 (4)", "open". */
static void render_lami_add_heading(struct ky_strbuf *out, const struct ky_cell *cell)
{
	switch (cell->type) {
	case KY_VALUE_TEXT:
		ky_strbuf_adds(out, cell->text);
		break;
	case KY_VALUE_PROCESS:
		ky_strbuf_adds(out, cell->process->comm[0] ? cell->process->comm : "?");
		if (cell->process->host)
			ky_strbuf_addf(out, "@%s", cell->process->host);
		if (cell->process->pid >= 0)
			ky_strbuf_addf(out, " (%d", cell->process->pid);
		else
			ky_strbuf_adds(out, " (?");
		if (cell->process->tid >= 0)
			ky_strbuf_addf(out, ", TID: %d", cell->process->tid);
		ky_strbuf_addc(out, ')');
		break;
	case KY_VALUE_IRQ:
		ky_strbuf_adds(out, cell->irq->name[0] ? cell->irq->name : cell->irq->kind);
		if (cell->irq->nr >= 0)
			ky_strbuf_addf(out, " (%d)", cell->irq->nr);
		break;
	case KY_VALUE_F64:
		ky_strbuf_addf(out, "%g", cell->f);
		break;
	case KY_VALUE_U64:
	case KY_VALUE_I64:
		ky_strbuf_addi(out, cell->s);
		break;
	case KY_VALUE_TALLY:
	case KY_VALUE_HEAT:
	case KY_VALUE_NONE:
		ky_strbuf_addc(out, '?');
		break;
	}
}

/* The class of a table: its name, or for the rows under @heading one that is titled so. */
static json_t *table_class(const struct ky_table_def *def, const struct ky_cell *heading)
{
	struct ky_strbuf title = KY_STRBUF_INIT;
	json_t *json;

	if (!heading)
		return json_string(def->name);
	ky_strbuf_addf(&title, "%s [", def->title);
	render_lami_add_heading(&title, heading);
	ky_strbuf_addc(&title, ']');
	json = json_pack("{s:s, s:o}", "inherit", def->name, "title",
			 ky_jansson_text(ky_strbuf_text(&title)));
	ky_strbuf_fini(&title);
	return json;
}

/* Rows from @*row on, up to the next heading. */
static json_t *render_lami_table_json(const struct ky_report_result *result,
				      const struct ky_table *table, size_t *row)
{
	const struct ky_table_def *def = table->def;
	size_t n = ky_table_n_rows(table);
	const struct ky_cell *heading =
		def->columns[0].group && *row < n ? ky_table_cells(table, *row) : NULL;
	json_t *data = json_array();

	while (*row < n && (!heading || ky_cell_equal(heading, ky_table_cells(table, *row))))
		json_array_append_new(data, row_json(def, ky_table_cells(table, (*row)++)));
	return json_pack("{s:o, s:o, s:o}", "class", table_class(def, heading), "time-range",
			 time_range(result->begin_ns, result->end_ns), "data", data);
}

static void add_tables(json_t *array, const struct ky_report_result *result,
		       const struct ky_table *table)
{
	size_t row = 0, n = ky_table_n_rows(table);

	if (!n && !table->def->columns[0].group)
		json_array_append_new(array, render_lami_table_json(result, table, &row));
	while (row < n)
		json_array_append_new(array, render_lami_table_json(result, table, &row));
}

static void render_lami_result(const struct ky_report_result *result, json_t *array)
{
	/* The range is beside the trace: there are no tables of no time. */
	if (result->begin_ns == INT64_MIN || result->end_ns < result->begin_ns)
		return;
	for (size_t t = 0; t < result->n_tables; t++) {
		if (!result->tables[t].hidden)
			add_tables(array, result, &result->tables[t]);
	}
}

static json_t *render_lami_results_json(const struct ky_report_results *results)
{
	json_t *array = json_array();

	for (size_t i = 0; i < results->list.len; i++)
		render_lami_result(&results->list.data[i], array);
	return json_pack("{s:o}", "results", array);
}

/* ---- metadata ---------------------------------------------------------------------------- */

static json_t *version_json(void)
{
	int major = 0, minor = 0, patch = 0;

	sscanf(KYMO_VERSION, "%d.%d.%d", &major, &minor, &patch);
	return json_pack("{s:i, s:i, s:i, s:s}", "major", major, "minor", minor, "patch", patch,
			 "extra", "");
}

static json_t *classes_json(const struct ky_report *report)
{
	json_t *classes = json_object();

	for (const struct ky_table_def *const *def = report->tables; *def; def++)
		json_object_set_new(classes, (*def)->name,
				    json_pack("{s:s, s:o}", "title", (*def)->title,
					      "column-descriptions",
					      render_lami_columns_json(*def)));
	return classes;
}

static json_t *metadata_json(const struct ky_report *report)
{
	char title[128];

	snprintf(title, sizeof(title), "%s", report->summary);
	title[0] = (char)toupper((unsigned char)title[0]);
	return json_pack("{s:{s:i, s:i}, s:o, s:s, s:s, s:[s], s:s, s:[s,s,s], s:o}", "mi-version",
			 "major", 1, "minor", 0, "version", version_json(), "title", title,
			 "description", report->description, "authors", "The Kymo authors", "url",
			 "man:kymo-lami(1)", "tags", "linux-kernel", "kymo", report->name,
			 "table-classes", classes_json(report));
}

/* ---- out: on one line, so that it stands apart from lines of progress -------------------------- */

int ky_lami_metadata(struct ky_strbuf *out, const struct ky_report *report, struct kymo_error *err)
{
	return ky_jansson_add(out, metadata_json(report), 0, err);
}

int ky_lami_results(struct ky_strbuf *out, const struct ky_report_results *results,
		    struct kymo_error *err)
{
	return ky_jansson_add(out, render_lami_results_json(results), 0, err);
}

int ky_lami_error(struct ky_strbuf *out, int code, const char *message, struct kymo_error *err)
{
	return ky_jansson_add(out,
			      json_pack("{s:o, s:i}", "error-message", ky_jansson_text(message),
					"error-code", code),
			      0, err);
}
