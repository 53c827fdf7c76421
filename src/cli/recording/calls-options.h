/* SPDX-License-Identifier: MIT */
/* kymo record --calls: what recording the calls of functions takes. */
#ifndef KY_CLI_RECORDING_CALLS_OPTIONS_H
#define KY_CLI_RECORDING_CALLS_OPTIONS_H

#include "base/strbuf.h"
#include "cli/recording/record-options.h"

struct ky_calls_options {
	struct ky_record_options options; /* the user's, with what --calls adds */
	struct ky_strbuf context, preload;
	const char **user;
};

/*
 * Without --calls, calls->options is a copy of @options. @has_command: there is a command to load the libraries into. Returns an exit code; in
 * any case fini() follows.
 */
int ky_calls_options_init(const struct ky_command *command, const struct ky_record_options *options,
			  bool has_command, struct ky_calls_options *calls);
void ky_calls_options_fini(struct ky_calls_options *calls);

/* Puts the libraries and the pattern into the environment of @child, which borrows from @calls. */
void ky_calls_options_child(const struct ky_calls_options *calls, struct ky_child *child);

#endif
