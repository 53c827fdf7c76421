/* SPDX-License-Identifier: MIT */
/* How traces are read: options of every command that reads some. */
#ifndef KY_CLI_INPUT_OPTIONS_H
#define KY_CLI_INPUT_OPTIONS_H

#include "cli/command.h"
#include "store/trace.h"

struct ky_input_options {
	bool recover;
};

/* Rows for a table over struct @type, whose struct ky_input_options is member @input. */
/* clang-format off */
#define KY_INPUT_OPTION_DEFS(type, input)                                                        \
	{.name = "recover",                                                                      \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Go on behind damage, with the next packet that can be read. Each damage is a " \
		 "warning, the exit code is 1.",                                                 \
	 .at = offsetof(type, input.recover)}
/* clang-format on */

/* Open the traces at @args. As ky_trace_set_open_with(); KYMO_E_INVALID is a usage error. */
int ky_cli_open(struct ky_trace_set *set, char **args, int n_args,
		const struct ky_input_options *options, struct kymo_error *err);

#endif
