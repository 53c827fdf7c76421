/* SPDX-License-Identifier: MIT */
/* What the files about runtime directories and sessions' directories share. */
#ifndef KY_RECORD_USER_USER_RUNTIME_INTERNAL_H
#define KY_RECORD_USER_USER_RUNTIME_INTERNAL_H

#include "record/user/user-runtime.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* Where programs of some user look for the sessions of a recorder that we are. */
struct ky_user_runtime {
	char path[64];
	const char *
		memory; /* where sessions' directories are, with links to them in @path; NULL: in @path */
	bool is_roots; /* root owns it, and not that user */
};
void ky_user_runtime_choose(uid_t uid, struct ky_user_runtime *to);
/* 0; KYMO_E_PERMISSION, KYMO_E_IO. Others may have put something else there before. */
int ky_user_runtime_make(const struct ky_user_runtime *runtime, uid_t uid, struct kymo_error *err);

/* Put @path into @err; returns @code. */
int ky_user_path_error(struct kymo_error *err, int code, const char *path);
/* KYMO_E_PERMISSION: @path is not @uid's alone. */
int ky_user_not_ours(struct kymo_error *err, uid_t uid, const char *path);

#endif
