/* SPDX-License-Identifier: MIT */
/* The shell of kymo query: statements that the user types, with history and completion. */
#ifndef KY_CLI_QUERY_QUERY_SHELL_H
#define KY_CLI_QUERY_QUERY_SHELL_H

#include "cli/query/query-output.h"

/*
 * Reads statements from the standard input up to its end. On a terminal, errors of statements do not end it, SIGINT ends the statement at hand,
 * and the history is kept in $XDG_STATE_HOME/kymo/query-history. Else the first error ends it.
 */
int ky_query_shell(struct ky_sql *sql, enum ky_query_form form,
		   const struct ky_sql_parameter *parameters, size_t n, struct kymo_error *err);

#endif
