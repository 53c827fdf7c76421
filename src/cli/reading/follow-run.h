/* SPDX-License-Identifier: MIT */
/* Events of traces while they are being recorded, for commands with --live. */
#ifndef KY_CLI_READING_FOLLOW_RUN_H
#define KY_CLI_READING_FOLLOW_RUN_H

#include "cli/reading/input-options.h"
#include "cli/reading/select-options.h"
#include "flow/sinks/text.h"

#define KY_LIVE_DELAY_NS UINT64_C(250000000)

struct ky_live_options {
	bool on;
	uint64_t delay_ns; /* 0: not given */
};

/* Rows for a table over struct @type, whose struct ky_live_options is member @live. @what follows. */
/* clang-format off */
#define KY_LIVE_OPTION_DEFS(type, live, what)                                                    \
	{.name = "live",                                                                         \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Follow traces of running recordings: " what ", until the recordings end.",     \
	 .at = offsetof(type, live.on)},                                                         \
	{.name = "delay",                                                                        \
	 .kind = KY_OPTION_DURATION,                                                             \
	 .arg = "TIME",                                                                          \
	 .help = "With --live: the time from an event to its output, at most, from 10ms to 1min. " \
		 "A longer time costs the recorder less. Default: 250ms.",                       \
	 .at = offsetof(type, live.delay_ns)}
/* clang-format on */

/* Checks --delay. Returns KY_EXIT_OK, or KY_EXIT_USAGE after a line to stderr. */
int ky_cli_check_live(const struct ky_command *command, const struct ky_live_options *live);

/* The option among @select that needs the end of a trace, "--tail"; NULL: none does. */
const char *ky_cli_unfit_for_live(const struct ky_select_options *select);

struct ky_follow_run {
	char **paths;
	int n_paths;
	const struct ky_input_options *input;
	const struct ky_live_options *live;
	const struct ky_select_options *select; /* no times, no tail */
	const struct ky_text_options *times;	/* the form of times in warnings; its clock_gmt */
	/* Does a recorder write to one of the paths, so that traces may still come? NULL: it is unknown. */
	bool (*is_recorded)(char **paths, int n_paths);
	/*
	 * The consumer. Every function returns 0, or a negative status that ends the run.
	 * open: @set, whose events follow; an earlier set is valid until the return. KYMO_E_INVALID: something that the consumer
	 * needs is not in the metadata yet.
	 */
	int (*open)(void *data, const struct ky_trace_set *set, struct kymo_error *err);
	/* Events in the order of time. The run has warned of the loss of @batch; flush comes before that. */
	int (*batch)(void *data, const struct ky_batch *batch, struct kymo_error *err);
	/* Writes what is buffered. @until_ns: all events before it have come; INT64_MIN: unknown. */
	int (*flush)(void *data, int64_t until_ns, struct kymo_error *err);
	/* The end: the run has ended with @ret and @err. Returns what counts in the end. May be NULL. */
	int (*close)(void *data, int ret, struct kymo_error *err);
	void *data;
};

/*
 * Follows the traces until all are complete, or a signal of ky_cli_catch_signals() comes (then KYMO_OK, too). Errors:
 * those of opening and reading traces.
 */
int ky_cli_follow(const struct ky_follow_run *run, struct kymo_error *err);

#endif
