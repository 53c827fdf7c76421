/* SPDX-License-Identifier: MIT */
#include "cli/recording/sample-options.h"

#include "base/error.h"

int ky_sample_options_parse(const struct ky_command *command,
			    const struct ky_record_options *options, struct ky_record_run *run)
{
	struct ky_session_options *to = &run->options.kernel;
	struct kymo_error err;

	if (options->samples.len > KY_SAMPLE_SOURCES_MAX)
		return ky_cli_usage(command, "--sample: at most %d of them", KY_SAMPLE_SOURCES_MAX);
	if (options->samples.len && options->raw)
		return ky_cli_usage(command, "--raw: no --sample, because the recorder writes "
					     "samples while they arrive");
	for (size_t i = 0; i < options->samples.len; i++) {
		ky_error_clear(&err);
		if (ky_sample_source_parse(options->samples.items[i], &run->samples[i], &err) < 0)
			return ky_cli_usage(command, "%s: %s", err.message, err.hint);
	}
	to->samples = run->samples;
	to->n_samples = options->samples.len;
	to->only_samples = to->n_samples && !options->kernel.len;
	return KY_EXIT_OK;
}
