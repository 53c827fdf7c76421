/* SPDX-License-Identifier: MIT */
/* kymo info --live: counts of events while traces are being recorded. */
#ifndef KY_CLI_TRACES_INFO_LIVE_H
#define KY_CLI_TRACES_INFO_LIVE_H

#include "cli/reading/follow-run.h"

struct ky_info_live {
	struct ky_follow_run
		run; /* its functions, data, selection and times are those of this module */
	uint64_t interval_ns;
	bool json;
};

/*
 * Shows how many events of which streams and types there are, and how many came in the last interval, until all traces
 * are complete, or SIGINT or SIGTERM comes (then KYMO_OK, too). Errors: those of opening and reading traces.
 */
int ky_info_live(const struct ky_info_live *live, struct kymo_error *err);

#endif
