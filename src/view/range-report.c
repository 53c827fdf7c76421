/* SPDX-License-Identifier: MIT */
/* A report for a range, as the JSON of kymo report. */
#include "analysis/render/render.h"
#include "base/error.h"
#include "view/view-internal.h"

#define MAX_ANSWER_BYTES ((size_t)64 << 20)

/* All tables of a report on one thread, so that its path can be drawn. */
static const char *const path_tables[] = {"threads", "parts", "log", "arrows"};

/* The thread of the row that is chosen, for reports that are about a thread. */
static int range_report_choose(struct ky_view *view, const struct ky_view_request *request,
			       struct ky_report_options *options, struct kymo_error *err)
{
	const struct ky_history_row *row = NULL;
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK && history && request->row < ky_history_n_rows(history))
		row = ky_history_row(history, (uint32_t)request->row);
	if (ret == KYMO_OK && (!row || row->kind != KY_ROW_THREAD))
		ret = ky_error_set(err, KYMO_E_INVALID, "the report is about a thread; select one");
	if (ret == KYMO_OK && ky_vec_push(&options->focus.tids, (int32_t)row->number) < 0)
		ret = ky_error_nomem(err);
	ky_view_put_history(view);
	options->tables = path_tables;
	options->n_tables = sizeof(path_tables) / sizeof(*path_tables);
	return ret;
}

/* Names, files and states before the range belong to it: from the state history, or the whole trace passes. */
static int range_report_run(struct ky_view *view, const struct ky_report *report,
			    const struct ky_view_request *request, const struct ky_view_stop *stop,
			    struct ky_report_results *results, struct kymo_error *err)
{
	struct ky_report_options options;
	struct ky_flow *flow;
	int ret = KYMO_OK;

	ky_report_options_init(&options);
	options.for_people = false;
	options.focus.begin_ns = request->begin_ns;
	options.focus.end_ns = request->end_ns;
	if (report->wants_choice)
		ret = range_report_choose(view, request, &options, err);
	/* Reports on causes need all events. */
	if (ret == KYMO_OK)
		ret = ky_view_flow(view, report->whole ? "" : request->filter, INT64_MIN, INT64_MAX,
				   stop, &flow, err);
	if (ret == KYMO_OK) {
		/* Its own: the one of the pictures is another thread's. */
		if (!*request->filter)
			options.history = ky_history_find(view->set);
		ret = ky_reports_run(&report, 1, view->set, flow, &options, results, err);
		ky_history_close(options.history);
		ky_flow_close(flow);
	}
	ky_report_options_fini(&options);
	return ret;
}

int ky_view_report(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_report *report = ky_report_find(request->name);
	struct ky_report_results results = {0};
	int ret;

	if (!report || report->wants_periods || report->wants_of)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such report");
	ret = range_report_run(view, report, request, stop, &results, err);
	/* Of a damaged trace: what could be read. The state of counting tells of the damage. */
	if (ret >= 0 || ((ret == KYMO_E_FORMAT || ret == KYMO_E_IO || ret == KYMO_E_LIMIT) &&
			 results.begin_ns != INT64_MIN))
		ret = ky_render_json(out, &results, err);
	if (ret >= 0 && out->len > MAX_ANSWER_BYTES)
		ret = ky_error_set(err, KYMO_E_LIMIT,
				   "the report is too large to show; select a shorter range");
	ky_report_results_fini(&results);
	return ret < 0 ? ret : KYMO_OK;
}
