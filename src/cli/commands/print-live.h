/* SPDX-License-Identifier: MIT */
/* kymo print --live: the events of traces while they are being recorded. */
#ifndef KY_CLI_COMMANDS_PRINT_LIVE_H
#define KY_CLI_COMMANDS_PRINT_LIVE_H

#include "cli/reading/input-options.h"
#include "cli/reading/select-options.h"
#include "flow/sinks/text.h"

struct ky_print_live {
	char **paths;
	int n_paths;
	const struct ky_input_options *input;
	const struct ky_select_options *select; /* no times, no tail */
	const struct ky_text_options *text;
};

/*
 * Print events in the order of time as they come, until all traces are complete, or SIGINT or SIGTERM comes
 * (then KYMO_OK, too). Errors: those of opening and reading traces.
 */
int ky_print_live(const struct ky_print_live *live, struct kymo_error *err);

#endif
