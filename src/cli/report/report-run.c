/* SPDX-License-Identifier: MIT */
#include "cli/report/report-run.h"

#include <stdio.h>
#include <string.h>

#include "analysis/causes/of-span.h"
#include "analysis/history/history.h"
#include "analysis/render/render.h"
#include "base/error.h"
#include "cli/reading/damage.h"
#include "cli/reading/filter-hint.h"
#include "cli/report/report-archive.h"
#include "cli/report/report-command.h"
#include "cli/report/report-fleet.h"
#include "cli/report/report-live.h"
#include "cli/report/report-own.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/options/report-options.h"
#include "cli/recording/recordings.h"
#include "cli/reading/select-options.h"
#include "os/thread-pool.h"

#define LIVE_INTERVAL_NS UINT64_C(1000000000)

static struct ky_report_form form_of(const struct ky_report_request *options)
{
	return (struct ky_report_form){
		.json = options->json,
		.csv = options->csv || options->csv_raw,
		.csv_raw = options->csv_raw,
		.html = options->html,
		.stacks = ky_stacks_form_find(options->to),
		.wide = options->wide,
		.is_temporary = options->command != NULL,
	};
}

/*
 * All events that --filter lets pass: the times are the reports' matter. With two jobs, one thread decodes
 * and merges while the other one builds the state and reports.
 */
static int report_run_open_flow(const struct ky_trace_set *set,
				const struct ky_report_request *options,
				struct ky_thread_pool *pool, struct ky_flow **flow,
				struct kymo_error *err)
{
	struct ky_selection selection;
	int status;

	ky_selection_init(&selection);
	ky_cli_hint_filter(options->select.filter);
	selection.filter = options->select.filter;
	selection.pool = ky_thread_pool_jobs(pool) > 1 ? pool : NULL;
	selection.whole_ahead = true;
	status = ky_cli_in_filter(ky_flow_open_selected(set, &selection, flow, err), err);
	return status < 0 ? status : ky_cli_damage_stage(*flow, flow, err);
}

static int report_run_with(const struct ky_report_choice *selection, const struct ky_trace_set *set,
			   const struct ky_report_request *options,
			   const struct ky_report_options *wanted, struct ky_thread_pool *pool,
			   struct kymo_error *err)
{
	struct ky_report_results results = {0};
	struct ky_flow *flow;
	int status = report_run_open_flow(set, options, pool, &flow, err);

	if (status < 0)
		return status;
	status = ky_reports_run(selection->reports, selection->n, set, flow, wanted, &results, err);
	ky_flow_close(flow);
	/* A damaged trace: what could be read, then the error. */
	if (status >= 0 || (status != KYMO_E_MEMORY && results.begin_ns != INT64_MIN)) {
		const struct ky_report_form form = form_of(options);
		int shown = ky_cli_show_reports(&results, &form, status < 0 ? NULL : err);

		status = status < 0 ? status : shown;
	}
	ky_report_results_fini(&results);
	return status;
}

static void set_wanted(struct ky_report_options *to, const struct ky_report_request *options)
{
	to->limit = options->limit;
	to->for_people = !options->json && !options->csv && !options->csv_raw && !options->html;
	to->tables = (const char *const *)options->tables.items;
	to->n_tables = options->tables.len;
	to->interval_ns = options->refresh_ns;
	to->of = options->span ? "span" : options->of;
	to->member = options->member;
	to->symbol_dirs = (const char *const *)options->symbol_dirs.items;
	to->n_symbol_dirs = options->symbol_dirs.len;
	to->inlines = options->inlines;
	to->chart = options->to &&
		    (strcmp(options->to, "speedscope") == 0 || strcmp(options->to, "chrome") == 0);
}

/* "12,31" */
static int report_run_parse_cell(const char *text, struct ky_report_options *to)
{
	unsigned int column, row;
	char end;

	if (sscanf(text, "%u,%u%c", &column, &row, &end) != 2 || !column)
		return KYMO_E_INVALID;
	to->cell_column = column;
	to->cell_row = row;
	return 0;
}

/* The time of --at, and the cell of --cell. */
static int report_run_set_at(const struct ky_trace_set *set,
			     const struct ky_report_request *options, struct ky_report_options *to,
			     struct kymo_error *err)
{
	struct ky_select_options at = options->select;
	int64_t end_ns;

	if (options->cell && (report_run_parse_cell(options->cell, to) < 0))
		return ky_error_set(err, KYMO_E_INVALID,
				    "--cell: '%s' is not COLUMN,ROW; columns count from 1",
				    options->cell);
	if (!options->at)
		return 0;
	at.begin = options->at;
	at.end = at.timerange = NULL;
	return ky_cli_select_times(set, &at, false, &to->at_ns, &end_ns, err);
}

/* The name of --span or --of span:; NULL: none. */
static const char *report_run_span(const struct ky_report_request *options)
{
	if (options->span)
		return options->span;
	return options->of && strncmp(options->of, "span:", 5) == 0 ? options->of + 5 : NULL;
}

static int report_run_on_set(const struct ky_report_choice *selection,
			     const struct ky_trace_set *set,
			     const struct ky_report_request *options, struct ky_thread_pool *pool,
			     struct kymo_error *err)
{
	struct ky_cli_wanted wanted;
	struct ky_report_options *to = &wanted.options;
	struct ky_focus_options focus = options->focus;
	struct ky_strbuf span = KY_STRBUF_INIT;
	const char *spans[] = {NULL};
	int status;

	if (report_run_span(options)) {
		ky_of_define_span(&span, report_run_span(options));
		spans[0] = ky_strbuf_text(&span);
		focus.periods.items = spans;
		focus.periods.len = 1;
	}
	status = ky_cli_wanted_init(&wanted, &focus, set, err);
	set_wanted(to, options);
	to->pool = pool;
	to->sides[0] = selection->sides[0];
	to->sides[1] = selection->sides[1];
	if (!status)
		status = ky_cli_select_times(set, &options->select, false, &to->focus.begin_ns,
					     &to->focus.end_ns, err);
	if (!status)
		status = report_run_set_at(set, options, to, err);
	if (!status && !options->select.filter && to->focus.begin_ns != INT64_MIN)
		to->history = ky_history_find(set, &ky_cli_log);
	if (!status)
		status = report_run_with(selection, set, options, to, pool, err);
	ky_history_close(to->history);
	ky_cli_wanted_fini(&wanted);
	ky_strbuf_fini(&span);
	return status;
}

/* A file of SQL is a report like others. */
static int report_run_own(const struct ky_report_choice *selection, const struct ky_trace_set *set,
			  const struct ky_report_request *options, struct ky_thread_pool *pool,
			  struct kymo_error *err)
{
	struct ky_report_choice with = *selection;
	struct ky_own_report own;
	int status = ky_own_report_open(&own, selection->own, &options->parameters, options->space,
					set, err);

	if (!status) {
		with.reports[with.n++] = ky_sql_report(own.report);
		status = report_run_on_set(&with, set, options, pool, err);
		if (status < 0 && ky_sql_report_error(own.report)->code)
			*err = *ky_sql_report_error(own.report);
	}
	ky_own_report_close(&own);
	return status;
}

int ky_report_run_reports(const struct ky_report_choice *selection, char **paths, int n_paths,
			  const struct ky_report_request *options)
{
	struct ky_trace_set set = {0};
	struct ky_thread_pool *pool = NULL;
	struct kymo_error err;
	int status;

	ky_error_clear(&err);
	status = ky_cli_open(&set, paths, n_paths, &options->input, true, &err);
	if (status >= 0) {
		status = ky_thread_pool_new(ky_cli_jobs(options->jobs, &set), &pool, &err);
		if (status >= 0)
			status = ky_cli_damage_end(
				selection->own
					? report_run_own(selection, &set, options, pool, &err)
					: report_run_on_set(selection, &set, options, pool, &err),
				&err);
		ky_thread_pool_free(pool);
		ky_trace_set_close(&set);
	}
	if (status >= 0)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return status == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

int ky_report_run_live(const struct ky_report_choice *selection, char **paths, int n_paths,
		       const struct ky_report_request *options)
{
	static const struct ky_text_options times;
	struct ky_cli_wanted wanted;
	struct ky_report_live live = {
		.run = {.paths = paths,
			.n_paths = n_paths,
			.input = &options->input,
			.live = &options->live,
			.select = &options->select,
			.times = &times,
			.is_recorded = ky_recordings_write},
		.reports = selection->reports,
		.n_reports = selection->n,
		.options = &wanted.options,
		.form = form_of(options),
	};
	struct kymo_error err;
	int status;

	ky_error_clear(&err);
	/* Without periods, the traces do not matter. */
	status = ky_cli_wanted_init(&wanted, &options->focus, NULL, &err);
	set_wanted(&wanted.options, options);
	if (!wanted.options.interval_ns)
		wanted.options.interval_ns = LIVE_INTERVAL_NS;
	ky_cli_hint_filter(options->select.filter);
	if (!status)
		status = ky_cli_damage_end(ky_report_live(&live, &err), &err);
	ky_cli_wanted_fini(&wanted);
	if (status >= 0)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return status == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

/* What is for traces only; NULL: no option asks for it. */
static const char *report_run_unfit_for_fleet(const struct ky_report_request *options)
{
	const struct {
		const char *name;
		bool is_given;
	} given[] = {
		{"--archive", options->archive != NULL},
		{"--of", options->of != NULL},
		{"--span", options->span != NULL},
		{"--at", options->at != NULL},
		{"--cell", options->cell != NULL},
		{"--member", options->member != 0},
		{"--to", options->to != NULL},
		{"--refresh", options->refresh_ns != 0},
		{"--begin", options->select.begin != NULL},
		{"--end", options->select.end != NULL},
		{"--timerange", options->select.timerange != NULL},
		{"--filter", options->select.filter != NULL},
		{"--live", options->live.on},
		{"-- COMMAND", options->command != NULL},
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		if (given[i].is_given)
			return given[i].name;
	return ky_report_fleet_unfit_focus(&options->focus);
}

/* The hosts of a store, instead of traces. */
int ky_report_run_fleet(const struct ky_command *command, const struct ky_report_choice *selection,
			int n_traces, const struct ky_report_request *options)
{
	const char *unfit = report_run_unfit_for_fleet(options);
	struct ky_report_options wanted = {.limit = options->limit};

	if (unfit)
		return ky_cli_usage(command, "--fleet and %s exclude each other", unfit);
	if (n_traces)
		return ky_cli_usage(command, "a trace and --fleet exclude each other");
	if (selection->own && (options->fleet.hosts.len || options->fleet.merges_hosts))
		return ky_cli_usage(command,
				    "%s and a report of your own exclude each other: its "
				    "statements choose hosts; try WHERE host = :host, and --param",
				    options->fleet.hosts.len ? "--hosts" : "--merge-hosts");
	set_wanted(&wanted, options);
	return ky_report_fleet(&(struct ky_report_fleet){
		.options = &options->fleet,
		.reports = selection->reports,
		.n_reports = selection->n,
		.own = selection->own,
		.parameters = &options->parameters,
		.focus = &options->focus,
		.wanted = &wanted,
		.form = form_of(options),
	});
}

struct archive_run {
	const struct ky_report_choice *selection;
	const struct ky_report_request *options;
	char **paths;
};

static int report_for_archive(void *data, enum ky_archive_form form)
{
	const struct archive_run *run = data;
	struct ky_report_request options = *run->options;

	options.json = form == KY_ARCHIVE_JSON;
	options.html = form == KY_ARCHIVE_HTML;
	options.csv = options.csv_raw = false;
	return ky_report_run_reports(run->selection, run->paths, 1, &options);
}

int ky_report_run_archive(const struct ky_command *command,
			  const struct ky_report_choice *selection, char **paths, int n_paths,
			  const struct ky_report_request *options)
{
	struct archive_run run = {selection, options, paths};
	const struct ky_archive_request request = {
		.path = options->archive,
		.trace = paths[0],
		.event = options->event,
		.report = report_for_archive,
		.data = &run,
	};

	if (n_paths != 1)
		return ky_cli_usage(command, "--archive: one directory with traces, please");
	return ky_report_archive(&request);
}

static bool report_run_has_focus(const struct ky_focus_options *focus)
{
	return focus->tids.len || focus->pids.len || focus->comms.len || focus->cgroups.len;
}

struct command_run {
	const struct ky_report_choice *selection;
	const struct ky_report_request *options;
	struct ky_command_trace *made;
};

static int report_run_on_command(void *data)
{
	const struct command_run *run = data;
	struct ky_report_request options = *run->options;
	char *paths[] = {run->made->trace, NULL};
	struct kymo_error err;
	const char *pids;

	/* Only the command and its children have the libraries that record calls. */
	if (!report_run_has_focus(&options.focus) && !run->made->calls) {
		ky_error_clear(&err);
		if (ky_command_trace_find_pids(run->made, &options.input, &err) < 0)
			return ky_cli_error(&err);
		pids = ky_strbuf_text(&run->made->pids);
		options.focus.pids = (struct ky_text_list){&pids, 1};
	}
	return ky_report_run_reports(run->selection, paths, 1, &options);
}

/* Records the command and reports on its processes, or on those that the options choose. */
int ky_report_run_command(const struct ky_report_choice *selection,
			  const struct ky_report_request *options)
{
	struct ky_command_trace made;
	struct command_run run = {selection, options, &made};
	int code;

	made.samples = selection->n == 1 && strcmp(selection->reports[0]->name, "flame") == 0;
	made.calls = selection->n == 1 && strcmp(selection->reports[0]->name, "calls") == 0;
	code = ky_command_trace_record(&made, options->command);

	if (code == KY_EXIT_OK)
		code = ky_command_trace_run(report_run_on_command, &run);
	ky_command_trace_fini(&made);
	return code == KY_EXIT_OK ? made.code : code;
}
