/* SPDX-License-Identifier: MIT */
/* Results as one HTML page that needs nothing else. */
#include "analysis/render/render-html.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <kymo/version.h>

#include "analysis/render/render-html-page.h"
#include "base/foreign.h"

/* ---- text -------------------------------------------------------------------------------- */

static const char *html_escape(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '\n':
		return " ";
	default:
		return NULL;
	}
}

void ky_html_text(struct ky_strbuf *out, const char *text)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t len = strlen(text);

	while (len) {
		const char *html = html_escape(*text);
		size_t n = ky_foreign_next(text, len, escape);

		if (html || escape[0])
			ky_strbuf_adds(out, html ? html : escape);
		else
			ky_strbuf_add(out, text, n);
		text += n;
		len -= n;
	}
}

void ky_html_label(struct ky_strbuf *out, const struct ky_column *column,
		   const struct ky_cell *cell)
{
	const struct ky_process *process = cell->process;

	ky_render_cell(out, column, cell);
	if (cell->type != KY_VALUE_PROCESS)
		return;
	if (process->pid >= 0)
		ky_strbuf_addf(out, " %d", process->pid);
	if (process->tid >= 0 && process->tid != process->pid && !column->whole_process)
		ky_strbuf_addf(out, "/%d", process->tid);
	if (process->host)
		ky_strbuf_addf(out, " @%s", process->host);
}

/* "<p>" for each paragraph of @text. */
static void add_paragraphs(struct ky_strbuf *out, const char *text)
{
	while (text && *text) {
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);
		struct ky_strbuf one = KY_STRBUF_INIT;

		ky_strbuf_add(&one, text, len);
		ky_strbuf_adds(out, "<p>");
		ky_html_text(out, ky_strbuf_text(&one));
		ky_strbuf_adds(out, "</p>");
		ky_strbuf_fini(&one);
		text += len + strspn(text + len, "\n");
	}
}

/* ---- tables -------------------------------------------------------------------------------- */

static bool render_html_is_number(const struct ky_column *column)
{
	switch (column->cls) {
	case KY_CELL_TEXT:
	case KY_CELL_PROCESS:
	case KY_CELL_SYSCALL:
	case KY_CELL_TALLY:
	case KY_CELL_IRQ:
	case KY_CELL_PATH:
	case KY_CELL_DISK:
	case KY_CELL_NETIF:
	case KY_CELL_HEAT:
		return false;
	default:
		return true;
	}
}

/* The column whose cells have bars, or -1: there is room for those of statistics here. */
static int bar_column(const struct ky_table_def *def)
{
	int found = ky_html_bar_column(def);

	for (size_t c = 0; found < 0 && c < def->n_columns; c++)
		found = def->columns[c].bar == KY_BAR_ROOM ? (int)c : found;
	return found;
}

/* How long a bar of the full length is; 0: none exists. */
static double full_bar(const struct ky_table *table, int bar)
{
	double full = 0;

	if (bar < 0)
		return 0;
	if (table->def->columns[bar].bar == KY_BAR_WHOLE)
		return 1;
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		double value = ky_cell_number(&ky_table_cells(table, i)[bar]);

		full = value > full ? value : full;
	}
	return full;
}

static void render_html_heat_cell(struct ky_strbuf *out, const struct ky_heat *heat, size_t i)
{
	unsigned int level = ky_heat_level(heat, i);

	if (level)
		ky_strbuf_addf(out,
			       "<rect x=\"%zu\" y=\"0\" width=\"12\" height=\"14\" "
			       "fill-opacity=\"%.1f\"><title>%llu</title></rect>",
			       i * 12, 0.2 * level, (unsigned long long)heat->counts[i]);
}

/* A line of a heat map: a square for each count that is not 0. */
static void render_html_add_heat(struct ky_strbuf *out, const struct ky_heat *heat)
{
	ky_strbuf_addf(out,
		       "<td class=\"t\"><svg viewBox=\"0 0 %zu 14\" width=\"%zu\" height=\"14\">",
		       heat->n * 12, heat->n * 12);
	for (size_t i = 0; i < heat->n; i++)
		render_html_heat_cell(out, heat, i);
	ky_strbuf_adds(out, "</svg></td>");
}

static void render_html_add_cell(struct ky_strbuf *out, const struct ky_column *column,
				 const struct ky_cell *cell, double full)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	double value = ky_cell_number(cell), part = full > 0 ? value / full : -1;

	if (cell->type == KY_VALUE_HEAT) {
		render_html_add_heat(out, cell->heat);
		return;
	}
	ky_strbuf_addf(out, "<td class=\"%s%s\"", render_html_is_number(column) ? "n" : "t",
		       part >= 0 ? " b" : "");
	if (render_html_is_number(column) && cell->type == KY_VALUE_I64)
		ky_strbuf_addf(out, " data-v=\"%lld\"", (long long)cell->s);
	else if (render_html_is_number(column))
		ky_strbuf_addf(out, " data-v=\"%.17g\"",
			       cell->type == KY_VALUE_NONE || !isfinite(value) ? -1 : value);
	if (part >= 0)
		ky_strbuf_addf(out, " style=\"--w:%.1f%%\"", part > 1 ? 100 : 100 * part);
	ky_strbuf_addc(out, '>');
	ky_html_label(&text, column, cell);
	ky_html_text(out, ky_strbuf_text(&text));
	ky_strbuf_adds(out, "</td>");
	ky_strbuf_fini(&text);
}

static void render_html_add_rows(struct ky_strbuf *out, const struct ky_table *table)
{
	const struct ky_table_def *def = table->def;
	int bar = bar_column(def);
	double full = full_bar(table, bar);
	uint64_t empty = 0; /* the columns that are, of the first 64 */

	ky_strbuf_adds(out, "<div class=\"rows\"><table><thead><tr>");
	for (size_t c = 0; c < def->n_columns; c++) {
		if (c < 64 && ky_table_is_empty(table, c)) {
			empty |= UINT64_C(1) << c;
			continue;
		}
		ky_strbuf_addf(out, "<th class=\"%s\" title=\"",
			       render_html_is_number(&def->columns[c]) ? "n" : "t");
		ky_html_text(out, def->columns[c].help);
		ky_strbuf_adds(out, "\">");
		ky_html_text(out, def->columns[c].title);
		ky_strbuf_adds(out, "</th>");
	}
	ky_strbuf_adds(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		ky_strbuf_adds(out, "<tr>");
		for (size_t c = 0; c < def->n_columns; c++) {
			if (c >= 64 || !(empty >> c & 1))
				render_html_add_cell(out, &def->columns[c],
						     &ky_table_cells(table, i)[c],
						     (int)c == bar ? full : 0);
		}
		ky_strbuf_adds(out, "</tr>\n");
	}
	ky_strbuf_adds(out, "</tbody></table></div>\n");
	if (table->n_omitted)
		ky_strbuf_addf(out, "<p class=\"help\">%zu more row%s: --limit 0 shows all</p>\n",
			       table->n_omitted, table->n_omitted == 1 ? "" : "s");
}

static void render_html_add_table(struct ky_strbuf *out, const struct ky_table *table)
{
	const struct ky_table_def *def = table->def;
	bool freq = def->kind == KY_TABLE_FREQ;

	ky_strbuf_adds(out, "<h3>");
	ky_html_text(out, table->title);
	ky_strbuf_adds(out, "</h3><p class=\"help\">");
	ky_html_text(out, def->help);
	ky_strbuf_adds(out, "</p>\n");
	if (!ky_table_n_rows(table)) {
		ky_strbuf_adds(out, "<p>nothing</p>\n");
		return;
	}
	if (freq) {
		ky_html_histograms(out, table);
		ky_strbuf_adds(out, "<details><summary>as a table</summary>");
	} else if (ky_html_is_steps(def)) {
		ky_html_steps(out, table);
	}
	render_html_add_rows(out, table);
	if (freq)
		ky_strbuf_adds(out, "</details>\n");
}

/* ---- reports -------------------------------------------------------------------------------- */

static void render_html_add_notes(struct ky_strbuf *out, const struct ky_report_results *results,
				  size_t at)
{
	bool any = false;

	ky_vec_foreach(&results->list.data[at].notes, note) {
		if (!ky_report_note_is_new(results, at, *note))
			continue;
		ky_strbuf_adds(out, any ? "<li>" : "<ul class=\"notes\"><li>");
		ky_html_text(out, *note);
		ky_strbuf_adds(out, "</li>");
		any = true;
	}
	ky_strbuf_adds(out, any ? "</ul>\n" : "");
}

static void render_html_add_range(struct ky_strbuf *out, int64_t begin_ns, int64_t end_ns,
				  bool date)
{
	if (begin_ns == INT64_MIN) {
		ky_strbuf_adds(out, "no events");
		return;
	}
	ky_render_time(out, begin_ns, date);
	ky_strbuf_adds(out, " to ");
	ky_render_time(out, end_ns, date);
	ky_strbuf_adds(out, " (");
	ky_render_duration(out, (double)ky_ns_between(begin_ns, end_ns));
	ky_strbuf_addc(out, ')');
}

static void render_html_add_result(struct ky_strbuf *out, const struct ky_report_results *results,
				   size_t at)
{
	const struct ky_report_result *result = &results->list.data[at];

	if (result->is_interval) {
		ky_strbuf_adds(out, "<details><summary>");
		render_html_add_range(out, result->begin_ns, result->end_ns, false);
		ky_strbuf_adds(out, "</summary>\n");
	}
	render_html_add_notes(out, results, at);
	if (result->stacks)
		ky_html_flame(out, result->stacks);
	for (size_t t = 0; t < result->n_tables; t++) {
		if (!result->tables[t].hidden)
			render_html_add_table(out, &result->tables[t]);
	}
	if (result->is_interval)
		ky_strbuf_adds(out, "</details>\n");
}

static bool is_first(const struct ky_report_results *results, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (results->list.data[i].report == results->list.data[at].report)
			return false;
	}
	return true;
}

static void add_interval_charts(struct ky_strbuf *out, const struct ky_report_results *results,
				size_t at)
{
	const struct ky_report_result *result = &results->list.data[at];

	for (size_t t = 0; t < result->n_tables; t++) {
		if (!result->tables[t].hidden)
			ky_html_intervals(out, results, at, t);
	}
}

/* A report, with all its intervals. */
static void add_report(struct ky_strbuf *out, const struct ky_report_results *results, size_t at)
{
	const struct ky_report *report = results->list.data[at].report;

	ky_strbuf_addf(out, "<section id=\"%s\"><h2>%s</h2><p class=\"help\">", report->name,
		       report->name);
	ky_html_text(out, report->summary);
	ky_strbuf_adds(out, "</p>\n<details><summary>Description, and how to read it</summary>");
	add_paragraphs(out, report->description);
	add_paragraphs(out, report->events);
	add_paragraphs(out, report->reading);
	ky_strbuf_adds(out, "</details>\n");
	if (results->list.data[at].is_interval)
		add_interval_charts(out, results, at);
	for (size_t i = at; i < results->list.len; i++) {
		if (results->list.data[i].report == report)
			render_html_add_result(out, results, i);
	}
	ky_strbuf_adds(out, "</section>\n");
}

static bool has_flame(const struct ky_report_results *results)
{
	ky_vec_foreach(&results->list, result)
		if (result->stacks)
			return true;
	return false;
}

/* ---- the page -------------------------------------------------------------------------------- */

/* What the page is about. */
static void add_names(struct ky_strbuf *out, const struct ky_report_results *results,
		      const char *between)
{
	const struct ky_trace_set *set = results->set;

	if (results->store)
		ky_html_text(out, results->store);
	for (size_t i = 0; i < set->traces.len; i++) {
		ky_html_text(out, set->traces.data[i]->path);
		ky_strbuf_adds(out, i + 1 < set->traces.len ? between : ""); /* lint: own text */
	}
}

static void add_head(struct ky_strbuf *out, const struct ky_report_results *results)
{
	/* Nothing is loaded, and no script runs but the page's own. */
	ky_strbuf_adds(out,
		       "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		       "style-src 'unsafe-inline'; script-src 'sha256-" PAGE_SCRIPT_HASH "'");
	if (has_flame(results))
		ky_strbuf_addf(out, " 'sha256-%s'", ky_html_flame_hash());
	ky_strbuf_adds(out, "; base-uri 'none'; form-action 'none'\">\n"
			    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	add_names(out, results, ", ");
	ky_strbuf_adds(out, "</title>\n<style>\n");
	ky_strbuf_adds(out, page_style);
	ky_strbuf_adds(out, has_flame(results) ? ky_html_flame_style() : "");
	ky_strbuf_adds(out,
		       "</style>\n</head>\n<body>\n<header>\n<input id=\"search\" type=\"search\" "
		       "placeholder=\"rows with this text\" hidden>\n<h1>");
	add_names(out, results, "<br>");
	ky_strbuf_adds(out, "</h1>\n<p>");
	render_html_add_range(out, results->begin_ns, results->end_ns, true);
	if (results->store)
		ky_strbuf_addf(out, ", %" PRIu64 " hosts, %" PRIu64 " traces", results->n_hosts,
			       results->n_traces);
	else
		ky_strbuf_addf(out, ", %" PRIu64 " events", results->n_events);
	ky_strbuf_adds(out, "; kymo " KYMO_VERSION "</p>\n</header>\n<nav>");
}

void ky_render_html(struct ky_strbuf *out, const struct ky_report_results *results)
{
	add_head(out, results);
	for (size_t i = 0; i < results->list.len; i++) {
		if (is_first(results, i))
			ky_strbuf_addf(out, "<a href=\"#%s\">%s</a>\n",
				       results->list.data[i].report->name,
				       results->list.data[i].report->name);
		else if (results->list.data[i].report == results->list.data[0].report)
			break; /* the next interval: the same again */
	}
	ky_strbuf_adds(out, "</nav>\n<main>\n");
	for (size_t i = 0; i < results->list.len && is_first(results, i); i++)
		add_report(out, results, i);
	ky_strbuf_adds(out, "</main>\n<script>");
	ky_strbuf_adds(out, page_script);
	if (has_flame(results)) {
		ky_strbuf_adds(out, "</script>\n<script>");
		ky_strbuf_adds(out, ky_html_flame_script());
	}
	ky_strbuf_adds(out, "</script>\n</body>\n</html>\n");
}
