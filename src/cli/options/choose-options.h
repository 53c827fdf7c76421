/* SPDX-License-Identifier: MIT */
/* Whose events are recorded, as people write it: the same in `kymo record` and `kymo ctl`. */
#ifndef KY_CLI_CHOOSE_OPTIONS_H
#define KY_CLI_CHOOSE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cli/options/options.h"

#define KY_CLI_MAX_IDS 1024

/* Log levels, for completion. */
#define KY_CLI_LOG_LEVELS \
	"EMERG.. ALERT.. CRIT.. ERR.. WARNING.. NOTICE.. INFO.. DEBUG_LINE.. DEBUG.."

/*
 * Append the ids of "17,18" to @ids, of which there are @n. Returns how many there are then, or -1: something
 * is none, or there are too many. @users: of users, which have 0, and 32 bits.
 */
int ky_cli_parse_ids(const char *text, bool users, int32_t ids[KY_CLI_MAX_IDS], int n);

/* A user, by id or by name: 0, or -1 where there is none. */
int ky_cli_parse_user(const char *text, uint32_t *uid);
/* The ids of "alice,1000", with commas between them. 0; KYMO_E_NOT_FOUND, KYMO_E_MEMORY. */
int ky_cli_user_ids(const char *text, struct ky_strbuf *ids, struct kymo_error *err);

/* May a thread be called so? The kernel takes a name as a text in quotes. */
bool ky_cli_is_comm(const char *comm);

#endif
