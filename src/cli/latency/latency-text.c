/* SPDX-License-Identifier: MIT */
/* The tables of kymo latency for people. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/render/render.h"
#include "base/error.h"
#include "cli/latency/latency-output.h"
#include "cli/terminal/command.h"
#include "os/now.h"

enum {
	COLUMN_LAYER,
	COLUMN_NAME,
	COLUMN_OWNER,
	COLUMN_COUNT,
	COLUMN_RATE,
	COLUMN_P50,
	COLUMN_P90,
	COLUMN_P99,
	COLUMN_P999,
	COLUMN_MAX,
	COLUMN_SHAPE,
	COLUMN_LONG_P99,
};

/* @rank: columns with higher ranks are left out first; 0: never. */
#define LATENCY_COLUMN(id, text, kind, rank, meaning)                                            \
	{                                                                                        \
		.name = id, .title = text, .cls = KY_CELL_##kind, .spare = rank, .help = meaning \
	}

/* Of output that no terminal shows, as of reports. */
#define PIPE_COLUMNS 100

static const struct ky_column columns[] = {
	{.name = "layer",
	 .title = "Layer",
	 .cls = KY_CELL_TEXT,
	 .group = true,
	 .help = "What was measured."},
	LATENCY_COLUMN("name", "What", TEXT, 0, "Its kind, reason, device or handler."),
	LATENCY_COLUMN("owner", "Whose", TEXT, 0, "Process, user or control group."),
	LATENCY_COLUMN("count", "Count", COUNT, 0, "How many."),
	LATENCY_COLUMN("rate", "Rate", RATE, 2, "How many per second."),
	LATENCY_COLUMN("p50", "p50", DURATION, 0, "Half of them took no longer."),
	LATENCY_COLUMN("p90", "p90", DURATION, 3, "90 % took no longer."),
	LATENCY_COLUMN("p99", "p99", DURATION, 0, "99 % took no longer."),
	LATENCY_COLUMN("p999", "p99.9", DURATION, 1, "99.9 % took no longer."),
	LATENCY_COLUMN("max", "Max", DURATION, 0, "The longest."),
	{.name = "shape",
	 .title = KY_LATENCY_SHAPE_TITLE,
	 .cls = KY_CELL_TEXT,
	 .spare = 4,
	 .called = "the distribution",
	 .help = "The distribution, a character per power of two from 512 ns on."},
	LATENCY_COLUMN("p99_15m", "p99 15m", DURATION, 5, "p99 of the last 15 minutes."),
};

static const struct ky_table_def table_def =
	KY_TABLE_DEF("latency", "Latency", "", columns, KY_TABLE_RANK);

/* ---- rows --------------------------------------------------------------------------------- */

static void fill_row(struct ky_table *table, const struct ky_latency_view *view,
		     const struct ky_latency_row *row, double seconds)
{
	const struct ky_histogram *histogram = &row->histogram;
	struct ky_cell *cells = ky_table_row(table);
	struct ky_strbuf shape = KY_STRBUF_INIT;
	struct ky_histogram long_one;

	ky_cell_text(table, &cells[COLUMN_LAYER], ky_latency_layer_title(row->series->key.layer));
	ky_cell_text(table, &cells[COLUMN_NAME], row->series->name);
	if (row->series->owner)
		ky_cell_text(table, &cells[COLUMN_OWNER], row->series->owner);
	ky_cell_u64(&cells[COLUMN_COUNT], histogram->count);
	ky_cell_f64(&cells[COLUMN_RATE], seconds > 0 ? (double)histogram->count / seconds : 0);
	for (size_t i = 0; i < KY_LATENCY_PARTS; i++)
		ky_cell_u64(&cells[COLUMN_P50 + i],
			    ky_histogram_percentile_ns(histogram, ky_latency_parts[i].part));
	ky_cell_u64(&cells[COLUMN_MAX], histogram->max_ns);
	ky_latency_put_shape(&shape, histogram, ky_cli_locale_is_utf8());
	ky_cell_text(table, &cells[COLUMN_SHAPE], ky_strbuf_text(&shape));
	ky_strbuf_fini(&shape);
	ky_series_past(row->series, KY_PAST_15_MIN, ky_latency_slot(view->latency), &long_one);
	if (view->window != KY_PAST_15_MIN)
		ky_cell_u64(&cells[COLUMN_LONG_P99], ky_histogram_percentile_ns(&long_one, 0.99));
}

static void fill_table(struct ky_table *table, const struct ky_latency_view *view,
		       const struct ky_latency_rows *rows)
{
	double seconds = (double)ky_latency_window_ns(view->latency, view->window) / 1e9;
	uint32_t layer = KY_LATENCY_LAYERS;
	uint64_t n = 0;

	for (size_t i = 0; i < rows->len; i++) {
		const struct ky_latency_row *row = &rows->data[i];

		n = row->series->key.layer == layer ? n + 1 : 1;
		layer = row->series->key.layer;
		if (view->limit && n > view->limit)
			table->n_omitted++;
		else
			fill_row(table, view, row, seconds);
	}
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void put_title(struct ky_strbuf *out, const struct ky_latency_view *view)
{
	struct ky_strbuf duration = KY_STRBUF_INIT;

	ky_render_time(out, ky_os_time_ns(CLOCK_REALTIME), true);
	ky_render_duration(&duration, (double)ky_latency_window_ns(view->latency, view->window));
	ky_strbuf_adds(out, "  the last ");
	ky_strbuf_adds(out, ky_strbuf_text(&duration));
	ky_strbuf_fini(&duration);
}

static void put_losses(struct ky_strbuf *out, const struct ky_latency_view *view)
{
	struct ky_latency_losses losses;

	ky_latency_losses(view->latency, &losses);
	if (losses.cells)
		ky_strbuf_addf(out, "Note: %llu durations are not counted: more keys than --keys\n",
			       (unsigned long long)losses.cells);
	if (losses.requests)
		ky_strbuf_addf(out, "Note: %llu block requests are not counted: too many at once\n",
			       (unsigned long long)losses.requests);
	if (losses.members)
		ky_strbuf_addf(out, "Note: %llu members have no line: too many at once\n",
			       (unsigned long long)losses.members);
	if (losses.programs)
		ky_strbuf_addf(out, "Note: %llu pairs or trackers of programs found no room\n",
			       (unsigned long long)losses.programs);
	if (losses.misses)
		ky_strbuf_addf(out,
			       "Note: the kernel skipped %llu runs of the programs, within other "
			       "runs of the same program\n",
			       (unsigned long long)losses.misses);
	for (uint32_t i = 0; i < KY_LATENCY_LAYERS; i++)
		if (losses.absent_layers >> i & 1)
			ky_strbuf_addf(out, "Note: this kernel has no tracepoints for %s\n",
				       ky_latency_layer_name(i));
}

static void put_tracker(struct ky_strbuf *out, const struct ky_tracker *tracker)
{
	struct ky_tracker_state state;

	ky_tracker_state(tracker, &state);
	ky_strbuf_addf(out, "Tracker %s: %llu open, the worst so far ", ky_tracker_name(tracker),
		       (unsigned long long)state.open);
	ky_render_duration(out, (double)state.worst_ns);
	if (state.full)
		ky_strbuf_addf(out, "; %llu found no room: more than --open at once",
			       (unsigned long long)state.full);
	if (state.again)
		ky_strbuf_addf(out, "; %llu began again before they ended",
			       (unsigned long long)state.again);
	if (state.lost)
		ky_strbuf_addf(out, "; %llu have no line: too many at once",
			       (unsigned long long)state.lost);
	if (state.missed)
		ky_strbuf_addf(out, "; the kernel skipped %llu events",
			       (unsigned long long)state.missed);
	if (state.unread)
		ky_strbuf_addf(out, "; %llu events had an argument that could not be read",
			       (unsigned long long)state.unread);
	ky_strbuf_addc(out, '\n');
}

static void put_chain_state(struct ky_strbuf *out, const struct ky_chain *chain)
{
	struct ky_chain_state state;

	ky_chain_state(chain, &state);
	ky_strbuf_adds(out, "Chain: the worst so far ");
	ky_render_duration(out, (double)state.worst_ns);
	ky_strbuf_addf(out, "; %llu slept again before their call returned",
		       (unsigned long long)state.dropped);
	if (state.lost)
		ky_strbuf_addf(out, "; %llu have no line: too many at once",
			       (unsigned long long)state.lost);
	if (state.missed)
		ky_strbuf_addf(out, "; the kernel skipped %llu events",
			       (unsigned long long)state.missed);
	ky_strbuf_addc(out, '\n');
}

int ky_latency_put_text(struct ky_strbuf *out, const struct ky_latency_view *view,
			struct kymo_error *err)
{
	struct ky_render_options options = {.columns = view->wide ? 0
						       : isatty(STDOUT_FILENO)
							       ? ky_cli_columns(stdout)
							       : PIPE_COLUMNS,
					    .colour = ky_cli_colour(stdout),
					    .utf8 = ky_cli_locale_is_utf8()};
	struct ky_strbuf title = KY_STRBUF_INIT;
	struct ky_table table;
	struct ky_latency_rows rows;
	int ret;

	if (ky_latency_rows_find(view, &rows) < 0)
		return ky_error_nomem(err);
	ky_table_init(&table, &table_def);
	put_title(&title, view);
	table.title = ky_strbuf_text(&title);
	fill_table(&table, view, &rows);
	ky_render_table(out, &table, &options);
	put_losses(out, view);
	for (size_t i = 0; ky_latency_tracker(view->latency, i); i++)
		put_tracker(out, ky_latency_tracker(view->latency, i));
	if (ky_latency_chain(view->latency))
		put_chain_state(out, ky_latency_chain(view->latency));
	ret = ky_table_status(&table) < 0 ? ky_error_nomem(err) : KYMO_OK;
	ky_table_fini(&table);
	ky_strbuf_fini(&title);
	ky_latency_rows_fini(&rows);
	return ret;
}
