/* SPDX-License-Identifier: MIT */
/*
 * The traces that a viewer shows, with the estimates from their packets.
 *
 * Threads: any number of answers at the same time.
 */
#ifndef KY_VIEW_VIEW_H
#define KY_VIEW_VIEW_H

#include "base/strbuf.h"
#include "store/read/trace.h"

struct ky_view;

/*
 * Whether an answer is still wanted: true ends it with KYMO_E_INTERRUPTED. Any thread calls it, at
 * most some hundred times a second.
 */
struct ky_view_stop {
	bool (*is_over)(void *data);
	void *data;
};

/*
 * @set is borrowed; the function turns off its warnings, which answers would repeat. Reads only the
 * headers of packets, and the first and last packet of each stream. Returns 0 or KYMO_E_MEMORY.
 */
int ky_view_new(struct ky_trace_set *set, struct ky_view **view, struct kymo_error *err);
/*
 * The same for a later state @set of a recording that @before shows: its counts go on. @before answers until it is freed,
 * from what was counted.
 */
int ky_view_new_after(struct ky_trace_set *set, struct ky_view *before, struct ky_view **view,
		      struct kymo_error *err);
/* Ends the counting. No answer may be in progress. NULL is allowed. */
void ky_view_free(struct ky_view *view);

#endif
