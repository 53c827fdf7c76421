/* SPDX-License-Identifier: MIT */
/* Results as comma-separated values. */
#include "analysis/render/render.h"

#include <string.h>

#include "base/csv.h"

/* What is written, and how. */
struct csv {
	struct ky_strbuf *out;
	bool host; /* there are several traces: say whose a process is */
	bool raw;  /* texts as they are */
};

static void render_csv_add_text(const struct csv *csv, const char *text)
{
	ky_csv_text(csv->out, text, strlen(text), csv->raw);
}

static void render_csv_add_id(struct ky_strbuf *out, int32_t id)
{
	if (id >= 0)
		ky_strbuf_addi(out, id);
}

static void render_csv_add_process(const struct csv *csv, const struct ky_cell *cell)
{
	struct ky_strbuf *out = csv->out;

	if (cell->type != KY_VALUE_PROCESS) {
		ky_strbuf_adds(out, csv->host ? ",,," : ",,");
		return;
	}
	render_csv_add_id(out, cell->process->tid);
	ky_strbuf_addc(out, ',');
	render_csv_add_id(out, cell->process->pid);
	ky_strbuf_addc(out, ',');
	render_csv_add_text(csv, cell->process->comm);
	if (!csv->host)
		return;
	ky_strbuf_addc(out, ',');
	render_csv_add_text(csv, cell->process->host ? cell->process->host : "");
}

static void render_csv_add_irq(const struct csv *csv, const struct ky_cell *cell)
{
	struct ky_strbuf *out = csv->out;

	if (cell->type != KY_VALUE_IRQ) {
		ky_strbuf_adds(out, ",,");
		return;
	}
	ky_strbuf_addf(out, "%s,", cell->irq->kind);
	render_csv_add_id(out, cell->irq->nr);
	ky_strbuf_addc(out, ',');
	render_csv_add_text(csv, cell->irq->name);
}

static void render_csv_add_tally(const struct csv *csv, const struct ky_tally *tally)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t i = 0; i < tally->n_items; i++)
		ky_strbuf_addf(&text, "%s%s %llu", i ? ", " : "", tally->items[i].name,
			       (unsigned long long)tally->items[i].count);
	render_csv_add_text(csv, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

static void render_csv_add_cell(const struct csv *csv, const struct ky_column *column,
				const struct ky_cell *cell)
{
	struct ky_strbuf *out = csv->out;

	if (column->cls == KY_CELL_PROCESS) {
		render_csv_add_process(csv, cell);
		return;
	}
	if (column->cls == KY_CELL_IRQ) {
		render_csv_add_irq(csv, cell);
		return;
	}
	switch (cell->type) {
	case KY_VALUE_U64:
		ky_strbuf_addu(out, cell->u);
		break;
	case KY_VALUE_I64:
		ky_strbuf_addi(out, cell->s);
		break;
	case KY_VALUE_F64:
		ky_strbuf_addf(out, "%.17g", cell->f);
		break;
	case KY_VALUE_TEXT:
		render_csv_add_text(csv, cell->text);
		break;
	case KY_VALUE_TALLY:
		render_csv_add_tally(csv, cell->tally);
		break;
	case KY_VALUE_HEAT:
		for (size_t i = 0; i < cell->heat->n; i++)
			ky_strbuf_addf(out, i ? " %llu" : "%llu",
				       (unsigned long long)cell->heat->counts[i]);
		break;
	case KY_VALUE_NONE:
	case KY_VALUE_PROCESS:
	case KY_VALUE_IRQ:
		break;
	}
}

static void render_csv_add_heading(struct ky_strbuf *out, const struct ky_column *column, bool host)
{
	const char *name = column->name;

	ky_strbuf_addc(out, ',');
	/* Mostly there is one in a row, and then its name needs no more words. */
	if (column->cls == KY_CELL_PROCESS && !column->second)
		ky_strbuf_addf(out, "tid,pid,name%s", host ? ",host" : "");
	else if (column->cls == KY_CELL_PROCESS)
		ky_strbuf_addf(out, "%s_tid,%s_pid,%s_name%s", name, name, name,
			       host ? ",host" : "");
	else if (column->cls == KY_CELL_IRQ)
		ky_strbuf_addf(out, "%s_kind,%s_nr,%s_name", name, name, name);
	else
		ky_strbuf_adds(out, name);
}

static void render_csv_add_table(const struct csv *csv, const struct ky_report_result *result,
				 const struct ky_table *table)
{
	struct ky_strbuf *out = csv->out;
	const struct ky_table_def *def = table->def;

	ky_strbuf_adds(out, result->is_interval ? "report,begin_ns,end_ns" : "report");
	for (size_t c = 0; c < def->n_columns; c++)
		render_csv_add_heading(out, &def->columns[c], csv->host);
	ky_strbuf_adds(out, "\r\n");
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		ky_strbuf_addf(out, "%s.%s", result->report->name, def->name);
		if (result->is_interval)
			ky_strbuf_addf(out, ",%lld,%lld", (long long)result->begin_ns,
				       (long long)result->end_ns);
		for (size_t c = 0; c < def->n_columns; c++) {
			ky_strbuf_addc(out, ',');
			render_csv_add_cell(csv, &def->columns[c], &ky_table_cells(table, i)[c]);
		}
		ky_strbuf_adds(out, "\r\n");
	}
}

void ky_render_csv(struct ky_strbuf *out, const struct ky_report_results *results, bool raw)
{
	const struct csv csv = {.out = out, .host = results->set->traces.len > 1, .raw = raw};
	bool first = true;

	for (size_t i = 0; i < results->list.len; i++) {
		const struct ky_report_result *result = &results->list.data[i];

		for (size_t t = 0; t < result->n_tables; t++) {
			if (result->tables[t].hidden)
				continue;
			ky_strbuf_adds(out, first ? "" : "\r\n");
			first = false;
			render_csv_add_table(&csv, result, &result->tables[t]);
		}
	}
}
