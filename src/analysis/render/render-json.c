/* SPDX-License-Identifier: MIT */
/* Results as one JSON object. */
#include "analysis/render/render.h"

#include <jansson.h>
#include <math.h>

#include <kymo/version.h>

#include "analysis/tables/jansson-text.h"

static json_t *render_json_u64_json(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *render_json_process_json(const struct ky_process *process)
{
	json_t *object = json_object();

	json_object_set_new(object, "tid",
			    process->tid < 0 ? json_null() : json_integer(process->tid));
	json_object_set_new(object, "pid",
			    process->pid < 0 ? json_null() : json_integer(process->pid));
	json_object_set_new(object, "name", ky_jansson_text(process->comm));
	if (process->host)
		json_object_set_new(object, "host", ky_jansson_text(process->host));
	return object;
}

static void render_json_tally_item(const struct ky_tally *tally, json_t *object, size_t i)
{
	json_t *name = ky_jansson_text(tally->items[i].name);

	json_object_set_new(object, json_string_value(name),
			    render_json_u64_json(tally->items[i].count));
	json_decref(name);
}

static json_t *render_json_tally_json(const struct ky_tally *tally)
{
	json_t *object = json_object();

	for (size_t i = 0; i < tally->n_items; i++)
		render_json_tally_item(tally, object, i);
	return object;
}

static json_t *render_json_irq_json(const struct ky_irq_id *irq)
{
	json_t *object = json_object();

	json_object_set_new(object, "kind", json_string(irq->kind));
	json_object_set_new(object, "nr", irq->nr < 0 ? json_null() : json_integer(irq->nr));
	json_object_set_new(object, "name", ky_jansson_text(irq->name));
	return object;
}

static json_t *render_json_heat_json(const struct ky_heat *heat)
{
	json_t *array = json_array();

	for (size_t i = 0; i < heat->n; i++)
		json_array_append_new(array, render_json_u64_json(heat->counts[i]));
	return array;
}

static json_t *render_json_cell_json(const struct ky_cell *cell)
{
	switch (cell->type) {
	case KY_VALUE_U64:
		return render_json_u64_json(cell->u);
	case KY_VALUE_I64:
		return json_integer(cell->s);
	case KY_VALUE_F64:
		return isfinite(cell->f) ? json_real(cell->f) : json_null();
	case KY_VALUE_TEXT:
		return ky_jansson_text(cell->text);
	case KY_VALUE_PROCESS:
		return render_json_process_json(cell->process);
	case KY_VALUE_TALLY:
		return render_json_tally_json(cell->tally);
	case KY_VALUE_IRQ:
		return render_json_irq_json(cell->irq);
	case KY_VALUE_HEAT:
		return render_json_heat_json(cell->heat);
	case KY_VALUE_NONE:
		break;
	}
	return json_null();
}

static void render_json_column(const struct ky_column *column, json_t *array)
{
	json_t *json = json_pack("{s:s, s:s, s:s}", "name", column->name, "title", column->title,
				 "class", ky_cell_class_text(column->cls));

	if (column->spare)
		json_object_set_new(json, "spare", json_integer(column->spare));
	json_array_append_new(array, json);
}

/* "spare": a column that people can do without: the highest numbers first. */
static json_t *render_json_columns_json(const struct ky_table_def *def)
{
	json_t *array = json_array();

	for (size_t i = 0; i < def->n_columns; i++)
		render_json_column(&def->columns[i], array);
	return array;
}

static void render_json_row(const struct ky_table *table, json_t *array, size_t i)
{
	const struct ky_cell *cells = ky_table_cells(table, i);
	json_t *row = json_object();

	for (size_t c = 0; c < table->def->n_columns; c++)
		json_object_set_new(row, table->def->columns[c].name,
				    render_json_cell_json(&cells[c]));
	json_array_append_new(array, row);
}

static json_t *rows_json(const struct ky_table *table)
{
	json_t *array = json_array();

	for (size_t i = 0; i < ky_table_n_rows(table); i++)
		render_json_row(table, array, i);
	return array;
}

static json_t *render_json_table_json(const struct ky_table *table)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:I}", "name", table->def->name, "title",
			 table->title, "columns", render_json_columns_json(table->def), "rows",
			 rows_json(table), "omitted", (json_int_t)table->n_omitted);
}

static json_t *report_json(const struct ky_report_result *result)
{
	json_t *notes = json_array(), *tables = json_array(), *report;

	for (size_t i = 0; i < result->notes.len; i++)
		json_array_append_new(notes, ky_jansson_text(result->notes.data[i]));
	for (size_t i = 0; i < result->n_tables; i++) {
		if (!result->tables[i].hidden)
			json_array_append_new(tables, render_json_table_json(&result->tables[i]));
	}
	report = json_pack("{s:s, s:s}", "name", result->report->name, "summary",
			   result->report->summary);
	if (result->is_interval)
		json_object_set_new(report, "interval",
				    json_pack("{s:I, s:I}", "begin_ns",
					      (json_int_t)result->begin_ns, "end_ns",
					      (json_int_t)result->end_ns));
	json_object_set_new(report, "notes", notes);
	json_object_set_new(report, "tables", tables);
	return report;
}

static json_t *render_json_results_json(const struct ky_report_results *results)
{
	json_t *root = json_object(), *traces = json_array(), *reports = json_array();

	for (size_t i = 0; i < results->set->traces.len; i++)
		json_array_append_new(traces, ky_jansson_text(results->set->traces.data[i]->path));
	for (size_t i = 0; i < results->list.len; i++)
		json_array_append_new(reports, report_json(&results->list.data[i]));
	json_object_set_new(root, "kymo", json_string(KYMO_VERSION));
	json_object_set_new(root, "traces", traces);
	if (results->store) {
		json_object_set_new(root, "store", ky_jansson_text(results->store));
		json_object_set_new(root, "hosts", render_json_u64_json(results->n_hosts));
		json_object_set_new(root, "stored_traces", render_json_u64_json(results->n_traces));
	} else {
		json_object_set_new(root, "events", render_json_u64_json(results->n_events));
	}
	if (results->begin_ns == INT64_MIN)
		json_object_set_new(root, "range", json_null());
	else
		json_object_set_new(root, "range",
				    json_pack("{s:I, s:I}", "begin_ns",
					      (json_int_t)results->begin_ns, "end_ns",
					      (json_int_t)results->end_ns));
	json_object_set_new(root, "reports", reports);
	return root;
}

int ky_render_json(struct ky_strbuf *out, const struct ky_report_results *results,
		   struct kymo_error *err)
{
	return ky_jansson_add(out, render_json_results_json(results), JSON_INDENT(1), err);
}
