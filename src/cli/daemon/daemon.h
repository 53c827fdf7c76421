/* SPDX-License-Identifier: MIT */
/*
 * kymo daemon: runs the recordings of a directory of profiles, each in a process of its own, and
 * begins again those that end. When the directory has policies, it serves other users, too.
 *
 * Threads: one.
 */
#ifndef KY_CLI_RECORDING_DAEMON_H
#define KY_CLI_RECORDING_DAEMON_H

#include <kymo/error.h>

struct ky_daemon_options {
	const char *profiles; /* the directory: NAME.profile is the recording NAME */
	const char *output;   /* traces of profiles without output go to OUTPUT/NAME/DATE-TIME */
	const char *socket;   /* for users, when there are policies; see daemon-policies.h */
};

/*
 * Runs until SIGTERM or SIGINT; SIGHUP reads the directory again. A profile that cannot be used gets a
 * warning and does not run. KYMO_E_IO: the directory cannot be read at the start.
 */
int ky_daemon_run(const struct ky_daemon_options *options, struct kymo_error *err);

#endif
