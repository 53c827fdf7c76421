/* SPDX-License-Identifier: MIT */
/* A report for a range, as the JSON of kymo report. */
#include "analysis/render/render.h"
#include "base/error.h"
#include "view/answers/report-choice.h"

#define MAX_ANSWER_BYTES ((size_t)64 << 20)

/* Of a damaged trace: what could be read. The state of counting tells of the damage. */
static int range_report_put(const struct ky_report_results *results, int ret, struct ky_strbuf *out,
			    struct kymo_error *err)
{
	if (ret >= 0 || ((ret == KYMO_E_FORMAT || ret == KYMO_E_IO || ret == KYMO_E_LIMIT) &&
			 results->begin_ns != INT64_MIN))
		ret = ky_render_json(out, results, err);
	if (ret >= 0 && out->len > MAX_ANSWER_BYTES)
		ret = ky_error_set(err, KYMO_E_LIMIT,
				   "the report is too large to show; select a shorter range");
	return ret < 0 ? ret : KYMO_OK;
}

/* Names, files and states before the range belong to it: from the state history, or the whole trace passes. */
static int range_report_run(struct ky_view *view, const struct ky_report *report,
			    const struct ky_view_request *request, const struct ky_view_stop *stop,
			    struct ky_report_results *results, struct kymo_error *err)
{
	struct ky_view_choice choice;
	struct ky_report_options *options = &choice.options;
	struct ky_flow *flow;
	int ret = ky_view_choice_init(&choice, view, view->set, report, request, err);

	options->focus.begin_ns = request->begin_ns;
	options->focus.end_ns = request->end_ns;
	options->is_over = stop->is_over;
	options->over_data = stop->data;
	/* Reports on causes need all events. */
	if (ret == KYMO_OK)
		ret = ky_view_flow(view, report->whole ? "" : request->filter, INT64_MIN, INT64_MAX,
				   stop, &flow, err);
	if (ret == KYMO_OK) {
		/* Its own: the one of the pictures is another thread's. */
		if (!*request->filter)
			options->history = ky_history_find(view->set, view->log);
		ret = ky_reports_run(&report, 1, view->set, flow, options, results, err);
		ky_history_close(options->history);
		ky_flow_close(flow);
	}
	ky_view_choice_fini(&choice);
	return ret;
}

int ky_view_report(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_report *report = ky_report_find(request->name);
	struct ky_report_results results = {0};
	int ret;

	if (!report)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such report");
	if (report->wants_two) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "report %s needs two traces", report->name);
		ky_error_hint(err, "start kymo view with the other one beside it");
		return KYMO_E_UNSUPPORTED;
	}
	ret = range_report_run(view, report, request, stop, &results, err);
	ret = range_report_put(&results, ret, out, err);
	ky_report_results_fini(&results);
	return ret;
}

/* ---- two traces ---------------------------------------------------------------------------- */

/* The range of @request is that of its own side; the other side's begins at ->ns, and is as long. */
static void range_report_sides(const struct ky_view_pair *pair,
			       const struct ky_view_request *request,
			       struct ky_report_options *options)
{
	uint64_t span = (uint64_t)request->end_ns - (uint64_t)request->begin_ns;
	int own = request->side == 2, other = !own;

	for (int i = 0; i < 2; i++)
		options->sides[i] = pair->paths[i];
	options->side_begin_ns[own] = request->begin_ns;
	options->side_end_ns[own] = request->end_ns;
	if (!request->has_ns)
		return;
	options->side_begin_ns[other] = request->ns;
	options->side_end_ns[other] =
		span > (uint64_t)INT64_MAX - (uint64_t)request->ns && request->ns >= 0
			? INT64_MAX
			: (int64_t)((uint64_t)request->ns + span);
}

static int range_report_compare(const struct ky_view_pair *pair, const struct ky_view *both,
				struct ky_view *view, const struct ky_report *report,
				const struct ky_view_request *request,
				const struct ky_view_stop *stop, struct ky_report_results *results,
				struct kymo_error *err)
{
	struct ky_view_choice choice;
	struct ky_flow *flow;
	int ret = ky_view_choice_init(&choice, view, both->set, report, request, err);

	range_report_sides(pair, request, &choice.options);
	if (ret == KYMO_OK)
		ret = ky_view_flow(both, "", INT64_MIN, INT64_MAX, stop, &flow, err);
	if (ret == KYMO_OK) {
		ret = ky_reports_run(&report, 1, both->set, flow, &choice.options, results, err);
		ky_flow_close(flow);
	}
	ky_view_choice_fini(&choice);
	return ret;
}

int ky_view_compare(const struct ky_view_pair *pair, struct ky_view *view,
		    const struct ky_view_request *request, const struct ky_view_stop *stop,
		    struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_report *report = ky_report_find(request->name);
	struct ky_report_results results = {0};
	struct ky_trace_set set = {0};
	struct ky_view both = {.set = &set};
	int ret = pair->open(pair->data, &set, err);

	if (ret < 0)
		return ret;
	ky_vec_foreach(&set.traces, trace)
		(*trace)->log = NULL;
	ret = range_report_compare(pair, &both, view, report, request, stop, &results, err);
	ret = range_report_put(&results, ret, out, err);
	ky_report_results_fini(&results);
	ky_trace_set_close(&set);
	return ret < 0 ? ret : KYMO_OK;
}

bool ky_view_is_of_two(const struct ky_view_request *request)
{
	const struct ky_report *report =
		request->what == KY_VIEW_REPORT ? ky_report_find(request->name) : NULL;

	return report && report->wants_two;
}
