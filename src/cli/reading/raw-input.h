/* SPDX-License-Identifier: MIT */
/* Raw recordings where traces are expected: each becomes a trace for as long as the program runs. */
#ifndef KY_CLI_RAW_INPUT_H
#define KY_CLI_RAW_INPUT_H

#include <stdbool.h>

#include <kymo/error.h>

#include "store/trace.h"

/*
 * Make traces of those of @paths that are raw recordings, in files without names (store/scratch-trace.h), and let
 * @options say that they are read there. @tell: say of each how many of its records are no events.
 * 0, or what ky_raw_convert() says.
 */
int ky_cli_convert_raw(char **paths, int n_paths, bool tell, struct ky_trace_options *options,
		       struct kymo_error *err);

#endif
