/* SPDX-License-Identifier: MIT */
/* kymo report: run reports over a trace, list them, explain them. */
#include "cli/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/render.h"
#include "base/error.h"
#include "cli/damage.h"
#include "cli/input-options.h"
#include "cli/options.h"

#define MAX_REPORTS   32
#define LIMIT_DEFAULT UINT64_MAX /* not given */
#define LIMIT_TEXT    10

struct report_options {
	bool list, json, markdown;
	uint64_t limit;
	struct ky_input_options input;
};

struct selection {
	const struct ky_report *reports[MAX_REPORTS];
	size_t n;
};

static void report_defaults(void *data)
{
	struct report_options *options = data;

	options->limit = LIMIT_DEFAULT;
}

static const struct ky_option_def report_option_defs[] = {
	{.name = "list",
	 .letter = 'l',
	 .kind = KY_OPTION_FLAG,
	 .help = "List the reports.",
	 .at = offsetof(struct report_options, list)},
	{.name = "json",
	 .letter = 'j',
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one JSON object: times and durations in nanoseconds, ratios from 0 to 1.",
	 .at = offsetof(struct report_options, json)},
	{.name = "limit",
	 .letter = 'n',
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "Show the first N rows of each table that ranks, or N groups of N rows; 0 shows all. "
		 "Default: 10, and all with --json.",
	 .at = offsetof(struct report_options, limit)},
	{.name = "markdown",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write the documentation of the reports as Markdown; takes no TRACE.",
	 .at = offsetof(struct report_options, markdown)},
	KY_INPUT_OPTION_DEFS(struct report_options, input),
	KY_CORRELATE_OPTION_DEF(struct report_options, input),
	{0},
};

/* ---- choosing -------------------------------------------------------------------------- */

static void list_reports(void)
{
	for (const struct ky_report *const *report = ky_reports; *report; report++)
		printf("  %-12s %s\n", (*report)->name, (*report)->summary);
	puts("\n'kymo report NAME --help' explains a report and its columns.");
}

static const char *nearest_report(const char *name)
{
	const char *names[MAX_REPORTS];
	size_t n = 0;

	while (ky_reports[n] && n < MAX_REPORTS) {
		names[n] = ky_reports[n]->name;
		n++;
	}
	return ky_nearest(name, names, n);
}

static int unknown_report(const struct ky_command *command, const char *name)
{
	const char *near = nearest_report(name);

	if (near)
		return ky_cli_usage(command, "'%s' is no report; did you mean '%s'?", name, near);
	return ky_cli_usage(command, "'%s' is no report; 'kymo report --list' lists them", name);
}

static int select_one(struct selection *selection, const char *name)
{
	const struct ky_report *report = ky_report_find(name);

	if (!report)
		return KYMO_E_NOT_FOUND;
	for (size_t i = 0; i < selection->n; i++) {
		if (selection->reports[i] == report)
			return 0;
	}
	if (selection->n < MAX_REPORTS)
		selection->reports[selection->n++] = report;
	return 0;
}

/* "cpu,syscalls". Returns an exit code. */
static int select_reports(const struct ky_command *command, char *names,
			  struct selection *selection)
{
	char *rest = names, *name;

	while ((name = strsep(&rest, ","))) {
		if (select_one(selection, name) < 0)
			return unknown_report(command, name);
	}
	return KY_EXIT_OK;
}

/* ---- running --------------------------------------------------------------------------- */

static bool locale_is_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static int show_results(const struct ky_report_results *results,
			const struct report_options *options, struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int status = 0;

	if (options->json) {
		status = ky_render_json(&out, results, err);
	} else {
		struct ky_render_options render = {
			/* What is not looked at on a terminal may be as wide as it likes. */
			.columns = isatty(STDOUT_FILENO) ? ky_cli_columns(stdout) : 0,
			.colour = ky_cli_colour(stdout),
			.utf8 = locale_is_utf8(),
		};

		ky_render_text(&out, results, &render);
		if (ky_strbuf_failed(&out))
			status = ky_error_nomem(err);
	}
	if (!status)
		fwrite(ky_strbuf_text(&out), 1, out.len, stdout);
	ky_strbuf_fini(&out);
	return status;
}

static int run_on_set(const struct selection *selection, const struct ky_trace_set *set,
		      const struct report_options *options, struct kymo_error *err)
{
	struct ky_report_results results = {0};
	struct ky_report_options limits = {.limit = options->limit};
	struct ky_flow *flow;
	int status;

	if (limits.limit == LIMIT_DEFAULT)
		limits.limit = options->json ? 0 : LIMIT_TEXT;
	status = ky_flow_open_set(set, &flow, err);
	if (status >= 0)
		status = ky_cli_damage_stage(flow, &flow, err);
	if (status < 0)
		return status;
	status =
		ky_reports_run(selection->reports, selection->n, set, flow, &limits, &results, err);
	ky_flow_close(flow);
	/* A damaged trace: what could be read, then the error. */
	if (status >= 0 || (status != KYMO_E_MEMORY && results.begin_ns != INT64_MIN)) {
		int shown = show_results(&results, options, status < 0 ? NULL : err);

		status = status < 0 ? status : shown;
	}
	ky_report_results_fini(&results);
	return status;
}

static int run_reports(const struct selection *selection, char **paths, int n_paths,
		       const struct report_options *options)
{
	struct ky_trace_set set = {0};
	struct kymo_error err;
	int status;

	ky_error_clear(&err);
	status = ky_cli_open(&set, paths, n_paths, &options->input, true, &err);
	if (status >= 0) {
		status = ky_cli_damage_end(run_on_set(selection, &set, options, &err), &err);
		ky_trace_set_close(&set);
	}
	if (status >= 0)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return status == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static int write_markdown(const struct selection *selection)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	for (size_t i = 0; i < selection->n; i++)
		ky_report_markdown(&out, selection->reports[i]);
	fwrite(ky_strbuf_text(&out), 1, out.len, stdout);
	ky_strbuf_fini(&out);
	return KY_EXIT_OK;
}

static int run_report(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct report_options *options = data;
	struct selection selection = {.n = 0};
	int code;

	if (options->list) {
		list_reports();
		return KY_EXIT_OK;
	}
	if (n_args < 1)
		return ky_cli_usage(command, "which report? 'kymo report --list' lists them");
	code = select_reports(command, args[0], &selection);
	if (code != KY_EXIT_OK)
		return code;
	if (options->markdown)
		return write_markdown(&selection);
	if (n_args < 2)
		return ky_cli_usage(command, "which trace? give a directory that holds one");
	return run_reports(&selection, args + 1, n_args - 1, options);
}

static int report_topic(const struct ky_command *command, FILE *out, char *topic)
{
	int columns = ky_cli_columns(out);
	struct selection selection = {.n = 0};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int code = select_reports(command, topic, &selection);

	if (code != KY_EXIT_OK)
		return code;
	for (size_t i = 0; i < selection.n; i++) {
		ky_strbuf_adds(&text, i ? "\n" : "");
		ky_report_help(&text, selection.reports[i], columns > 100 ? 100 : columns);
	}
	fwrite(ky_strbuf_text(&text), 1, text.len, out);
	ky_strbuf_fini(&text);
	return KY_EXIT_OK;
}

const struct ky_command ky_command_report = {
	.name = "report",
	.summary = "analyse a trace: what the CPUs, threads and system calls did",
	.usage = "[OPTIONS] NAME[,NAME...] TRACE...",
	.description =
		"Reads kernel events and prints what they add up to. Several reports are made in one "
		"pass over the trace. TRACE is a directory that holds a trace, or traces below it; "
		"threads of different traces are kept apart.\n"
		"\n"
		"'kymo report --list' lists the reports. 'kymo report NAME --help' explains one: "
		"what it tells, from which events, what every column means and how to read it.\n"
		"\n"
		"Where output goes to a terminal, columns that do not fit are left out and named at "
		"the end; into a file or a pipe it is as wide as it takes.",
	.examples =
		"# who used the CPUs?\nkymo report cpu my-trace\n\n"
		"# which system calls took long, which failed?\nkymo report syscalls my-trace\n\n"
		"# both in one pass, everything, for a program\n"
		"kymo report --json cpu,syscalls my-trace\n\n"
		"# what do the columns mean?\nkymo report cpu --help",
	.see_also = "print info record",
	.options = report_option_defs,
	.options_size = sizeof(struct report_options),
	.defaults = report_defaults,
	.min_args = 0,
	.max_args = -1,
	.operands = "cpu syscalls",
	.run = run_report,
	.topic_help = report_topic,
};
