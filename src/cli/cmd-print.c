/* SPDX-License-Identifier: MIT */
/* kymo print: the events of one or more traces as text, merged by time. */
#include "cli/command.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "flow/text.h"

struct print_options {
	struct ky_text_options text;
	bool no_output;
};

static const struct ky_option_def print_option_defs[] = {
	{.name = "clock-date",
	 .kind = KY_OPTION_FLAG,
	 .help = "Show the date before the time of day.",
	 .at = offsetof(struct print_options, text.clock_date)},
	{.name = "clock-gmt",
	 .kind = KY_OPTION_FLAG,
	 .help = "Show times in UTC instead of the local time zone (TZ).",
	 .at = offsetof(struct print_options, text.clock_gmt)},
	{.name = "clock-seconds",
	 .kind = KY_OPTION_FLAG,
	 .help = "Show seconds since the clock's origin instead of the time of day.",
	 .at = offsetof(struct print_options, text.clock_seconds)},
	{.name = "clock-cycles",
	 .kind = KY_OPTION_FLAG,
	 .help = "Show the clock's raw value, and differences in its cycles.",
	 .at = offsetof(struct print_options, text.clock_cycles)},
	{.name = "no-delta",
	 .kind = KY_OPTION_FLAG,
	 .help = "Leave out the time since the event before.",
	 .at = offsetof(struct print_options, text.no_delta)},
	{.name = "no-output",
	 .kind = KY_OPTION_FLAG,
	 .help = "Read and merge everything, and print only the number of events, to the "
		 "standard error: checks a trace, and measures reading.",
	 .at = offsetof(struct print_options, no_output)},
	{0},
};

/* Where losses lie in time, for the warning: " between A and B", or nothing. */
static void describe_range(char out[160], const struct ky_loss *loss,
			   const struct ky_text_options *options)
{
	char begin[64], end[64];

	out[0] = '\0';
	if (loss->begin_ns != INT64_MIN && loss->end_ns != INT64_MIN)
		snprintf(out, 160, " between %s and %s",
			 ky_text_time(begin, loss->begin_ns, options),
			 ky_text_time(end, loss->end_ns, options));
}

static void warn_loss(const struct ky_loss *loss, const struct ky_text_options *options)
{
	const char *path = loss->stream->file.path;
	char range[160];

	describe_range(range, loss, options);
	if (loss->events)
		ky_log_warning(&ky_cli_log, "%s: %llu event%s lost by the tracer%s", path,
			       (unsigned long long)loss->events, loss->events == 1 ? "" : "s", range);
	if (loss->packets)
		ky_log_warning(&ky_cli_log, "%s: %llu packets are missing%s", path,
			       (unsigned long long)loss->packets, range);
}

/* @text: NULL with --no-output. What came before an error is printed, then it is returned. */
static int print_events(struct ky_flow *flow, struct ky_text *text,
			const struct print_options *options, uint64_t *n_events,
			struct kymo_error *err)
{
	struct ky_batch batch;
	int ret, flushed;

	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		if (batch.loss) {
			/* So that the warning stands where the events are missing. */
			ret = text ? ky_text_flush(text, err) : KYMO_OK;
			if (ret < 0)
				return ret;
			warn_loss(batch.loss, &options->text);
		}
		*n_events += batch.n_events;
		ret = text ? ky_text_batch(text, &batch, err) : KYMO_OK;
		if (ret < 0)
			break;
	}
	flushed = text ? ky_text_flush(text, ret < 0 ? NULL : err) : KYMO_OK;
	return ret < 0 ? ret : flushed;
}

static int print_set(const struct ky_trace_set *set, const struct print_options *options,
		     struct kymo_error *err)
{
	struct ky_text *text = NULL;
	struct ky_flow *flow;
	uint64_t n_events = 0;
	int ret = ky_flow_open_set(set, &flow, err);

	if (ret < 0)
		return ret;
	if (!options->no_output) {
		text = ky_text_new(STDOUT_FILENO, &options->text);
		ret = text ? KYMO_OK : ky_error_nomem(err);
	}
	if (ret == KYMO_OK)
		ret = print_events(flow, text, options, &n_events, err);
	ky_text_free(text);
	ky_flow_close(flow);
	if (options->no_output)
		ky_log_info(&ky_cli_log, "%llu events", (unsigned long long)n_events);
	return ret;
}

static int run_print(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct ky_trace_set set;
	struct kymo_error err;
	int ret;

	ky_error_clear(&err);
	ret = ky_trace_set_open(&set, (const char *const *)args, (size_t)n_args, &ky_cli_log, &err);
	if (ret == KYMO_OK) {
		ret = print_set(&set, data, &err);
		ky_trace_set_close(&set);
	}
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

const struct ky_command ky_command_print = {
	.name = "print",
	.summary = "print the events of traces as text",
	.usage = "[OPTIONS] TRACE...",
	.description =
		"Prints one line per event, those of all streams and traces merged by time, in the "
		"layout of babeltrace2. TRACE is a directory that holds a trace, or traces below "
		"it.\n"
		"\n"
		"  [08:30:00.123456789] (+0.000001234) host sched_waking: { cpu_id = 0 }, { tid = 7 "
		"}\n"
		"\n"
		"The time of the event, the time since the event before, the host name (and process "
		"and PID where the trace is of one process), the event's name; then the packet's "
		"context, the contexts of the event, and its fields.\n"
		"\n"
		"Events that the tracer had to drop are told on the standard error, where they are "
		"missing. Of a damaged trace everything that can be read is printed; then the first "
		"damage is told, with file and place, and the exit code is 1.",
	.examples = "# all events, with the date, in UTC\n"
		    "kymo print --clock-date --clock-gmt my-trace\n\n"
		    "# what happened around a process\n"
		    "kymo print my-trace | grep 'tid = 1234,'\n\n"
		    "# is the trace readable, and how many events has it?\n"
		    "kymo print --no-output my-trace",
	.see_also = "info report record",
	.options = print_option_defs,
	.options_size = sizeof(struct print_options),
	.min_args = 1,
	.max_args = -1,
	.run = run_print,
};
