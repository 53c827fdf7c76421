/* SPDX-License-Identifier: MIT */
/* kymo list --containers. */
#ifndef KY_CLI_LIST_LIST_CONTAINERS_H
#define KY_CLI_LIST_LIST_CONTAINERS_H

#include <stdbool.h>

#include <kymo/error.h>

/* The containers that run here, for --container. 0 or KYMO_E_MEMORY. */
int ky_list_containers(bool json, struct kymo_error *err);

#endif
