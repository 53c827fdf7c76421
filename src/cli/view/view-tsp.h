/* SPDX-License-Identifier: MIT */
/* kymo view --tsp: a server of the Trace Server Protocol. */
#ifndef KY_CLI_VIEW_VIEW_TSP_H
#define KY_CLI_VIEW_VIEW_TSP_H

#include "view/session/live.h"

struct view_tsp {
	const char *const *paths; /* of the command line */
	size_t n_paths;
	const char *const *origins; /* of clients that are pages */
	size_t n_origins;
	bool follows;  /* recordings that clients open */
	uint16_t port; /* 0: that of the protocol */
};

/*
 * Serve until a signal. @view or @live: of the traces at ->paths; NULL without. Returns 0; KYMO_E_INVALID for a
 * malformed origin; or the error of the server.
 */
int view_serve_tsp(const struct view_tsp *tsp, struct ky_view *view, struct ky_view_live *live,
		   struct kymo_error *err);

/* Until a signal that ends the program. */
int view_wait_for_end(struct kymo_error *err);

#endif
