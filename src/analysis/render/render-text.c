/* SPDX-License-Identifier: MIT */
/* Tables for people: aligned columns, units and bars. */
#include "analysis/render/render.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/render/render-layout.h"
#include "base/foreign.h"

#define LAST_LEAST 12 /* what a left-aligned last column gets at least */

/* ---- lines ----------------------------------------------------------------------------- */

/* @text: may be shown as it is. */
static void add_styled(struct ky_strbuf *out, const struct ky_render_options *options,
		       const char *style, const char *text)
{
	if (options->colour)
		ky_strbuf_addf(out, "\033[%sm", style);
	ky_strbuf_adds(out, text); /* lint: own text */
	if (options->colour)
		ky_strbuf_adds(out, "\033[0m");
}

static void add_bar(struct ky_strbuf *out, const struct ky_layout *layout,
		    const struct ky_cell *cell)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	double part = layout->bar_full > 0 ? ky_cell_number(cell) / layout->bar_full : 0;
	int units;

	if (!(part >= 0))
		part = 0;
	if (part > 1)
		part = 1;
	units = (int)(part * layout->bar_width * 8 + 0.5);
	if (layout->options->colour)
		ky_strbuf_adds(out, "\033[36m");
	for (int i = 0; i < (layout->options->utf8 ? units : units + 4) / 8; i++)
		ky_strbuf_adds(out, layout->options->utf8 ? "█" : "#");
	if (layout->options->utf8)
		ky_strbuf_adds(out, eighths[units % 8]);
	if (layout->options->colour)
		ky_strbuf_adds(out, "\033[0m");
}

/* No blanks at the ends of lines. */
static void end_line(struct ky_strbuf *out)
{
	while (out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	ky_strbuf_addc(out, '\n');
}

/* @text: may be shown as it is. */
static void add_aligned(struct ky_strbuf *out, const struct ky_layout_column *shown,
			const char *text)
{
	int room = shown->width - ky_layout_text_width(text);

	ky_layout_pad(out, KY_LAYOUT_GAP + (shown->left ? 0 : room));
	ky_strbuf_adds(out, text); /* lint: own text */
	if (shown->left)
		ky_layout_pad(out, room);
}

static void add_headings(struct ky_strbuf *out, const struct ky_layout *layout)
{
	struct ky_strbuf line = KY_STRBUF_INIT;

	for (size_t i = 0; i < layout->n_shown; i++)
		add_aligned(&line, &layout->shown[i], layout->shown[i].heading);
	while (line.len && line.data[line.len - 1] == ' ')
		line.data[--line.len] = '\0';
	add_styled(out, layout->options, "2", ky_strbuf_text(&line));
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&line);
}

/* @text is cut to @width columns: of a path, the end stays. */
static void cut_text(struct ky_strbuf *text, int width, bool is_path)
{
	int left = ky_layout_text_width(ky_strbuf_text(text)) - width + 3;
	char *at = text->data, *end = text->data + text->len;

	if (width < 4 || left <= 3)
		return;
	if (is_path) {
		for (; at < end && (left || ((unsigned char)*at & 0xc0) == 0x80); at++)
			left -= ((unsigned char)*at & 0xc0) != 0x80;
		memmove(text->data + 3, at, (size_t)(end - at));
		memcpy(text->data, "...", 3);
		text->len = (size_t)(end - at) + 3;
		text->data[text->len] = '\0';
		return;
	}
	for (; end > at && left; end--)
		left -= ((unsigned char)end[-1] & 0xc0) != 0x80;
	text->len = (size_t)(end - at);
	text->data[text->len] = '\0';
	ky_strbuf_adds(text, "...");
}

/* The room for a text at the end of a line; 0: as much as it takes. */
static int last_room(const struct ky_layout *layout, size_t i)
{
	const struct ky_layout_column *shown = &layout->shown[i];
	int room;

	if (!layout->options->columns || i + 1 != layout->n_shown || !shown->left)
		return 0;
	room = layout->options->columns - (ky_layout_width(layout, false) - shown->width);
	return room < LAST_LEAST ? LAST_LEAST : room;
}

/* Blocks, and colours that become warmer with more. */
static void render_text_heat_cell(struct ky_strbuf *out, const struct ky_render_options *options,
				  const struct ky_heat *heat, size_t i)
{
	static const char *const blocks[KY_HEAT_LEVELS] = {" ", "░", "░", "▒", "▓", "█"};
	static const char *const colours[KY_HEAT_LEVELS] = {"0",	"38;5;25",  "38;5;37",
							    "38;5;220", "38;5;208", "38;5;196"};
	unsigned int level = ky_heat_level(heat, i);

	if (!level || !options->colour)
		ky_strbuf_adds(out, blocks[level]);
	else
		add_styled(out, options, colours[level], blocks[level]);
}

static void render_text_add_heat(struct ky_strbuf *out, const struct ky_render_options *options,
				 const struct ky_heat *heat)
{
	for (size_t i = 0; i < heat->n; i++)
		render_text_heat_cell(out, options, heat, i);
}

/* Adds @text in lines of @width columns, those after the first behind @indent blanks. */
static void add_wrapped(struct ky_strbuf *out, const struct ky_strbuf *text, int width, int indent)
{
	const char *at = ky_strbuf_text(text);

	while (ky_layout_text_width(at) > width) {
		const char *end = at, *blank = NULL;

		for (int n = 0; *end && n <= width; end++) {
			n += ((unsigned char)*end & 0xc0) != 0x80;
			if (*end == ' ' && n <= width + 1)
				blank = end;
		}
		if (!blank || blank == at)
			break;
		ky_strbuf_add(out, at, (size_t)(blank - at)); /* lint: own text */
		ky_strbuf_addc(out, '\n');
		ky_layout_pad(out, indent);
		at = blank + 1;
	}
	ky_strbuf_adds(out, at); /* lint: own text */
}

static void render_text_add_row(struct ky_strbuf *out, const struct ky_layout *layout,
				const struct ky_cell *cells)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t i = 0; i < layout->n_shown; i++) {
		const struct ky_layout_column *shown = &layout->shown[i];

		if (cells[shown->column].type == KY_VALUE_HEAT && layout->options->utf8) {
			ky_layout_pad(out, KY_LAYOUT_GAP);
			render_text_add_heat(out, layout->options, cells[shown->column].heat);
			continue;
		}
		ky_strbuf_clear(&text);
		ky_layout_add_cell(&text, &layout->table->def->columns[shown->column],
				   &cells[shown->column], shown->part);
		/* An empty tally is nothing to look at. */
		if (shown->left && cells[shown->column].type == KY_VALUE_NONE)
			ky_strbuf_clear(&text);
		if (last_room(layout, i) && layout->table->def->kind == KY_TABLE_FIXED) {
			ky_strbuf_addf(out, "%*s", KY_LAYOUT_GAP, "");
			add_wrapped(out, &text, last_room(layout, i),
				    ky_layout_width(layout, false) - shown->width);
			continue;
		}
		if (last_room(layout, i) || shown->is_cut)
			cut_text(&text, shown->is_cut ? shown->width : last_room(layout, i),
				 layout->table->def->columns[shown->column].cls == KY_CELL_PATH);
		add_aligned(out, shown, ky_strbuf_text(&text));
	}
	if (layout->bar_width) {
		ky_layout_pad(out, KY_LAYOUT_GAP);
		add_bar(out, layout, &cells[layout->bar_column]);
	}
	end_line(out);
	ky_strbuf_fini(&text);
}

/* " (tid 326, pid 323)"; of a process its id, of threads of one name nothing. */
static void add_ids(struct ky_strbuf *out, const struct ky_process *process)
{
	const char *separator = " (";

	if (process->tid >= 0) {
		ky_strbuf_adds(out, " (tid ");
		ky_layout_add_id(out, process->tid);
		separator = ", ";
	}
	if (process->tid >= 0 || process->pid >= 0) {
		ky_strbuf_addf(out, "%spid ", separator);
		ky_layout_add_id(out, process->pid);
		separator = ", ";
	}
	if (process->host) {
		ky_strbuf_adds(out, separator);
		ky_strbuf_adds(out, "host ");
		ky_foreign_adds(out, process->host);
		separator = ", ";
	}
	ky_strbuf_adds(out, separator[0] == ',' ? ")" : "");
}

static void render_text_add_group(struct ky_strbuf *out, const struct ky_layout *layout,
				  const struct ky_cell *cell)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (cell->type == KY_VALUE_PROCESS) {
		const struct ky_process *process = cell->process;

		ky_layout_add_process(&text, process, KY_PART_NAME);
		add_ids(&text, process);
	} else {
		ky_layout_add_cell(&text, &layout->table->def->columns[0], cell, KY_PART_ALL);
	}
	ky_strbuf_adds(out, "  ");
	add_styled(out, layout->options, "1", ky_strbuf_text(&text));
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&text);
}

/* "  --wide shows: Stdev, Min", in lines of @columns. */
static void add_left_out(struct ky_strbuf *out, const char *left_out, int columns)
{
	int at = (int)sizeof("  --wide shows:") - 1;

	ky_strbuf_adds(out, "  --wide shows:");
	while (*left_out) {
		size_t len = strcspn(left_out, ",") + (strchr(left_out, ',') != NULL);

		if (at + (int)len + 1 > columns) {
			ky_strbuf_adds(out, "\n   ");
			at = 3;
		}
		ky_strbuf_addc(out, ' ');
		ky_foreign_add(out, left_out, len);
		at += (int)len + 1;
		left_out += len;
		left_out += strspn(left_out, " ");
	}
	ky_strbuf_addc(out, '\n');
}

static void add_footer(struct ky_strbuf *out, const struct ky_layout *layout, const char *left_out)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (layout->table->n_omitted)
		ky_strbuf_addf(&text, "  %zu more row%s: --limit 0 shows all\n",
			       layout->table->n_omitted, layout->table->n_omitted == 1 ? "" : "s");
	if (*left_out)
		add_left_out(&text, left_out, layout->options->columns);
	if (text.len)
		add_styled(out, layout->options, "2", ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

void ky_render_table(struct ky_strbuf *out, const struct ky_table *table,
		     const struct ky_render_options *options)
{
	struct ky_layout layout;
	bool grouped = table->def->columns[0].group;
	struct ky_strbuf left_out = KY_STRBUF_INIT;

	ky_strbuf_addc(out, '\n');
	add_styled(out, options, "1", table->title);
	ky_strbuf_addc(out, '\n');
	if (!ky_table_n_rows(table)) {
		ky_strbuf_adds(out, "  (nothing)\n");
		return;
	}
	if (table->def->kind == KY_TABLE_PROSE) {
		ky_render_prose(out, table, options);
		return;
	}
	ky_layout_init(&layout, table, options, &left_out);
	add_headings(out, &layout);
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		const struct ky_cell *cells = ky_table_cells(table, i);

		if (grouped && (!i || !ky_cell_equal(cells, cells - table->def->n_columns)))
			render_text_add_group(out, &layout, cells);
		render_text_add_row(out, &layout, cells);
	}
	add_footer(out, &layout, ky_strbuf_text(&left_out));
	ky_strbuf_fini(&left_out);
}

/* The path of @trace, which is the first of several if it is joined from chunks. */
static void render_text_add_trace(struct ky_strbuf *out, const struct ky_trace *trace)
{
	size_t n = 1;

	ky_vec_foreach(&trace->streams, stream)
		n = (*stream)->parts.len > n ? (*stream)->parts.len : n;
	ky_foreign_adds(out, trace->path);
	if (n > 1)
		ky_strbuf_addf(out, " and %zu more of this recording", n - 1);
	ky_strbuf_addc(out, '\n');
}

static void add_header(struct ky_strbuf *out, const struct ky_report_results *results)
{
	for (size_t i = 0; i < results->set->traces.len; i++) {
		ky_strbuf_adds(out, i ? "       " : "Trace  ");
		render_text_add_trace(out, results->set->traces.data[i]);
	}
	if (results->store) {
		ky_strbuf_adds(out, "Store  ");
		ky_foreign_adds(out, results->store);
		ky_strbuf_addc(out, '\n');
	}
	if (results->begin_ns == INT64_MIN) {
		ky_strbuf_adds(out, results->store ? "Range  no traces\n" : "Range  no events\n");
		return;
	}
	ky_strbuf_adds(out, "Range  ");
	ky_render_time(out, results->begin_ns, true);
	ky_strbuf_adds(out, " to ");
	ky_render_time(out, results->end_ns, true);
	ky_strbuf_adds(out, "\n       ");
	ky_render_duration(out, (double)results->end_ns - (double)results->begin_ns);
	if (results->store)
		ky_strbuf_addf(
			out, ", %llu host%s, %llu trace%s\n", (unsigned long long)results->n_hosts,
			results->n_hosts == 1 ? "" : "s", (unsigned long long)results->n_traces,
			results->n_traces == 1 ? "" : "s");
	else
		ky_strbuf_addf(out, ", %llu events\n", (unsigned long long)results->n_events);
}

static void add_interval(struct ky_strbuf *out, const struct ky_report_result *result,
			 const struct ky_render_options *options)
{
	struct ky_strbuf line = KY_STRBUF_INIT;

	ky_strbuf_adds(&line, result->report->name);
	ky_strbuf_adds(&line, " from ");
	ky_render_time(&line, result->begin_ns, false);
	ky_strbuf_adds(&line, " to ");
	ky_render_time(&line, result->end_ns, false);
	ky_strbuf_addc(out, '\n');
	add_styled(out, options, "7", ky_strbuf_text(&line));
	ky_strbuf_addc(out, '\n');
	ky_strbuf_fini(&line);
}

static void render_text_add_notes(struct ky_strbuf *out, const struct ky_report_results *results,
				  size_t at, const struct ky_render_options *options)
{
	const struct ky_report_result *result = &results->list.data[at];
	bool any = false;

	ky_vec_foreach(&result->notes, note) {
		if (!ky_report_note_is_new(results, at, *note))
			continue;
		ky_strbuf_adds(out, any ? "" : "\n");
		add_styled(out, options, "33", "Note: ");
		ky_strbuf_addf(out, "%s: ", result->report->name);
		ky_foreign_adds(out, *note);
		ky_strbuf_addc(out, '\n');
		any = true;
	}
}

/* ---- what else there is ------------------------------------------------------------------ */

/* One of many tables, and nothing in it: nobody asked for it by name. */
static bool is_spare(const struct ky_report_results *results, const struct ky_table *table)
{
	return table->def->is_one_of_many && !results->tables_chosen && !ky_table_n_rows(table);
}

/* "More:  -t pairs, -t freq" */
static void add_more(struct ky_strbuf *out, const struct ky_report_results *results)
{
	const struct ky_report_result *result = &results->list.data[0];
	const char *before = "More:  ";

	for (size_t i = 0; i < result->n_tables; i++) {
		if (!result->tables[i].hidden && !is_spare(results, &result->tables[i]))
			continue;
		ky_strbuf_addf(out, "%s-t %s", before, result->tables[i].def->name);
		before = ", ";
	}
	ky_strbuf_adds(out, *before == ',' ? "\n" : "");
}

/* A trace that an importer made has no path of its own: the command takes that of the file. */
static void render_text_add_place(struct ky_strbuf *out, const struct ky_trace *trace)
{
	size_t len = strlen(trace->path);

	if (trace->scratch && trace->given_bytes && trace->given_bytes < len)
		len = trace->given_bytes;
	while (len > 1 && trace->path[len - 1] == '/')
		len--;
	ky_foreign_add(out, trace->path, len);
}

/* "Next:  kymo report sched -t pairs my-trace   who took the CPUs" */
static void add_next(struct ky_strbuf *out, const struct ky_report_results *results,
		     const char *next)
{
	const struct ky_trace_set *set = results->set;
	const char *before = "Next:  ";

	while (*next) {
		const char *why = strchr(next, '|'), *end = strchrnul(next, '\n');

		ky_strbuf_adds(out, before); /* lint: own text */
		ky_strbuf_adds(out, "kymo ");
		ky_strbuf_add(out, next, (size_t)(why - next)); /* lint: own text */
		ky_strbuf_addc(out, ' ');
		if (set->traces.len == 1)
			render_text_add_place(out, set->traces.data[0]);
		else
			ky_strbuf_adds(out, "TRACE...");
		ky_strbuf_adds(out, "   ");
		ky_strbuf_add(out, why + 1, (size_t)(end - why - 1)); /* lint: own text */
		ky_strbuf_addc(out, '\n');
		before = "       ";
		next = end + (*end == '\n');
	}
}

static void add_hints(struct ky_strbuf *out, const struct ky_report_results *results,
		      const struct ky_render_options *options)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (results->list.len != 1 || results->tables_chosen || results->list.data[0].is_interval)
		return;
	add_more(&text, results);
	if (results->list.data[0].report->next)
		add_next(&text, results, results->list.data[0].report->next);
	if (text.len) {
		ky_strbuf_addc(out, '\n');
		add_styled(out, options, "2", ky_strbuf_text(&text));
	}
	ky_strbuf_fini(&text);
}

void ky_render_text(struct ky_strbuf *out, const struct ky_report_results *results,
		    const struct ky_render_options *options)
{
	const struct ky_trace_set *set = results->set;
	struct ky_render_options with_trace = *options;

	if (!options->is_temporary)
		with_trace.trace = set->traces.len == 1 ? set->traces.data[0]->path : "TRACE...";
	options = &with_trace;
	add_header(out, results);
	for (size_t i = 0; i < results->list.len; i++) {
		const struct ky_report_result *result = &results->list.data[i];

		if (result->is_interval)
			add_interval(out, result, options);
		render_text_add_notes(out, results, i, options);
		for (size_t t = 0; t < result->n_tables; t++) {
			if (!result->tables[t].hidden && !is_spare(results, &result->tables[t]))
				ky_render_table(out, &result->tables[t], options);
		}
	}
	if (options->hints)
		add_hints(out, results, options);
}
