/* SPDX-License-Identifier: MIT */
/*
 * The containers that run here, as their control groups have them: of docker, podman, containerd, CRI-O (kubernetes' too),
 * lxc and its kin, and systemd's machines (systemd-nspawn). Nobody is asked but files: no daemon, no other program.
 */
#ifndef KY_CLI_CONTAINERS_H
#define KY_CLI_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/vec.h"

#define KY_CONTAINER_ID_DIGITS	64
#define KY_CONTAINER_NAME_BYTES 512 /* a kubernetes' pod's has up to 253, the other two 63 each */
#define KY_CONTAINER_PATH_BYTES 4096

struct ky_container {
	char name
		[KY_CONTAINER_NAME_BYTES]; /* kubernetes': NAMESPACE/POD/CONTAINER; "": not known */
	char id[KY_CONTAINER_ID_DIGITS + 1];  /* "": it has a name only */
	char runtime[32];		      /* "docker" */
	char cgroup[KY_CONTAINER_PATH_BYTES]; /* a directory of the file system */
	size_t n_processes;
	bool is_users;	      /* where a user may make groups, and call them what he likes */
	uint32_t uid;	      /* whose; UINT32_MAX: that is not known */
	unsigned int order;   /* of control groups' hierarchies: which one .cgroup is in */
	uint64_t hierarchies; /* a bit for each that it has a group in */
	size_t below,
		base_len; /* of .cgroup: where its path in that begins, and where its name ends */
};

/* Who has containers of his own. */
struct ky_container_user {
	uint32_t uid;
	size_t n_containers;
	bool has_more; /* than are looked at */
};

struct ky_containers {
	KY_VEC(struct ky_container) all; /* each once, by name */
	KY_VEC(struct ky_container_user) users;
};

/*
 * Those that are there now: all of the system's, and of users' some hundreds of each, since anybody can make any number.
 * Names of users' are left out, but for those that control groups tell. ky_containers_fini() is due in any case.
 * 0, KYMO_E_MEMORY, KYMO_E_LIMIT or what opening KY_CGROUP_ROOT fails with.
 */
int ky_containers_find(struct ky_containers *found, struct kymo_error *err);
void ky_containers_fini(struct ky_containers *found);

/*
 * Look for the names of users', too. That may take some seconds, as homes may be on a network. Warns of those that do not
 * answer, and of users who have more containers than were looked at.
 */
void ky_containers_name_users(struct ky_containers *found);

/*
 * The control group of the one that is called @name, or whose id begins so (with four digits or more); a user's only where
 * none of the system's is meant. As long as ky_containers_name_users() may take: not for threads that may not wait.
 * KYMO_E_NOT_FOUND, KYMO_E_INVALID (several are meant): the message names those that are there.
 */
int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			struct kymo_error *err);

/*
 * container-groups.c: is the control group @path that of a container? What its name says goes into @to: runtime, id or
 * name. @path is the same afterwards.
 */
bool ky_container_of_group(char *path, struct ky_container *to);

#endif
