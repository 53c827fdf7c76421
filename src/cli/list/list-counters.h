/* SPDX-License-Identifier: MIT */
/* kymo list --counters. */
#ifndef KY_CLI_LIST_LIST_COUNTERS_H
#define KY_CLI_LIST_LIST_COUNTERS_H

#include <stdbool.h>

#include <kymo/error.h>

/* The perf counters that this machine has, and where they can be context fields. 0 or KYMO_E_MEMORY. */
int ky_list_counters(bool json, struct kymo_error *err);

#endif
