/* SPDX-License-Identifier: MIT */
/* What `kymo sync` prints. */
#ifndef KY_CLI_TRACES_SYNC_OUTPUT_H
#define KY_CLI_TRACES_SYNC_OUTPUT_H

#include "analysis/sync/sync.h"

void ky_cli_sync_put(const struct ky_sync_run *run);
int ky_cli_sync_put_json(const struct ky_sync_run *run, struct kymo_error *err);

/* What the files beside the traces say. */
void ky_cli_sync_show(const struct ky_trace_set *set);
int ky_cli_sync_show_json(const struct ky_trace_set *set, struct kymo_error *err);

#endif
