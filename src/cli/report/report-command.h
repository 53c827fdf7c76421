/* SPDX-License-Identifier: MIT */
/* kymo report NAME -- COMMAND: a recording of a command, only for its reports. */
#ifndef KY_CLI_REPORT_REPORT_COMMAND_H
#define KY_CLI_REPORT_REPORT_COMMAND_H

#include <limits.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "cli/reading/input-options.h"

struct ky_command_trace {
	char directory[PATH_MAX - 300]; /* a temporary one; "": none */
	char trace[PATH_MAX];		/* in it */
	struct ky_strbuf pids;		/* of the command and its children: "12,34" */
	int code;			/* the command's exit code */
	bool samples; /* of what the CPUs run, 999 a second, instead of the default events */
	bool calls;   /* of functions of the command, instead of events of the kernel */
};

/*
 * Record the machine while @command runs, as kymo record does. Returns an exit code; if it is not KY_EXIT_OK, the recorder's messages
 * are on stderr. In any case ky_command_trace_fini() follows.
 */
int ky_command_trace_record(struct ky_command_trace *made, char **command);
/* Finds ->pids, by the trace's forks. @input: how traces are opened. 0 or a negative status. */
int ky_command_trace_find_pids(struct ky_command_trace *made, const struct ky_input_options *input,
			       struct kymo_error *err);
/* Runs @run in a process of its own, so that the recording is removed if a signal ends it. Returns its exit code. */
int ky_command_trace_run(int (*run)(void *data), void *data);
/* Removes the recording. */
void ky_command_trace_fini(struct ky_command_trace *made);

#endif
