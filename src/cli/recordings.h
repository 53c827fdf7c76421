/* SPDX-License-Identifier: MIT */
/* The recordings that this user's kymo record processes make now, for commands that talk to them. */
#ifndef KY_CLI_RECORDINGS_H
#define KY_CLI_RECORDINGS_H

#include <stdbool.h>

#include <kymo/error.h>

#include "record/remote.h"

/*
 * The socket of the recording that @id names: its number, its trace directory, or that one's last part.
 * NULL: the only one there is. @flight: flight recorders only.
 * KYMO_E_NOT_FOUND: there is none; KYMO_E_INVALID: there are several, and @err lists them.
 */
int ky_recordings_find(const char *id, bool flight, char path[KY_REMOTE_PATH_MAX],
		       struct kymo_error *err);

/* For kymo list --recordings. */
int ky_recordings_print(bool json, struct kymo_error *err);

#endif
