/* SPDX-License-Identifier: MIT */
/*
 * A policy: which recording members of a group may have from kymo daemon. DIR/NAME.policy is a profile, with words of its own:
 *
 *	group=NAME		who may ask; may be given again
 *	max-duration=TIME	the longest recording; default 10min
 *	max-size=SIZE		a recording ends when its trace has this size; default 1G
 *	max-recordings=N	of one user: those that run, and those that the user has not fetched; default 1
 *	own-processes		only the user's own processes
 *
 * Threads: one (it asks for groups by name).
 */
#ifndef KY_CLI_RECORDING_POLICY_H
#define KY_CLI_RECORDING_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "base/vec.h"

#define KY_POLICY_SUFFIX ".policy"
/* So that the names of recordings, NAME-USER-NUMBER, are not too long. */
#define KY_POLICY_NAME_MAX 40

struct ky_policy {
	KY_VEC(gid_t) groups;
	uint64_t duration_ns; /* when the user names none; 0: the longest */
	uint64_t max_duration_ns, max_bytes, max_recordings;
	bool own;	     /* only the user's own processes */
	bool chooses;	     /* it has processes, threads or control groups of its own */
	bool has_state;	     /* what the state dump has */
	bool has_user;	     /* it says which user's processes */
	KY_VEC(char *) args; /* of kymo record: "--kernel=sched_switch" */
};

/* Why root's daemon does not take options from a file with this state; NULL: it does. */
const char *ky_policy_refuse_file(const struct stat *st);

/*
 * Read the policy @name in directory @dir. KYMO_E_NOT_FOUND: no such file; KYMO_E_PERMISSION: others can write the file;
 * KYMO_E_INVALID, with file and line. The caller frees it with ky_policy_fini() in any case.
 */
int ky_policy_read(const char *dir, const char *name, struct ky_policy *policy,
		   struct kymo_error *err);
void ky_policy_fini(struct ky_policy *policy);

/* NAME of the file NAME@suffix, which can be a recording's name; false: not such a file. */
bool ky_policy_file_name(const char *file, const char *suffix, char name[256]);

#endif
