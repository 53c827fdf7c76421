/* SPDX-License-Identifier: MIT */
/*
 * The processes that triggers start: commands (--do run:COMMAND), other recordings, reports. They run
 * beside the recording, which never waits for them before its end.
 */
#ifndef KY_CLI_RECORDING_RECORD_TASKS_H
#define KY_CLI_RECORDING_RECORD_TASKS_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/vec.h"
#include "os/event-loop.h"
#include "record/recording/recording.h"

struct ky_tasks {
	/* What the processes get, as ky_child_fork() gives it to the traced command. */
	sigset_t mask;
	struct rlimit files;
	struct ky_recording *recording; /* NULL: it has ended */
	/* Private. */
	struct ky_loop *loop;
	KY_VEC(struct ky_recording_task *) waiting;
	KY_VEC(struct ky_running_task *) running;
};

/* Runs @task, which the call takes over, when fewer than a few run already. */
void ky_tasks_run(struct ky_tasks *tasks, struct ky_loop *loop, struct ky_recording_task *task);
/* After the recording: waits some seconds for the processes. Frees what @tasks has. */
void ky_tasks_finish(struct ky_tasks *tasks);

#endif
