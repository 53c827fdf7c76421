/* SPDX-License-Identifier: MIT */
/* kymo print: the events of one or more traces as text, merged by time. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/reading/damage.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/reading/lines.h"
#include "cli/reading/symbol-options.h"
#include "cli/reading/text-options.h"
#include "cli/traces/print-live.h"
#include "cli/recording/recordings.h"

struct print_options {
	struct ky_text_options text;
	struct ky_text_words words;
	struct ky_select_options select;
	struct ky_input_options input;
	struct ky_live_options live;
	struct ky_symbol_options symbols;
	struct ky_trace_symbols *live_symbols;
	bool no_output, count;
	uint64_t jobs;
};

static const struct ky_option_def print_option_defs[] = {
	KY_SELECT_OPTION_DEFS(struct print_options, select),
	{.name = "count",
	 .letter = 'c',
	 .kind = KY_OPTION_FLAG,
	 .help = "Print only the number of the events selected.",
	 .at = offsetof(struct print_options, count)},
	KY_TEXT_OPTION_DEFS(struct print_options, text, words),
	{.name = "fields",
	 .kind = KY_OPTION_LIST,
	 .arg = "LIST",
	 .help = KY_TEXT_FIELDS_HELP,
	 .at = offsetof(struct print_options, words.fields),
	 .choices = KY_TEXT_FIELDS_CHOICES},
	KY_SYMBOL_OPTION_DEFS(struct print_options, symbols),
	KY_INPUT_OPTION_DEFS(struct print_options, input),
	KY_CORRELATE_OPTION_DEF(struct print_options, input),
	{.name = "no-output",
	 .kind = KY_OPTION_FLAG,
	 .help = "Read the whole trace, stream by stream, and print only the number of events, to "
		 "the standard error. Use it to check a trace or to measure reading.",
	 .at = offsetof(struct print_options, no_output)},
	KY_JOBS_OPTION_DEF(struct print_options, jobs),
	KY_LIVE_OPTION_DEFS(struct print_options, live, "print new events in the order of time"),
	{0},
};

static void print_defaults(void *data)
{
	ky_cli_select_defaults(&((struct print_options *)data)->select);
}

static struct ky_sink *cmd_print_make_sink(void *data)
{
	return ky_text_sink_new(STDOUT_FILENO, &((const struct print_options *)data)->text);
}

static int print_events(const struct ky_trace_set *set, struct print_options *options,
			struct ky_thread_pool *pool, struct kymo_error *err)
{
	const struct ky_lines lines = {
		.make = cmd_print_make_sink,
		.data = options,
		.fd = STDOUT_FILENO,
		.gmt = options->text.clock_gmt,
		.alone = options->text.uncertain,
	};
	struct ky_flow_run run = {.times = &options->text};
	struct ky_trace_symbols *symbols;
	int ret = ky_cli_symbols_open(set, &options->symbols, isatty(STDOUT_FILENO), false,
				      &symbols, err);

	if (ret < 0)
		return ret;
	options->text.addresses = symbols ? ky_trace_symbols_names(symbols) : NULL;
	ret = ky_cli_lines(&lines, set, &options->select, pool, &run, err);
	ky_trace_symbols_close(symbols);
	ky_cli_text_end(&options->text);
	return ret;
}

/* Only the merge knows the first or last events. */
static int read_in_order(const struct ky_trace_set *set, struct print_options *options,
			 struct ky_thread_pool *pool, uint64_t *n_events, struct kymo_error *err)
{
	struct ky_flow_run run = {.times = &options->text};
	struct ky_flow *flow;
	int ret = ky_cli_select_open(set, &options->select, options->text.clock_gmt, pool, &flow,
				     err);

	if (ret < 0)
		return ret;
	ret = ky_cli_run_flow(&run, flow, NULL, err);
	ky_flow_close(flow);
	*n_events = run.n_events;
	return ret;
}

static int read_only(const struct ky_trace_set *set, struct print_options *options,
		     struct ky_thread_pool *pool, struct kymo_error *err)
{
	uint64_t n_events = 0;
	int ret;

	if (options->select.head != UINT64_MAX || options->select.tail != UINT64_MAX)
		ret = read_in_order(set, options, pool, &n_events, err);
	else
		ret = ky_cli_select_pass(set, &options->select, &options->text, pool, &n_events,
					 err);
	if (ret != KYMO_E_INVALID)
		ky_log_info(&ky_cli_log, "%llu events", (unsigned long long)n_events);
	return ret;
}

static int print_count(const struct ky_trace_set *set, struct print_options *options,
		       struct ky_thread_pool *pool, struct kymo_error *err)
{
	uint64_t n_events;
	int ret = ky_cli_select_count(set, &options->select, options->text.clock_gmt, pool,
				      &n_events, err);

	if (ret != KYMO_E_INVALID)
		printf("%llu\n", (unsigned long long)n_events);
	return ret;
}

static int print_set(const struct ky_trace_set *set, struct print_options *options,
		     struct kymo_error *err)
{
	struct ky_thread_pool *pool;
	int ret = ky_thread_pool_new(ky_cli_jobs(options->jobs, set), &pool, err);

	if (ret < 0)
		return ret;
	if (options->count)
		ret = print_count(set, options, pool, err);
	else if (options->no_output)
		ret = read_only(set, options, pool, err);
	else
		ret = print_events(set, options, pool, err);
	ky_thread_pool_free(pool);
	return ret;
}

/* What --live cannot do; NULL: nothing of it is asked for. */
static const char *cmd_print_unfit_for_live(const struct print_options *options)
{
	if (options->count)
		return "--count";
	if (options->no_output)
		return "--no-output";
	return ky_cli_unfit_for_live(&options->select);
}

/* The names of the set that is open now. */
static int cmd_print_open_live(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	struct print_options *options = data;
	int ret;

	ky_trace_symbols_close(options->live_symbols);
	options->live_symbols = NULL;
	options->text.addresses = NULL;
	ret = ky_cli_symbols_open(set, &options->symbols, isatty(STDOUT_FILENO), true,
				  &options->live_symbols, err);
	if (ret == KYMO_OK && options->live_symbols)
		options->text.addresses = ky_trace_symbols_names(options->live_symbols);
	return ret;
}

static int cmd_print_run_live(const struct ky_command *command, struct print_options *options,
			      int n_args, char **args)
{
	const struct ky_print_live live = {
		.run = {.paths = args,
			.n_paths = n_args,
			.input = &options->input,
			.live = &options->live,
			.select = &options->select,
			.times = &options->text,
			.is_recorded = ky_recordings_write},
		.open = cmd_print_open_live,
		.make = cmd_print_make_sink,
		.data = options,
	};
	const char *unfit = cmd_print_unfit_for_live(options);
	struct kymo_error err;
	int ret;

	if (unfit)
		return ky_cli_usage(command, "--live and %s exclude each other", unfit);
	ky_error_clear(&err);
	ret = ky_cli_text_style(&options->words, true, &options->text, &err);
	if (ret == KYMO_OK)
		ret = ky_cli_damage_end(ky_print_live(&live, &err), &err);
	ky_trace_symbols_close(options->live_symbols);
	if (ret == KYMO_OK)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static int run_print(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct print_options *options = data;
	struct ky_trace_set set;
	struct kymo_error err;
	int ret;

	if (ky_cli_check_live(command, &options->live))
		return KY_EXIT_USAGE;
	if (options->live.on)
		return cmd_print_run_live(command, options, n_args, args);
	ky_error_clear(&err);
	ret = ky_cli_text_style(&options->words, true, &options->text, &err);
	if (ret == KYMO_OK)
		ret = ky_cli_open(&set, args, n_args, &options->input, true, &err);
	if (ret == KYMO_OK) {
		ret = ky_cli_damage_end(print_set(&set, data, &err), &err);
		ky_trace_set_close(&set);
	}
	if (ret == KYMO_OK)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

const struct ky_command ky_command_print = {
	.name = "print",
	.summary = "print the events of traces as text",
	.usage = "[OPTIONS] TRACE...",
	.description =
		"Prints one line per event, in the layout of babeltrace2. The events of all "
		"streams and traces are merged by time. TRACE is a directory that holds a trace, or traces below it; the name of a running recording; or an address: kymo://HOST/NAME of kymo relay, net://HOST/host/MACHINE/SESSION of lttng-relayd.\n"
		"\n"
		"  [08:30:00.123456789] (+0.000001234) host sched_waking: { cpu_id = 0 }, { tid = "
		"7 }\n"
		"\n"
		"A line has the time of the event, the time since the previous event, the host "
		"name (and, in the trace of one process, its name and PID) and the event's name; "
		"then the packet's context, the event's context fields, and its fields. --names, "
		"--fields and --color change the layout as in babeltrace2.\n"
		"\n"
		"kymo reports lost events on the standard error, at the place where they are "
		"missing. From a damaged trace, kymo prints every event that it can read. It then "
		"reports the first damage, with file and place, and the exit code is 1.",
	.examples = "# all events, with the date, in UTC\n"
		    "kymo print --clock-date --clock-gmt my-trace\n\n"
		    "# with the log levels of a program's events, and all names\n"
		    "kymo print --fields all --names all my-trace\n\n"
		    "# in colours, page by page\n"
		    "kymo print --color always my-trace | less -R\n\n"
		    "# which functions wrote the events, with file and line (kymo record -c ip)\n"
		    "kymo print --symbols my-trace\n\n"
		    "# events of a process\n"
		    "kymo print my-trace | grep 'tid = 1234,'\n\n"
		    "# switches from nginx, in the first half second\n"
		    "kymo print --filter 'prev_comm =~ \"ngin*\"' --end +500ms my-trace\n\n"
		    "# how many system calls failed?\n"
		    "kymo print --event 'syscall_exit_*' --filter 'ret < 0' --count my-trace\n\n"
		    "# follow a recording in another terminal: kymo record -o my-trace\n"
		    "kymo print --live my-trace\n\n"
		    "# the kernel's log, over a pipe\n"
		    "dmesg | kymo print -\n\n"
		    "# read the whole trace, as a test, and count its events\n"
		    "kymo print --no-output my-trace",
	.see_also = "convert info report record",
	.first_trace = 1,
	.options = print_option_defs,
	.options_size = sizeof(struct print_options),
	.defaults = print_defaults,
	.min_args = 1,
	.max_args = -1,
	.run = run_print,
};
