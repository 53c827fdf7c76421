/* SPDX-License-Identifier: MIT */
/* A recording that goes on when kymo record has returned: in a process of its own, without a terminal. */
#ifndef KY_CLI_RECORDING_RECORD_BACKGROUND_H
#define KY_CLI_RECORDING_RECORD_BACKGROUND_H

#include <stdbool.h>
#include <sys/types.h>

struct ky_background {
	bool is_wanted;
	int ready_fd; /* in the recorder's process: what another one waits for; -1: nothing. Without is_wanted: --ready-fd */
};

#define KY_BACKGROUND_INIT     \
	{                      \
		.ready_fd = -1 \
	}

/*
 * Fork, before anything else is open. In the new process: returns -1, and the recording is to begin. In the other one: waits
 * until it has begun, or has failed; returns an exit code.
 */
int ky_background_fork(struct ky_background *background);

/*
 * In the recorder's process: the recording has begun. What it has to say goes to @log_path, which this creates; the process
 * that waits returns.
 * Returns false when no process waits: the user has given up, and the recording must end.
 */
bool ky_background_begin(struct ky_background *background, const char *log_path);

/* Print what the recorder of user @uid has written to @log_path, if that is a regular file of this user. */
void ky_background_show_log(const char *log_path, uid_t uid);

#endif
