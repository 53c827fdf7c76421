/* SPDX-License-Identifier: MIT */
#ifndef KY_CLI_LIST_LIST_SDT_H
#define KY_CLI_LIST_LIST_SDT_H

#include <stdbool.h>

#include <kymo/error.h>

/* kymo list --sdt FILE...: the probes that programs and libraries bring along. */
int ky_list_sdt(bool json, int n_files, char **files, struct kymo_error *err);

#endif
