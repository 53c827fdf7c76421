/* SPDX-License-Identifier: MIT */
/* --sample of kymo record. */
#ifndef KY_CLI_RECORDING_SAMPLE_OPTIONS_H
#define KY_CLI_RECORDING_SAMPLE_OPTIONS_H

#include "cli/recording/record-options.h"

/* Fill in what @run samples; has_kernel must be known. Returns an exit code. */
int ky_sample_options_parse(const struct ky_command *command,
			    const struct ky_record_options *options, struct ky_record_run *run);

#endif
