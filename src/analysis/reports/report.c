/* SPDX-License-Identifier: MIT */
/* The table of reports, and what runs them. */
#include "analysis/reports/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/history/history.h"
#include "analysis/reports/report-list.h"
#include "analysis/reports/report-options.h"
#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "flow/graph/parallel.h"
#include "flow/graph/range.h"

#define ADDRESS(name) &ky_report_##name,
const struct ky_report *const ky_reports[] = {KY_REPORT_LIST(ADDRESS) NULL};
#undef ADDRESS

const struct ky_report *ky_report_find(const char *name)
{
	for (const struct ky_report *const *report = ky_reports; *report; report++) {
		if (strcmp((*report)->name, name) == 0)
			return *report;
	}
	return NULL;
}

/* ---- running --------------------------------------------------------------------------- */

/* More tables than anybody reads, and they take memory: of all reports together. */
#define MAX_INTERVALS 9999

struct pass {
	struct ky_report_results *results;
	const struct ky_report *const *reports;
	size_t n_reports, n_intervals;
	bool left_out;	     /* there are more intervals than that */
	bool from_begin;     /* the history is of no use */
	size_t first_result; /* of those that are being finished: theirs lie in the reports' order */
	void **runs;	     /* by report; NULL: it has not begun */
	struct ky_focus
		whole; /* of reports that choose by themselves: everything, to the end of the range */
	const struct ky_report_options *options;
	struct ky_report_options *own; /* by report: instead of these; NULL: none has its own */
	struct ky_causes *causes;      /* that reports with their own options share; NULL: none */
	struct kymo_error *err;
};

static const struct ky_report_options *report_options_of(const struct pass *pass, size_t i)
{
	return pass->own ? &pass->own[i] : pass->options;
}

/* How many rows of those that @def's report thinks are the first ones will be kept; 0: all. */
static uint64_t max_kept(const struct ky_table_def *def, const struct ky_report_options *options)
{
	bool sorts = options->sort && ky_table_column(def, options->sort) >= 0;

	return def->kind == KY_TABLE_RANK && !sorts ? ky_report_table_limit(options, def) : 0;
}

/* Where the range begins; reports that see more than that show this. */
static int64_t report_begin_ns(const struct pass *pass)
{
	int64_t begin = ky_model_begin_ns(pass->results->model);
	int64_t wanted = pass->options->focus.begin_ns;

	return begin != INT64_MIN && begin < wanted &&
			       wanted <= ky_model_end_ns(pass->results->model)
		       ? wanted
		       : begin;
}

static int report_add_result(struct pass *pass, const struct ky_report *report,
			     const struct ky_report_options *options)
{
	struct ky_report_result result = {
		.report = report,
		.model = pass->results->model,
		.is_interval = pass->options->interval_ns != 0,
		.begin_ns = report_begin_ns(pass),
		.end_ns = ky_model_end_ns(pass->results->model),
	};
	size_t n = 0;

	while (report->tables[n])
		n++;
	result.tables = calloc(n, sizeof(*result.tables));
	if (!result.tables)
		return KYMO_E_MEMORY;
	result.n_tables = n;
	for (size_t i = 0; i < n; i++) {
		ky_table_init(&result.tables[i], report->tables[i]);
		result.tables[i].hidden = !ky_report_wants(options, report, i);
		result.tables[i].max_kept = max_kept(report->tables[i], options);
	}
	if (ky_vec_push(&pass->results->list, result) == 0)
		return 0;
	free(result.tables); /* no table holds anything yet */
	return KYMO_E_MEMORY;
}

static bool wants_cgroups(const struct ky_report_options *options)
{
	return options->focus.by_cgroup || options->focus.cgroups.len ||
	       options->focus.cgroup_paths.len;
}

/* Can the traces answer? Not one of the reports: an error; a note in each that can not. */
static int check_needs(const struct ky_report *const *reports, size_t n_reports,
		       const struct ky_model *model, const struct ky_trace_set *set,
		       const struct ky_report_options *options, struct kymo_error *err)
{
	unsigned int abilities = ky_model_abilities(model);
	const struct ky_report *lacking = NULL;

	if (options && wants_cgroups(options) && !(abilities & KY_CAN_CGROUP)) {
		ky_error_set(err, KYMO_E_UNSUPPORTED,
			     "the trace does not contain the threads' control groups: %s",
			     options->focus.by_cgroup ? "rows cannot be grouped by control group"
						      : "rows cannot be selected by control group");
		ky_error_path(err, set->traces.len ? set->traces.data[0]->path : "");
		ky_error_hint(err, "the state dump of kymo record contains them");
		return KYMO_E_UNSUPPORTED;
	}

	for (size_t i = 0; i < n_reports; i++) {
		if ((reports[i]->needs & abilities) == reports[i]->needs)
			return 0;
		lacking = reports[i];
	}
	if (!lacking)
		return 0;
	ky_error_set(err, KYMO_E_UNSUPPORTED, "report %s needs %s, and the trace has none",
		     lacking->name, lacking->needs_text);
	ky_error_path(err, set->traces.len ? set->traces.data[0]->path : "");
	ky_error_hint(err, "%s", lacking->needs_hint);
	return KYMO_E_UNSUPPORTED;
}

int ky_report_check(const struct ky_report *report, const struct ky_trace_set *set,
		    struct kymo_error *err)
{
	struct ky_model *model = ky_model_new(set, err);
	int status;

	if (!model)
		return ky_error_nomem(err);
	status = check_needs(&report, 1, model, set, NULL, err);
	ky_model_free(model);
	return status;
}

/* The longest ones, in another order, are the first of all ones. */
static const char *title_of_all(const struct ky_report *report)
{
	size_t i = 0;

	while (report->tables[i] && report->tables[i]->kind != KY_TABLE_LOG)
		i++;
	return report->tables[i] ? report->tables[i]->title : report->name;
}

/* What was asked for of the order and the number of rows. */
static void arrange(struct ky_table *table, const struct ky_report_options *options,
		    const struct ky_report *report)
{
	const struct ky_table_def *def = table->def;
	int column = options->sort ? ky_table_column(def, options->sort) : -1;

	if (column >= 0 && def->kind == KY_TABLE_TOP && !ky_report_is_by_length(options))
		table->title = title_of_all(report);

	if (column >= 0 && def->columns[0].group)
		ky_table_sort_groups(table, (size_t)column, options->ascending);
	else if (column >= 0)
		ky_table_sort(table, (size_t)column, options->ascending);
	if (def->kind == KY_TABLE_RANK)
		ky_table_limit(table, ky_report_table_limit(options, def));
	else if (column >= 0) /* else no more were kept */
		ky_table_limit_rows(table, ky_report_table_limit(options, def));
	ky_table_limit_groups(table, table->max_groups);
}

/* The traces have events, but none of them is in the range. */
static int note_empty_range(struct pass *pass, struct ky_report_result *result)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct kymo_error ignored;
	int64_t begin_ns, end_ns;
	int status;

	ky_error_clear(&ignored);
	ky_strbuf_adds(&text, "the range contains no events");
	if (ky_set_range(pass->results->set, &begin_ns, &end_ns, &ignored) >= 0 &&
	    begin_ns != INT64_MIN) {
		ky_strbuf_adds(&text, ": the trace goes from ");
		ky_render_time(&text, begin_ns, true);
		ky_strbuf_adds(&text, " to ");
		ky_render_time(&text, end_ns, true);
	}
	status = ky_strbuf_failed(&text) ? KYMO_E_MEMORY
					 : ky_report_note(result, "%s", ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	return status;
}

/* Has the range that was asked for no part in the traces' time? */
static bool is_empty_range(const struct pass *pass)
{
	const struct ky_focus *focus = &pass->options->focus;

	return pass->results->begin_ns == INT64_MIN &&
	       (focus->begin_ns != INT64_MIN || focus->end_ns != INT64_MAX);
}

/* In any thread, beside others. */
static int finish_report(void *data, size_t i, struct kymo_error *err)
{
	struct pass *pass = data;
	const struct ky_report *report = pass->reports[i];
	const struct ky_report_options *options = report_options_of(pass, i);
	struct ky_report_result *result = &pass->results->list.data[pass->first_result + i];
	int status = 0;

	(void)err; /* it is one of memory */
	if ((report->needs & ky_model_abilities(result->model)) != report->needs)
		status = ky_report_note(result, "the trace has no %s; %s", report->needs_text,
					report->needs_hint);
	/* Once is enough, and of nothing there is nothing more to tell. */
	if (status >= 0 && is_empty_range(pass))
		return pass->first_result + i == 0 ? note_empty_range(pass, result) : 0;
	if (status >= 0 && pass->first_result + i == 0)
		status = ky_report_note_nobody(options, result);
	if (status >= 0)
		status = ky_report_note_ignored(options, result);
	if (status >= 0)
		status = report->finish(pass->runs[i], options, result);
	for (size_t t = 0; status >= 0 && t < result->n_tables; t++) {
		arrange(&result->tables[t], options, report);
		status = ky_table_status(&result->tables[t]);
	}
	return status;
}

static int finish_reports(struct pass *pass)
{
	struct kymo_error err;
	int status = 0;

	if (pass->options->pool)
		return ky_parallel_each(pass->options->pool, pass->n_reports, NULL, finish_report,
					pass, &err);
	for (size_t i = 0; i < pass->n_reports && status >= 0; i++)
		status = finish_report(pass, i, &err);
	return status;
}

static bool report_sees_whole(const struct pass *pass)
{
	for (size_t i = 0; i < pass->n_reports; i++) {
		if (pass->reports[i]->whole)
			return true;
	}
	return false;
}

static void free_runs(struct pass *pass)
{
	for (size_t i = 0; i < pass->n_reports; i++) {
		if (pass->runs[i])
			pass->reports[i]->free(pass->runs[i]);
		pass->runs[i] = NULL;
	}
	ky_report_causes_free(pass->causes);
	pass->causes = NULL;
}

/* What happened is kept once, and not by each report. */
static int report_share_causes(struct pass *pass)
{
	pass->causes = ky_report_causes_new(pass->results->model);
	for (size_t i = 0; i < pass->n_reports && pass->causes; i++)
		pass->own[i].causes = pass->causes;
	return pass->causes ? 0 : KYMO_E_MEMORY;
}

static int begin_runs(struct pass *pass)
{
	if (pass->own && report_sees_whole(pass) && report_share_causes(pass) < 0)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < pass->n_reports; i++) {
		pass->runs[i] =
			pass->reports[i]->begin(pass->results->model, report_options_of(pass, i));
		if (!pass->runs[i])
			return KYMO_E_MEMORY;
	}
	return 0;
}

static int finish_runs(struct pass *pass)
{
	int status = 0;

	if (pass->results->begin_ns == INT64_MIN)
		pass->results->begin_ns = report_begin_ns(pass);
	pass->results->end_ns = ky_model_end_ns(pass->results->model);
	pass->first_result = pass->results->list.len;
	for (size_t i = 0; i < pass->n_reports && status >= 0; i++)
		status = report_add_result(pass, pass->reports[i], report_options_of(pass, i));
	return status < 0 ? status : finish_reports(pass);
}

/* An interval is over. */
static int tick(void *data)
{
	struct pass *pass = data;
	int status = finish_runs(pass);

	if (status < 0)
		return status;
	if (++pass->n_intervals >= MAX_INTERVALS / pass->n_reports) {
		pass->left_out = true;
		return KYMO_E_LIMIT;
	}
	free_runs(pass);
	ky_model_unlisten(pass->results->model);
	return begin_runs(pass);
}

static int report_run_pass(struct pass *pass, struct ky_flow *flow, struct kymo_error *err);

/*
 * A range begins with a state of the history, if that has all that the reports need. 0: the flow and the model are ready;
 * KYMO_E_FORMAT: the history is damaged, and the model is of no use.
 */
static int report_resume(const struct pass *pass, struct ky_flow *flow, struct kymo_error *err)
{
	const struct ky_report_options *options = pass->options;
	struct kymo_error ignored;
	int64_t ns;
	int status;

	if (!options->history || pass->from_begin || options->focus.begin_ns == INT64_MIN ||
	    options->interval_ns || options->periods || report_sees_whole(pass))
		return 0;
	status = ky_history_resume(options->history, pass->results->model, options->focus.begin_ns,
				   &ns, &ignored);
	if (status == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (status < 0)
		return KYMO_E_FORMAT;
	pass->results->resumed = status > 0;
	return status ? ky_flow_seek(flow, ns, err) : 0;
}

/* The same without a history. */
static int run_from_begin(struct pass *pass, struct ky_flow *flow, struct kymo_error *err)
{
	struct ky_model *model = ky_model_new(pass->results->set, err);

	if (!model)
		return ky_error_nomem(err);
	free_runs(pass);
	ky_model_free(pass->results->model);
	pass->results->model = model;
	pass->results->resumed = false;
	pass->from_begin = true;
	return report_run_pass(pass, flow, err);
}

static int report_run_pass(struct pass *pass, struct ky_flow *flow, struct kymo_error *err)
{
	struct ky_model *model = pass->results->model;
	int status, finished;

	if (pass->options->periods && ky_model_set_periods(model, pass->options->periods) < 0)
		return ky_error_nomem(err);
	if (begin_runs(pass) < 0)
		return ky_error_nomem(err);
	pass->whole = (struct ky_focus){.begin_ns = INT64_MIN,
					.end_ns = pass->options->focus.end_ns,
					.max_ns = UINT64_MAX,
					.by_cgroup = wants_cgroups(pass->options)};
	ky_model_set_focus(model, report_sees_whole(pass) ? &pass->whole : &pass->options->focus);
	if (pass->options->interval_ns)
		ky_model_every(model, (int64_t)pass->options->interval_ns, tick, pass);
	status = report_resume(pass, flow, err);
	if (status == KYMO_E_FORMAT)
		return run_from_begin(pass, flow, err);
	if (status < 0)
		return status;
	status = ky_model_run(model, flow, err);
	if (pass->left_out)
		ky_error_set(err, KYMO_E_LIMIT,
			     "more than %zu intervals: the output leaves out the rest; choose "
			     "longer intervals",
			     MAX_INTERVALS / pass->n_reports);
	if (status == KYMO_E_MEMORY)
		return status;
	/* The listeners have the whole last interval before the bound already. */
	finished = pass->left_out ? 0 : finish_runs(pass);
	pass->results->n_events = ky_model_n_events(model);
	pass->results->tables_chosen = pass->options->n_tables != 0;
	return finished < 0 ? ky_error_nomem(err) : status;
}

/*
 * The reports had intervals before the model found what the CPUs had done in them. So a second model, which has
 * this knowledge from its begin, repeats all intervals. It meets damage (@status) again.
 */
static int run_again(struct pass *pass, struct ky_flow *flow, int status, struct kymo_error *err)
{
	struct ky_report_results *results = pass->results;
	struct ky_model *model;
	struct kymo_error unable;
	int sought;

	ky_error_clear(&unable);
	sought = ky_flow_seek(flow, INT64_MIN, &unable);
	if (sought < 0) {
		*err = status < 0 ? *err : unable;
		return status < 0 ? status : sought;
	}
	model = ky_model_new(results->set, err);
	if (!model || ky_model_foresee(model, results->model) < 0) {
		ky_model_free(model);
		return ky_error_nomem(err);
	}
	free_runs(pass);
	pass->n_intervals = 0;
	pass->left_out = false;
	ky_report_results_fini(results);
	*results = (struct ky_report_results){
		.model = model, .set = results->set, .begin_ns = INT64_MIN, .end_ns = INT64_MIN};
	return report_run_pass(pass, flow, err);
}

/* Does each report support what is asked of it? */
static int report_check(const struct pass *pass, struct kymo_error *err)
{
	size_t n = pass->own ? 1 : pass->n_reports;
	int status = 0;

	for (size_t i = 0; i < pass->n_reports && status >= 0; i += n) {
		const struct ky_report_options *options = report_options_of(pass, i);
		const struct ky_report *const *reports = pass->reports + i;

		status = ky_report_check_names(reports, n, options, err);
		if (status >= 0)
			status = ky_report_check_heeded(reports, n, options, err);
		if (status >= 0)
			status = ky_report_check_whole(reports, n, options, err);
	}
	return status;
}

static int report_run_all(struct pass *pass, const struct ky_trace_set *set, struct ky_flow *flow,
			  struct kymo_error *err)
{
	struct ky_report_results *results = pass->results;
	int status;

	*results =
		(struct ky_report_results){.set = set, .begin_ns = INT64_MIN, .end_ns = INT64_MIN};
	status = report_check(pass, err);
	if (status < 0)
		return status;
	results->model = ky_model_new(set, err);
	pass->runs = calloc(pass->n_reports + 1, sizeof(*pass->runs));
	if (!pass->runs || !results->model) {
		free(pass->runs);
		return ky_error_nomem(err);
	}
	status = check_needs(pass->reports, pass->n_reports, results->model, set, pass->options,
			     err);
	if (status >= 0)
		status = report_run_pass(pass, flow, err);
	if (status != KYMO_E_MEMORY && ky_model_hindsight(results->model))
		status = run_again(pass, flow, status, err);
	free_runs(pass);
	free(pass->runs);
	return status;
}

int ky_reports_run(const struct ky_report *const *reports, size_t n_reports,
		   const struct ky_trace_set *set, struct ky_flow *flow,
		   const struct ky_report_options *options, struct ky_report_results *results,
		   struct kymo_error *err)
{
	struct pass pass = {
		.results = results, .reports = reports, .n_reports = n_reports, .options = options};

	return report_run_all(&pass, set, flow, err);
}

int ky_reports_run_each(const struct ky_report *const *reports,
			const struct ky_report_options *options, size_t n_reports,
			const struct ky_trace_set *set, struct ky_flow *flow,
			struct ky_report_results *results, struct kymo_error *err)
{
	struct pass pass = {
		.results = results, .reports = reports, .n_reports = n_reports, .options = options};
	int status;

	pass.own = calloc(n_reports, sizeof(*pass.own));
	if (!pass.own)
		return ky_error_nomem(err);
	memcpy(pass.own, options, n_reports * sizeof(*pass.own));
	status = report_run_all(&pass, set, flow, err);
	free(pass.own);
	return status;
}

static void clear_results(struct ky_report_results *results)
{
	ky_vec_foreach(&results->list, result) {
		for (size_t i = 0; i < result->n_tables; i++)
			ky_table_fini(&result->tables[i]);
		free(result->tables);
		if (result->stacks)
			ky_stack_tree_fini(result->stacks);
		free(result->stacks);
		if (result->chart)
			ky_call_chart_fini(result->chart);
		free(result->chart);
		ky_vec_foreach(&result->notes, note)
			free(*note);
		ky_vec_fini(&result->notes);
	}
	ky_vec_clear(&results->list);
}

void ky_report_results_fini(struct ky_report_results *results)
{
	clear_results(results);
	ky_vec_fini(&results->list);
	ky_model_free(results->model);
	results->model = NULL;
}

/* ---- as events come ---------------------------------------------------------------------- */

struct ky_live_reports {
	struct ky_report_results results;
	struct pass pass;
	int (*done)(void *data, const struct ky_report_results *results, struct kymo_error *err);
	void *data;
	uint64_t n_before;     /* events of the intervals that are over */
	struct kymo_error err; /* of @done */
};

static int report_show_interval(struct ky_live_reports *live)
{
	struct ky_report_results *results = &live->results;
	uint64_t n_events = ky_model_n_events(results->model);
	int status;

	results->begin_ns = INT64_MIN;
	status = finish_runs(&live->pass);
	results->n_events = n_events - live->n_before;
	live->n_before = n_events;
	if (status >= 0)
		status = live->done(live->data, results, &live->err);
	else
		ky_error_nomem(&live->err);
	clear_results(results);
	return status;
}

static int tick_live(void *data)
{
	struct ky_live_reports *live = data;
	int status = report_show_interval(live);

	free_runs(&live->pass);
	if (status < 0)
		return status;
	ky_model_unlisten(live->results.model);
	status = begin_runs(&live->pass);
	return status < 0 ? ky_error_nomem(&live->err) : 0;
}

/* @status of the model, with the reason that its listener has set. */
static int live_status(const struct ky_live_reports *live, int status, struct kymo_error *err)
{
	if (status >= 0)
		return 0;
	if (live->err.code && err)
		*err = live->err;
	return status;
}

static int begin_live(struct ky_live_reports *live, const struct ky_report_options *options,
		      struct kymo_error *err)
{
	struct ky_model *model = live->results.model;
	int status = ky_report_check_names(live->pass.reports, live->pass.n_reports, options, err);

	if (status >= 0)
		status = ky_report_check_heeded(live->pass.reports, live->pass.n_reports, options,
						err);
	if (status >= 0)
		status = ky_report_check_whole(live->pass.reports, live->pass.n_reports, options,
					       err);
	if (status >= 0)
		status = check_needs(live->pass.reports, live->pass.n_reports, model,
				     live->results.set, options, err);
	if (status >= 0 && begin_runs(&live->pass) < 0)
		status = ky_error_nomem(err);
	if (status < 0)
		return status;
	ky_model_set_focus(model, &options->focus);
	ky_model_every(model, (int64_t)options->interval_ns, tick_live, live);
	return 0;
}

int ky_live_reports_open(const struct ky_report *const *reports, size_t n_reports,
			 const struct ky_trace_set *set, const struct ky_report_options *options,
			 int (*done)(void *data, const struct ky_report_results *results,
				     struct kymo_error *err),
			 void *data, struct ky_live_reports **out, struct kymo_error *err)
{
	struct ky_live_reports *live = calloc(1, sizeof(*live));
	int status;

	*out = NULL;
	if (!live)
		return ky_error_nomem(err);
	live->done = done;
	live->data = data;
	live->results.set = set;
	live->pass = (struct pass){.results = &live->results,
				   .reports = reports,
				   .n_reports = n_reports,
				   .options = options};
	live->pass.runs = calloc(n_reports + 1, sizeof(*live->pass.runs));
	live->results.model = live->pass.runs ? ky_model_new(set, err) : NULL;
	status = live->results.model ? begin_live(live, options, err) : ky_error_nomem(err);
	if (status < 0) {
		ky_live_reports_free(live);
		return status;
	}
	*out = live;
	return 0;
}

int ky_live_reports_rebind(struct ky_live_reports *live, const struct ky_trace_set *set,
			   struct kymo_error *err)
{
	int status = ky_model_rebind(live->results.model, set);

	live->results.set = set;
	return status < 0 ? ky_error_nomem(err) : 0;
}

int ky_live_reports_feed(struct ky_live_reports *live, const struct ky_batch *batch,
			 struct kymo_error *err)
{
	return live_status(live, ky_model_feed(live->results.model, batch, err), err);
}

int ky_live_reports_reach(struct ky_live_reports *live, int64_t ns, struct kymo_error *err)
{
	return live_status(live, ky_model_reach(live->results.model, ns), err);
}

int ky_live_reports_end(struct ky_live_reports *live, struct kymo_error *err)
{
	int status = ky_model_end(live->results.model, err);

	if (status >= 0)
		status = report_show_interval(live);
	return live_status(live, status, err);
}

void ky_live_reports_free(struct ky_live_reports *live)
{
	if (!live)
		return;
	if (live->pass.runs)
		free_runs(&live->pass);
	free(live->pass.runs);
	ky_report_results_fini(&live->results);
	free(live);
}
