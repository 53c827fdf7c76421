/* SPDX-License-Identifier: MIT */
/* Pulls a graph's events into a sink, with progress and warnings for people. */
#ifndef KY_CLI_READING_RUN_FLOW_H
#define KY_CLI_READING_RUN_FLOW_H

#include "flow/graph/sink.h"
#include "flow/sinks/text.h"

struct ky_flow_run {
	const struct ky_text_options *times; /* how losses' times are shown */
	const char *progress;		     /* "converting": a progress line; NULL: none */
	const struct ky_trace_set *set;	     /* for the progress; NULL with no progress */
	uint64_t n_events;		     /* out: events that went into the sink */
};

/*
 * Pass all events of @flow to @sink (NULL: drop them) and finish the sink's output, also after an
 * error. Losses go to the standard error.
 * SIGINT, SIGTERM and SIGHUP end it with KYMO_E_INTERRUPTED when ky_cli_catch_signals() was called.
 */
int ky_cli_run_flow(struct ky_flow_run *run, struct ky_flow *flow, struct ky_sink *sink,
		    struct kymo_error *err);

/*
 * Its last part: finish @sink after reading ended with @ret, and @err. Returns what counts in the end, which @err
 * is about then.
 */
int ky_cli_finish_flow(struct ky_sink *sink, int ret, struct kymo_error *err);

/* Tell of a loss on the standard error, its times as @times has them. */
void ky_cli_warn_loss(const struct ky_loss *loss, const struct ky_text_options *times);

/* For commands that must clean up. Forgets an earlier signal. */
void ky_cli_catch_signals(void);
/* Has such a signal come? Any thread may ask. */
bool ky_cli_interrupted(void);

#endif
