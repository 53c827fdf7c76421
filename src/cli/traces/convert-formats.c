/* SPDX-License-Identifier: MIT */
/* kymo convert: the formats. */
#include "cli/traces/convert-formats.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/export/firefox.h"
#include "analysis/export/otlp.h"
#include "analysis/export/perf-script.h"
#include "analysis/perfetto/perfetto.h"
#include "analysis/export/stacks.h"
#include "analysis/export/trace-dat.h"
#include "analysis/export/tracks.h"
#include "analysis/export/waits-dot.h"
#include "base/error.h"
#include "cli/reading/convert-ctf.h"
#include "cli/reading/lines.h"
#include "cli/terminal/output.h"
#include "flow/sinks/csv.h"
#include "flow/sinks/ctf-sink.h"
#include "flow/sinks/details.h"
#include "flow/sinks/pcap.h"
#include "store/directory/directory-store.h"

bool ky_convert_is_stdout(const struct convert_options *options)
{
	return !options->output || strcmp(options->output, "-") == 0;
}

bool ky_convert_keeps_output(int ret)
{
	return ret == KYMO_OK || ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT;
}

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

struct ky_flow_run ky_convert_flow_run(const struct ky_trace_set *set,
				       const struct convert_options *options)
{
	return (struct ky_flow_run){
		.times = &options->text,
		.set = set,
		.progress = ky_convert_is_stdout(options) ? NULL : "converting",
	};
}

static int convert_events(const struct ky_trace_set *set, const struct convert_options *options,
			  struct ky_thread_pool *pool, struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_flow_run run = ky_convert_flow_run(set, options);
	struct ky_flow *flow;
	int ret = ky_cli_select_open(set, &options->select, options->text.clock_gmt, pool, &flow,
				     err);

	if (ret < 0)
		return ret;
	ret = ky_cli_run_flow(&run, flow, sink, err);
	ky_flow_close(flow);
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
	struct ky_flow_run run = ky_convert_flow_run(set, options);

	return ky_cli_lines(&lines, set, &options->select, pool, &run, err);
}

static int convert_to_ctf(const struct ky_trace_set *set, const struct convert_options *options,
			  struct ky_thread_pool *pool, struct ky_sink *sink, struct kymo_error *err)
{
	return ky_cli_streams_apart(&options->select)
		       ? ky_cli_convert_ctf(set, &options->select, &options->text, pool, sink, err)
		       : convert_events(set, options, pool, sink, err);
}

static const struct convert_format formats[] = {
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

const struct convert_format *ky_convert_find_format(const struct convert_options *options)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		bool fits = !(formats[i].flags & FORMAT_IS_TABLE) || csv_columns(options);

		if (fits && strcmp(formats[i].name, options->to) == 0)
			return &formats[i];
	}
	return NULL;
}

struct ky_sink *ky_convert_make_sink(void *data)
{
	const struct convert_maker *maker = data;

	return maker->format->lines(maker->options, maker->fd);
}
