/* SPDX-License-Identifier: MIT */
#include "cli/input-options.h"

int ky_cli_open(struct ky_trace_set *set, char **args, int n_args,
		const struct ky_input_options *options, struct kymo_error *err)
{
	struct ky_trace_options trace_options = {
		.recover = options->recover,
	};

	return ky_trace_set_open_with(set, (const char *const *)args, (size_t)n_args,
				      &trace_options, &ky_cli_log, err);
}
