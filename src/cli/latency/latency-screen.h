/* SPDX-License-Identifier: MIT */
/*
 * kymo latency on a terminal: the layers side by side; of a row that is chosen, its whole distribution, a range of it,
 * and the last members in it with their call stacks.
 */
#ifndef KY_CLI_LATENCY_LATENCY_SCREEN_H
#define KY_CLI_LATENCY_LATENCY_SCREEN_H

#include "cli/latency/latency-members.h"
#include "cli/latency/latency-output.h"

struct ky_screen;

/* Take the terminal. KYMO_E_UNSUPPORTED: it cannot do that, or the build has no ncurses; KYMO_E_MEMORY. */
int ky_screen_open(struct ky_latency_view *view, struct ky_members *members,
		   struct ky_screen **screen, struct kymo_error *err);
/* Give the terminal back. NULL is allowed. */
void ky_screen_close(struct ky_screen *screen);
/* Take in a new period, and draw. 0 or KYMO_E_MEMORY. */
int ky_screen_update(struct ky_screen *screen, struct kymo_error *err);
/* Obey the keys that were pressed, and draw. False: the user wants to end. */
bool ky_screen_keys(struct ky_screen *screen);

#endif
