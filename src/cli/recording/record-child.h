/* SPDX-License-Identifier: MIT */
/* The command that kymo record runs: made early, started once recording is on. */
#ifndef KY_CLI_RECORDING_RECORD_CHILD_H
#define KY_CLI_RECORDING_RECORD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct ky_child {
	char **args; /* NULL: none */
	pid_t pid;   /* 0: it does not run */
	int go_fd;   /* a byte here starts it */
	int fail_fd; /* its errno, when it cannot be executed */
	bool exited;
	int status; /* of waitpid() */
	const char *preload,
		*calls;	     /* its LD_PRELOAD and KYMO_CALLS; NULL: as this process has them */
	struct rlimit files; /* how many it may have open: the recorder takes more for itself */
};

/* The file of program @name, as execvp() looks for it, in @file. 0, or the errno. */
int ky_child_find(const char *name, char *file, size_t size);

/* A mistyped command should not cost a recording. 0, or the errno of executing @name. */
int ky_child_check(const char *name);

/* Say that @name cannot be run. Returns an exit code. */
int ky_child_error(const char *name, int errnum);

/*
 * Environment of a recorder that kymo report starts: the file for the process ID of the command, and the descriptor that
 * the command's messages go to. Both are done before the recording begins, and are not in the command's environment.
 */
#define KY_CHILD_PID_FILE "KYMO_COMMAND_PID_FILE"
#define KY_CHILD_MESSAGES "KYMO_COMMAND_MESSAGES"

/* Make the process, which waits. @mask: its signal mask. Returns an exit code. */
int ky_child_fork(struct ky_child *command, const sigset_t *mask);

/* Let it go. 0, or the errno with which it could not be executed. */
int ky_child_release(struct ky_child *command);

/* Take its exit status, if it has exited; @flags: of waitpid(). */
void ky_child_reap(struct ky_child *command, int flags);

/* The exit code of a command that has exited: its own, or 128 and the number of the signal that ended it. */
int ky_child_code(const struct ky_child *command);

/* After the recording: ends the command, too, unless it ignores the signal. */
void ky_child_end(struct ky_child *command);

#endif
