/* SPDX-License-Identifier: MIT */
#include "cli/recording/sample-options.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#define STACK_BYTES	16384
#define STACK_BYTES_MIN 1024
#define STACK_BYTES_MAX \
	65528 /* with the rest of it, a record has at most 64 KiB; the kernel cuts the copy */

/* "fp", "dwarf", "dwarf:32k" */
static int sample_options_stacks(const char *text, uint32_t *bytes)
{
	uint64_t size = STACK_BYTES;

	*bytes = 0;
	if (strcmp(text, "fp") == 0)
		return KYMO_OK;
	if (strncmp(text, "dwarf", 5) != 0 || (text[5] && text[5] != ':') ||
	    (text[5] && ky_parse_size(text + 6, &size) < 0) || size % 8 || size < STACK_BYTES_MIN ||
	    size > STACK_BYTES_MAX)
		return KYMO_E_INVALID;
	*bytes = (uint32_t)size;
	return KYMO_OK;
}

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
			return ky_cli_usage(command, "--sample: %s; %s", err.message, err.hint);
	}
	if (options->stacks && sample_options_stacks(options->stacks, &to->sample_stack_bytes) < 0)
		return ky_cli_usage(command,
				    "--stacks: '%s' is unknown; try fp, dwarf or dwarf:BYTES (a "
				    "multiple of 8, 1024 to 65528)",
				    options->stacks);
	if (options->stacks && !options->samples.len)
		return ky_cli_usage(command, "--stacks is for samples; add --sample");
	to->samples = run->samples;
	to->n_samples = options->samples.len;
	to->only_samples = to->n_samples && !options->kernel.len;
	return KY_EXIT_OK;
}
