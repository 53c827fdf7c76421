/* SPDX-License-Identifier: MIT */
/* Rows of reports in a store: a table report_NAME_TABLE for each one that a report has. */
#include <stdio.h>
#include <string.h>

#include "analysis/reports/report.h"
#include "base/error.h"
#include "fleet/fleet-load.h"
#include "fleet/fleet-report-fields.h"

#define REPORTS_MAX 32 /* of one reading */

struct report_load {
	struct ky_fleet_load *load;
	struct ky_arena arena; /* of names */
	struct ky_fleet_table table;
	struct ky_fleet_fields fields; /* beside the first three columns */
	const struct ky_report_result *result;
	const char *host;
};

enum { REPORT_TIME, REPORT_END, REPORT_HOST, REPORT_FIELDS };

/* ---- columns -------------------------------------------------------------------------- */

/* Texts that may hold secrets need a wish. */
static bool report_wants(const struct report_load *report, const struct ky_column *column)
{
	if (column->cls != KY_CELL_TEXT && column->cls != KY_CELL_PATH)
		return true;
	return ky_fleet_wants_column(report->load->options, column->name, "TEXT", "");
}

static int report_choose_columns(struct report_load *report, const struct ky_table_def *def)
{
	struct ky_fleet_fields all = KY_VEC_INIT;
	int ret = ky_fleet_report_fields(&report->arena, def, &all);

	for (size_t i = 0; i < all.len && !ret; i++) {
		const struct ky_fleet_column column = {all.data[i].name, all.data[i].is_text};

		if (!report_wants(report, &def->columns[all.data[i].column]))
			continue;
		ret = ky_vec_push(&report->fields, all.data[i]);
		ret = ret ? ret : ky_vec_push(&report->table.columns, column);
	}
	ky_vec_fini(&all);
	return ret;
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
	ret = ret ? ret : report_choose_columns(report, table->def);
	report->table.name = ky_fleet_report_table_name(&report->arena,
							report->result->report->name, table->def);
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

static void report_put_thread(struct ky_sql_cell *to, const struct ky_process *process,
			      enum ky_fleet_part part)
{
	int32_t id = part == KY_FLEET_TID ? process->tid : process->pid;

	if (part == KY_FLEET_COMM)
		report_put_text(to, process->comm);
	else if (id >= 0)
		ky_sql_put(to, id);
}

static void report_put_irq(struct ky_sql_cell *to, const struct ky_irq_id *irq,
			   enum ky_fleet_part part)
{
	if (part == KY_FLEET_NR && irq->nr >= 0)
		ky_sql_put(to, irq->nr);
	else if (part != KY_FLEET_NR)
		report_put_text(to, part == KY_FLEET_KIND ? irq->kind : irq->name);
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

static void report_put_real(struct ky_sql_cell *to, double value)
{
	to->type = KY_SQL_REAL;
	to->real = value;
}

static void report_put(struct ky_sql_rows *texts, struct ky_sql_cell *to,
		       const struct ky_cell *cell, enum ky_cell_class cls, enum ky_fleet_part part)
{
	bool is_real = cls == KY_CELL_RATIO || cls == KY_CELL_RATE;

	*to = (struct ky_sql_cell){.type = KY_SQL_NULL};
	switch (cell->type) {
	case KY_VALUE_U64:
	case KY_VALUE_I64:
		if (is_real)
			report_put_real(to, ky_cell_number(cell) * KY_FLEET_MILLION);
		else
			ky_sql_put(to, cell->s);
		break;
	case KY_VALUE_F64:
		report_put_real(to, is_real ? cell->f * KY_FLEET_MILLION : cell->f);
		break;
	case KY_VALUE_TEXT:
		report_put_text(to, cell->text);
		break;
	case KY_VALUE_PROCESS:
		report_put_thread(to, cell->process, part);
		break;
	case KY_VALUE_IRQ:
		report_put_irq(to, cell->irq, part);
		break;
	case KY_VALUE_TALLY:
		report_put_tally(texts, to, cell->tally);
		break;
	default:
		break;
	}
}

/* Where a trace has several hosts, the row says of which one it is. */
static const char *report_host_of(const struct report_load *report, const struct ky_table *table,
				  const struct ky_cell *cells)
{
	for (size_t i = 0; i < table->def->n_columns && !report->load->options->host; i++) {
		if (cells[i].type == KY_VALUE_TEXT &&
		    ky_fleet_report_is_host(&table->def->columns[i]) && cells[i].text[0])
			return cells[i].text;
		if (cells[i].type == KY_VALUE_PROCESS && cells[i].process->host)
			return cells[i].process->host;
	}
	return report->host;
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
	report_put_text(&cell, report_host_of(report, table, cells));
	ky_fleet_batch_add(batch, REPORT_HOST, &cell);
	for (size_t i = 0; i < report->fields.len; i++) {
		const struct ky_fleet_field *field = &report->fields.data[i];

		report_put(texts, &cell, &cells[field->column],
			   table->def->columns[field->column].cls, field->part);
		ky_fleet_batch_add(batch, REPORT_FIELDS + i, &cell);
	}
	ky_fleet_batch_end_row(batch);
	if (texts->has_texts)
		ky_sql_rows_drain(texts);
}

/* Rows from @row on. */
static int report_fill(struct report_load *report, struct ky_fleet_batch *batch,
		       const struct ky_table *table, size_t row)
{
	size_t n_rows = ky_table_n_rows(table);
	struct ky_sql_rows texts;

	ky_sql_rows_init(&texts, 0);
	for (; row < n_rows && batch->n_rows < KY_FLEET_BATCH_ROWS; row++)
		report_put_row(report, batch, table, row, &texts);
	ky_sql_rows_fini(&texts);
	memcpy(batch->trace, report->load->trace, sizeof(batch->trace));
	batch->last_ns = report->result->end_ns;
	batch->is_last = row == n_rows;
	return batch->failed ? KYMO_E_MEMORY : KYMO_OK;
}

static int report_store_batch(struct report_load *report, const struct ky_table *table,
			      uint64_t number, struct kymo_error *err)
{
	struct ky_fleet_load *load = report->load;
	struct ky_fleet_batch batch;
	bool is_known = false;
	int ret = ky_fleet_batch_init(&batch, &report->table);

	batch.number = number;
	if (!ret)
		ret = report_fill(report, &batch, table, number * KY_FLEET_BATCH_ROWS);
	if (ret < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = load->store->ops->put(load->store, &batch, &is_known, err);
	if (!ret)
		*(is_known ? &load->result->n_known : &load->result->n_rows) += batch.n_rows;
	load->result->n_batches += !ret && !is_known;
	ky_fleet_batch_fini(&batch);
	return ret;
}

static int report_store(struct report_load *report, const struct ky_table *table,
			struct kymo_error *err)
{
	struct ky_fleet_load *load = report->load;
	size_t n_rows = ky_table_n_rows(table);
	int ret;

	/* Many machines lack what most reports tell of: tables without rows are none. */
	if (!n_rows && !load->options->again)
		return KYMO_OK;
	ret = report_find_columns(report, table) < 0 ? ky_error_nomem(err) : KYMO_OK;
	if (!ret)
		ret = load->store->ops->table(load->store, &report->table, err);
	if (!ret && load->options->again)
		ret = load->store->ops->drop(load->store, &report->table, load->trace, err);
	for (uint64_t i = 0; i * KY_FLEET_BATCH_ROWS < n_rows && !ret; i++)
		ret = report_store_batch(report, table, i, err);
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

/* Sentences for people, of one trace, are no rows. */
static bool report_fills_a_store(const struct ky_report *report)
{
	bool has_rows = false;

	for (size_t i = 0; report->tables[i]; i++)
		has_rows |= report->tables[i]->kind != KY_TABLE_PROSE;
	return has_rows && !report->wants_periods && !report->wants_two && !report->wants_of &&
	       !report->wants_choice;
}

int ky_fleet_check_reports(const char *const *names, size_t n, struct kymo_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct ky_report *report = ky_report_find(names[i]);

		if (strcmp(names[i], "all") == 0 || (report && report_fills_a_store(report)))
			continue;
		ky_error_set(err, KYMO_E_INVALID, "no report '%s' fills a store", names[i]);
		ky_error_hint(err, "docs/reports/README.md lists the reports");
		return KYMO_E_INVALID;
	}
	return KYMO_OK;
}

static bool report_is_wanted(const struct ky_fleet_options *options, const struct ky_report *report)
{
	for (size_t i = 0; i < options->n_reports; i++)
		if (strcmp(options->reports[i], report->name) == 0 ||
		    (strcmp(options->reports[i], "all") == 0 && !report->whole &&
		     report->tables[0]->kind != KY_TABLE_LOG && report_fills_a_store(report)))
			return true;
	return false;
}

/* Most reports share one reading of the trace; those that need all threads do not. */
static int fleet_report_run_all(struct report_load *report, struct kymo_error *err)
{
	const struct ky_report *together[REPORTS_MAX];
	size_t n = 0;
	int ret = KYMO_OK;

	for (size_t i = 0; ky_reports[i] && !ret; i++) {
		if (!report_is_wanted(report->load->options, ky_reports[i]))
			continue;
		if (ky_reports[i]->whole || n == REPORTS_MAX)
			ret = report_run(report, &ky_reports[i], 1, err);
		else
			together[n++] = ky_reports[i];
	}
	return ret || !n ? ret : report_run(report, together, n, err);
}

int ky_fleet_load_reports(struct ky_fleet_load *load, struct kymo_error *err)
{
	struct report_load report = {.load = load, .host = report_host(load)};
	struct kymo_error other = {0};
	int ret;

	ky_arena_init(&report.arena);
	ret = load->store->ops->begin(load->store, load->trace, err);
	if (!ret)
		ret = fleet_report_run_all(&report, err);
	if (!ret)
		ret = load->store->ops->end(load->store, err);
	else
		(void)load->store->ops->end(load->store, &other);
	ky_vec_fini(&report.fields);
	ky_vec_fini(&report.table.columns);
	ky_arena_fini(&report.arena);
	return ret;
}
