/* SPDX-License-Identifier: MIT */
/* kymo convert: traces into other formats. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/firefox.h"
#include "analysis/export/otlp.h"
#include "analysis/export/perfetto.h"
#include "analysis/export/perf-script.h"
#include "analysis/export/stacks.h"
#include "analysis/export/trace-dat.h"
#include "analysis/export/tracks.h"
#include "analysis/export/waits-dot.h"
#include "base/error.h"
#include "cli/commands/print-live.h"
#include "cli/reading/convert-ctf.h"
#include "cli/reading/damage.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/reading/lines.h"
#include "cli/terminal/output.h"
#include "cli/reading/symbol-options.h"
#include "cli/reading/text-options.h"
#include "cli/recording/recordings.h"
#include "flow/sinks/csv.h"
#include "flow/sinks/ctf-sink.h"
#include "store/directory/directory-store.h"
#include "flow/sinks/details.h"
#include "flow/sinks/pcap.h"

struct convert_options {
	struct ky_text_options text;
	struct ky_text_words words;
	struct ky_select_options select;
	struct ky_input_options input;
	struct ky_live_options live;
	struct ky_symbol_options symbols;
	const char *output, *to;
	uint64_t jobs;
	bool csv_raw;
	struct ky_otlp_options otlp;
	struct ky_trace_symbols
		*trace_symbols; /* while a format with call stacks is written; else NULL */
};

/* The names in formats[]. */
#define FORMAT_CHOICES \
	"text json csv ctf1.8 ctf2 perfetto chrome-json perf-script folded speedscope pprof firefox otlp dot pcap trace.dat details"
#define FORMAT_NAMES \
	"text, json, csv, ctf1.8, ctf2, perfetto, chrome-json, perf-script, folded, speedscope, pprof, firefox, otlp, dot, pcap, trace.dat or details"

/* What a format is, and which options say something about it. */
enum {
	FORMAT_IS_DIRECTORY = 1 << 0,
	FORMAT_IS_TABLE = 1 << 1, /* this entry is for the case that columns are named */
	FORMAT_HAS_FIELDS = 1 << 2,
	FORMAT_HAS_STYLE = 1 << 3, /* names, colours, times as people read them */
	FORMAT_IS_CSV = 1 << 4,
	FORMAT_HAS_SYMBOLS = 1 << 5,
	FORMAT_NAMES_STACKS = 1 << 6, /* symbols are wanted unless the user says otherwise */
};

struct format {
	const char *name;
	unsigned int flags;
	/* Lines, one after the other: several sinks may make them at once (cli/reading/lines.h). NULL: see open. */
	struct ky_sink *(*lines)(const struct convert_options *options, int fd);
	/* What stands before the lines; NULL: nothing. */
	int (*begin)(const struct ky_trace_set *set, const struct convert_options *options, int fd,
		     struct kymo_error *err);
	/* One sink for all, and how events get to it. */
	int (*open)(const struct ky_trace_set *set, const struct convert_options *options,
		    const struct ky_cli_output *output, struct ky_sink **sink,
		    struct kymo_error *err);
	int (*write)(const struct ky_trace_set *set, const struct convert_options *options,
		     struct ky_thread_pool *pool, struct ky_sink *sink, struct kymo_error *err);
};

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

static bool is_stdout(const struct convert_options *options)
{
	return !options->output || strcmp(options->output, "-") == 0;
}

/* ---- formats ------------------------------------------------------------------------------ */

static struct ky_sink *text_lines(const struct convert_options *options, int fd)
{
	return ky_text_sink_new(fd, &options->text);
}

static struct ky_sink *json_lines(const struct convert_options *options, int fd)
{
	return ky_json_sink_new(fd, options->text.addresses);
}

/* The table's columns; NULL: there is a file for each event's name. */
static const char *csv_columns(const struct convert_options *options)
{
	const struct ky_text_list *fields = &options->words.fields;

	return fields->len ? fields->items[fields->len - 1] : NULL;
}

static struct ky_sink *csv_lines(const struct convert_options *options, int fd)
{
	return ky_csv_table_sink_new(csv_columns(options), options->csv_raw, fd);
}

static int begin_csv(const struct ky_trace_set *set, const struct convert_options *options, int fd,
		     struct kymo_error *err)
{
	return ky_csv_table_begin(set, csv_columns(options), options->csv_raw, fd, err);
}

static int open_ctf(const struct ky_trace_set *set, const struct ky_cli_output *output,
		    uint32_t major, struct ky_sink **sink, struct kymo_error *err)
{
	struct ky_packet_store *store;
	int ret = ky_directory_store_open(output->temp, &store, err);

	return ret < 0 ? ret : ky_ctf_sink_open(set, store, major, sink, err);
}

static int open_ctf1(const struct ky_trace_set *set, const struct convert_options *options,
		     const struct ky_cli_output *output, struct ky_sink **sink,
		     struct kymo_error *err)
{
	(void)options;
	return open_ctf(set, output, 1, sink, err);
}

static int open_ctf2(const struct ky_trace_set *set, const struct convert_options *options,
		     const struct ky_cli_output *output, struct ky_sink **sink,
		     struct kymo_error *err)
{
	(void)options;
	return open_ctf(set, output, 2, sink, err);
}

static int open_csv(const struct ky_trace_set *set, const struct convert_options *options,
		    const struct ky_cli_output *output, struct ky_sink **sink,
		    struct kymo_error *err)
{
	(void)set;
	return ky_csv_directory_sink_open(output->temp, options->csv_raw, sink, err);
}

static int open_details(const struct ky_trace_set *set, const struct convert_options *options,
			const struct ky_cli_output *output, struct ky_sink **sink,
			struct kymo_error *err)
{
	(void)options;
	*sink = ky_details_sink_new(set, output->fd);
	return *sink ? KYMO_OK : ky_error_nomem(err);
}

static int open_perfetto(const struct ky_trace_set *set, const struct convert_options *options,
			 const struct ky_cli_output *output, struct ky_sink **sink,
			 struct kymo_error *err)
{
	(void)options;
	return ky_perfetto_sink_open(set, output->fd, sink, err);
}

static int open_chrome(const struct ky_trace_set *set, const struct convert_options *options,
		       const struct ky_cli_output *output, struct ky_sink **sink,
		       struct kymo_error *err)
{
	(void)options;
	return ky_tracks_open(set, output->fd, &ky_tracks_chrome, NULL, sink, err);
}

static int open_otlp(const struct ky_trace_set *set, const struct convert_options *options,
		     const struct ky_cli_output *output, struct ky_sink **sink,
		     struct kymo_error *err)
{
	return ky_otlp_open(set, output->fd, &options->otlp, sink, err);
}

static int open_firefox(const struct ky_trace_set *set, const struct convert_options *options,
			const struct ky_cli_output *output, struct ky_sink **sink,
			struct kymo_error *err)
{
	return ky_firefox_open(set, output->fd, options->trace_symbols, sink, err);
}

static int open_dot(const struct ky_trace_set *set, const struct convert_options *options,
		    const struct ky_cli_output *output, struct ky_sink **sink,
		    struct kymo_error *err)
{
	(void)options;
	return ky_waits_dot_open(set, output->fd, sink, err);
}

static int open_pcap(const struct ky_trace_set *set, const struct convert_options *options,
		     const struct ky_cli_output *output, struct ky_sink **sink,
		     struct kymo_error *err)
{
	(void)set;
	(void)options;
	*sink = ky_pcap_sink_new(output->fd);
	return *sink ? KYMO_OK : ky_error_nomem(err);
}

static int open_trace_dat(const struct ky_trace_set *set, const struct convert_options *options,
			  const struct ky_cli_output *output, struct ky_sink **sink,
			  struct kymo_error *err)
{
	const char *directory = getenv("TMPDIR");

	(void)options;
	return ky_trace_dat_open(set, output->fd, directory ? directory : "/var/tmp", sink, err);
}

static int open_stacks(const struct ky_trace_set *set, const struct convert_options *options,
		       const struct ky_cli_output *output, struct ky_sink **sink,
		       struct kymo_error *err)
{
	return ky_stacks_sink_open(set, output->fd, ky_stacks_form_find(options->to),
				   (const char *const *)options->symbols.dirs.items,
				   options->symbols.dirs.len, sink, err);
}

static int open_perf_script(const struct ky_trace_set *set, const struct convert_options *options,
			    const struct ky_cli_output *output, struct ky_sink **sink,
			    struct kymo_error *err)
{
	return ky_perf_script_open(set, output->fd, options->trace_symbols, sink, err);
}

/* ---- running ------------------------------------------------------------------------------ */

static struct ky_flow_run run_for(const struct ky_trace_set *set,
				  const struct convert_options *options)
{
	return (struct ky_flow_run){
		.times = &options->text,
		.set = set,
		.progress = is_stdout(options) ? NULL : "converting",
	};
}

static int convert_events(const struct ky_trace_set *set, const struct convert_options *options,
			  struct ky_thread_pool *pool, struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_flow_run run = run_for(set, options);
	struct ky_flow *flow;
	int ret = ky_cli_select_open(set, &options->select, options->text.clock_gmt, pool, &flow,
				     err);

	if (ret < 0)
		return ret;
	ret = ky_cli_run_flow(&run, flow, sink, err);
	ky_flow_close(flow);
	return ret;
}

/* Damage: everything before it was converted, and is kept. */
static bool keeps_output(int ret)
{
	return ret == KYMO_OK || ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT;
}

struct maker {
	const struct format *format;
	const struct convert_options *options;
	int fd;
};

static struct ky_sink *cmd_convert_make_sink(void *data)
{
	const struct maker *maker = data;

	return maker->format->lines(maker->options, maker->fd);
}

static bool is_for_people(const struct maker *maker)
{
	return maker->format->flags & FORMAT_HAS_STYLE && is_stdout(maker->options) &&
	       isatty(STDOUT_FILENO);
}

static int convert_to_lines(const struct ky_trace_set *set, struct maker *maker,
			    struct ky_thread_pool *pool, struct kymo_error *err)
{
	struct convert_options options = *maker->options;
	struct ky_trace_symbols *symbols;
	const struct ky_lines lines = {
		.make = cmd_convert_make_sink,
		.data = maker,
		.fd = maker->fd,
		.gmt = options.text.clock_gmt,
		.alone = options.text.uncertain,
	};
	struct ky_flow_run run = run_for(set, &options);
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

static struct ky_sink *make_csv_part(void *data)
{
	const bool *raw = data;

	return ky_csv_directory_part_new(*raw);
}

/* Lines, too, but each of one of many files. */
static int convert_to_csv_files(const struct ky_trace_set *set,
				const struct convert_options *options, struct ky_thread_pool *pool,
				struct ky_sink *sink, struct kymo_error *err)
{
	bool raw = options->csv_raw;
	const struct ky_lines lines = {
		.make = make_csv_part,
		.data = &raw,
		.fd = -1,
		.gmt = options->text.clock_gmt,
		.alone = options->text.uncertain,
		.sink = sink,
		.write = ky_csv_directory_sink_add,
	};
	struct ky_flow_run run = run_for(set, options);

	return ky_cli_lines(&lines, set, &options->select, pool, &run, err);
}

static int convert_to_ctf(const struct ky_trace_set *set, const struct convert_options *options,
			  struct ky_thread_pool *pool, struct ky_sink *sink, struct kymo_error *err)
{
	return ky_cli_streams_apart(&options->select)
		       ? ky_cli_convert_ctf(set, &options->select, &options->text, pool, sink, err)
		       : convert_events(set, options, pool, sink, err);
}

static int convert_to_sink(const struct ky_trace_set *set, const struct format *format,
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

/* ---- the formats -------------------------------------------------------------------------- */

static const struct format formats[] = {
	{.name = "text",
	 .flags = FORMAT_HAS_FIELDS | FORMAT_HAS_STYLE | FORMAT_HAS_SYMBOLS,
	 .lines = text_lines},
	{.name = "json", .flags = FORMAT_HAS_SYMBOLS, .lines = json_lines},
	{.name = "csv",
	 .flags = FORMAT_IS_CSV | FORMAT_HAS_FIELDS | FORMAT_IS_TABLE,
	 .lines = csv_lines,
	 .begin = begin_csv},
	{.name = "csv",
	 .flags = FORMAT_IS_CSV | FORMAT_HAS_FIELDS | FORMAT_IS_DIRECTORY,
	 .open = open_csv,
	 .write = convert_to_csv_files},
	{.name = "ctf1.8",
	 .flags = FORMAT_IS_DIRECTORY,
	 .open = open_ctf1,
	 .write = convert_to_ctf},
	{.name = "ctf2", .flags = FORMAT_IS_DIRECTORY, .open = open_ctf2, .write = convert_to_ctf},
	{.name = "details", .open = open_details, .write = convert_events},
	{.name = "perfetto", .open = open_perfetto, .write = convert_events},
	{.name = "chrome-json", .open = open_chrome, .write = convert_events},
	{.name = "perf-script",
	 .flags = FORMAT_HAS_SYMBOLS | FORMAT_NAMES_STACKS,
	 .open = open_perf_script,
	 .write = convert_events},
	{.name = "firefox",
	 .flags = FORMAT_HAS_SYMBOLS | FORMAT_NAMES_STACKS,
	 .open = open_firefox,
	 .write = convert_events},
	{.name = "dot", .open = open_dot, .write = convert_events},
	{.name = "pcap", .open = open_pcap, .write = convert_events},
	{.name = "trace.dat", .open = open_trace_dat, .write = convert_events},
	{.name = "otlp", .open = open_otlp, .write = convert_events},
	{.name = "folded",
	 .flags = FORMAT_HAS_SYMBOLS,
	 .open = open_stacks,
	 .write = convert_events},
	{.name = "speedscope",
	 .flags = FORMAT_HAS_SYMBOLS,
	 .open = open_stacks,
	 .write = convert_events},
	{.name = "pprof",
	 .flags = FORMAT_HAS_SYMBOLS,
	 .open = open_stacks,
	 .write = convert_events},
};

static const struct format *find_format(const struct convert_options *options)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		bool fits = !(formats[i].flags & FORMAT_IS_TABLE) || csv_columns(options);

		if (fits && strcmp(formats[i].name, options->to) == 0)
			return &formats[i];
	}
	return NULL;
}

static int convert_events_to(const struct ky_trace_set *set, const struct format *format,
			     const struct convert_options *options,
			     const struct ky_cli_output *output, struct kymo_error *err)
{
	struct maker maker = {format, options, output->fd};
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

static int convert_into(const struct ky_trace_set *set, const struct format *format,
			const struct convert_options *options, struct ky_cli_output *output,
			struct kymo_error *err)
{
	int ret = convert_events_to(set, format, options, output, err), committed;

	/* What was cut since it was decoded would have been written as zeros. */
	if (keeps_output(ret) && ky_trace_set_check(set, err) < 0)
		return KYMO_E_IO;
	if (!keeps_output(ret))
		return ret;
	committed = ky_cli_output_commit(output, ret < 0 ? NULL : err);
	if (committed < 0)
		return ret < 0 ? ret : committed;
	if (ret < 0 && output->path)
		ky_error_hint(err, "%s contains the events that could be read", output->path);
	return ret;
}

/* ---- traces that are being recorded -------------------------------------------------------- */

static int begin_lines(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	const struct maker *maker = data;

	return maker->format->begin ? maker->format->begin(set, maker->options, maker->fd, err)
				    : KYMO_OK;
}

static int ignore_set(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	(void)data;
	(void)set;
	(void)err;
	return KYMO_OK;
}

static int ignore_batch(void *data, const struct ky_batch *batch, struct kymo_error *err)
{
	(void)data;
	(void)batch;
	(void)err;
	return KYMO_OK;
}

static int ignore_pause(void *data, int64_t until_ns, struct kymo_error *err)
{
	(void)data;
	(void)until_ns;
	(void)err;
	return KYMO_OK;
}

static struct ky_follow_run follow_run(const struct convert_options *options, int n_args,
				       char **args)
{
	return (struct ky_follow_run){
		.paths = args,
		.n_paths = n_args,
		.input = &options->input,
		.live = &options->live,
		.select = &options->select,
		.times = &options->text,
		.is_recorded = ky_recordings_write,
		.open = ignore_set,
		.batch = ignore_batch,
		.flush = ignore_pause,
	};
}

/* Lines come as events come. */
static int convert_live(const struct format *format, const struct convert_options *options,
			int n_args, char **args, struct kymo_error *err)
{
	struct maker maker = {format, options, -1};
	const struct ky_print_live live = {
		.run = follow_run(options, n_args, args),
		.make = cmd_convert_make_sink,
		.begin = begin_lines,
		.data = &maker,
	};
	struct ky_cli_output output;
	int ret = ky_cli_output_file(&output, options->output, err), committed;

	maker.fd = output.fd;
	if (!ret)
		ret = ky_print_live(&live, err);
	if (keeps_output(ret)) {
		committed = ky_cli_output_commit(&output, ret < 0 ? NULL : err);
		ret = ret < 0 ? ret : committed;
	}
	ky_cli_output_close(&output);
	return ret;
}

/* lttng-relayd forgets a session at its end: then there is nothing that could be converted. */
static int check_ends(const struct format *format, int n_args, char **args, struct kymo_error *err)
{
	for (int i = 0; i < n_args; i++) {
		if (strncmp(args[i], "net://", 6) != 0)
			continue;
		ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"cannot convert %s to %s with --live: its relay may forget it at its end, and "
			"this output is written then",
			args[i], format->name);
		ky_error_hint(
			err,
			"try --to json, csv --fields or text, which are written as events come, or "
			"leave out --live");
		return KYMO_E_UNSUPPORTED;
	}
	return KYMO_OK;
}

/* Output that appears only when it is complete: the end of the recordings comes first. */
static int cmd_convert_wait_for_end(const struct format *format,
				    const struct convert_options *options, int n_args, char **args,
				    struct kymo_error *err)
{
	const struct ky_follow_run run = follow_run(options, n_args, args);
	int ret = check_ends(format, n_args, args, err);

	if (ret < 0)
		return ret;
	ky_log_info(
		&ky_cli_log,
		"waiting for the end of the recording, when %s is written; Ctrl-C converts what "
		"there is now",
		format->name);
	ret = ky_cli_follow(&run, err);
	/* A signal ended the wait: what there is now is converted. */
	ky_cli_catch_signals();
	return ret;
}

static int convert_set(const struct ky_trace_set *set, const struct format *format,
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
static int cmd_convert_check_options(const struct ky_command *command, const struct format *format,
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
	if (format->flags & FORMAT_IS_DIRECTORY && is_stdout(options))
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
	const struct format *format;
	struct ky_trace_set set;
	struct kymo_error err;
	int ret = KYMO_OK;

	/* A trace of traces and files, as its name tells. */
	if (!options->to && !is_stdout(options))
		options->to = "ctf1.8";
	if (!options->to)
		return ky_cli_usage(command, "no output format; give --to " FORMAT_NAMES);
	format = find_format(options);
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
		ret = ky_cli_text_style(&options->words, is_stdout(options), &options->text, &err);
	if (ret == KYMO_OK && options->live.on && format->lines)
		return end_convert(
			ky_cli_damage_end(convert_live(format, options, n_args, args, &err), &err),
			&err);
	if (ret == KYMO_OK && options->live.on)
		ret = cmd_convert_wait_for_end(format, options, n_args, args, &err);
	if (ret == KYMO_OK)
		ret = ky_cli_open(&set, args, n_args, &options->input, true, &err);
	if (ret == KYMO_OK) {
		ret = ky_cli_damage_end(convert_set(&set, format, options, &err), &err);
		if (is_stdout(options))
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
