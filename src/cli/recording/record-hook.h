/* SPDX-License-Identifier: MIT */
/*
 * The command that runs after each rotation (--on-rotate): one at a time, in the order of the
 * chunks, beside the recording.
 */
#ifndef KY_CLI_RECORDING_RECORD_HOOK_H
#define KY_CLI_RECORDING_RECORD_HOOK_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/vec.h"
#include "os/event-loop.h"

struct ky_hook {
	const char *command; /* for sh -c; NULL: none */
	const char *output;  /* of the recording */
	/* What the command gets, as ky_child_fork() gives it to the traced command. */
	sigset_t mask;
	struct rlimit files;
	/* Private. */
	KY_VEC(char *) chunks; /* that wait for the command */
	pid_t pid;	       /* of the running command; 0: none */
	struct ky_loop *loop;
	struct ky_loop_source *source;
};

/* The chunk at @path is complete: runs the command when the earlier ones have ended. */
void ky_hook_run(struct ky_hook *hook, struct ky_loop *loop, const char *path);
/* After the recording: waits some seconds for the commands of all chunks. Frees what @hook has. */
void ky_hook_finish(struct ky_hook *hook);

#endif
