/* SPDX-License-Identifier: MIT */
/*
 * Names of groups of events with buffers of their own.
 *
 * Threads: any.
 */
#ifndef KY_RECORD_REQUEST_USER_GROUP_H
#define KY_RECORD_REQUEST_USER_GROUP_H

#include <stdbool.h>

#define KY_USER_GROUP_NAME_MAX 32

/* Letters, digits, '_' and '-', KY_USER_GROUP_NAME_MAX of them at most. The names of Kymo's own streams are none. */
bool ky_user_is_group_name(const char *name);

/*
 * The group whose buffers the rings in a session's directory are, as its session file says. The file may be another user's.
 * False: none.
 */
bool ky_user_dir_group(int dir_fd, char name[KY_USER_GROUP_NAME_MAX + 1]);

#endif
