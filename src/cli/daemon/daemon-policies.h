/* SPDX-License-Identifier: MIT */
/*
 * The part of kymo daemon that serves other users: members of a policy's group start recordings of this policy through the
 * daemon's socket, and nothing else. A caller names a policy, a time and whether only its own processes are recorded;
 * everything else is in the policy (policy.h). The recorder writes to a directory that only the daemon's user can enter. When
 * the recording has ended, the caller gets its files one by one, open for reading, and writes its own copy.
 *
 * Threads: one.
 */
#ifndef KY_CLI_RECORDING_DAEMON_POLICIES_H
#define KY_CLI_RECORDING_DAEMON_POLICIES_H

#include <signal.h>
#include <stdbool.h>

#include <kymo/error.h>

#include "os/event-loop.h"

struct ky_policies;

struct ky_policies_options {
	const char *profiles; /* the directory: NAME.policy */
	const char *
		output; /* recordings are in OUTPUT/.policies/UID/NAME until their users have fetched them */
	const char *socket;
	struct ky_loop *loop;
	sigset_t mask; /* of signals, for recorders */
	/* The last recorder has ended, after ky_policies_end(). Returns what the loop's call is to return. */
	int (*ended)(void *data);
	void *data;
};

/* Whether the directory has a policy: without one, the daemon does not listen. */
bool ky_policies_exist(const char *profiles);
/* Listens. The options' texts must outlive it. KYMO_E_IO, KYMO_E_INVALID, KYMO_E_MEMORY. */
int ky_policies_open(const struct ky_policies_options *options, struct ky_policies **policies,
		     struct kymo_error *err);
/* Ends all recordings, and takes no more requests. NULL is allowed. */
void ky_policies_end(struct ky_policies *policies);
/* Whether a recorder runs. NULL is allowed. */
bool ky_policies_any_runs(const struct ky_policies *policies);
/* Recordings that have ended stay for their users. NULL is allowed. */
void ky_policies_close(struct ky_policies *policies);

#endif
