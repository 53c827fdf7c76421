/* SPDX-License-Identifier: MIT */
/*
 * The user's end of kymo daemon's policies (daemon-policies.h): start a recording, end it, and copy its files into a directory of
 * the user's own. The daemon listens at /run/kymo/daemon, or where $KYMO_DAEMON_SOCKET says.
 *
 * Threads: one.
 */
#ifndef KY_CLI_RECORDING_POLICY_CLIENT_H
#define KY_CLI_RECORDING_POLICY_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "record/control/control-socket.h"

struct ky_policy_request {
	const char *policy;
	const char *output;   /* the directory to create; NULL: POLICY-DATE-TIME, here */
	uint64_t duration_ns; /* 0: the policy's */
	bool own;	      /* only this user's processes */
	bool in_background;
};

/*
 * Record by a policy: until its end or a signal, and fetch the trace; in the background, only begin. Prints what happens.
 * Errors are the daemon's (KYMO_E_STATE), KYMO_E_NOT_FOUND: no daemon listens; those of creating the output.
 */
int ky_policy_record(const struct ky_policy_request *request, struct kymo_error *err);
/*
 * End the recording @id (a name, a policy; NULL: the only one), if it runs, and fetch its trace into @output (NULL: NAME, here).
 */
int ky_policy_stop(const char *id, const char *output, struct kymo_error *err);
/* A snapshot of a flight recorder, in @output (NULL: NAME-snapshot, here). */
int ky_policy_snapshot(const char *id, const char *output, struct kymo_error *err);

/*
 * Call @found for each recording of this user that the daemon has. @status: as ky_recordings_ask() gives it; NULL: it has
 * ended, and waits to be fetched. Without a daemon there are none.
 */
void ky_policy_each(void (*found)(void *data, const char *name, const char *policy,
				  const struct ky_control_socket_message *status),
		    void *data);
/* Whether @id names one of the caller's recordings of policies, or its policy. Root has none. */
bool ky_policy_has(const char *id);
/* Print this user's policies; @json: as an object of JSON. */
int ky_policy_print(bool json, struct kymo_error *err);

#endif
