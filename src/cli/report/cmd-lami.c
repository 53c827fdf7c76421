/* SPDX-License-Identifier: MIT */
/* kymo lami: reports for programs that speak LAMI 1.0. Errors go to stdout, too. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/history/history.h"
#include "analysis/render/lami.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/reading/damage.h"
#include "cli/reading/input-options.h"
#include "cli/options/report-options.h"
#include "flow/graph/range.h"

struct lami_options {
	bool mi_version, metadata, test_compatibility, output_progress;
	uint64_t begin_ns, end_ns;
	const char *limit;
	struct ky_focus_options focus;
	struct ky_input_options input;
};

static void lami_defaults(void *data)
{
	struct lami_options *options = data;

	options->end_ns = INT64_MAX;
	ky_cli_focus_defaults(&options->focus);
}

static const struct ky_option_def lami_option_defs[] = {
	{.name = "mi-version",
	 .kind = KY_OPTION_FLAG,
	 .help = "Print the version of LAMI, 1.0.",
	 .at = offsetof(struct lami_options, mi_version)},
	{.name = "metadata",
	 .kind = KY_OPTION_FLAG,
	 .help = "Print the description of the report: title, description, tables and columns.",
	 .at = offsetof(struct lami_options, metadata)},
	{.name = "test-compatibility",
	 .kind = KY_OPTION_FLAG,
	 .help = "Exit with 0, and print nothing, if TRACE has what the report needs.",
	 .at = offsetof(struct lami_options, test_compatibility)},
	{.name = "output-progress",
	 .kind = KY_OPTION_FLAG,
	 .help = "Print lines such as '0.17 message' while kymo reads the trace. Notes on the "
		 "results (lost events, missing events) are such lines, too; without this option, "
		 "kymo prints notes to stderr.",
	 .at = offsetof(struct lami_options, output_progress)},
	{.name = "begin",
	 .letter = 'b',
	 .kind = KY_OPTION_U64,
	 .arg = "NS",
	 .help = "Report from this time on, in nanoseconds since the clock's origin (usually 1970).",
	 .at = offsetof(struct lami_options, begin_ns)},
	{.name = "end",
	 .kind = KY_OPTION_U64,
	 .arg = "NS",
	 .help = "Report up to this time.",
	 .at = offsetof(struct lami_options, end_ns)},
	{.name = "limit",
	 .letter = 'n',
	 .kind = KY_OPTION_TEXT,
	 .arg = "N",
	 .help = "Print the first N rows, or N groups of rows, of each ranked table, or "
		 "'unlimited'. Default: all rows; in tables named top, the 10 longest.",
	 .at = offsetof(struct lami_options, limit)},
	KY_FOCUS_OPTION_DEFS(struct lami_options, focus),
	KY_INPUT_OPTION_DEFS(struct lami_options, input),
	KY_CORRELATE_OPTION_DEF(struct lami_options, input),
	{0},
};

/* ---- which report ------------------------------------------------------------------------- */

struct choice {
	const struct ky_report *report;
	const char *table; /* NULL: all but logs */
};

static const char *find_table(const struct ky_report *report, const char *name)
{
	for (const struct ky_table_def *const *def = report->tables; *def; def++) {
		if (strcmp((*def)->name, name) == 0)
			return (*def)->name;
	}
	return NULL;
}

/* "sched", "sched.log", and as in the names of executables "sched-log". */
static bool cmd_lami_choose(const char *name, struct choice *choice)
{
	choice->report = ky_report_find(name);
	choice->table = NULL;
	if (choice->report)
		return true;
	for (const struct ky_report *const *report = ky_reports; *report; report++) {
		size_t len = strlen((*report)->name);

		if (strncmp(name, (*report)->name, len) != 0 || !name[len] ||
		    !strchr(".-", name[len]))
			continue;
		choice->report = *report;
		choice->table = find_table(*report, name + len + 1);
		if (choice->table)
			return true;
	}
	return false;
}

/* ---- output --------------------------------------------------------------------------------- */

static int cmd_lami_put(struct ky_strbuf *out, int code)
{
	ky_cli_write(out);
	ky_strbuf_fini(out);
	return code;
}

/* The consumer reads stdout, and nothing but objects there. */
static int tell_error(const struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct kymo_error ignored;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	if (file) {
		ky_cli_put_error(file, err);
		fclose(file);
	}
	ky_lami_error(&out, -err->code, text ? text : kymo_status_text(err->code), &ignored);
	free(text);
	return cmd_lami_put(&out, KY_EXIT_FAIL);
}

static void tell_notes(const struct ky_report_results *results, bool as_progress)
{
	ky_vec_foreach(&results->list, result) {
		for (size_t i = 0; i < result->notes.len; i++) {
			fputs(as_progress ? "1 " : "kymo: note: ", as_progress ? stdout : stderr);
			ky_cli_put_text(as_progress ? stdout : stderr, result->notes.data[i]);
			fputc('\n', as_progress ? stdout : stderr);
		}
	}
}

/* ---- progress --------------------------------------------------------------------------------- */

/* A stage that tells how far it is in the traces' time. */
struct stage {
	struct ky_stage base;
	int64_t begin_ns, end_ns; /* INT64_MIN: no times */
	uint64_t n_events;
	int percent; /* the last one shown */
};

static void cmd_lami_tell_progress(struct stage *stage, const struct ky_batch *batch)
{
	int64_t ns = batch->n_events ? batch->events[batch->n_events - 1].ns : INT64_MIN;
	double done;
	int percent;

	stage->n_events += batch->n_events;
	if (ns == INT64_MIN || stage->end_ns <= stage->begin_ns || ns < stage->begin_ns)
		return;
	done = (double)((uint64_t)ns - (uint64_t)stage->begin_ns) /
	       (double)((uint64_t)stage->end_ns - (uint64_t)stage->begin_ns);
	percent = done > 1 ? 100 : (int)(100 * done);
	if (percent <= stage->percent)
		return;
	stage->percent = percent;
	printf("%.2f %llu events read\n", percent / 100.0, (unsigned long long)stage->n_events);
	fflush(stdout);
}

static int cmd_lami_stage_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct stage *stage = (struct stage *)flow;
	int ret = ky_flow_next(stage->base.input, batch, err);

	if (ret > 0)
		cmd_lami_tell_progress(stage, batch);
	return ret;
}

static const struct ky_flow_ops stage_ops = {
	.next = cmd_lami_stage_next, .close = ky_stage_close, .broken = ky_stage_broken};

/* Takes *@flow over, on failure too. */
static int cmd_lami_add_progress(const struct ky_trace_set *set, struct ky_flow **flow,
				 struct kymo_error *err)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	int status = stage ? ky_set_range(set, &stage->begin_ns, &stage->end_ns, err)
			   : ky_error_nomem(err);

	if (status < 0) {
		ky_flow_close(*flow);
		free(stage);
		return status;
	}
	stage->base.flow.ops = &stage_ops;
	stage->base.input = *flow;
	*flow = &stage->base.flow;
	puts("0 reading");
	fflush(stdout);
	return 0;
}

static int cmd_lami_open_flow(const struct ky_trace_set *set, bool progress, struct ky_flow **flow,
			      struct kymo_error *err)
{
	int status = ky_flow_open_set(set, flow, err);

	if (status >= 0)
		status = ky_cli_damage_stage(*flow, flow, err);
	return status < 0 || !progress ? status : cmd_lami_add_progress(set, flow, err);
}

/* ---- running ------------------------------------------------------------------------------------ */

static int cmd_lami_run_with(const struct choice *choice, const struct ky_trace_set *set,
			     const struct lami_options *options,
			     const struct ky_report_options *wanted, struct ky_strbuf *out,
			     struct kymo_error *err)
{
	struct ky_report_results results = {0};
	struct ky_flow *flow;
	int status = cmd_lami_open_flow(set, options->output_progress, &flow, err);

	if (status < 0)
		return status;
	status = ky_reports_run(&choice->report, 1, set, flow, wanted, &results, err);
	ky_flow_close(flow);
	if (status >= 0) {
		tell_notes(&results, options->output_progress);
		status = ky_lami_results(out, &results, err);
	}
	ky_report_results_fini(&results);
	return status;
}

static int set_limit(struct ky_report_options *to, const char *text, struct kymo_error *err)
{
	if (!text)
		return 0;
	if (strcmp(text, "unlimited") == 0) {
		to->limit = 0;
		return 0;
	}
	if (ky_parse_u64(text, &to->limit) < 0 || !to->limit)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--limit needs a number from 1, or 'unlimited', not '%s'",
				    text);
	return 0;
}

static int analyse(const struct choice *choice, const struct ky_trace_set *set,
		   const struct lami_options *options, struct ky_strbuf *out,
		   struct kymo_error *err)
{
	struct ky_cli_wanted wanted;
	struct ky_report_options *to = &wanted.options;
	int status = ky_cli_wanted_init(&wanted, &options->focus, set, err);

	to->for_people = false;
	to->tables = choice->table ? &choice->table : NULL;
	to->n_tables = choice->table ? 1 : 0;
	if (options->begin_ns)
		to->focus.begin_ns = (int64_t)options->begin_ns;
	to->focus.end_ns = (int64_t)options->end_ns;
	if (!status)
		status = set_limit(to, options->limit, err);
	if (!status && options->begin_ns)
		to->history = ky_history_find(set, &ky_cli_log);
	if (!status)
		status = cmd_lami_run_with(choice, set, options, to, out, err);
	ky_history_close(to->history);
	ky_cli_wanted_fini(&wanted);
	return status;
}

static int run_on_traces(const struct choice *choice, char **paths, int n_paths,
			 const struct lami_options *options)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_trace_set set = {0};
	struct kymo_error err;
	int status;

	ky_error_clear(&err);
	status = ky_cli_open(&set, paths, n_paths, &options->input, true, &err);
	if (status >= 0) {
		status = options->test_compatibility
				 ? ky_report_check(choice->report, &set, &err)
				 : ky_cli_damage_end(analyse(choice, &set, options, &out, &err),
						     &err);
		ky_trace_set_close(&set);
	}
	/* Results in spite of damage (--recover) stand; that there was some is a warning's matter. */
	if (status >= 0 || out.len)
		return cmd_lami_put(&out, status < 0 ? KY_EXIT_FAIL : KY_EXIT_OK);
	ky_strbuf_fini(&out);
	err.code = status;
	return tell_error(&err) && status == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static int cmd_lami_write_metadata(const struct choice *choice)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct kymo_error err;

	ky_error_clear(&err);
	if (ky_lami_metadata(&out, choice->report, &err) == 0)
		return cmd_lami_put(&out, KY_EXIT_OK);
	ky_strbuf_fini(&out);
	return tell_error(&err);
}

static int run_lami(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct lami_options *options = data;
	struct choice choice;
	int code;

	if (options->mi_version) {
		puts(KY_LAMI_VERSION);
		return KY_EXIT_OK;
	}
	if (n_args < 1)
		return ky_cli_usage(command, "no report given; 'kymo report --list' lists the "
					     "reports");
	if (!cmd_lami_choose(args[0], &choice))
		return ky_cli_unknown_report(command, args[0]);
	if (options->metadata)
		return cmd_lami_write_metadata(&choice);
	if (n_args < 2)
		return ky_cli_usage(command, "no trace given; give a directory that contains one");
	code = options->test_compatibility ? KY_EXIT_OK
					   : ky_cli_check_periods(command, &options->focus,
								  choice.report->wants_periods);
	if (code != KY_EXIT_OK)
		return code;
	if (options->end_ns > INT64_MAX || options->begin_ns > options->end_ns)
		return ky_cli_usage(command, "--begin and --end: no range goes from %llu to %llu",
				    (unsigned long long)options->begin_ns,
				    (unsigned long long)options->end_ns);
	return run_on_traces(&choice, args + 1, n_args - 1, options);
}

const struct ky_command ky_command_lami = {
	.name = "lami",
	.is_rare = true,
	.summary = "reports for Trace Compass and other LAMI programs",
	.usage = "[OPTIONS] REPORT TRACE...",
	.description =
		"Implements LAMI 1.0, the machine interface of trace analyses. --mi-version, "
		"--metadata and --test-compatibility describe the report for a program. Without "
		"them, kymo computes the report and prints its tables as one JSON object of typed "
		"cells. An error is an object, too.\n"
		"\n"
		"REPORT is a report of 'kymo report --list', with all of its tables except logs, "
		"or one table, such as sched.log. A table with headings becomes one table per "
		"heading.\n"
		"\n"
		"kymo runs this command when its name is kymo-REPORT-mi or kymo-REPORT-TABLE-mi. "
		"'make install' makes such links, for example kymo-cpu-mi and kymo-sched-log-mi. "
		"In Trace Compass: External Analyses, Add External Analysis, with one of these "
		"links as the command.",
	.examples =
		"# the version and the description\nkymo lami --mi-version\nkymo lami cpu "
		"--metadata\n\n"
		"# check that a trace has the events of a report\nkymo lami cpu "
		"--test-compatibility my-trace\n\n"
		"# CPU usage, with progress\nkymo lami cpu --output-progress my-trace\n\n"
		"# every wait for a CPU, by the name of the executable\n"
		"kymo-sched-log-mi --begin 1795239038865245630 --end 1795239039865245630 my-trace",
	.see_also = "report",
	.options = lami_option_defs,
	.options_size = sizeof(struct lami_options),
	.defaults = lami_defaults,
	.min_args = 0,
	.max_args = -1,
	.operands = "block cpu io io-latency io-log irq locks memory net periods sched softirq "
		    "summary syscall-rates syscalls threads",
	.run = run_lami,
};
