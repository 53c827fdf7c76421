/* SPDX-License-Identifier: MIT */
/* The recordings that this user's kymo record processes make now, for commands that talk to them. */
#ifndef KY_CLI_RECORDING_RECORDINGS_H
#define KY_CLI_RECORDING_RECORDINGS_H

#include <limits.h>
#include <stdbool.h>

#include <kymo/error.h>

#include "cli/terminal/json-output.h"
#include "record/control/control-socket.h"

/*
 * Where the recording listens that @id names: its name, its number, its trace directory, or that one's last part.
 * NULL: the only one there is. @flight: flight recorders only. Root finds other users' recordings where it has
 * no such recording of its own.
 * KYMO_E_NOT_FOUND: none exists; KYMO_E_INVALID: there are several, and @err lists them.
 */
int ky_recordings_find(const char *id, bool flight, struct ky_control_socket_place *place,
		       struct kymo_error *err);
/* The same for the recorder with this process ID, if it is this user's: no other recorder is asked anything. */
int ky_recordings_find_own(pid_t pid, bool flight, struct ky_control_socket_place *place,
			   struct kymo_error *err);

/* Its status: KYMO_E_AGAIN when it does not answer within some seconds. */
int ky_recordings_ask(const struct ky_control_socket_place *place,
		      struct ky_control_socket_message *status, struct kymo_error *err);
/* What a status says of @name, first; "": nothing. */
const char *ky_recordings_word(const struct ky_control_socket_message *status, const char *name);

/* The value of the @n-th word called @name; NULL: the status does not have so many. */
const char *ky_recordings_value(const struct ky_control_socket_message *status, const char *name,
				unsigned int n);
/* The first one as a number; 0: none. */
uint64_t ky_recordings_number(const struct ky_control_socket_message *status, const char *name);
/* Print a status as text; or the same as JSON, which is the caller's. */
void ky_recordings_print_one(const struct ky_control_socket_place *place,
			     const struct ky_control_socket_message *status);
/* " of USER": another user's recording, which only root sees. */
void ky_recordings_print_owner(const struct ky_control_socket_place *place);
json_t *ky_recordings_json(const struct ky_control_socket_place *place,
			   const struct ky_control_socket_message *status);

/* The output directory of the running recording with this name. KYMO_E_NOT_FOUND. */
int ky_recordings_directory(const char *name, char path[PATH_MAX]);

/* Does a recorder of this user write to one of the directories @paths? */
bool ky_recordings_write(char **paths, int n_paths);

/* For completion: a name per line, or a number. */
void ky_recordings_print_names(void);
/* For kymo sessions. */
int ky_recordings_print(bool json, struct kymo_error *err);

#endif
