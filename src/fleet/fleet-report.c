/* SPDX-License-Identifier: MIT */
/* Rows of reports in a store: a table report_NAME_TABLE for each one that a report has. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analysis/reports/report.h"
#include "base/error.h"
#include "fleet/fleet-load.h"

/* Ratios are integers here: 1 is a million. */
#define PPM 1e6

/* Columns of a thread. */
enum { PART_TID, PART_PID, PART_COMM };

/* A column of the store. */
struct report_field {
	uint32_t column; /* of the report's table */
	int part;	 /* of a thread */
};

struct report_load {
	struct ky_fleet_load *load;
	struct ky_arena arena; /* of names */
	struct ky_fleet_table table;
	KY_VEC(struct report_field) fields; /* beside the first three columns */
	const struct ky_report_result *result;
	const char *host;
};

enum { REPORT_TIME, REPORT_END, REPORT_HOST, REPORT_FIELDS };

/* ---- columns -------------------------------------------------------------------------- */

static char *report_word(struct ky_arena *arena, const char *prefix, const char *name,
			 const char *suffix)
{
	char *word = ky_arena_printf(arena, "%s%s%s", prefix, name, suffix);

	for (char *at = word; at && *at; at++)
		if (!isalnum((unsigned char)*at) || !isascii((unsigned char)*at))
			*at = '_';
	return word;
}

static int report_add(struct report_load *report, uint32_t column, int part, const char *name,
		      const char *suffix, bool is_text)
{
	bool is_taken =
		strcmp(name, "time") == 0 || strcmp(name, "end") == 0 || strcmp(name, "host") == 0;
	const struct ky_fleet_column own = {
		report_word(&report->arena, is_taken ? "row_" : "", name, suffix), is_text};

	if (!own.name || ky_vec_push(&report->table.columns, own) < 0)
		return KYMO_E_MEMORY;
	return ky_vec_push(&report->fields, (struct report_field){column, part});
}

static int report_add_column(struct report_load *report, uint32_t number,
			     const struct ky_column *column)
{
	int ret;

	switch (column->cls) {
	case KY_CELL_PROCESS:
		ret = report_add(report, number, PART_TID, column->name, "_tid", false);
		ret = ret ? ret : report_add(report, number, PART_PID, column->name, "_pid", false);
		return ret ? ret
			   : report_add(report, number, PART_COMM, column->name, "_comm", true);
	case KY_CELL_RATIO:
		return report_add(report, number, 0, column->name, "_ppm", false);
	case KY_CELL_SYSCALL:
	case KY_CELL_IRQ:
	case KY_CELL_DISK:
	case KY_CELL_NETIF:
		return report_add(report, number, 0, column->name, "", true);
	case KY_CELL_TEXT:
	case KY_CELL_PATH:
	case KY_CELL_TALLY:
		if (!ky_fleet_wants_column(report->load->options, column->name, "TEXT", ""))
			return KYMO_OK;
		return report_add(report, number, 0, column->name, "", true);
	case KY_CELL_HEAT:
		return KYMO_OK;
	default:
		return report_add(report, number, 0, column->name, "", false);
	}
}

static int report_find_columns(struct report_load *report, const struct ky_table *table)
{
	static const struct ky_fleet_column first[REPORT_FIELDS] = {
		{"time", false}, {"end", false}, {"host", true}};
	int ret = KYMO_OK;

	ky_vec_clear(&report->fields);
	ky_vec_clear(&report->table.columns);
	for (size_t i = 0; i < REPORT_FIELDS && !ret; i++)
		ret = ky_vec_push(&report->table.columns, first[i]);
	report->table.time = REPORT_TIME;
	report->table.end = REPORT_END;
	for (uint32_t i = 0; i < table->def->n_columns && !ret; i++)
		ret = report_add_column(report, i, &table->def->columns[i]);
	report->table.name =
		report_word(&report->arena, "report_", report->result->report->name, "_");
	if (!ret && report->table.name)
		report->table.name =
			report_word(&report->arena, report->table.name, table->def->name, "");
	return ret || !report->table.name ? KYMO_E_MEMORY : KYMO_OK;
}

/* ---- rows ----------------------------------------------------------------------------- */

static void report_put_text(struct ky_sql_cell *to, const char *text)
{
	if (!text || !*text)
		return;
	to->type = KY_SQL_TEXT;
	to->text = text;
	to->len = (uint32_t)strlen(text);
}

static void report_put_thread(struct ky_sql_cell *to, const struct ky_process *process, int part)
{
	int32_t id = part == PART_TID ? process->tid : process->pid;

	if (part == PART_COMM)
		report_put_text(to, process->comm);
	else if (id >= 0)
		ky_sql_put(to, id);
}

static void report_put_tally(struct ky_sql_rows *texts, struct ky_sql_cell *to,
			     const struct ky_tally *tally)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	for (size_t i = 0; i < tally->n_items; i++)
		ky_strbuf_addf(&out, "%s%s=%llu", i ? ", " : "", tally->items[i].name,
			       (unsigned long long)tally->items[i].count);
	if (!ky_strbuf_failed(&out))
		ky_sql_put_text(texts, to, ky_strbuf_text(&out), out.len);
	ky_strbuf_fini(&out);
}

static void report_put(struct ky_sql_rows *texts, struct ky_sql_cell *to,
		       const struct ky_cell *cell, enum ky_cell_class cls, int part)
{
	*to = (struct ky_sql_cell){.type = KY_SQL_NULL};
	switch (cell->type) {
	case KY_VALUE_U64:
	case KY_VALUE_I64:
		ky_sql_put(to, cls == KY_CELL_RATIO ? cell->s * (int64_t)PPM : cell->s);
		break;
	case KY_VALUE_F64:
		to->type = KY_SQL_REAL;
		to->real = cls == KY_CELL_RATIO ? cell->f * PPM : cell->f;
		break;
	case KY_VALUE_TEXT:
		report_put_text(to, cell->text);
		break;
	case KY_VALUE_PROCESS:
		report_put_thread(to, cell->process, part);
		break;
	case KY_VALUE_IRQ:
		report_put_text(to, cell->irq->name);
		break;
	case KY_VALUE_TALLY:
		report_put_tally(texts, to, cell->tally);
		break;
	default:
		break;
	}
}

static void report_put_row(struct report_load *report, struct ky_fleet_batch *batch,
			   const struct ky_table *table, size_t row, struct ky_sql_rows *texts)
{
	const struct ky_cell *cells = ky_table_cells(table, row);
	struct ky_sql_cell cell = {.type = KY_SQL_NULL};

	ky_sql_put_time(&cell, report->result->begin_ns);
	ky_fleet_batch_add(batch, REPORT_TIME, &cell);
	ky_sql_put_time(&cell, report->result->end_ns);
	ky_fleet_batch_add(batch, REPORT_END, &cell);
	cell = (struct ky_sql_cell){.type = KY_SQL_NULL};
	report_put_text(&cell, report->host);
	ky_fleet_batch_add(batch, REPORT_HOST, &cell);
	for (size_t i = 0; i < report->fields.len; i++) {
		const struct report_field *field = &report->fields.data[i];

		report_put(texts, &cell, &cells[field->column],
			   table->def->columns[field->column].cls, field->part);
		ky_fleet_batch_add(batch, REPORT_FIELDS + i, &cell);
	}
	ky_fleet_batch_end_row(batch);
	if (texts->has_texts)
		ky_sql_rows_drain(texts);
}

static int report_fill(struct report_load *report, struct ky_fleet_batch *batch,
		       const struct ky_table *table)
{
	struct ky_sql_rows texts;

	ky_sql_rows_init(&texts, 0);
	for (size_t row = 0; row < ky_table_n_rows(table) && row < KY_FLEET_BATCH_ROWS; row++)
		report_put_row(report, batch, table, row, &texts);
	ky_sql_rows_fini(&texts);
	memcpy(batch->trace, report->load->trace, sizeof(batch->trace));
	batch->last_ns = report->result->end_ns;
	batch->is_last = true;
	return batch->failed ? KYMO_E_MEMORY : KYMO_OK;
}

static int report_store(struct report_load *report, const struct ky_table *table,
			struct kymo_error *err)
{
	struct ky_fleet_load *load = report->load;
	struct ky_fleet *store = load->store;
	struct ky_fleet_batch batch;
	bool is_known = false;
	int ret = report_find_columns(report, table) < 0 ? ky_error_nomem(err) : KYMO_OK;

	if (!ret)
		ret = store->ops->table(store, &report->table, err);
	if (!ret && load->options->again)
		ret = store->ops->drop(store, &report->table, load->trace, err);
	if (ret < 0)
		return ret;
	ret = ky_fleet_batch_init(&batch, &report->table);
	if (!ret)
		ret = report_fill(report, &batch, table);
	if (ret < 0)
		ret = ky_error_nomem(err);
	if (!ret && batch.n_rows)
		ret = store->ops->put(store, &batch, &is_known, err);
	if (!ret)
		*(is_known ? &load->result->n_known : &load->result->n_rows) += batch.n_rows;
	load->result->n_batches += !ret && batch.n_rows && !is_known;
	ky_fleet_batch_fini(&batch);
	return ret;
}

/* ---- reports -------------------------------------------------------------------------- */

static int report_store_all(struct report_load *report, const struct ky_report_results *results,
			    struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&results->list, result) {
		report->result = result;
		for (size_t i = 0; i < result->n_tables && !ret; i++)
			if (result->tables[i].def->kind != KY_TABLE_PROSE &&
			    !result->tables[i].hidden)
				ret = report_store(report, &result->tables[i], err);
	}
	return ret;
}

static int report_run(struct report_load *report, const struct ky_report *const *reports, size_t n,
		      struct kymo_error *err)
{
	struct ky_report_results results = {0};
	struct ky_report_options options;
	struct ky_flow *flow = NULL;
	int ret = ky_flow_open_set(report->load->set, &flow, err);

	ky_report_options_init(&options);
	options.for_people = false;
	if (!ret)
		ret = ky_reports_run(reports, n, report->load->set, flow, &options, &results, err);
	/* A machine without these events has no rows. */
	ret = ret == KYMO_E_UNSUPPORTED ? KYMO_OK : ret;
	if (!ret)
		ret = report_store_all(report, &results, err);
	ky_report_results_fini(&results);
	ky_report_options_fini(&options);
	ky_flow_close(flow);
	return ret;
}

static const char *report_host(const struct ky_fleet_load *load)
{
	const struct ky_env *env = load->set->traces.len
					   ? ky_env_find(load->set->traces.data[0]->cls, "hostname")
					   : NULL;

	return load->options->host ? load->options->host : env && env->is_text ? env->text : "";
}

int ky_fleet_check_reports(const char *const *names, size_t n, struct kymo_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct ky_report *report = ky_report_find(names[i]);

		if (!report || report->wants_periods || report->wants_two || report->wants_of ||
		    report->wants_choice) {
			ky_error_set(err, KYMO_E_INVALID, "no report '%s' fills a store", names[i]);
			ky_error_hint(err, "kymo report lists the reports");
			return KYMO_E_INVALID;
		}
	}
	return KYMO_OK;
}

int ky_fleet_load_reports(struct ky_fleet_load *load, struct kymo_error *err)
{
	struct report_load report = {.load = load, .host = report_host(load)};
	struct kymo_error other = {0};
	int ret;

	ky_arena_init(&report.arena);
	ret = load->store->ops->begin(load->store, load->trace, err);
	for (size_t i = 0; i < load->options->n_reports && !ret; i++) {
		const struct ky_report *const one[] = {ky_report_find(load->options->reports[i])};

		if (one[0])
			ret = report_run(&report, one, 1, err);
	}
	if (!ret)
		ret = load->store->ops->end(load->store, err);
	else
		(void)load->store->ops->end(load->store, &other);
	ky_vec_fini(&report.fields);
	ky_vec_fini(&report.table.columns);
	ky_arena_fini(&report.arena);
	return ret;
}
