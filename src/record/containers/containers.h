/* SPDX-License-Identifier: MIT */
/*
 * The running containers, found by the names of control groups: those of docker, podman, containerd
 * and CRI-O (kubernetes, too) by their ids, those of lxc and similar runtimes and of systemd-nspawn
 * by their names.
 */
#ifndef KY_RECORD_CONTAINERS_CONTAINERS_H
#define KY_RECORD_CONTAINERS_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/vec.h"

#define KY_CONTAINER_ID_DIGITS	64
#define KY_CONTAINER_NAME_BYTES 256
#define KY_CONTAINER_PATH_BYTES 4096

struct ky_container {
	char name[KY_CONTAINER_NAME_BYTES];   /* "" when the container has an id only */
	char id[KY_CONTAINER_ID_DIGITS + 1];  /* "" when the container has a name only */
	char runtime[32];		      /* "docker" */
	char cgroup[KY_CONTAINER_PATH_BYTES]; /* a directory of the file system */
	size_t n_processes;
	bool is_users;	      /* in a place where users may make groups with any name */
	uint32_t uid;	      /* the owner; UINT32_MAX: unknown */
	unsigned int order;   /* number of the control group hierarchy with .cgroup */
	uint64_t hierarchies; /* a bit for each hierarchy in which the container has a group */
	size_t below,
		base_len; /* of .cgroup: the length up to its path in the hierarchy, and up to its name */
};

/* A user with containers. */
struct ky_container_user {
	uint32_t uid;
	size_t n_containers;
	bool has_more; /* the user has more containers than the search visits */
};

struct ky_containers {
	KY_VEC(struct ky_container) all; /* sorted by name, without duplicates */
	KY_VEC(struct ky_container_user) users;
};

/*
 * Find the running containers: all of the system's, and some hundreds per user, since each user can
 * make any number of them. @log (may be NULL) gets a warning about a user with more. The caller
 * must call ky_containers_fini() in any case. Returns 0, KYMO_E_MEMORY, KYMO_E_LIMIT or a status of
 * opening KY_CGROUP_ROOT.
 */
int ky_containers_find(struct ky_containers *found, const struct ky_log *log,
		       struct kymo_error *err);
void ky_containers_fini(struct ky_containers *found);

/*
 * The control group of the container with name @name, or with an id that begins with @name (four
 * digits or more). A user's container counts only when no container of the system matches. @log: as
 * above. KYMO_E_NOT_FOUND, KYMO_E_INVALID (several containers match): the message names the running
 * containers.
 */
int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			const struct ky_log *log, struct kymo_error *err);

/*
 * container-groups.c: whether control group @path belongs to a container. If so, @to gets the
 * runtime, id or name in it. The function restores @path before it returns.
 */
bool ky_container_of_group(char *path, struct ky_container *to);

#endif
