/* SPDX-License-Identifier: MIT */
/* Where the search in the table of events need not look. Threads: any. */
#ifndef KY_VIEW_TSP_SEARCH_H
#define KY_VIEW_TSP_SEARCH_H

#include "view/tsp/tsp-internal.h"
#include "view/tsp/tsp-pattern.h"

/*
 * Move *@index to the next event, or with @is_backward to the previous one, whose name @names finds, as far as
 * the engine can tell; *@index itself counts. @filter: of the table; "": none. The search goes on there: events with the same
 * time may be in between. *@is_there: false: no such event follows.
 *
 * The engine counts these events once, as it does for each filter; the call waits for it. Returns 0 or as
 * ky_view_answer().
 */
int ky_tsp_search_jump(struct ky_tsp_answer *answer, const char *filter,
		       struct ky_tsp_pattern *names, bool is_backward, uint64_t *index,
		       bool *is_there, struct kymo_error *err);

#endif
