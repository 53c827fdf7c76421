/* SPDX-License-Identifier: MIT */
/* The shared part of runtime directories and sessions' directories. */
#ifndef KY_RECORD_RUNTIME_USER_RUNTIME_INTERNAL_H
#define KY_RECORD_RUNTIME_USER_RUNTIME_INTERNAL_H

#include "record/runtime/user-runtime.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* A runtime directory in which a user's programs search for the sessions of this recorder. */
struct ky_user_runtime {
	char path[64];
	const char *
		memory; /* the directory with sessions' directories, to which @path has links; NULL: they are in @path */
	bool is_roots; /* root owns it, not that user */
};
void ky_user_runtime_choose(uid_t uid, struct ky_user_runtime *to);
/*
 * Returns 0; KYMO_E_PERMISSION, KYMO_E_IO. Another user may have put something else there before.
 */
int ky_user_runtime_make(const struct ky_user_runtime *runtime, uid_t uid, struct kymo_error *err);

/* Puts @path into @err; returns @code. */
int ky_user_path_error(struct kymo_error *err, int code, const char *path);
/* KYMO_E_PERMISSION: other users than @uid can change @path. */
int ky_user_not_ours(struct kymo_error *err, uid_t uid, const char *path);

#endif
