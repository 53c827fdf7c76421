/* SPDX-License-Identifier: MIT */
/*
 * What runs after each rotation: the symbols of the chunk are stored with it, then follows the command of --on-rotate. One chunk at a
 * time, in their order, beside the recording.
 */
#ifndef KY_CLI_RECORDING_RECORD_HOOK_H
#define KY_CLI_RECORDING_RECORD_HOOK_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/vec.h"
#include "cli/terminal/command.h"
#include "os/event-loop.h"

struct ky_hook {
	const char *command; /* for sh -c; NULL: none */
	/* Before the command: 'kymo symbols add CHUNK', with these directories. */
	bool stores_symbols;
	const struct ky_text_list *symbol_dirs;
	const char *output; /* of the recording */
	/* What the command gets, as ky_child_fork() gives it to the traced command. */
	sigset_t mask;
	struct rlimit files;
	/* Private. */
	KY_VEC(char *) chunks; /* that wait for the command */
	pid_t pid;	       /* of the running command; 0: none */
	struct ky_loop *loop;
	struct ky_loop_source *source;
};

/* The chunk at @path is complete: stores its symbols and runs the command when the earlier ones have ended. */
void ky_hook_run(struct ky_hook *hook, struct ky_loop *loop, const char *path);
/* After the recording: waits some seconds for the commands of all chunks. Frees what @hook has. */
void ky_hook_finish(struct ky_hook *hook);

#endif
