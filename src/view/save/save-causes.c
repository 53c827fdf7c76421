/* SPDX-License-Identifier: MIT */
/* Reports on causes of a saved page: all that it offers, in one pass. */
#include <stdlib.h>
#include <string.h>

#include "analysis/history/history.h"
#include "analysis/render/render.h"
#include "analysis/reports/report.h"
#include "base/error.h"
#include "view/save/save-internal.h"

/* Parts of paths and wake-ups on them, of all threads together; a part takes half a kilobyte. */
#define PATH_ROWS 50000
/* Threads with paths: those with the most CPU time. */
#define PATH_THREADS 64
/* Members of a map, the longest ones. */
#define MAP_MEMBERS 1000

static const struct {
	const char *report, *of;
} offered[] = {
	{"why", NULL},
	{"breakdown", NULL},
	{"breakdown", "syscall:*"},
	{"breakdown", "wakeup"},
	{"flame", NULL},
	{"flame", "off-cpu"},
	{"heatmap", "syscall:*"},
	{"heatmap", "wakeup"},
	{"heatmap", "preemption"},
	{"heatmap", "block"},
	{"heatmap", "irq"},
	{"heatmap", "softirq"},
	{"critical-path", NULL},
};

#define OFFERED (sizeof(offered) / sizeof(*offered))

struct causes {
	const struct ky_report *reports[OFFERED];
	const char *ofs[OFFERED];
	struct ky_report_options options[OFFERED];
	size_t n;
	bool has_path; /* the last one is the path */
};

static const char *const path_tables[] = {"threads", "parts", "log", "arrows"};

static int save_causes_compare(const void *a, const void *b)
{
	const struct ky_saved_thread *left = a, *right = b;

	if (left->ran_ns != right->ran_ns)
		return left->ran_ns < right->ran_ns ? 1 : -1;
	return (left->tid > right->tid) - (left->tid < right->tid);
}

/* The path is of these threads. */
static int save_causes_threads(struct ky_report_options *options, struct ky_saved_threads *threads)
{
	options->tables = path_tables;
	options->n_tables = sizeof(path_tables) / sizeof(*path_tables);
	options->limit = PATH_ROWS;
	qsort(threads->data, threads->len, sizeof(*threads->data), save_causes_compare);
	for (size_t i = 0; i < threads->len && i < PATH_THREADS; i++) {
		if (ky_vec_push(&options->focus.tids, threads->data[i].tid) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

static int save_causes_add(struct causes *causes, const struct ky_report *report, const char *of,
			   const struct ky_view_range *range, struct ky_saved_threads *threads)
{
	struct ky_report_options *options = &causes->options[causes->n];

	ky_report_options_init(options);
	options->for_people = false;
	options->focus.begin_ns = range->begin_ns;
	options->focus.end_ns = range->end_ns;
	options->of = of;
	causes->reports[causes->n] = report;
	causes->ofs[causes->n++] = of ? of : "";
	if (report->wants_of)
		options->limit = MAP_MEMBERS;
	return report->wants_choice ? save_causes_threads(options, threads) : 0;
}

/* What the traces have the events for. */
static int save_causes_choose(struct causes *causes, const struct ky_view *view,
			      const struct ky_view_range *range, struct ky_saved_threads *threads)
{
	int status = 0;

	for (size_t i = 0; i < OFFERED && status >= 0; i++) {
		const struct ky_report *report = ky_report_find(offered[i].report);
		struct kymo_error ignored;

		if (!report || ky_report_check(report, view->set, &ignored) < 0 ||
		    (report->wants_choice && !threads->len))
			continue;
		causes->has_path |= report->wants_choice;
		status = save_causes_add(causes, report, offered[i].of, range, threads);
	}
	return status;
}

static int save_causes_run(const struct causes *causes, const struct ky_view *view,
			   const struct ky_view_stop *stop, struct ky_report_results *results,
			   struct kymo_error *err)
{
	struct ky_flow *flow;
	int ret = ky_view_flow(view, "", INT64_MIN, INT64_MAX, stop, &flow, err);

	if (ret < 0)
		return ret;
	ret = ky_reports_run_each(causes->reports, causes->options, causes->n, view->set, flow,
				  results, err);
	ky_flow_close(flow);
	/* Of a damaged trace: what could be read. */
	if ((ret == KYMO_E_FORMAT || ret == KYMO_E_IO || ret == KYMO_E_LIMIT) &&
	    results->begin_ns != INT64_MIN)
		ret = KYMO_OK;
	return ret;
}

/* The results from @first to @end, as those of one run. */
static int save_causes_render(const struct ky_report_results *results, size_t first, size_t end,
			      struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_report_results part = *results;

	part.list.data += first;
	part.list.len = end - first;
	return ky_render_json(out, &part, err);
}

static void save_causes_put_ofs(const struct causes *causes, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, "[");
	for (size_t i = 0; i < causes->n; i++) {
		ky_strbuf_adds(out, i ? ", " : "");
		ky_view_put_text(out, causes->ofs[i]);
	}
	ky_strbuf_adds(out, "]");
}

static int save_causes_put(const struct causes *causes, const struct ky_report_results *results,
			   struct ky_saved_causes *out, struct kymo_error *err)
{
	size_t n_others = causes->n - causes->has_path;
	int ret = save_causes_render(results, 0, n_others, &out->reports, err);

	if (ret >= 0 && causes->has_path)
		ret = save_causes_render(results, n_others, causes->n, &out->path, err);
	save_causes_put_ofs(causes, &out->ofs);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_saved_causes(const struct ky_view *view, const struct ky_view_range *range,
		    const struct ky_view_stop *stop, struct ky_saved_threads *threads,
		    struct ky_saved_causes *out, struct kymo_error *err)
{
	struct causes causes = {.n = 0};
	struct ky_report_results results = {0};
	int ret = save_causes_choose(&causes, view, range, threads);

	if (ret < 0)
		ret = ky_error_nomem(err);
	if (ret >= 0 && causes.n) {
		ret = save_causes_run(&causes, view, stop, &results, err);
		if (ret >= 0)
			ret = save_causes_put(&causes, &results, out, err);
		ky_report_results_fini(&results);
	}
	for (size_t i = 0; i < causes.n; i++)
		ky_report_options_fini(&causes.options[i]);
	return ret < 0 ? ret : KYMO_OK;
}
