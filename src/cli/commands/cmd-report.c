/* SPDX-License-Identifier: MIT */
/* kymo report: run reports over a trace, list them, explain them. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/causes/of-span.h"
#include "analysis/history/history.h"
#include "analysis/render/render.h"
#include "base/error.h"
#include "cli/reading/damage.h"
#include "cli/reading/filter-hint.h"
#include "cli/commands/report-archive.h"
#include "cli/commands/report-command.h"
#include "cli/commands/report-fleet.h"
#include "cli/commands/report-live.h"
#include "cli/commands/query-output.h"
#include "cli/commands/report-own.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/options/report-options.h"
#include "cli/recording/recordings.h"
#include "cli/reading/select-options.h"
#include "os/thread-pool.h"

#define MAX_REPORTS	 32
#define LIVE_INTERVAL_NS UINT64_C(1000000000)

struct report_options {
	bool all;
	const char *archive, *event, *of, *at, *cell, *span;
	bool wide;
	bool list, json, csv, csv_raw, html, markdown;
	const char *to;
	bool inlines;
	struct ky_text_list symbol_dirs;
	uint64_t limit, refresh_ns, jobs, member, space;
	struct ky_text_list tables, parameters;
	struct ky_focus_options focus;
	struct ky_select_options select; /* filter and times only */
	struct ky_input_options input;
	struct ky_live_options live;
	struct ky_report_fleet_options fleet;
	char **command;
};

struct selection {
	const struct ky_report *reports[MAX_REPORTS];
	size_t n;
	const char *sides[2]; /* of two traces: as the user names them */
	const char *own;      /* a file of SQL instead of reports; NULL: none */
};

static void report_defaults(void *data)
{
	struct report_options *options = data;

	options->limit = KY_LIMIT_DEFAULT;
	options->space = KY_SQL_TEMPORARY_BYTES;
	ky_cli_focus_defaults(&options->focus);
	ky_cli_select_defaults(&options->select);
}

static const struct ky_option_def report_option_defs[] = {
	{.name = "list",
	 .letter = 'l',
	 .kind = KY_OPTION_FLAG,
	 .help = "List the reports.",
	 .at = offsetof(struct report_options, list)},
	{.name = "all",
	 .kind = KY_OPTION_FLAG,
	 .help = "All reports: the first operand is then a TRACE. The same as the name 'all'.",
	 .at = offsetof(struct report_options, all)},
	{.name = "archive",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FILE",
	 .help = "Write an archive (.tar.zst) of the trace, of its reports as text, JSON and HTML, and "
		 "of facts about this machine. kymo report, print and other commands open an archive "
		 "as a TRACE.",
	 .at = offsetof(struct report_options, archive)},
	{.name = "event",
	 .kind = KY_OPTION_TEXT,
	 .arg = "JSON",
	 .help = "With --archive: the event of a trigger, as kymo watch --json prints it; it becomes "
		 "report/trigger.json in the archive, and report/stacks.txt has its call stacks.",
	 .at = offsetof(struct report_options, event)},
	{.name = "json",
	 .letter = 'j',
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one JSON object: times and durations in nanoseconds, ratios from 0 to 1.",
	 .at = offsetof(struct report_options, json)},
	{.name = "csv",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write comma-separated values: for each table a line of column names, the rows, "
		 "and an empty line.",
	 .at = offsetof(struct report_options, csv)},
	{.name = "csv-raw",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write comma-separated values with texts unchanged. --csv puts an apostrophe "
		 "before a text that begins with = + - or @, because spreadsheets evaluate it as a "
		 "formula and traced programs choose their names.",
	 .at = offsetof(struct report_options, csv_raw)},
	{.name = "html",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one HTML page with charts, for a browser. The page loads no other files.",
	 .at = offsetof(struct report_options, html)},
	{.name = "to",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FORM",
	 .help = "For reports flame and calls: write the stacks for other programs: folded (a line for "
		 "each stack and its weight), speedscope (JSON, for speedscope.app), pprof (for go tool "
		 "pprof), chrome (calls only: JSON, for chrome://tracing and ui.perfetto.dev). Of calls, "
		 "speedscope and chrome have each single call in its place in time.",
	 .choices = "folded speedscope pprof chrome",
	 .at = offsetof(struct report_options, to)},
	{.name = "inlines",
	 .kind = KY_OPTION_FLAG,
	 .help = "For report flame: inlined functions are functions of their own. This reads the "
		 "debug information of all programs and libraries in the stacks.",
	 .at = offsetof(struct report_options, inlines)},
	{.name = "symbol-dir",
	 .kind = KY_OPTION_LIST,
	 .arg = "DIR",
	 .help = "For reports flame and calls: look for debug files in DIR first, by build ID, as in "
		 "/usr/lib/debug. May be given several times.",
	 .at = offsetof(struct report_options, symbol_dirs)},
	{.name = "wide",
	 .letter = 'w',
	 .kind = KY_OPTION_FLAG,
	 .help = "Show all columns of tables and all of their texts, however wide they are.",
	 .at = offsetof(struct report_options, wide)},
	{.name = "table",
	 .letter = 't',
	 .kind = KY_OPTION_LIST,
	 .arg = "NAME",
	 .help = "Show only this table, such as 'threads' or 'cpu.threads'; may be given again for "
		 "more. Default: the main tables, and a line that names the others; with --json, "
		 "--csv and --html all tables except those named log.",
	 .at = offsetof(struct report_options, tables)},
	{.name = "limit",
	 .letter = 'n',
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "Show the first N rows, or N groups of N rows, of each ranked table; 0 shows all. "
		 "Default: 10; with --json, --csv and --html all rows of ranked tables and logs.",
	 .at = offsetof(struct report_options, limit)},
	{.name = "of",
	 .kind = KY_OPTION_TEXT,
	 .arg = "WHAT",
	 .help = "For report flame: cpu (samples, the default), off-cpu, wakeup, page-faults, allocations, or the "
		 "name of an event or counter with call stacks. "
		 "For reports on causes, such as breakdown: explain all syscall:NAME, wakeup, "
		 "preemption, block[:DEVICE], irq[:NAME], softirq[:NAME], period:NAME (with "
		 "--period), or span:NAME (from the event NAME_begin, _entry, _start or _enter to "
		 "NAME_end, _exit, _done or _leave of a thread). Other NAMEs may have wildcards. "
		 "Default: the time of the selected threads.",
	 .at = offsetof(struct report_options, of)},
	{.name = "span",
	 .kind = KY_OPTION_TEXT,
	 .arg = "NAME",
	 .help = "The same as --of span:NAME.",
	 .at = offsetof(struct report_options, span)},
	{.name = "at",
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "For report breakdown: only those that contain this time, with the log of "
		 "their parts. TIME as for --begin.",
	 .at = offsetof(struct report_options, at)},
	{.name = "member",
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "For report breakdown: only the one with number N of table top, with the log "
		 "of its parts.",
	 .at = offsetof(struct report_options, member)},
	{.name = "cell",
	 .kind = KY_OPTION_TEXT,
	 .arg = "COLUMN,ROW",
	 .help = "For reports heatmap, breakdown and critical-path: only those in this cell of the "
		 "heat map. Columns count from 1, from the left; rows have their number in the "
		 "map.",
	 .at = offsetof(struct report_options, cell)},
	KY_FOCUS_OPTION_DEFS(struct report_options, focus),
	{.name = "param",
	 .kind = KY_OPTION_LIST,
	 .arg = "NAME=VALUE",
	 .help = "For a report of your own (FILE.sql): the value of its parameter :NAME. May be given "
		 "several times.",
	 .at = offsetof(struct report_options, parameters)},
	KY_QUERY_SPACE_OPTION_DEF(struct report_options, space),
	{.name = "refresh",
	 .letter = 'r',
	 .kind = KY_OPTION_DURATION,
	 .arg = "TIME",
	 .help = "Show a set of tables for each interval of this length. A call, wait or request "
		 "belongs to the interval in which it ended. Default with --live: 1s.",
	 .at = offsetof(struct report_options, refresh_ns)},
	{.name = "begin",
	 .letter = 'b',
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "Report from TIME on: hh:mm:ss.nnnnnnnnn (with yyyy-mm-dd and a blank before it, "
		 "or on the day of the first event), seconds since the clock's origin, +2s after "
		 "the first event, -500ms before the last one, or 50%. The report still reads "
		 "earlier events, for names, files and states. If kymo view or kymo timeline has opened "
		 "the trace before, reports on CPUs, threads, waits, calls and interrupts read only "
		 "the last of these.",
	 .at = offsetof(struct report_options, select.begin)},
	{.name = "end",
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "Report up to TIME.",
	 .at = offsetof(struct report_options, select.end)},
	{.name = "timerange",
	 .kind = KY_OPTION_TEXT,
	 .arg = "BEGIN,END",
	 .help = "Both --begin and --end; square brackets are allowed.",
	 .at = offsetof(struct report_options, select.timerange)},
	{.name = "filter",
	 .letter = 'f',
	 .kind = KY_OPTION_TEXT,
	 .arg = "EXPR",
	 .help = "Use only the events that match, as if the trace had no others; docs/filter.md "
		 "explains the language.",
	 .at = offsetof(struct report_options, select.filter)},
	{.name = "markdown",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write the documentation of the reports as Markdown; takes no TRACE.",
	 .at = offsetof(struct report_options, markdown)},
	KY_LIVE_OPTION_DEFS(
		struct report_options, live,
		"show the tables of each interval when it is over; on a terminal, new tables "
		"replace the earlier ones"),
	KY_REPORT_FLEET_OPTION_DEFS(struct report_options, fleet),
	KY_JOBS_OPTION_DEF(struct report_options, jobs),
	KY_INPUT_OPTION_DEFS(struct report_options, input),
	KY_CORRELATE_OPTION_DEF(struct report_options, input),
	{0},
};

/* ---- choosing -------------------------------------------------------------------------- */

static void list_reports(void)
{
	for (const struct ky_report *const *report = ky_reports; *report; report++)
		printf("  %-13s %s\n", (*report)->name, (*report)->summary);
	puts("\n'kymo report NAME --help' explains a report and its columns.");
}

static bool wants_periods(const struct selection *selection, const char *of)
{
	if (of && strncmp(of, "period", 6) == 0)
		return true;
	for (size_t i = 0; i < selection->n; i++) {
		if (selection->reports[i]->wants_periods)
			return true;
	}
	return false;
}

static void add_once(struct selection *selection, const struct ky_report *report)
{
	for (size_t i = 0; i < selection->n; i++) {
		if (selection->reports[i] == report)
			return;
	}
	if (selection->n < MAX_REPORTS)
		selection->reports[selection->n++] = report;
}

/* "cpu,syscalls", "all" (periods only @with_periods). Returns an exit code. */
static int select_reports(const struct ky_command *command, char *names, bool with_periods,
			  struct selection *selection)
{
	char *rest = names, *name;

	if (ky_own_report_is(names)) {
		selection->own = names;
		return KY_EXIT_OK;
	}
	if (strcmp(names, "all") == 0) {
		for (size_t i = 0; ky_reports[i] && selection->n < MAX_REPORTS; i++) {
			if ((with_periods || !ky_reports[i]->wants_periods) &&
			    !ky_reports[i]->whole)
				selection->reports[selection->n++] = ky_reports[i];
		}
		return KY_EXIT_OK;
	}
	while ((name = strsep(&rest, ","))) {
		const struct ky_report *report = ky_report_find(name);

		if (!report)
			return ky_cli_unknown_report(command, name);
		add_once(selection, report);
	}
	return KY_EXIT_OK;
}

/* ---- running --------------------------------------------------------------------------- */

/* ---- the pass -------------------------------------------------------------------------------- */

static struct ky_report_form form_of(const struct report_options *options)
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
static int cmd_report_open_flow(const struct ky_trace_set *set,
				const struct report_options *options, struct ky_thread_pool *pool,
				struct ky_flow **flow, struct kymo_error *err)
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

static int cmd_report_run_with(const struct selection *selection, const struct ky_trace_set *set,
			       const struct report_options *options,
			       const struct ky_report_options *wanted, struct ky_thread_pool *pool,
			       struct kymo_error *err)
{
	struct ky_report_results results = {0};
	struct ky_flow *flow;
	int status = cmd_report_open_flow(set, options, pool, &flow, err);

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

static void set_wanted(struct ky_report_options *to, const struct report_options *options)
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
static int cmd_report_parse_cell(const char *text, struct ky_report_options *to)
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
static int cmd_report_set_at(const struct ky_trace_set *set, const struct report_options *options,
			     struct ky_report_options *to, struct kymo_error *err)
{
	struct ky_select_options at = options->select;
	int64_t end_ns;

	if (options->cell && (cmd_report_parse_cell(options->cell, to) < 0))
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
static const char *cmd_report_span(const struct report_options *options)
{
	if (options->span)
		return options->span;
	return options->of && strncmp(options->of, "span:", 5) == 0 ? options->of + 5 : NULL;
}

static int cmd_report_run_on_set(const struct selection *selection, const struct ky_trace_set *set,
				 const struct report_options *options, struct ky_thread_pool *pool,
				 struct kymo_error *err)
{
	struct ky_cli_wanted wanted;
	struct ky_report_options *to = &wanted.options;
	struct ky_focus_options focus = options->focus;
	struct ky_strbuf span = KY_STRBUF_INIT;
	const char *spans[] = {NULL};
	int status;

	if (cmd_report_span(options)) {
		ky_of_define_span(&span, cmd_report_span(options));
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
		status = cmd_report_set_at(set, options, to, err);
	if (!status && !options->select.filter && to->focus.begin_ns != INT64_MIN)
		to->history = ky_history_find(set, &ky_cli_log);
	if (!status)
		status = cmd_report_run_with(selection, set, options, to, pool, err);
	ky_history_close(to->history);
	ky_cli_wanted_fini(&wanted);
	ky_strbuf_fini(&span);
	return status;
}

/* A file of SQL is a report like others. */
static int cmd_report_run_own(const struct selection *selection, const struct ky_trace_set *set,
			      const struct report_options *options, struct ky_thread_pool *pool,
			      struct kymo_error *err)
{
	struct selection with = *selection;
	struct ky_own_report own;
	int status = ky_own_report_open(&own, selection->own, &options->parameters, options->space,
					set, err);

	if (!status) {
		with.reports[with.n++] = ky_sql_report(own.report);
		status = cmd_report_run_on_set(&with, set, options, pool, err);
		if (status < 0 && ky_sql_report_error(own.report)->code)
			*err = *ky_sql_report_error(own.report);
	}
	ky_own_report_close(&own);
	return status;
}

static int cmd_report_run_reports(const struct selection *selection, char **paths, int n_paths,
				  const struct report_options *options)
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
					? cmd_report_run_own(selection, &set, options, pool, &err)
					: cmd_report_run_on_set(selection, &set, options, pool,
								&err),
				&err);
		ky_thread_pool_free(pool);
		ky_trace_set_close(&set);
	}
	if (status >= 0)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return status == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static int cmd_report_run_live(const struct selection *selection, char **paths, int n_paths,
			       const struct report_options *options)
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
static const char *cmd_report_unfit_for_fleet(const struct report_options *options)
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
static int cmd_report_run_fleet(const struct ky_command *command, const struct selection *selection,
				int n_traces, const struct report_options *options)
{
	const char *unfit = cmd_report_unfit_for_fleet(options);
	struct ky_report_options wanted = {.limit = options->limit};

	if (unfit)
		return ky_cli_usage(command, "--fleet and %s exclude each other", unfit);
	if (n_traces)
		return ky_cli_usage(command, "a trace and --fleet exclude each other");
	if (selection->own)
		return ky_cli_usage(command, "cannot show a report of your own for --fleet: it "
					     "reads traces; try kymo query --fleet "
					     "DIR|URL FILE.sql");
	set_wanted(&wanted, options);
	return ky_report_fleet(&(struct ky_report_fleet){
		.options = &options->fleet,
		.reports = selection->reports,
		.n_reports = selection->n,
		.focus = &options->focus,
		.wanted = &wanted,
		.form = form_of(options),
	});
}

/* What --live cannot do; NULL: no option asks for it. */
static const char *cmd_report_unfit_for_live(const struct report_options *options)
{
	if (options->html)
		return "--html";
	if (options->focus.periods.len)
		return "--period";
	return ky_cli_unfit_for_live(&options->select);
}

static int write_markdown(const struct selection *selection)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	for (size_t i = 0; i < selection->n; i++)
		ky_report_markdown(&out, selection->reports[i]);
	ky_cli_write(&out);
	ky_strbuf_fini(&out);
	return KY_EXIT_OK;
}

struct archive_run {
	const struct selection *selection;
	const struct report_options *options;
	char **paths;
};

static int report_for_archive(void *data, enum ky_archive_form form)
{
	const struct archive_run *run = data;
	struct report_options options = *run->options;

	options.json = form == KY_ARCHIVE_JSON;
	options.html = form == KY_ARCHIVE_HTML;
	options.csv = options.csv_raw = false;
	return cmd_report_run_reports(run->selection, run->paths, 1, &options);
}

static int write_archive(const struct ky_command *command, const struct selection *selection,
			 char **paths, int n_paths, const struct report_options *options)
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

/* What a recording of a command cannot have; NULL: no option asks for it. */
static const char *cmd_report_unfit_for_command(const struct report_options *options)
{
	if (options->archive)
		return "--archive";
	return options->live.on ? "--live" : NULL;
}

static bool cmd_report_has_focus(const struct ky_focus_options *focus)
{
	return focus->tids.len || focus->pids.len || focus->comms.len || focus->cgroups.len;
}

struct command_run {
	const struct selection *selection;
	const struct report_options *options;
	struct ky_command_trace *made;
};

static int cmd_report_on_command(void *data)
{
	const struct command_run *run = data;
	struct report_options options = *run->options;
	char *paths[] = {run->made->trace, NULL};
	struct kymo_error err;
	const char *pids;

	/* Only the command and its children have the libraries that record calls. */
	if (!cmd_report_has_focus(&options.focus) && !run->made->calls) {
		ky_error_clear(&err);
		if (ky_command_trace_find_pids(run->made, &options.input, &err) < 0)
			return ky_cli_error(&err);
		pids = ky_strbuf_text(&run->made->pids);
		options.focus.pids = (struct ky_text_list){&pids, 1};
	}
	return cmd_report_run_reports(run->selection, paths, 1, &options);
}

/* Records the command and reports on its processes, or on those that the options choose. */
static int cmd_report_run_command(const struct selection *selection,
				  const struct report_options *options)
{
	struct ky_command_trace made;
	struct command_run run = {selection, options, &made};
	int code;

	made.samples = selection->n == 1 && strcmp(selection->reports[0]->name, "flame") == 0;
	made.calls = selection->n == 1 && strcmp(selection->reports[0]->name, "calls") == 0;
	code = ky_command_trace_record(&made, options->command);

	if (code == KY_EXIT_OK)
		code = ky_command_trace_run(cmd_report_on_command, &run);
	ky_command_trace_fini(&made);
	return code == KY_EXIT_OK ? made.code : code;
}

static int run_report(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct report_options *options = data;
	struct selection selection = {.n = 0};
	char all[] = "all";
	int code;

	if (options->json + (options->csv || options->csv_raw) + options->html > 1)
		return ky_cli_usage(command, "--json, --csv and --html exclude each other");
	if (options->to && ky_stacks_form_find(options->to) == KY_STACKS_FORMS)
		return ky_cli_usage(
			command, "--to: '%s' is no form; try folded, speedscope, pprof or chrome",
			options->to);
	if (options->to && (options->json || options->csv || options->csv_raw || options->html))
		return ky_cli_usage(command, "--to excludes --json, --csv and --html");
	if (options->refresh_ns > INT64_MAX)
		return ky_cli_usage(command, "--refresh: the interval is too long");
	if (options->list) {
		list_reports();
		return KY_EXIT_OK;
	}
	if (n_args < 1 && !options->all)
		return ky_cli_usage(command, "no report given; 'kymo report --list' lists the "
					     "reports");
	code = select_reports(command, options->all ? all : args[0],
			      options->markdown || options->focus.periods.len, &selection);
	if (code != KY_EXIT_OK)
		return code;
	/* The traces are what is left. */
	args += !options->all;
	n_args -= !options->all;
	for (int i = 0; i < 2 && n_args == 2; i++)
		selection.sides[i] = args[i];
	if (options->markdown)
		return write_markdown(&selection);
	code = ky_cli_check_periods(command, &options->focus,
				    wants_periods(&selection, options->of));
	if (code != KY_EXIT_OK)
		return code;
	if (options->fleet.place)
		return cmd_report_run_fleet(command, &selection, n_args, options);
	if (options->fleet.hosts.len || options->fleet.since_ns || options->fleet.merges_hosts)
		return ky_cli_usage(command, "--hosts, --since and --merge-hosts need --fleet");
	if (options->command && n_args)
		return ky_cli_usage(command, "a trace and a command exclude each other");
	if (options->command && cmd_report_unfit_for_command(options))
		return ky_cli_usage(command, "a command and %s exclude each other",
				    cmd_report_unfit_for_command(options));
	if (options->command)
		return cmd_report_run_command(&selection, options);
	if (n_args < 1)
		return ky_cli_usage(command,
				    "no trace given; give a directory that contains one, or a "
				    "command after --");
	if (ky_cli_check_live(command, &options->live))
		return KY_EXIT_USAGE;
	if (options->live.on && selection.own)
		return ky_cli_usage(command, "--live and a report of your own exclude each other");
	if (options->live.on && cmd_report_unfit_for_live(options))
		return ky_cli_usage(command, "--live and %s exclude each other",
				    cmd_report_unfit_for_live(options));
	if (options->archive && !options->live.on)
		return write_archive(command, &selection, args, n_args, options);
	return options->live.on ? cmd_report_run_live(&selection, args, n_args, options)
				: cmd_report_run_reports(&selection, args, n_args, options);
}

static int report_topic(const struct ky_command *command, FILE *out, char *topic)
{
	int columns = ky_cli_columns(out);
	struct selection selection = {.n = 0};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int code = select_reports(command, topic, true, &selection);

	if (code != KY_EXIT_OK)
		return code;
	for (size_t i = 0; i < selection.n; i++) {
		ky_strbuf_adds(&text, i ? "\n" : "");
		ky_report_help(&text, selection.reports[i], columns > 100 ? 100 : columns);
	}
	fwrite(ky_strbuf_text(&text), 1, text.len, out); /* lint: own text */
	ky_strbuf_fini(&text);
	return KY_EXIT_OK;
}

const struct ky_command ky_command_report = {
	.name = "report",
	.summary = "analyse a trace: CPUs, threads, system calls, I/O",
	.usage = "[OPTIONS] NAME[,NAME...]|FILE.sql TRACE...|-- COMMAND [ARGS...]\n"
		 "       kymo report [OPTIONS] --fleet DIR|URL NAME[,NAME...]",
	.description =
		"Computes tables from kernel events. Several reports take one pass over the trace. "
		"TRACE is a directory that holds a trace, or traces below it; the name of a running recording; or an address: kymo://HOST/NAME of kymo relay, net://HOST/host/MACHINE/SESSION of lttng-relayd. Threads of different "
		"traces have different rows.\n"
		"\n"
		"'kymo report --list' lists the reports; 'all' selects all reports. 'kymo report "
		"NAME --help' explains a report: its content, its events, the meaning of every "
		"column and how to read it.\n"
		"\n"
		"With -- COMMAND, kymo report records the machine (for report flame, 999 samples a "
		"second; for report calls, the command's functions) while COMMAND runs, reports on COMMAND "
		"and its children, and removes the recording. This needs root. --pid, --tid, --comm and --cgroup "
		"choose other threads. The exit code is that of COMMAND.\n"
		"\n"
		"FILE.sql is a report of your own: each SELECT is a table, and comments at the head of the file tell its title and "
		"the classes of columns. docs/sql.md explains it.\n"
		"\n"
		"With --fleet, kymo report reads rows of many hosts, which 'kymo fleet load --report NAME' has put into a store. Each row "
		"is of one host, or of all hosts with --merge-hosts. A row of several traces has the sum of their counts and times, and "
		"the largest of their maxima. Only a row of a single trace has percentiles.\n"
		"\n"
		"Tables fit the terminal's width; in a file or pipe they fit 100 columns. The output "
		"leaves out the least important columns, names them under the table, and cuts long "
		"texts at the end of a line. --wide shows all of them. The last lines name the "
		"other tables of the report and what to look at next.",
	.examples =
		"# what is slow, and who causes it\nkymo report why my-trace\n"
		"kymo report why --comm nginx my-trace\n\n"
		"# an overview of the trace\nkymo report summary my-trace\n\n"
		"# CPU usage by thread\nkymo report cpu my-trace\n\n"
		"# what a command calls, and how long that takes\nkymo report syscalls -- ls -lR /etc\n\n"
		"# long and failed system calls\nkymo report syscalls my-trace\n\n"
		"# both in one pass, with all rows, for a program\n"
		"kymo report --json cpu,syscalls my-trace\n\n"
		"# the longest waits for a CPU, in the second second of the trace\n"
		"kymo report sched --begin +1s --end +2s -t top -n 20 my-trace\n\n"
		"# every read or write of one program that took 5 ms or more, as CSV\n"
		"kymo report io-latency --comm 'post*' --min 5ms -t log --csv my-trace\n\n"
		"# CPU time per program, for each tenth of a second\n"
		"kymo report cpu --refresh 100ms -t threads --group-by name my-trace\n\n"
		"# the time from one event to another, for each value of a field\n"
		"kymo report periods --period 'sync : $event == \"syscall_entry_fsync\" : $event "
		"== \"syscall_exit_fsync\" : fd' my-trace\n\n"
		"# where the time of all reads goes, and who made the slow ones slow\n"
		"kymo report breakdown --of syscall:read --comm 'post*' my-trace\n\n"
		"# which functions take the CPU time: as text, and as a flame graph\n"
		"kymo report flame my-trace\nkymo report flame --html my-trace >flame.html\n\n"
		"# from where threads wait, for pprof\n"
		"kymo report flame --of off-cpu --to pprof my-trace >off.pb.gz\n\n"
		"# how often functions were called, and a flame chart of all calls\n"
		"kymo report calls my-trace\nkymo report calls --to chrome my-trace >calls.json\n\n"
		"# a report of your own\nkymo report ./slow-calls.sql --param least=1000000 my-trace\n\n"
		"# many machines: the system calls of the web servers in the last hour of a store\n"
		"kymo report syscalls --fleet fleet --hosts 'web-*' --since 1h\n\n"
		"# what has changed, beyond noise\nkymo report compare before after\n\n"
		"# CPU usage now, like top, of a recording in another terminal\n"
		"kymo report cpu --live my-trace\n\n"
		"# all reports and the trace in one file, and the same from that file\n"
		"kymo report --all --archive bug.tar.zst my-trace\nkymo report --all bug.tar.zst\n\n"
		"# all reports, with charts, for a browser\nkymo report all --html my-trace "
		">my-trace.html\n\n"
		"# the meaning of the columns\nkymo report cpu --help",
	.see_also = "print info record",
	.first_trace = 2,
	.options = report_option_defs,
	.options_size = sizeof(struct report_options),
	.command_at = offsetof(struct report_options, command),
	.defaults = report_defaults,
	.min_args = 0,
	.max_args = -1,
	.operands =
		"all block breakdown calls compare cpu critical-path flame heatmap io io-latency io-log irq locks memory net periods sched softirq summary "
		"syscall-rates syscalls threads why",
	.run = run_report,
	.topic_help = report_topic,
};
