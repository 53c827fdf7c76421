/* SPDX-License-Identifier: MIT */
#ifndef KY_CLI_LIST_LIST_USER_H
#define KY_CLI_LIST_LIST_USER_H

#include <stdbool.h>

#include <kymo/error.h>

/* kymo list --user: programs with libkymo-trace that run now, and their events. An error was said. */
int ky_list_user(bool json, bool fields, int n_globs, char **globs, struct kymo_error *err);

#endif
