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
	bool is_users;		/* in the slice of a user, who may call it what he likes */
	uint32_t uid;		/* whose */
	unsigned int hierarchy; /* of control groups: which one this is in */
	size_t below,
		base_len; /* of .cgroup: where its path in that begins, and where its name ends */
};

KY_VEC_TYPE(ky_containers, struct ky_container);

/*
 * Those that are there now, each once, by name: all of the system's, and of users' up to some hundreds, since each user can
 * make any number. Not for threads that may not wait: files may be on a network.
 * 0, KYMO_E_MEMORY, KYMO_E_LIMIT or what opening KY_CGROUP_ROOT fails with; ky_vec_fini() is due in any case.
 */
int ky_containers_find(struct ky_containers *found, struct kymo_error *err);

/*
 * The control group of the one that is called @name, or whose id begins so (with four digits or more); a user's only where
 * none of the system's is meant.
 * KYMO_E_NOT_FOUND, KYMO_E_INVALID (several are meant): the message names those that are there.
 */
int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			struct kymo_error *err);

/* container-names.c: the name that its runtime calls this one with an id by; "": not known. */
void ky_container_name(struct ky_container *container);

#endif
