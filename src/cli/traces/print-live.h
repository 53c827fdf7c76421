/* SPDX-License-Identifier: MIT */
/* Events of traces as lines of a sink while they are being recorded. */
#ifndef KY_CLI_TRACES_PRINT_LIVE_H
#define KY_CLI_TRACES_PRINT_LIVE_H

#include "cli/reading/follow-run.h"
#include "flow/graph/sink.h"

struct ky_print_live {
	/* Its functions and data are those of this module. */
	struct ky_follow_run run;
	/* A set of traces is open, as the first one or in place of the last one; NULL: nothing to do. As ky_follow_run.open. */
	int (*open)(void *data, const struct ky_trace_set *set, struct kymo_error *err);
	/* The sink for the events. NULL: out of memory. */
	struct ky_sink *(*make)(void *data);
	/* What comes before the lines; NULL: nothing. As ky_follow_run.open. */
	int (*begin)(void *data, const struct ky_trace_set *set, struct kymo_error *err);
	void *data;
};

/*
 * Writes events in the order of time as they come, until all traces are complete, or SIGINT or SIGTERM comes
 * (then KYMO_OK, too). Errors: those of opening and reading traces.
 */
int ky_print_live(const struct ky_print_live *live, struct kymo_error *err);

#endif
