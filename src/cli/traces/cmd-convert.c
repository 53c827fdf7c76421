/* SPDX-License-Identifier: MIT */
/* kymo convert: traces into other formats. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/traces/convert-formats.h"
#include "cli/reading/damage.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/reading/lines.h"
#include "cli/reading/symbol-options.h"
#include "cli/reading/text-options.h"
#include "cli/terminal/output.h"

static const struct ky_option_def convert_option_defs[] = {
	{.name = "output",
	 .letter = 'o',
	 .kind = KY_OPTION_TEXT,
	 .arg = "OUT",
	 .help = "The file or directory to write, which appears only when it is complete. Default, "
		 "and '-': the standard output.",
	 .at = offsetof(struct convert_options, output)},
	{.name = "to",
	 .letter = 't',
	 .kind = KY_OPTION_TEXT,
	 .arg = "FORMAT",
	 .help = "The format to write: " FORMAT_NAMES ". Default, with -o: ctf1.8.",
	 .at = offsetof(struct convert_options, to),
	 .choices = FORMAT_CHOICES},
	{.name = "fields",
	 .kind = KY_OPTION_LIST,
	 .arg = "LIST",
	 .help = "For csv: one table of these columns, such as '$time,$event,prev_comm', instead "
		 "of one file per event name. For text: " KY_TEXT_FIELDS_HELP,
	 .at = offsetof(struct convert_options, words.fields)},
	{.name = "csv-raw",
	 .kind = KY_OPTION_FLAG,
	 .help = "For csv: write texts unchanged. Without it, kymo puts an apostrophe before a "
		 "text that begins with = + - or @, because spreadsheets evaluate it as a formula "
		 "and traced programs choose their texts.",
	 .at = offsetof(struct convert_options, csv_raw)},
	{.name = "trace-id",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FIELD",
	 .help = "For otlp: the field of spans that has the trace's id.",
	 .at = offsetof(struct convert_options, otlp.trace_id)},
	{.name = "with-syscalls",
	 .kind = KY_OPTION_FLAG,
	 .help = "For otlp: system calls are spans, too.",
	 .at = offsetof(struct convert_options, otlp.calls)},
	{.name = "packet-data",
	 .kind = KY_OPTION_FLAG,
	 .help = "Of pcap files: keep the bytes of packets, as fields data_link and data. "
		 "--to pcap does that.",
	 .at = offsetof(struct convert_options, input.packet_data)},
	KY_SELECT_OPTION_DEFS(struct convert_options, select),
	KY_TEXT_OPTION_DEFS(struct convert_options, text, words),
	KY_SYMBOL_OPTION_DEFS(struct convert_options, symbols),
	KY_INPUT_OPTION_DEFS(struct convert_options, input),
	KY_CORRELATE_OPTION_DEF(struct convert_options, input),
	KY_LIVE_OPTION_DEFS(struct convert_options, live, "write new events in the order of time"),
	KY_JOBS_OPTION_DEF(struct convert_options, jobs),
	{0},
};

static void convert_defaults(void *data)
{
	struct convert_options *options = data;

	ky_cli_select_defaults(&options->select);
	options->input.tell_raw = true;
}

static bool is_for_people(const struct convert_maker *maker)
{
	return maker->format->flags & FORMAT_HAS_STYLE && ky_convert_is_stdout(maker->options) &&
	       isatty(STDOUT_FILENO);
}

static int convert_to_lines(const struct ky_trace_set *set, struct convert_maker *maker,
			    struct ky_thread_pool *pool, struct kymo_error *err)
{
	struct convert_options options = *maker->options;
	struct ky_trace_symbols *symbols;
	const struct ky_lines lines = {
		.make = ky_convert_make_sink,
		.data = maker,
		.fd = maker->fd,
		.gmt = options.text.clock_gmt,
		.alone = options.text.uncertain,
	};
	struct ky_flow_run run = ky_convert_flow_run(set, &options);
	int ret = ky_cli_symbols_open(set, &options.symbols, is_for_people(maker), false, &symbols,
				      err);

	if (ret < 0)
		return ret;
	options.text.addresses = symbols ? ky_trace_symbols_names(symbols) : NULL;
	maker->options = &options;
	if (maker->format->begin)
		ret = maker->format->begin(set, &options, maker->fd, err);
	if (ret >= 0)
		ret = ky_cli_lines(&lines, set, &options.select, pool, &run, err);
	ky_trace_symbols_close(symbols);
	return ret;
}

static int convert_to_sink(const struct ky_trace_set *set, const struct convert_format *format,
			   const struct convert_options *options,
			   const struct ky_cli_output *output, struct ky_thread_pool *pool,
			   struct kymo_error *err)
{
	struct convert_options own = *options;
	struct ky_sink *sink;
	int ret = KYMO_OK;

	if (format->flags & FORMAT_NAMES_STACKS)
		ret = ky_cli_symbols_open(set, &own.symbols, true, false, &own.trace_symbols, err);
	if (ret < 0)
		return ret;
	ret = format->open(set, &own, output, &sink, err);
	if (ret >= 0) {
		ret = format->write(set, &own, pool, sink, err);
		ky_sink_free(sink);
	}
	ky_trace_symbols_close(own.trace_symbols);
	return ret;
}

static int convert_events_to(const struct ky_trace_set *set, const struct convert_format *format,
			     const struct convert_options *options,
			     const struct ky_cli_output *output, struct kymo_error *err)
{
	struct convert_maker maker = {format, options, output->fd};
	struct ky_thread_pool *pool;
	int ret = ky_thread_pool_new(ky_cli_jobs(options->jobs, set), &pool, err);

	if (ret < 0)
		return ret;
	if (format->lines)
		ret = convert_to_lines(set, &maker, pool, err);
	else
		ret = convert_to_sink(set, format, options, output, pool, err);
	ky_thread_pool_free(pool);
	return ret;
}

static int convert_into(const struct ky_trace_set *set, const struct convert_format *format,
			const struct convert_options *options, struct ky_cli_output *output,
			struct kymo_error *err)
{
	int ret = convert_events_to(set, format, options, output, err), committed;

	/* What was cut since it was decoded would have been written as zeros. */
	if (ky_convert_keeps_output(ret) && ky_trace_set_check(set, err) < 0)
		return KYMO_E_IO;
	if (!ky_convert_keeps_output(ret))
		return ret;
	committed = ky_cli_output_commit(output, ret < 0 ? NULL : err);
	if (committed < 0)
		return ret < 0 ? ret : committed;
	if (ret < 0 && output->path)
		ky_error_hint(err, "%s contains the events that could be read", output->path);
	return ret;
}

static int convert_set(const struct ky_trace_set *set, const struct convert_format *format,
		       const struct convert_options *options, struct kymo_error *err)
{
	struct ky_cli_output output;
	int ret;

	if (format->flags & FORMAT_IS_DIRECTORY)
		ret = ky_cli_output_directory(&output, options->output, err);
	else
		ret = ky_cli_output_file(&output, options->output, err);
	if (ret == KYMO_OK)
		ret = convert_into(set, format, options, &output, err);
	ky_cli_output_close(&output);
	return ret;
}

/* Options that say nothing about @format are mistakes. Returns 0 or KY_EXIT_USAGE. */
static int cmd_convert_check_options(const struct ky_command *command,
				     const struct convert_format *format,
				     const struct convert_options *options)
{
	if (options->words.fields.len && !(format->flags & FORMAT_HAS_FIELDS))
		return ky_cli_usage(command, "--fields needs --to csv or --to text");
	if (options->symbols.on && !(format->flags & FORMAT_HAS_SYMBOLS))
		return ky_cli_usage(
			command,
			"--symbols needs --to text, json, perf-script, folded, speedscope, pprof or firefox");
	if (options->symbols.on && options->live.on)
		return ky_cli_usage(command, "--live and --symbols exclude each other");
	if (options->csv_raw && !(format->flags & FORMAT_IS_CSV))
		return ky_cli_usage(command, "--csv-raw needs --to csv");
	if ((options->otlp.trace_id || options->otlp.calls) && strcmp(format->name, "otlp") != 0)
		return ky_cli_usage(command, "--%s needs --to otlp",
				    options->otlp.calls ? "with-syscalls" : "trace-id");
	if ((options->words.names.len || options->words.color) &&
	    !(format->flags & FORMAT_HAS_STYLE))
		return ky_cli_usage(command, "--%s needs --to text",
				    options->words.color ? "color" : "names");
	if (format->flags & FORMAT_IS_DIRECTORY && ky_convert_is_stdout(options))
		return ky_cli_usage(
			command, "--to %s makes a directory: name it with -o%s", format->name,
			format->flags & FORMAT_IS_CSV ? ", or choose --fields for one table" : "");
	return 0;
}

static int end_convert(int ret, const struct kymo_error *err)
{
	if (ret == KYMO_OK)
		return KY_EXIT_OK;
	ky_cli_error(err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static int run_convert(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct convert_options *options = data;
	const struct convert_format *format;
	struct ky_trace_set set;
	struct kymo_error err;
	int ret = KYMO_OK;

	/* A trace of traces and files, as its name tells. */
	if (!options->to && !ky_convert_is_stdout(options))
		options->to = "ctf1.8";
	if (!options->to)
		return ky_cli_usage(command, "no output format; give --to " FORMAT_NAMES);
	format = ky_convert_find_format(options);
	if (!format)
		return ky_cli_usage(command, "unknown format '%s'; try " FORMAT_NAMES, options->to);
	if (cmd_convert_check_options(command, format, options) ||
	    ky_cli_check_live(command, &options->live))
		return KY_EXIT_USAGE;
	if (options->live.on && ky_cli_unfit_for_live(&options->select))
		return ky_cli_usage(command, "--live and %s exclude each other",
				    ky_cli_unfit_for_live(&options->select));
	if (strcmp(format->name, "pcap") == 0)
		options->input.packet_data = true;
	ky_error_clear(&err);
	ky_cli_catch_signals();
	if (format->flags & FORMAT_HAS_STYLE)
		ret = ky_cli_text_style(&options->words, ky_convert_is_stdout(options),
					&options->text, &err);
	if (ret == KYMO_OK && options->live.on && format->lines)
		return end_convert(
			ky_cli_damage_end(ky_convert_live(format, options, n_args, args, &err),
					  &err),
			&err);
	if (ret == KYMO_OK && options->live.on)
		ret = ky_convert_wait_for_end(format, options, n_args, args, &err);
	if (ret == KYMO_OK)
		ret = ky_cli_open(&set, args, n_args, &options->input, true, &err);
	if (ret == KYMO_OK) {
		ret = ky_cli_damage_end(convert_set(&set, format, options, &err), &err);
		if (ky_convert_is_stdout(options))
			ky_cli_text_end(&options->text);
		ky_trace_set_close(&set);
	}
	return end_convert(ret, &err);
}

const struct ky_command ky_command_convert = {
	.name = "convert",
	.summary = "convert traces to other formats",
	.usage = "[OPTIONS] [--to FORMAT] [-o OUT] TRACE...",
	.description =
		"Writes the events of one or more traces, or the events that the options select, "
		"in another format. TRACE is a directory that holds a trace, or traces below it; the name of a running recording; or an address: kymo://HOST/NAME of kymo relay, net://HOST/host/MACHINE/SESSION of lttng-relayd. The formats are:\n"
		"\n"
		"  text    one line per event, as kymo print writes them\n"
		"  json    one JSON object per event and line, with the types of fields\n"
		"  csv     a CSV file per event name in the directory OUT, or one table with "
		"--fields\n"
		"  ctf1.8  a CTF 1.8 trace, in the directory OUT\n"
		"  ctf2    a CTF 2 trace, in the directory OUT\n"
		"  perfetto a trace for ui.perfetto.dev; see docs/perfetto.md\n"
		"  chrome-json a trace for chrome://tracing and others\n"
		"  perf-script the text of perf script, with the kernel's names of events\n"
		"  folded, speedscope, pprof the call stacks of samples, as kymo report flame --to\n"
		"  firefox a profile for profiler.firefox.com, with samples and markers\n"
		"  otlp    spans of programs, as lines of OTLP/JSON for OpenTelemetry's collectors\n"
		"  dot     a graph of waits and wake-ups of threads, for Graphviz\n"
		"  pcap    packets whose bytes the trace has, as of a pcap file\n"
		"  trace.dat events of the kernel, for trace-cmd and KernelShark\n"
		"  details everything: metadata as trees, packets, events with all their fields\n"
		"\n"
		"A conversion from CTF to CTF keeps every event, field, clock and loss. Without a "
		"selection, it copies packets unchanged and writes new metadata. Field classes "
		"that CTF 1.8 does not have become similar classes with the same bytes, or cause "
		"an error; docs/convert.md has the table.\n"
		"\n"
		"kymo writes the output under a hidden name and renames it when it is complete. "
		"From a damaged trace, kymo converts every event that it can read. It then reports "
		"the first damage, with file and place, and the exit code is 1.\n"
		"\n"
		"With --live, text, json and one csv table are written as events come. The other formats have "
		"indexes, or times of the whole: the command waits for the end of the recording, and "
		"then converts it; so does Ctrl-C, with what there is by then. For a CTF trace that is "
		"there at once, record into a directory.\n\n"
		"For a raw recording (kymo record --raw), it prints how many records are not "
		"events of the trace, with the reason: system calls of Kymo itself, records that "
		"only describe threads or call stacks, and records that the filters exclude.",
	.examples = "# for a timeline: open the file in ui.perfetto.dev\n"
		    "kymo convert --to perfetto -o my-trace.pftrace my-trace\n\n"
		    "# system calls that failed, for jq\n"
		    "kymo convert --to json --filter 'ret < 0' my-trace | jq .fields.ret\n\n"
		    "# a table of the threads that ran\n"
		    "kymo convert --to csv --fields '$time,$cpu,next_comm,next_tid' \\\n"
		    "    --event sched_switch -o runs.csv my-trace\n\n"
		    "# a trace of one thread\n"
		    "kymo convert --to ctf1.8 --filter 'tid == 42' -o thread-42 my-trace\n\n"
		    "# one second, as text\n"
		    "kymo convert --to text --timerange 08:30:00,08:30:01 -o second.txt my-trace",
	.see_also = "print info record",
	.first_trace = 1,
	.options = convert_option_defs,
	.options_size = sizeof(struct convert_options),
	.defaults = convert_defaults,
	.min_args = 1,
	.max_args = -1,
	.run = run_convert,
};
