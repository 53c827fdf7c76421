/* SPDX-License-Identifier: MIT */
/* Outputs of type TREE_TIME_XY: events over time, how busy CPUs are, counters. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

#define USUAL_SAMPLES 1000

/* Ids of the histogram's series. */
enum {
	ROOT,
	TOTAL,
	LOST,
};

struct chart {
	struct ky_tsp_answer *answer;
	int64_t begin_ns;
	uint64_t span_ns;
	size_t n;	 /* samples */
	size_t n_series; /* that were put */
};

/* ---- trees ------------------------------------------------------------------------------- */

static void begin_tree(struct ky_tsp_answer *answer, bool is_running)
{
	ky_tsp_put_head(answer->out, is_running);
	ky_strbuf_adds(answer->out, "{\"headers\": [{\"name\": \"Name\", \"tooltip\": \"\", "
				    "\"dataType\": \"STRING\"}], \"autoExpandLevel\": -1, "
				    "\"entries\": [{\"id\": 0, \"parentId\": -1, \"labels\": [");
	ky_view_put_text(answer->out, answer->experiment->name);
	ky_strbuf_adds(answer->out, "], \"hasData\": false}");
}

static void tsp_xy_put_entry(struct ky_strbuf *out, unsigned long long id, const char *label,
			     bool is_default)
{
	ky_strbuf_addf(out, ", {\"id\": %llu, \"parentId\": 0, \"labels\": [", id);
	ky_view_put_text(out, label);
	ky_strbuf_addf(out, "], \"hasData\": true, \"isDefault\": %s}",
		       is_default ? "true" : "false");
}

static void put_cpus(struct ky_tsp_answer *answer, const struct ky_history *history)
{
	struct ky_strbuf label = KY_STRBUF_INIT;

	for (size_t i = 0; i < ky_history_n_rows(history); i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		if (row->kind != KY_ROW_CPU || row->begin_ns == INT64_MIN)
			continue;
		ky_tsp_label(row, &label);
		tsp_xy_put_entry(answer->out, (unsigned long long)row->id + 2,
				 ky_strbuf_text(&label), false);
	}
	ky_strbuf_fini(&label);
}

/* ---- series ------------------------------------------------------------------------------ */

static int64_t tsp_xy_time_of(const struct chart *chart, size_t i)
{
	return (int64_t)((uint64_t)chart->begin_ns +
			 (uint64_t)((unsigned __int128)chart->span_ns * i / chart->n));
}

struct axis {
	const char *label, *unit, *type; /* of the series: "bar", "line" */
};

static const struct axis events_axis = {"Events", "", "bar"}, usage_axis = {"Usage", "%", "line"},
			 values_axis = {"Value", "", "line"};

static void put_series(struct chart *chart, unsigned long long id, const char *name,
		       const struct axis *axis, const double *values)
{
	struct ky_strbuf *out = chart->answer->out;

	ky_strbuf_addf(
		out, "%s{\"seriesId\": %llu, \"seriesName\": ", chart->n_series++ ? ",\n" : "", id);
	ky_view_put_text(out, name);
	ky_strbuf_adds(out, ", \"xValues\": [");
	for (size_t i = 0; i < chart->n; i++) {
		ky_strbuf_adds(out, i ? "," : "");
		ky_strbuf_addi(out, tsp_xy_time_of(chart, i));
	}
	ky_strbuf_adds(out, "], \"yValues\": [");
	for (size_t i = 0; i < chart->n; i++)
		ky_strbuf_addf(out, "%s%.10g", i ? "," : "", values[i]);
	ky_strbuf_addf(out,
		       "], \"xValuesDescription\": {\"label\": \"Time\", \"unit\": \"ns\", "
		       "\"dataType\": \"TIMESTAMP\"}, \"yValuesDescription\": {\"label\": \"%s\", "
		       "\"unit\": \"%s\", \"dataType\": \"NUMBER\"}, \"style\": {\"values\": "
		       "{\"series-type\": \"%s\"}}}",
		       axis->label, axis->unit, axis->type);
}

static bool tsp_xy_is_wanted(const struct ky_tsp_request *request, int64_t id)
{
	for (size_t i = 0; i < request->n_items; i++) {
		if (request->items[i] == id)
			return true;
	}
	return false;
}

/* ---- the histogram ----------------------------------------------------------------------- */

static int put_histogram(struct chart *chart, const struct ky_view_columns *found, double *values,
			 struct kymo_error *err)
{
	const struct ky_tsp_request *request = chart->answer->request;
	const int64_t *events = ky_tsp_numbers(found, "events", chart->n);

	for (size_t i = 0; events && i < chart->n; i++)
		values[i] = (double)events[i];
	if (events && tsp_xy_is_wanted(request, TOTAL))
		put_series(chart, TOTAL, "Total", &events_axis, values);
	if (!events || !ky_view_fill_runs(found, "lost", values, chart->n))
		return ky_error_set(err, KYMO_E_STATE, "the density has no samples");
	if (tsp_xy_is_wanted(request, LOST))
		put_series(chart, LOST, "Lost events", &events_axis, values);
	return KYMO_OK;
}

static bool tsp_xy_is_exact(const struct ky_view_columns *found, size_t n)
{
	const struct ky_json *exact = ky_view_head(found, "exact");

	return exact && exact->kind == KY_JSON_INTEGER && exact->integer.u >= n;
}

static int answer_histogram(struct chart *chart, struct kymo_error *err)
{
	struct ky_view_request *request = calloc(1, sizeof(*request));
	double *values = calloc(chart->n, sizeof(*values));
	struct ky_view_columns found;
	struct ky_arena arena;
	int ret = KYMO_OK;

	ky_arena_init(&arena);
	if (request && values) {
		request->what = KY_VIEW_DENSITY;
		request->begin_ns = chart->begin_ns;
		request->end_ns = (int64_t)((uint64_t)chart->begin_ns + chart->span_ns - 1);
		request->count = chart->n;
		ret = ky_tsp_ask_columns(chart->answer, request, &arena, &found, err);
	} else {
		ret = ky_error_nomem(err);
	}
	if (ret == KYMO_OK) {
		ky_tsp_put_head(chart->answer->out, !tsp_xy_is_exact(&found, chart->n));
		ky_strbuf_adds(chart->answer->out, "{\"title\": \"Histogram\", \"series\": [");
		ret = put_histogram(chart, &found, values, err);
		ky_strbuf_adds(chart->answer->out, "]}}\n");
	}
	ky_arena_fini(&arena);
	free(request);
	free(values);
	return ret;
}

/* ---- rows of the state history ----------------------------------------------------------- */

/* Curves of rows: one at a time, and the mean of all. */
struct curves {
	struct ky_history *history;
	struct ky_history_height *heights;
	double *values, *total;
	size_t n_rows;
};

static int take_curve(const struct chart *chart, struct curves *curves, uint32_t row,
		      struct kymo_error *err)
{
	int64_t end_ns = (int64_t)((uint64_t)chart->begin_ns + chart->span_ns);

	return ky_history_heights(curves->history, row, chart->begin_ns, end_ns, chart->n,
				  curves->heights, err);
}

/* "CPU 0: waiting threads": foreign text. */
static void put_row_series(struct chart *chart, const struct curves *curves,
			   const struct ky_history_row *row, unsigned long long id,
			   const struct axis *axis)
{
	struct ky_strbuf name = KY_STRBUF_INIT, label = KY_STRBUF_INIT;

	if (axis == &values_axis && row->parent < ky_history_n_rows(curves->history)) {
		ky_tsp_label(ky_history_row(curves->history, row->parent), &label);
		ky_strbuf_addf(&name, "%s: ", ky_strbuf_text(&label));
	}
	ky_tsp_label(row, &label);
	ky_strbuf_adds(&name, ky_strbuf_text(&label));
	put_series(chart, id, ky_strbuf_text(&name), axis, curves->values);
	ky_strbuf_fini(&name);
	ky_strbuf_fini(&label);
}

static void put_cpu_usage(struct curves *curves, double usage, size_t i)
{
	curves->values[i] = usage < 100 ? usage : 100;
	curves->total[i] += curves->values[i];
}

/* The part of each sample in which a CPU ran a thread. */
static int put_cpu(struct chart *chart, struct curves *curves, const struct ky_history_row *row,
		   struct kymo_error *err)
{
	double sample_ns = (double)chart->span_ns / (double)chart->n;
	int ret = take_curve(chart, curves, row->id, err);

	for (size_t i = 0; i < chart->n && ret == KYMO_OK; i++)
		put_cpu_usage(curves, curves->heights[i].sum_ns / sample_ns * 100, i);
	curves->n_rows++;
	if (ret == KYMO_OK && tsp_xy_is_wanted(chart->answer->request, (int64_t)row->id + 2))
		put_row_series(chart, curves, row, (unsigned long long)row->id + 2, &usage_axis);
	return ret;
}

static int put_usage(struct chart *chart, struct curves *curves, struct kymo_error *err)
{
	int ret = KYMO_OK;

	/* An answer that is too long is refused when it is complete. */
	for (size_t i = 0; i < ky_history_n_rows(curves->history) && ret == KYMO_OK &&
			   chart->answer->out->len <= KY_TSP_ANSWER_BYTES;
	     i++) {
		const struct ky_history_row *row = ky_history_row(curves->history, (uint32_t)i);

		if (row->kind == KY_ROW_CPU && row->begin_ns != INT64_MIN)
			ret = put_cpu(chart, curves, row, err);
	}
	for (size_t i = 0; i < chart->n && curves->n_rows; i++)
		curves->total[i] /= (double)curves->n_rows;
	if (ret == KYMO_OK && tsp_xy_is_wanted(chart->answer->request, TOTAL))
		put_series(chart, TOTAL, "Total", &usage_axis, curves->total);
	return ret;
}

/* The mean of each sample; 0 where nothing is known. */
static int put_counters(struct chart *chart, struct curves *curves, struct kymo_error *err)
{
	const struct ky_tsp_request *request = chart->answer->request;
	unsigned int kinds = ky_tsp_row_kinds(request->output);
	int ret = KYMO_OK;

	for (size_t i = 0; i < request->n_items && ret == KYMO_OK; i++) {
		const struct ky_history_row *row;

		if (request->items[i] < 0 ||
		    (uint64_t)request->items[i] >= ky_history_n_rows(curves->history))
			continue;
		row = ky_history_row(curves->history, (uint32_t)request->items[i]);
		if (!(kinds & 1U << row->kind))
			continue;
		ret = take_curve(chart, curves, row->id, err);
		for (size_t x = 0; x < chart->n && ret == KYMO_OK; x++)
			curves->values[x] =
				curves->heights[x].ns > 0
					? curves->heights[x].sum_ns / curves->heights[x].ns
					: 0;
		if (ret == KYMO_OK)
			put_row_series(chart, curves, row, row->id, &values_axis);
		if (ret == KYMO_OK && chart->answer->out->len > KY_TSP_ANSWER_BYTES)
			ret = ky_error_set(err, KYMO_E_LIMIT, "too many series at the same time");
	}
	return ret;
}

static int answer_curves(struct chart *chart, struct ky_history *history, struct kymo_error *err)
{
	bool is_usage = strcmp(chart->answer->request->output, KY_TSP_CPU_USAGE) == 0;
	struct curves curves = {.history = history};
	int ret = KYMO_OK;

	ky_tsp_put_head(chart->answer->out, !history);
	ky_strbuf_addf(chart->answer->out, "{\"title\": \"%s\", \"series\": [",
		       is_usage ? "CPU Usage" : "Counters");
	curves.heights = calloc(chart->n, sizeof(*curves.heights));
	curves.values = calloc(chart->n, sizeof(*curves.values));
	curves.total = calloc(chart->n, sizeof(*curves.total));
	if (!curves.heights || !curves.values || !curves.total)
		ret = ky_error_nomem(err);
	else if (history && is_usage)
		ret = put_usage(chart, &curves, err);
	else if (history)
		ret = put_counters(chart, &curves, err);
	ky_strbuf_adds(chart->answer->out, "]}}\n");
	free(curves.heights);
	free(curves.values);
	free(curves.total);
	return ret;
}

static int answer_rows(struct ky_tsp_answer *answer, struct chart *chart, struct kymo_error *err)
{
	struct ky_history *history = ky_tsp_begin_history(answer, err);
	int ret = KYMO_OK;

	if (!history && err->code)
		return err->code;
	if (answer->request->what == KY_TSP_XY) {
		ret = answer_curves(chart, history, err);
	} else if (strcmp(answer->request->output, KY_TSP_COUNTERS) == 0) {
		ret = ky_tsp_put_tree(answer, history, err);
	} else {
		begin_tree(answer, !history);
		tsp_xy_put_entry(answer->out, TOTAL, "Total", true);
		if (history)
			put_cpus(answer, history);
		ky_strbuf_adds(answer->out, "]}}\n");
	}
	if (history)
		ky_view_put_history(answer->view);
	return ret;
}

/* ---- the answer -------------------------------------------------------------------------- */

int ky_tsp_xy(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	struct chart chart = {.answer = answer,
			      .begin_ns = request->begin_ns,
			      .span_ns =
				      (uint64_t)request->end_ns - (uint64_t)request->begin_ns + 1,
			      .n = request->n_times ? request->n_times : USUAL_SAMPLES};
	int ret = ky_tsp_check_output(request->output, "TREE_TIME_XY", err);

	if (ret < 0)
		return ret;
	if (chart.span_ns < chart.n)
		chart.n = (size_t)chart.span_ns;
	if (strcmp(request->output, KY_TSP_HISTOGRAM) != 0)
		return answer_rows(answer, &chart, err);
	if (request->what == KY_TSP_XY)
		return answer_histogram(&chart, err);
	begin_tree(answer, false);
	tsp_xy_put_entry(answer->out, TOTAL, "Total", true);
	tsp_xy_put_entry(answer->out, LOST, "Lost events", false);
	ky_strbuf_adds(answer->out, "]}}\n");
	return KYMO_OK;
}
