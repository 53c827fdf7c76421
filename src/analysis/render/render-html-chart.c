/* SPDX-License-Identifier: MIT */
/* Charts of the HTML page, as SVG. */
#include "analysis/render/render-html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reports/aggregation.h"

#define WIDTH	   720
#define HEIGHT	   180
#define LEFT	   84
#define BOTTOM	   24
#define TOP	   10
#define MAX_LINES  8
#define MAX_POINTS 10000

int ky_html_bar_column(const struct ky_table_def *def)
{
	int found = -1;

	for (size_t c = 0; c < def->n_columns; c++) {
		if (def->columns[c].bar != KY_BAR_NONE && def->columns[c].bar != KY_BAR_ROOM)
			found = (int)c;
	}
	return found;
}

/* ---- distributions ------------------------------------------------------------------------- */

/* Rows [@begin, @end): one bar for each step of durations. */
static void histogram(struct ky_strbuf *out, const struct ky_table *table, size_t begin, size_t end)
{
	const struct ky_column *columns = table->def->columns;
	struct ky_strbuf text = KY_STRBUF_INIT;
	double most = 1;
	int width = 22;

	for (size_t i = begin; i < end; i++) {
		double n = ky_cell_number(&ky_table_cells(table, i)[KY_FREQ_COUNT]);

		most = n > most ? n : most;
	}
	ky_html_label(&text, &columns[0], &ky_table_cells(table, begin)[0]);
	ky_strbuf_adds(out, "<figure><figcaption>");
	ky_html_text(out, ky_strbuf_text(&text));
	ky_strbuf_addf(out, "</figcaption><svg viewBox=\"0 0 %d 130\" width=\"%d\" height=\"130\">",
		       (int)(end - begin) * width + 60, (int)(end - begin) * width + 60);
	for (size_t i = begin; i < end; i++) {
		const struct ky_cell *cells = ky_table_cells(table, i);
		double n = ky_cell_number(&cells[KY_FREQ_COUNT]), height = 90 * n / most;
		int x = (int)(i - begin) * width;

		ky_strbuf_addf(out, "<g><rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>",
			       x, 94 - height, width - 3, n > 0 && height < 1 ? 1 : height);
		ky_strbuf_clear(&text);
		ky_render_cell(&text, &columns[KY_FREQ_FROM], &cells[KY_FREQ_FROM]);
		ky_strbuf_adds(&text, " to ");
		ky_render_cell(&text, &columns[KY_FREQ_TO], &cells[KY_FREQ_TO]);
		ky_strbuf_addf(&text, ": %.0f", n);
		ky_strbuf_adds(out, "<title>");
		ky_html_text(out, ky_strbuf_text(&text));
		ky_strbuf_adds(out, "</title></g>");
		if ((i - begin) % 3)
			continue;
		ky_strbuf_clear(&text);
		ky_render_duration(&text, ky_cell_number(&cells[KY_FREQ_FROM]));
		ky_strbuf_addf(out, "<text x=\"%d\" y=\"112\">", x);
		ky_html_text(out, ky_strbuf_text(&text));
		ky_strbuf_adds(out, "</text>");
	}
	ky_strbuf_adds(out, "</svg></figure>");
	ky_strbuf_fini(&text);
}

void ky_html_histograms(struct ky_strbuf *out, const struct ky_table *table)
{
	size_t n = ky_table_n_rows(table), begin = 0;

	ky_strbuf_adds(out, "<div class=\"charts\">");
	for (size_t i = 1; i <= n; i++) {
		if (i < n && ky_cell_equal(ky_table_cells(table, i), ky_table_cells(table, begin)))
			continue;
		histogram(out, table, begin, i);
		begin = i;
	}
	ky_strbuf_adds(out, "</div>\n");
}

/* ---- lines over time ------------------------------------------------------------------------- */

struct chart {
	struct ky_strbuf *out;
	const struct ky_column *column; /* what is shown */
	int64_t begin_ns, end_ns;
	double most;
};

static double chart_x(const struct chart *chart, int64_t ns)
{
	uint64_t whole = ky_ns_between(chart->begin_ns, chart->end_ns);

	return LEFT + (double)(WIDTH - LEFT - 4) * (double)ky_ns_between(chart->begin_ns, ns) /
			      (double)(whole ? whole : 1);
}

static double chart_y(const struct chart *chart, double value)
{
	return HEIGHT - BOTTOM -
	       (HEIGHT - BOTTOM - TOP) * (chart->most > 0 ? value / chart->most : 0);
}

static void axis_label(const struct chart *chart, double value)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_cell cell;

	ky_cell_f64(&cell, value);
	ky_render_cell(&text, chart->column, &cell);
	ky_strbuf_addf(chart->out,
		       "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" "
		       "y=\"%.1f\" class=\"y\">",
		       LEFT, WIDTH - 4, chart_y(chart, value), chart_y(chart, value), LEFT - 6,
		       chart_y(chart, value) + 4);
	ky_html_text(chart->out, ky_strbuf_text(&text));
	ky_strbuf_adds(chart->out, "</text>");
	ky_strbuf_fini(&text);
}

static void chart_begin(const struct chart *chart, const char *caption)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_adds(chart->out, "<figure class=\"time\"><figcaption>");
	ky_html_text(chart->out, caption);
	ky_strbuf_addf(chart->out,
		       "</figcaption><svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">", WIDTH,
		       HEIGHT, WIDTH, HEIGHT);
	for (int i = 0; i < 3; i++)
		axis_label(chart, chart->most * i / 2);
	ky_render_time(&text, chart->begin_ns, false);
	ky_strbuf_addf(chart->out, "<text x=\"%d\" y=\"%d\">%s</text>", LEFT, HEIGHT - 6,
		       ky_strbuf_text(&text));
	ky_strbuf_clear(&text);
	ky_render_time(&text, chart->end_ns, false);
	ky_strbuf_addf(chart->out, "<text x=\"%d\" y=\"%d\" class=\"y\">%s</text>", WIDTH - 4,
		       HEIGHT - 6, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

bool ky_html_is_steps(const struct ky_table_def *def)
{
	return def->columns[0].cls == KY_CELL_TIMESTAMP && ky_html_bar_column(def) > 0 &&
	       def->kind != KY_TABLE_LOG && def->kind != KY_TABLE_TOP;
}

void ky_html_steps(struct ky_strbuf *out, const struct ky_table *table)
{
	int shown = ky_html_bar_column(table->def);
	size_t n = ky_table_n_rows(table);
	struct chart chart = {out, &table->def->columns[shown], INT64_MAX, INT64_MIN, 0};

	for (size_t i = 0; i < n; i++) {
		const struct ky_cell *cells = ky_table_cells(table, i);
		double value = ky_cell_number(&cells[shown]);

		chart.begin_ns = cells[0].s < chart.begin_ns ? cells[0].s : chart.begin_ns;
		chart.end_ns = cells[0].s > chart.end_ns ? cells[0].s : chart.end_ns;
		chart.most = value > chart.most ? value : chart.most;
	}
	if (n < 2)
		return;
	chart_begin(&chart, chart.column->title);
	ky_strbuf_adds(out, "<polyline class=\"c0\" points=\"");
	for (size_t i = 0; i < n; i++) {
		const struct ky_cell *cells = ky_table_cells(table, i);

		ky_strbuf_addf(out, "%.1f,%.1f ", chart_x(&chart, cells[0].s),
			       chart_y(&chart, ky_cell_number(&cells[shown])));
	}
	ky_strbuf_adds(out, "\"/></svg></figure>\n");
}

/* ---- intervals ---------------------------------------------------------------------------------- */

/* The first column says what a row is about. */
static bool same_subject(const struct ky_table_def *def, const struct ky_cell *a,
			 const struct ky_cell *b)
{
	const struct ky_process *p = a->process, *q = b->process;

	if (def->columns[0].cls != KY_CELL_PROCESS)
		return ky_cell_equal(a, b);
	/* A thread that got another name is the same one. */
	return a->type == b->type && a->type == KY_VALUE_PROCESS && p->tid == q->tid &&
	       p->pid == q->pid && (p->tid >= 0 || p->pid >= 0 || !strcmp(p->comm, q->comm)) &&
	       !strcmp(p->host ? p->host : "", q->host ? q->host : "");
}

struct intervals {
	const struct ky_report_results *results;
	const struct ky_report *report;
	size_t table_at;
	int shown;
	const struct ky_cell *subjects[MAX_LINES];
	size_t n_subjects;
};

static const struct ky_table *render_html_chart_table_of(const struct intervals *in, size_t i)
{
	const struct ky_report_result *result = &in->results->list.data[i];

	if (result->report != in->report || result->begin_ns == INT64_MIN)
		return NULL;
	return &result->tables[in->table_at];
}

static double render_html_chart_value_of(const struct intervals *in, const struct ky_table *table,
					 const struct ky_cell *subject)
{
	for (size_t row = 0; row < ky_table_n_rows(table); row++) {
		const struct ky_cell *cells = ky_table_cells(table, row);

		if (same_subject(table->def, cells, subject))
			return ky_cell_number(&cells[in->shown]);
	}
	return 0;
}

/* Those that were the largest of an interval, as far as there is room. */
static void choose_subjects(struct intervals *in, size_t rank)
{
	for (size_t i = 0; i < in->results->list.len; i++) {
		const struct ky_table *table = render_html_chart_table_of(in, i);
		bool known = false;

		if (!table || ky_table_n_rows(table) <= rank)
			continue;
		for (size_t k = 0; k < in->n_subjects; k++)
			known |= same_subject(table->def, ky_table_cells(table, rank),
					      in->subjects[k]);
		if (!known && in->n_subjects < MAX_LINES)
			in->subjects[in->n_subjects++] = ky_table_cells(table, rank);
	}
}

static void add_line(const struct chart *chart, const struct intervals *in, size_t k)
{
	struct ky_strbuf label = KY_STRBUF_INIT;
	size_t n = 0;

	ky_strbuf_addf(chart->out, "<g><polyline class=\"c%zu\" points=\"", k);
	for (size_t i = 0; i < in->results->list.len && n < MAX_POINTS; i++) {
		const struct ky_table *table = render_html_chart_table_of(in, i);

		if (!table)
			continue;
		ky_strbuf_addf(
			chart->out, "%.1f,%.1f ",
			chart_x(chart, in->results->list.data[i].begin_ns),
			chart_y(chart, render_html_chart_value_of(in, table, in->subjects[k])));
		n++;
	}
	ky_html_label(&label, &in->report->tables[in->table_at]->columns[0], in->subjects[k]);
	ky_strbuf_adds(chart->out, "\"/><title>");
	ky_html_text(chart->out, ky_strbuf_text(&label));
	ky_strbuf_adds(chart->out, "</title></g>");
	ky_strbuf_fini(&label);
}

static void add_legend(struct ky_strbuf *out, const struct intervals *in)
{
	struct ky_strbuf label = KY_STRBUF_INIT;

	ky_strbuf_adds(out, "<ul class=\"legend\">");
	for (size_t k = 0; k < in->n_subjects; k++) {
		ky_strbuf_clear(&label);
		ky_html_label(&label, &in->report->tables[in->table_at]->columns[0],
			      in->subjects[k]);
		ky_strbuf_addf(out, "<li class=\"c%zu\">", k);
		ky_html_text(out, ky_strbuf_text(&label));
		ky_strbuf_adds(out, "</li>");
	}
	ky_strbuf_adds(out, "</ul></figure>\n");
	ky_strbuf_fini(&label);
}

/* What is drawn over time: what has a bar, else the mean of statistics. */
static int line_column(const struct ky_table_def *def)
{
	int bar = ky_html_bar_column(def);

	return bar >= 0 ? bar : ky_table_column(def, "avg");
}

void ky_html_intervals(struct ky_strbuf *out, const struct ky_report_results *results,
		       size_t report_at, size_t table_at)
{
	const struct ky_report *report = results->list.data[report_at].report;
	const struct ky_table_def *def = report->tables[table_at];
	struct intervals in = {.results = results, .report = report, .table_at = table_at};
	struct chart chart = {.out = out, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};

	in.shown = line_column(def);
	if (in.shown <= 0 || def->columns[0].group || ky_html_is_steps(def) ||
	    (def->kind != KY_TABLE_RANK && def->kind != KY_TABLE_FIXED))
		return;
	chart.column = &def->columns[in.shown];
	for (size_t rank = 0; rank < MAX_LINES && in.n_subjects < MAX_LINES; rank++)
		choose_subjects(&in, rank);
	for (size_t i = 0; i < results->list.len; i++) {
		const struct ky_report_result *result = &results->list.data[i];
		const struct ky_table *table = render_html_chart_table_of(&in, i);

		for (size_t k = 0; table && k < in.n_subjects; k++) {
			double value = render_html_chart_value_of(&in, table, in.subjects[k]);

			chart.most = value > chart.most ? value : chart.most;
		}
		if (table && result->begin_ns < chart.begin_ns)
			chart.begin_ns = result->begin_ns;
		if (table && result->begin_ns > chart.end_ns)
			chart.end_ns = result->begin_ns;
	}
	if (chart.begin_ns >= chart.end_ns || !in.n_subjects)
		return;
	ky_strbuf_adds(out, "<h3>");
	ky_html_text(out, def->title);
	ky_strbuf_adds(out, "</h3>\n");
	chart_begin(&chart, chart.column->title);
	for (size_t k = 0; k < in.n_subjects; k++)
		add_line(&chart, &in, k);
	ky_strbuf_adds(out, "</svg>");
	add_legend(out, &in);
}
