/* SPDX-License-Identifier: MIT */
/* Whose events are recorded, as people write it: the same in `kymo record` and `kymo ctl`. */
#ifndef KY_CLI_CHOOSE_OPTIONS_H
#define KY_CLI_CHOOSE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

#define KY_CLI_MAX_IDS 1024

/* Log levels, for completion. */
#define KY_CLI_LOG_LEVELS \
	"EMERG.. ALERT.. CRIT.. ERR.. WARNING.. NOTICE.. INFO.. DEBUG_LINE.. DEBUG.."

/*
 * Append the ids of "17,18" to @ids, of which there are @n. Returns how many there are then, or -1: something
 * is none, or there are too many. @users: of users, which have 0, and 32 bits.
 */
int ky_cli_parse_ids(const char *text, bool users, int32_t ids[KY_CLI_MAX_IDS], int n);

/* May a thread be called so? The kernel takes a name as a text in quotes. */
bool ky_cli_is_comm(const char *comm);

#endif
