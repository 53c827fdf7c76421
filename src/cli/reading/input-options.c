/* SPDX-License-Identifier: MIT */
#include "cli/reading/input-options.h"

#include "base/error.h"
#include "cli/reading/raw-input.h"
#include "store/clocks.h"

int ky_cli_open(struct ky_trace_set *set, char **args, int n_args,
		const struct ky_input_options *options, bool merge, struct kymo_error *err)
{
	struct ky_trace_options trace_options = {
		.recover = options->recover,
		.follow = options->follow,
		.clock_offsets = (const char *const *)options->clock_offsets.items,
		.n_clock_offsets = options->clock_offsets.len,
	};
	int ret = ky_cli_convert_raw(args, n_args, options->tell_raw, &trace_options, err);

	if (ret < 0)
		return ret;
	ret = ky_trace_set_open_with(set, (const char *const *)args, (size_t)n_args, &trace_options,
				     &ky_cli_log, err);

	if (ret < 0 || !merge || options->force_correlate)
		return ret;
	ret = ky_clocks_correlate(set, err);
	if (ret == KYMO_OK)
		return ret;
	ky_error_hint(err, "--clock-force-correlate merges them by the times they show, "
			   "--clock-offset shifts one of them");
	ky_trace_set_close(set);
	return ret;
}
