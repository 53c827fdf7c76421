/* SPDX-License-Identifier: MIT */
/* Outputs of type TREE_TIME_XY: events over time, and how busy CPUs are. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp-internal.h"

#define USUAL_SAMPLES 1000
/* A sample of a CPU's usage is the mean of so many pixels of the history. */
#define MAX_PARTS  16
#define MAX_PIXELS ((size_t)1 << 18)

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

static void put_entry(struct ky_strbuf *out, unsigned long long id, const char *label,
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
		put_entry(answer->out, (unsigned long long)row->id + 2, ky_strbuf_text(&label),
			  false);
	}
	ky_strbuf_fini(&label);
}

/* ---- series ------------------------------------------------------------------------------ */

static int64_t time_of(const struct chart *chart, size_t i)
{
	return (int64_t)((uint64_t)chart->begin_ns +
			 (uint64_t)((unsigned __int128)chart->span_ns * i / chart->n));
}

static void put_series(struct chart *chart, unsigned long long id, const char *name,
		       const char *unit, const double *values)
{
	struct ky_strbuf *out = chart->answer->out;

	ky_strbuf_addf(
		out, "%s{\"seriesId\": %llu, \"seriesName\": ", chart->n_series++ ? ",\n" : "", id);
	ky_view_put_text(out, name);
	ky_strbuf_adds(out, ", \"xValues\": [");
	for (size_t i = 0; i < chart->n; i++) {
		ky_strbuf_adds(out, i ? "," : "");
		ky_strbuf_addi(out, time_of(chart, i));
	}
	ky_strbuf_adds(out, "], \"yValues\": [");
	for (size_t i = 0; i < chart->n; i++)
		ky_strbuf_addf(out, "%s%.10g", i ? "," : "", values[i]);
	ky_strbuf_addf(out,
		       "], \"xValuesDescription\": {\"label\": \"Time\", \"unit\": \"ns\", "
		       "\"dataType\": \"TIMESTAMP\"}, \"yValuesDescription\": {\"label\": \"%s\", "
		       "\"unit\": \"%s\", \"dataType\": \"NUMBER\"}, \"style\": {\"values\": "
		       "{\"series-type\": \"%s\"}}}",
		       *unit ? "Usage" : "Events", unit, *unit ? "line" : "bar");
}

static bool is_wanted(const struct ky_tsp_request *request, int64_t id)
{
	for (size_t i = 0; i < request->n_items; i++) {
		if (request->items[i] == id)
			return true;
	}
	return false;
}

/* ---- the histogram ----------------------------------------------------------------------- */

static int take_numbers(const struct ky_json *array, double *values, size_t n,
			struct kymo_error *err)
{
	const struct ky_json *one = array ? array->list.first : NULL;
	size_t i = 0;

	for (; one && i < n; one = one->next)
		values[i++] = (double)one->integer.u;
	return i == n ? KYMO_OK : ky_error_set(err, KYMO_E_STATE, "the density has no samples");
}

static int put_histogram(struct chart *chart, const struct ky_json *root, double *values,
			 struct kymo_error *err)
{
	const struct ky_tsp_request *request = chart->answer->request;
	int ret = KYMO_OK;

	if (is_wanted(request, TOTAL)) {
		ret = take_numbers(ky_json_get(root, "events"), values, chart->n, err);
		put_series(chart, TOTAL, "Total", "", values);
	}
	if (ret == KYMO_OK && is_wanted(request, LOST)) {
		ret = take_numbers(ky_json_get(root, "lost"), values, chart->n, err);
		put_series(chart, LOST, "Lost events", "", values);
	}
	return ret;
}

static bool is_exact(const struct ky_json *root, size_t n)
{
	const struct ky_json *exact = ky_json_get(root, "exact");

	return exact && exact->kind == KY_JSON_INTEGER && exact->integer.u >= n;
}

static int answer_histogram(struct chart *chart, struct kymo_error *err)
{
	struct ky_view_request *request = calloc(1, sizeof(*request));
	double *values = calloc(chart->n, sizeof(*values));
	const struct ky_json *root;
	struct ky_arena arena;
	int ret = KYMO_OK;

	ky_arena_init(&arena);
	if (request && values) {
		request->what = KY_VIEW_DENSITY;
		request->begin_ns = chart->begin_ns;
		request->end_ns = (int64_t)((uint64_t)chart->begin_ns + chart->span_ns - 1);
		request->count = chart->n;
		ret = ky_tsp_ask(chart->answer, request, &arena, &root, err);
	} else {
		ret = ky_error_nomem(err);
	}
	if (ret == KYMO_OK) {
		ky_tsp_put_head(chart->answer->out, !is_exact(root, chart->n));
		ky_strbuf_adds(chart->answer->out, "{\"title\": \"Histogram\", \"series\": [");
		ret = put_histogram(chart, root, values, err);
		ky_strbuf_adds(chart->answer->out, "]}}\n");
	}
	ky_arena_fini(&arena);
	free(request);
	free(values);
	return ret;
}

/* ---- CPU usage --------------------------------------------------------------------------- */

/* Add the part of each sample in which the CPU @row ran a thread. */
static int add_usage(const struct chart *chart, struct ky_history *history, uint32_t row,
		     size_t n_parts, struct ky_history_pixel *pixels, double *values,
		     struct kymo_error *err)
{
	int64_t end_ns = (int64_t)((uint64_t)chart->begin_ns + chart->span_ns);
	int ret = ky_history_pixels(history, row, chart->begin_ns, end_ns, chart->n * n_parts,
				    pixels, err);

	for (size_t i = 0; i < chart->n * n_parts && ret == KYMO_OK; i++) {
		double share = pixels[i].share / 255.0;

		/* What fills the rest of a pixel is not known: of a running CPU most often other threads. */
		if (ky_state_kind(pixels[i].state) == KY_STATE_RUNS)
			values[i / n_parts] += 100.0 / (double)n_parts;
		else if (ky_state_kind(pixels[i].state) == KY_STATE_IDLE)
			values[i / n_parts] += (1 - share) * 100 / (double)n_parts;
	}
	return ret;
}

struct usage {
	struct ky_history_pixel *pixels;
	double *total, *values;
	size_t n_parts, n_cpus;
};

static int put_cpu(struct chart *chart, struct ky_history *history, struct usage *usage,
		   const struct ky_history_row *row, struct kymo_error *err)
{
	struct ky_strbuf label = KY_STRBUF_INIT;
	int ret;

	memset(usage->values, 0, chart->n * sizeof(*usage->values));
	ret = add_usage(chart, history, row->id, usage->n_parts, usage->pixels, usage->values, err);
	usage->n_cpus++;
	for (size_t i = 0; i < chart->n; i++)
		usage->total[i] += usage->values[i];
	ky_tsp_label(row, &label);
	if (ret == KYMO_OK && is_wanted(chart->answer->request, (int64_t)row->id + 2))
		put_series(chart, (unsigned long long)row->id + 2, ky_strbuf_text(&label), "%",
			   usage->values);
	ky_strbuf_fini(&label);
	return ret;
}

static int put_usage(struct chart *chart, struct ky_history *history, struct usage *usage,
		     struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < ky_history_n_rows(history) && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		if (row->kind == KY_ROW_CPU && row->begin_ns != INT64_MIN)
			ret = put_cpu(chart, history, usage, row, err);
	}
	for (size_t i = 0; i < chart->n && usage->n_cpus; i++)
		usage->total[i] /= (double)usage->n_cpus;
	if (ret == KYMO_OK && is_wanted(chart->answer->request, TOTAL))
		put_series(chart, TOTAL, "Total", "%", usage->total);
	return ret;
}

static int answer_usage(struct chart *chart, struct ky_history *history, struct kymo_error *err)
{
	struct usage usage = {.n_parts = MAX_PIXELS / chart->n};
	int ret = KYMO_OK;

	usage.n_parts = usage.n_parts < MAX_PARTS ? usage.n_parts : MAX_PARTS;
	if (chart->span_ns / chart->n < usage.n_parts)
		usage.n_parts = (size_t)(chart->span_ns / chart->n);
	ky_tsp_put_head(chart->answer->out, !history);
	ky_strbuf_adds(chart->answer->out, "{\"title\": \"CPU usage\", \"series\": [");
	usage.pixels = calloc(chart->n * usage.n_parts, sizeof(*usage.pixels));
	usage.total = calloc(chart->n, sizeof(*usage.total));
	usage.values = calloc(chart->n, sizeof(*usage.values));
	if (!usage.pixels || !usage.total || !usage.values)
		ret = ky_error_nomem(err);
	else if (history)
		ret = put_usage(chart, history, &usage, err);
	ky_strbuf_adds(chart->answer->out, "]}}\n");
	free(usage.pixels);
	free(usage.total);
	free(usage.values);
	return ret;
}

/* ---- the answer -------------------------------------------------------------------------- */

static int answer_cpus(struct ky_tsp_answer *answer, struct chart *chart, struct kymo_error *err)
{
	struct ky_history *history = ky_tsp_begin_history(answer, err);
	int ret = KYMO_OK;

	if (!history && err->code)
		return err->code;
	if (answer->request->what == KY_TSP_XY) {
		ret = answer_usage(chart, history, err);
	} else {
		begin_tree(answer, !history);
		put_entry(answer->out, TOTAL, "Total", true);
		if (history)
			put_cpus(answer, history);
		ky_strbuf_adds(answer->out, "]}}\n");
	}
	if (history)
		ky_view_put_history(answer->view);
	return ret;
}

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
	if (strcmp(request->output, KY_TSP_CPU_USAGE) == 0)
		return answer_cpus(answer, &chart, err);
	if (request->what == KY_TSP_XY)
		return answer_histogram(&chart, err);
	begin_tree(answer, false);
	put_entry(answer->out, TOTAL, "Total", true);
	put_entry(answer->out, LOST, "Lost events", false);
	ky_strbuf_adds(answer->out, "]}}\n");
	return KYMO_OK;
}
