/* SPDX-License-Identifier: MIT */
/* Users and log levels, as people write them: the same in `kymo record` and `kymo ctl`. */
#ifndef KY_CLI_OPTIONS_USER_OPTIONS_H
#define KY_CLI_OPTIONS_USER_OPTIONS_H

#include <stdint.h>

#include "base/strbuf.h"
#include "cli/options/options.h"

/* Log levels, for completion. */
#define KY_CLI_LOG_LEVELS \
	"EMERG.. ALERT.. CRIT.. ERR.. WARNING.. NOTICE.. INFO.. DEBUG_LINE.. DEBUG.."

/* A user, by id or by name: 0, or -1 where none exists. */
int ky_cli_parse_user(const char *text, uint32_t *uid);
/* The ids of "alice,1000", with commas between them. 0; KYMO_E_NOT_FOUND, KYMO_E_MEMORY. */
int ky_cli_user_ids(const char *text, struct ky_strbuf *ids, struct kymo_error *err);

#endif
