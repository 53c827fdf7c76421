/* SPDX-License-Identifier: MIT */
/* The output of type TREE_GENERIC_XY: how many calls, waits and so on took how long. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

#define MAX_CLASSES ((size_t)64)

/* The series: ids from 1 on, and the names of what latency.h counts. */
static const struct generic_series {
	const char *name, *label;
} generic_series[] = {
	{"calls", "System calls"},     {"waits", "Waits"},
	{"ready", "Waits for a CPU"},  {"irqs", "Interrupts"},
	{"requests", "Disk requests"}, {"spans", "Spans"},
};

#define N_SERIES (sizeof(generic_series) / sizeof(*generic_series))

/* The same classes of durations for all series. */
struct generic_chart {
	struct ky_tsp_answer *answer;
	double classes[MAX_CLASSES]; /* lower ends, ns */
	size_t n_classes;
	uint64_t counts[N_SERIES][MAX_CLASSES];
	bool is_there[N_SERIES], is_running;
};

static void generic_put_tree(struct ky_tsp_answer *answer)
{
	struct ky_strbuf *out = answer->out;

	ky_tsp_put_head(out, false);
	ky_strbuf_adds(out, "{\"headers\": [{\"name\": \"Name\", \"tooltip\": \"\", "
			    "\"dataType\": \"STRING\"}], \"autoExpandLevel\": -1, "
			    "\"entries\": [{\"id\": 0, \"parentId\": -1, \"labels\": [");
	ky_view_put_text(out, answer->experiment->name);
	ky_strbuf_adds(out, "], \"hasData\": false}");
	for (size_t i = 0; i < N_SERIES; i++)
		ky_strbuf_addf(out,
			       ", {\"id\": %zu, \"parentId\": 0, \"labels\": [\"%s\"], "
			       "\"hasData\": true, \"isDefault\": %s}",
			       i + 1, generic_series[i].label, i ? "false" : "true");
	ky_strbuf_adds(out, "]}}\n");
}

/* ---- counts -------------------------------------------------------------------------------- */

/* Of an answer of the engine: lower ends of classes, and the classes and counts of cells. */
static void generic_take(struct generic_chart *chart, size_t series,
			 const struct ky_view_columns *found)
{
	const struct ky_view_values *ends = ky_view_find_column(found, "classes", KY_VIEW_REALS);
	const struct ky_view_values *cells = ky_view_find_column(found, "class", KY_VIEW_STEPS);
	const int64_t *counts = cells ? ky_tsp_numbers(found, "count", cells->n) : NULL;

	chart->is_running |= !ky_tsp_flag(found, "ready");
	chart->n_classes = 0;
	for (size_t i = 0; ends && i < ends->n && chart->n_classes < MAX_CLASSES; i++)
		chart->classes[chart->n_classes++] = ends->reals[i];
	for (size_t i = 0; counts && i < cells->n; i++) {
		uint64_t class = (uint64_t)cells->numbers[i];

		if (class < chart->n_classes)
			chart->counts[series][class] += (uint64_t)counts[i];
	}
}

static int generic_count(struct generic_chart *chart, size_t series, struct kymo_error *err)
{
	const struct ky_tsp_request *asked = chart->answer->request;
	struct ky_view_request *request = calloc(1, sizeof(*request));
	struct ky_view_columns found;
	struct ky_arena arena;
	int ret;

	if (!request)
		return ky_error_nomem(err);
	ky_arena_init(&arena);
	request->what = KY_VIEW_LATENCY;
	request->begin_ns = asked->begin_ns;
	request->end_ns = asked->end_ns;
	request->count = 1;
	memcpy(request->name, generic_series[series].name, strlen(generic_series[series].name) + 1);
	ret = ky_tsp_ask_columns(chart->answer, request, &arena, &found, err);
	if (ret == KYMO_OK) {
		chart->is_there[series] = true;
		generic_take(chart, series, &found);
	}
	ky_arena_fini(&arena);
	free(request);
	return ret;
}

/* ---- series -------------------------------------------------------------------------------- */

/* The classes from the first to the last one with something, in any series. */
static void generic_bounds(const struct generic_chart *chart, size_t *first, size_t *last)
{
	*first = chart->n_classes;
	*last = 0;
	for (size_t series = 0; series < N_SERIES; series++) {
		for (size_t i = 0; i < chart->n_classes; i++) {
			if (!chart->counts[series][i])
				continue;
			*first = i < *first ? i : *first;
			*last = i + 1 > *last ? i + 1 : *last;
		}
	}
}

/* Both ends are of the class. */
static void generic_put_range(const struct generic_chart *chart, size_t i, struct ky_strbuf *out)
{
	double end = i + 1 < chart->n_classes ? ceil(chart->classes[i + 1]) - 1 : 9e18;

	ky_strbuf_addf(out, "{\"start\": %.0f, \"end\": %.0f}", ceil(chart->classes[i]),
		       end < 9e18 ? end : 9e18);
}

static void generic_put_series(const struct generic_chart *chart, size_t series, size_t first,
			       size_t last)
{
	struct ky_strbuf *out = chart->answer->out;

	ky_strbuf_addf(out, "{\"seriesId\": %zu, \"seriesName\": \"%s\", \"xRanges\": [",
		       series + 1, generic_series[series].label);
	for (size_t i = first; i < last; i++) {
		ky_strbuf_adds(out, i > first ? "," : "");
		generic_put_range(chart, i, out);
	}
	ky_strbuf_adds(out, "], \"yValues\": [");
	for (size_t i = first; i < last; i++)
		ky_strbuf_addf(out, "%s%llu", i > first ? "," : "",
			       (unsigned long long)chart->counts[series][i]);
	ky_strbuf_adds(out,
		       "], \"xValuesDescription\": {\"label\": \"Duration\", \"unit\": \"ns\", "
		       "\"dataType\": \"DURATION\"}, \"yValuesDescription\": {\"label\": "
		       "\"Number\", \"unit\": \"\", \"dataType\": \"NUMBER\"}, \"style\": "
		       "{\"values\": {\"series-type\": \"bar\"}}}");
}

static void generic_put_chart(const struct generic_chart *chart)
{
	struct ky_strbuf *out = chart->answer->out;
	size_t first, last;
	bool any = false;

	generic_bounds(chart, &first, &last);
	ky_tsp_put_head(out, chart->is_running);
	ky_strbuf_adds(out, "{\"title\": \"Durations\", \"series\": [");
	for (size_t series = 0; series < N_SERIES; series++) {
		if (!chart->is_there[series])
			continue;
		ky_strbuf_adds(out, any ? ",\n" : "");
		generic_put_series(chart, series, first, last);
		any = true;
	}
	ky_strbuf_adds(out, "]}}\n");
}

int ky_tsp_generic(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	struct generic_chart chart = {.answer = answer};
	int ret = ky_tsp_check_output(request->output, "TREE_GENERIC_XY", err);

	if (ret < 0)
		return ret;
	if (request->what == KY_TSP_GENERIC_TREE) {
		generic_put_tree(answer);
		return KYMO_OK;
	}
	for (size_t i = 0; i < request->n_items && ret == KYMO_OK; i++) {
		int64_t item = request->items[i];

		if (item >= 1 && item <= (int64_t)N_SERIES && !chart.is_there[item - 1])
			ret = generic_count(&chart, (size_t)item - 1, err);
	}
	if (ret == KYMO_OK)
		generic_put_chart(&chart);
	return ret;
}
