/* SPDX-License-Identifier: MIT */
/* Raw recordings where traces are expected: each becomes a trace for as long as the program runs. */
#ifndef KY_CLI_RAW_INPUT_H
#define KY_CLI_RAW_INPUT_H

#include <stdbool.h>

#include <kymo/error.h>

/*
 * Replace those of @paths that are raw recordings by traces of them, made in a directory of their own
 * below $TMPDIR (or /tmp), which is removed at exit. @tell: say of each how many of its records are no
 * events. 0, or what ky_raw_convert() says.
 */
int ky_cli_convert_raw(char **paths, int n_paths, bool tell, struct kymo_error *err);

#endif
