/* SPDX-License-Identifier: MIT */
/* kymo convert: traces into other formats. */
#include "cli/command.h"

#include <string.h>

#include "base/error.h"
#include "cli/drain.h"
#include "cli/jobs.h"
#include "cli/output.h"
#include "cli/select-options.h"
#include "cli/text-options.h"
#include "flow/parallel-sink.h"

struct convert_options {
	struct ky_text_options text;
	struct ky_select_options select;
	const char *output, *to;
	uint64_t jobs;
};

/* One format: how its sink is made. */
struct format {
	const char *name;
	bool is_directory;
	struct ky_sink *(*open)(const struct convert_options *options, int fd);
};

static const struct ky_option_def convert_option_defs[] = {
	{.name = "output",
	 .letter = 'o',
	 .kind = KY_OPTION_TEXT,
	 .arg = "OUT",
	 .help = "Where to write; it appears whole or not at all. Default, and '-': the standard "
		 "output.",
	 .at = offsetof(struct convert_options, output)},
	{.name = "to",
	 .letter = 't',
	 .kind = KY_OPTION_TEXT,
	 .arg = "FORMAT",
	 .help = "The format to write: text or json.",
	 .at = offsetof(struct convert_options, to),
	 .choices = "text json"},
	KY_SELECT_OPTION_DEFS(struct convert_options, select),
	KY_TEXT_OPTION_DEFS(struct convert_options, text),
	KY_JOBS_OPTION_DEF(struct convert_options, jobs),
	{0},
};

static void convert_defaults(void *data)
{
	ky_cli_select_defaults(&((struct convert_options *)data)->select);
}

/* ---- formats ------------------------------------------------------------------------------ */

static struct ky_sink *open_text(const struct convert_options *options, int fd)
{
	return ky_text_sink_new(fd, &options->text);
}

static struct ky_sink *open_json(const struct convert_options *options, int fd)
{
	(void)options;
	return ky_json_sink_new(fd);
}

static const struct format formats[] = {
	{"text", false, open_text},
	{"json", false, open_json},
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	}
	return NULL;
}

/* ---- running ------------------------------------------------------------------------------ */

static int convert_events(const struct ky_trace_set *set, const struct convert_options *options,
			  struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_drain drain = {.times = &options->text, .set = set};
	struct ky_flow *flow;
	int ret = ky_cli_select_open(set, &options->select, options->text.clock_gmt, &flow, err);

	if (ret < 0)
		return ret;
	if (options->output && strcmp(options->output, "-") != 0)
		drain.progress = "converting";
	ret = ky_drain(&drain, flow, sink, err);
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

static struct ky_sink *make_sink(void *data)
{
	const struct maker *maker = data;

	return maker->format->open(maker->options, maker->fd);
}

static int convert_to_fd(const struct ky_trace_set *set, struct maker *maker,
			 struct kymo_error *err)
{
	struct ky_crew *crew;
	struct ky_sink *sink;
	int ret = ky_crew_new(ky_cli_jobs(maker->options->jobs, set), &crew, err);

	if (ret < 0)
		return ret;
	sink = ky_parallel_sink_new(crew, make_sink, maker);
	ret = sink ? convert_events(set, maker->options, sink, err) : ky_error_nomem(err);
	ky_sink_free(sink);
	ky_crew_free(crew);
	return ret;
}

static int convert_to_file(const struct ky_trace_set *set, const struct format *format,
			   const struct convert_options *options, struct kymo_error *err)
{
	struct ky_output output;
	int ret = ky_output_file(&output, options->output, err), committed;

	if (ret == KYMO_OK) {
		struct maker maker = {format, options, output.fd};

		ret = convert_to_fd(set, &maker, err);
	}
	if (keeps_output(ret)) {
		committed = ky_output_commit(&output, ret < 0 ? NULL : err);
		if (ret < 0 && committed == KYMO_OK && output.path)
			ky_error_hint(err, "%s holds what could be read before that", output.path);
		else if (committed < 0)
			ret = committed;
	}
	ky_output_close(&output);
	return ret;
}

static int run_convert(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct convert_options *options = data;
	const struct format *format;
	struct ky_trace_set set;
	struct kymo_error err;
	int ret;

	if (!options->to)
		return ky_cli_usage(command, "to which format? --to text or --to json");
	format = find_format(options->to);
	if (!format)
		return ky_cli_usage(command, "'%s' is no format to convert to", options->to);
	ky_error_clear(&err);
	ky_cli_catch_signals();
	ret = ky_trace_set_open(&set, (const char *const *)args, (size_t)n_args, &ky_cli_log, &err);
	if (ret == KYMO_OK) {
		ret = convert_to_file(&set, format, options, &err);
		ky_trace_set_close(&set);
	}
	if (ret == KYMO_OK)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

const struct ky_command ky_command_convert = {
	.name = "convert",
	.summary = "convert traces to other formats",
	.usage = "[OPTIONS] --to FORMAT [-o OUT] TRACE...",
	.description =
		"Writes the events of one or more traces, or those that the options select, in "
		"another format:\n"
		"\n"
		"  text    one line per event, as kymo print writes them\n"
		"  json    one JSON object per line and event, types kept\n"
		"\n"
		"The output appears whole or not at all: it is made under a hidden name and renamed "
		"in the end. Of a damaged trace everything that can be read is converted; then the "
		"first damage is told, with file and place, and the exit code is 1.",
	.examples = "# system calls that failed, for jq\n"
		    "kymo convert --to json --filter 'ret < 0' my-trace | jq .fields.ret\n\n"
		    "# the second that matters, as text\n"
		    "kymo convert --to text --timerange 08:30:00,08:30:01 -o second.txt my-trace",
	.see_also = "print info record",
	.options = convert_option_defs,
	.options_size = sizeof(struct convert_options),
	.defaults = convert_defaults,
	.min_args = 1,
	.max_args = -1,
	.run = run_convert,
};
