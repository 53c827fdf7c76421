/* SPDX-License-Identifier: MIT */
#include "cli/input-options.h"

int ky_cli_open(struct ky_trace_set *set, char **args, int n_args,
		const struct ky_input_options *options, bool merge, struct kymo_error *err)
{
	struct ky_trace_options trace_options = {
		.recover = options->recover,
		.correlate = merge && !options->force_correlate,
		.clock_offsets = (const char *const *)options->clock_offsets.items,
		.n_clock_offsets = options->clock_offsets.len,
	};

	return ky_trace_set_open_with(set, (const char *const *)args, (size_t)n_args,
				      &trace_options, &ky_cli_log, err);
}
