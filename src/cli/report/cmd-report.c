/* SPDX-License-Identifier: MIT */
/* kymo report: run reports over a trace, list them, explain them. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>

#include "cli/report/report-run.h"
#include "cli/report/report-fleet.h"
#include "cli/report/report-live.h"
#include "cli/query/query-output.h"
#include "cli/report/report-own.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/options/report-options.h"
#include "cli/reading/select-options.h"

static void report_defaults(void *data)
{
	struct ky_report_request *options = data;

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
	 .at = offsetof(struct ky_report_request, list)},
	{.name = "all",
	 .kind = KY_OPTION_FLAG,
	 .help = "All reports: the first operand is then a TRACE. The same as the name 'all'.",
	 .at = offsetof(struct ky_report_request, all)},
	{.name = "archive",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FILE",
	 .help = "Write an archive (.tar.zst) of the trace, of its reports as text, JSON and HTML, and "
		 "of facts about this machine. kymo report, print and other commands open an archive "
		 "as a TRACE.",
	 .at = offsetof(struct ky_report_request, archive)},
	{.name = "event",
	 .kind = KY_OPTION_TEXT,
	 .arg = "JSON",
	 .help = "With --archive: the event of a trigger, as kymo watch --json prints it; it becomes "
		 "report/trigger.json in the archive, and report/stacks.txt has its call stacks.",
	 .at = offsetof(struct ky_report_request, event)},
	{.name = "json",
	 .letter = 'j',
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one JSON object: times and durations in nanoseconds, ratios from 0 to 1.",
	 .at = offsetof(struct ky_report_request, json)},
	{.name = "csv",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write comma-separated values: for each table a line of column names, the rows, "
		 "and an empty line.",
	 .at = offsetof(struct ky_report_request, csv)},
	{.name = "csv-raw",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write comma-separated values with texts unchanged. --csv puts an apostrophe "
		 "before a text that begins with = + - or @, because spreadsheets evaluate it as a "
		 "formula and traced programs choose their names.",
	 .at = offsetof(struct ky_report_request, csv_raw)},
	{.name = "html",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one HTML page with charts, for a browser. The page loads no other files.",
	 .at = offsetof(struct ky_report_request, html)},
	{.name = "to",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FORM",
	 .help = "For reports flame and calls: write the stacks for other programs: folded (a line for "
		 "each stack and its weight), speedscope (JSON, for speedscope.app), pprof (for go tool "
		 "pprof), chrome (calls only: JSON, for chrome://tracing and ui.perfetto.dev). Of calls, "
		 "speedscope and chrome have each single call in its place in time.",
	 .choices = "folded speedscope pprof chrome",
	 .at = offsetof(struct ky_report_request, to)},
	{.name = "inlines",
	 .kind = KY_OPTION_FLAG,
	 .help = "For report flame: inlined functions are functions of their own. This reads the "
		 "debug information of all programs and libraries in the stacks.",
	 .at = offsetof(struct ky_report_request, inlines)},
	{.name = "symbol-dir",
	 .kind = KY_OPTION_LIST,
	 .arg = "DIR",
	 .help = "For reports flame and calls: look for debug files in DIR first, by build ID, as in "
		 "/usr/lib/debug. May be given several times.",
	 .at = offsetof(struct ky_report_request, symbol_dirs)},
	{.name = "wide",
	 .letter = 'w',
	 .kind = KY_OPTION_FLAG,
	 .help = "Show all columns of tables and all of their texts, however wide they are.",
	 .at = offsetof(struct ky_report_request, wide)},
	{.name = "table",
	 .letter = 't',
	 .kind = KY_OPTION_LIST,
	 .arg = "NAME",
	 .help = "Show only this table, such as 'threads' or 'cpu.threads'; may be given again for "
		 "more. Default: the main tables, and a line that names the others; with --json, "
		 "--csv and --html all tables except those named log.",
	 .at = offsetof(struct ky_report_request, tables)},
	{.name = "limit",
	 .letter = 'n',
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "Show the first N rows, or N groups of N rows, of each ranked table; 0 shows all. "
		 "Default: 10; with --json, --csv and --html all rows of ranked tables and logs.",
	 .at = offsetof(struct ky_report_request, limit)},
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
	 .at = offsetof(struct ky_report_request, of)},
	{.name = "span",
	 .kind = KY_OPTION_TEXT,
	 .arg = "NAME",
	 .help = "The same as --of span:NAME.",
	 .at = offsetof(struct ky_report_request, span)},
	{.name = "at",
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "For report breakdown: only those that contain this time, with the log of "
		 "their parts. TIME as for --begin.",
	 .at = offsetof(struct ky_report_request, at)},
	{.name = "member",
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "For report breakdown: only the one with number N of table top, with the log "
		 "of its parts.",
	 .at = offsetof(struct ky_report_request, member)},
	{.name = "cell",
	 .kind = KY_OPTION_TEXT,
	 .arg = "COLUMN,ROW",
	 .help = "For reports heatmap, breakdown and critical-path: only those in this cell of the "
		 "heat map. Columns count from 1, from the left; rows have their number in the "
		 "map.",
	 .at = offsetof(struct ky_report_request, cell)},
	KY_FOCUS_OPTION_DEFS(struct ky_report_request, focus),
	{.name = "param",
	 .kind = KY_OPTION_LIST,
	 .arg = "NAME=VALUE",
	 .help = "For a report of your own (FILE.sql): the value of its parameter :NAME. May be given "
		 "several times.",
	 .at = offsetof(struct ky_report_request, parameters)},
	KY_QUERY_SPACE_OPTION_DEF(struct ky_report_request, space),
	{.name = "refresh",
	 .letter = 'r',
	 .kind = KY_OPTION_DURATION,
	 .arg = "TIME",
	 .help = "Show a set of tables for each interval of this length. A call, wait or request "
		 "belongs to the interval in which it ended. Default with --live: 1s.",
	 .at = offsetof(struct ky_report_request, refresh_ns)},
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
	 .at = offsetof(struct ky_report_request, select.begin)},
	{.name = "end",
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "Report up to TIME.",
	 .at = offsetof(struct ky_report_request, select.end)},
	{.name = "timerange",
	 .kind = KY_OPTION_TEXT,
	 .arg = "BEGIN,END",
	 .help = "Both --begin and --end; square brackets are allowed.",
	 .at = offsetof(struct ky_report_request, select.timerange)},
	{.name = "filter",
	 .letter = 'f',
	 .kind = KY_OPTION_TEXT,
	 .arg = "EXPR",
	 .help = "Use only the events that match, as if the trace had no others; docs/filter.md "
		 "explains the language.",
	 .at = offsetof(struct ky_report_request, select.filter)},
	{.name = "markdown",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write the documentation of the reports as Markdown; takes no TRACE.",
	 .at = offsetof(struct ky_report_request, markdown)},
	KY_LIVE_OPTION_DEFS(
		struct ky_report_request, live,
		"show the tables of each interval when it is over; on a terminal, new tables "
		"replace the earlier ones"),
	KY_REPORT_FLEET_OPTION_DEFS(struct ky_report_request, fleet),
	KY_JOBS_OPTION_DEF(struct ky_report_request, jobs),
	KY_INPUT_OPTION_DEFS(struct ky_report_request, input),
	KY_CORRELATE_OPTION_DEF(struct ky_report_request, input),
	{0},
};

/* ---- choosing -------------------------------------------------------------------------- */

static void list_reports(void)
{
	for (const struct ky_report *const *report = ky_reports; *report; report++)
		printf("  %-13s %s\n", (*report)->name, (*report)->summary);
	puts("\n'kymo report NAME --help' explains a report and its columns.");
}

static bool wants_periods(const struct ky_report_choice *selection, const char *of)
{
	if (of && strncmp(of, "period", 6) == 0)
		return true;
	for (size_t i = 0; i < selection->n; i++) {
		if (selection->reports[i]->wants_periods)
			return true;
	}
	return false;
}

static void add_once(struct ky_report_choice *selection, const struct ky_report *report)
{
	for (size_t i = 0; i < selection->n; i++) {
		if (selection->reports[i] == report)
			return;
	}
	if (selection->n < KY_REPORT_CHOICE_MAX)
		selection->reports[selection->n++] = report;
}

/* "cpu,syscalls", "all" (periods only @with_periods). Returns an exit code. */
static int select_reports(const struct ky_command *command, char *names, bool with_periods,
			  struct ky_report_choice *selection)
{
	char *rest = names, *name;

	if (ky_own_report_is(names)) {
		selection->own = names;
		return KY_EXIT_OK;
	}
	if (strcmp(names, "all") == 0) {
		for (size_t i = 0; ky_reports[i] && selection->n < KY_REPORT_CHOICE_MAX; i++) {
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

/* What --live cannot do; NULL: no option asks for it. */
static const char *cmd_report_unfit_for_live(const struct ky_report_request *options)
{
	if (options->html)
		return "--html";
	if (options->focus.periods.len)
		return "--period";
	return ky_cli_unfit_for_live(&options->select);
}

static int write_markdown(const struct ky_report_choice *selection)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	for (size_t i = 0; i < selection->n; i++)
		ky_report_markdown(&out, selection->reports[i]);
	ky_cli_write(&out);
	ky_strbuf_fini(&out);
	return KY_EXIT_OK;
}

/* What a recording of a command cannot have; NULL: no option asks for it. */
static const char *cmd_report_unfit_for_command(const struct ky_report_request *options)
{
	if (options->archive)
		return "--archive";
	return options->live.on ? "--live" : NULL;
}

static int run_report(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct ky_report_request *options = data;
	struct ky_report_choice selection = {.n = 0};
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
		return ky_report_run_fleet(command, &selection, n_args, options);
	if (options->fleet.hosts.len || options->fleet.since_ns || options->fleet.merges_hosts)
		return ky_cli_usage(command, "--hosts, --since and --merge-hosts need --fleet");
	if (options->command && n_args)
		return ky_cli_usage(command, "a trace and a command exclude each other");
	if (options->command && cmd_report_unfit_for_command(options))
		return ky_cli_usage(command, "a command and %s exclude each other",
				    cmd_report_unfit_for_command(options));
	if (options->command)
		return ky_report_run_command(&selection, options);
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
		return ky_report_run_archive(command, &selection, args, n_args, options);
	return options->live.on ? ky_report_run_live(&selection, args, n_args, options)
				: ky_report_run_reports(&selection, args, n_args, options);
}

static int report_topic(const struct ky_command *command, FILE *out, char *topic)
{
	int columns = ky_cli_columns(out);
	struct ky_report_choice selection = {.n = 0};
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
		 "       kymo report [OPTIONS] --fleet DIR|URL NAME[,NAME...]|FILE.sql",
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
		"the largest of their maxima. Only a row of a single trace has percentiles. The statements of FILE.sql run in the store.\n"
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
		"# the same store, for a report of your own\nkymo report ./slow-calls.sql --fleet fleet --param least=1000000\n\n"
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
	.options_size = sizeof(struct ky_report_request),
	.command_at = offsetof(struct ky_report_request, command),
	.defaults = report_defaults,
	.min_args = 0,
	.max_args = -1,
	.operands =
		"all block breakdown calls compare cpu critical-path flame heatmap io io-latency io-log irq locks memory net periods sched softirq summary "
		"syscall-rates syscalls threads why",
	.run = run_report,
	.topic_help = report_topic,
};
