/* SPDX-License-Identifier: MIT */
/*
 * The containers that run here, as the names of control groups tell: docker's, podman's, containerd's and CRI-O's
 * (kubernetes' too) by their ids, lxc's and its kin's and systemd's machines (systemd-nspawn) by their names.
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
	char name[KY_CONTAINER_NAME_BYTES];   /* "": it has an id only */
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
 * The containers that run now: all of the system's, and some hundreds of each user's, since anybody can make any number;
 * @log (may be NULL) has a warning of a user who has more. ky_containers_fini() is due in any case.
 * 0, KYMO_E_MEMORY, KYMO_E_LIMIT or what opening KY_CGROUP_ROOT fails with.
 */
int ky_containers_find(struct ky_containers *found, const struct ky_log *log,
		       struct kymo_error *err);
void ky_containers_fini(struct ky_containers *found);

/*
 * The control group of the container whose id begins with @name (four digits or more), or that is called @name; a user's
 * only where none of the system's is meant. @log: as above.
 * KYMO_E_NOT_FOUND, KYMO_E_INVALID (several are meant): the message names those that run.
 */
int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			const struct ky_log *log, struct kymo_error *err);

/*
 * container-groups.c: is the control group @path that of a container? What its name says goes into @to: runtime, id or
 * name. @path is the same afterwards.
 */
bool ky_container_of_group(char *path, struct ky_container *to);

#endif
