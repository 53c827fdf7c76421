/* SPDX-License-Identifier: MIT */
/* The names that runtimes call those containers by of whose control groups only the ids are known. */
#ifndef KY_CLI_CONTAINER_NAMES_H
#define KY_CLI_CONTAINER_NAMES_H

#include "base/arena.h"
#include "base/hash.h"
#include "cli/containers/containers.h"

/* Who names containers: the system, or one user. */
struct ky_container_namer {
	bool is_users;
	uint32_t uid;
	int home;	   /* a user's, which .share is relative to; AT_FDCWD */
	const char *share; /* ".local/share"; the system's: "/var/lib" */
	bool has_listed;   /* below: what podman's and CRI-O's lists have, by id */
	struct ky_names listed;
	struct ky_arena arena;
};

/* The system's; or, of user @uid, by the files of his home, an open directory (O_PATH), which stays the caller's. */
void ky_container_namer_init(struct ky_container_namer *namer);
void ky_container_namer_init_user(struct ky_container_namer *namer, uint32_t uid, int home);
void ky_container_namer_fini(struct ky_container_namer *namer);

/* container->name: as files or conmon tell; left as it is when they do not. Of the namer's own, with an id. */
void ky_container_name(struct ky_container_namer *namer, struct ky_container *container);

/*
 * container-homes.c: the names of @n containers of user @uid, by his home. It may be on a network and hang, so that a process
 * of its own looks there, for some seconds, and no longer than *left_ms, which gets less by what it took. False: not all were
 * looked for.
 */
bool ky_container_ask_home(uint32_t uid, struct ky_container *const *containers, size_t n,
			   int *left_ms);

#endif
