/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files about ring files: user-files.c decides what becomes of them, and user-file-tasks.c has the tasks.
 *
 * Threads: a task has its file for itself; the reading thread has all others.
 */
#ifndef KY_RECORD_USER_USER_FILES_INTERNAL_H
#define KY_RECORD_USER_USER_FILES_INTERNAL_H

#include "record/user/user-internal.h"

/* The file whose task this is. */
struct ky_user_ring_file *ky_user_file_of(struct ky_user_task *task);
/* Its descriptions of events take so many bytes now, of what its user may have. */
void ky_user_file_describe(struct ky_user_ring_file *file, uint64_t bytes);
/* Whether it is the ring of all programs of a user: it ends with the recording. */
bool ky_user_is_shared(const struct ky_user *user, const char *name);

/* Tasks. Their result is in the file. */
void ky_user_file_run_open(struct ky_user_task *task);
void ky_user_file_run_follow(struct ky_user_task *task);
void ky_user_file_run_dump(struct ky_user_task *task);
void ky_user_file_run_rotate(struct ky_user_task *task);
void ky_user_file_run_finish(struct ky_user_task *task);

#endif
