/* SPDX-License-Identifier: MIT */
/* What the files of a recording of user space share. */
#ifndef KY_RECORD_USER_INTERNAL_H
#define KY_RECORD_USER_INTERNAL_H

#include <pthread.h>
#include <signal.h>

#include "record/user-program.h"
#include "record/user-request.h"
#include "record/user-ring.h"
#include "record/user-runtime.h"
#include "record/user.h"

/* A ring file of a session's directory. */
struct ky_user_ring_file {
	struct ky_user_dir *dir;
	char *name;
	struct ky_user_ring *ring;
};

/*
 * While the thread runs, rings and programs' traces are its own; programs (the list) are the
 * caller's. result and err are the thread's until it was joined.
 */
struct ky_user {
	struct ky_user_options options;
	struct ky_os_clock clock; /* as it was at the start */
	struct ky_user_request request;
	struct ky_programs programs;
	KY_VEC(struct ky_user_dir *) dirs;
	KY_VEC(struct ky_user_ring_file *) rings; /* finished ones too */
	int inotify_fd, stop_fd, failed_fd;
	pthread_t thread;
	bool started, is_running, is_stopped;
	int result;
	struct kymo_error err;
	struct ky_user_stats stats;
	struct ky_user_program_stats *program_stats;
};

/* user-run.c: the thread. @data: a struct ky_user. */
void *ky_user_run(void *data);

/* Look through the directories for ring files that are not known yet. The thread is not running. */
int ky_user_find_rings(struct ky_user *user, struct kymo_error *err);

/* Finish all rings that are not finished, and remove their files. */
int ky_user_finish_rings(struct ky_user *user, struct kymo_error *err);

#endif
