/* SPDX-License-Identifier: MIT */
/* kymo convert: traces that are being recorded. */
#include <string.h>

#include "base/error.h"
#include "cli/traces/convert-formats.h"
#include "cli/traces/print-live.h"
#include "cli/recording/recordings.h"
#include "cli/terminal/output.h"

static int begin_lines(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	const struct convert_maker *maker = data;

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

int ky_convert_live(const struct convert_format *format, const struct convert_options *options,
		    int n_args, char **args, struct kymo_error *err)
{
	struct convert_maker maker = {format, options, -1};
	const struct ky_print_live live = {
		.run = follow_run(options, n_args, args),
		.make = ky_convert_make_sink,
		.begin = begin_lines,
		.data = &maker,
	};
	struct ky_cli_output output;
	int ret = ky_cli_output_file(&output, options->output, err), committed;

	maker.fd = output.fd;
	if (!ret)
		ret = ky_print_live(&live, err);
	if (ky_convert_keeps_output(ret)) {
		committed = ky_cli_output_commit(&output, ret < 0 ? NULL : err);
		ret = ret < 0 ? ret : committed;
	}
	ky_cli_output_close(&output);
	return ret;
}

/* lttng-relayd forgets a session at its end: then there is nothing that could be converted. */
static int check_ends(const struct convert_format *format, int n_args, char **args,
		      struct kymo_error *err)
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

int ky_convert_wait_for_end(const struct convert_format *format,
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
