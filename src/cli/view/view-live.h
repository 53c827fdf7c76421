/* SPDX-License-Identifier: MIT */
/* kymo view of recordings that go on. */
#ifndef KY_CLI_VIEW_VIEW_LIVE_H
#define KY_CLI_VIEW_VIEW_LIVE_H

#include "cli/reading/input-options.h"
#include "view/session/live.h"

/* Whether one of @paths is a running recording, or at a relay. */
bool ky_view_live_is(char **paths, int n_paths);

/* Calls @serve with a view that follows @paths. Errors: those of opening, and of @serve. */
int ky_view_live_run(char **paths, int n_paths, const struct ky_input_options *input,
		     int (*serve)(void *data, struct ky_view_live *live, struct kymo_error *err),
		     void *data, struct kymo_error *err);

#endif
