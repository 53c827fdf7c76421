/* SPDX-License-Identifier: MIT */
/* Wake-ups of threads in a range: who woke whom, and when the woken thread ran. Threads: as answer.h. */
#ifndef KY_VIEW_WAKINGS_H
#define KY_VIEW_WAKINGS_H

#include "view/answers/answer-internal.h"

/* From a thread's row, at the waking, to the woken thread's row, when it runs. */
struct ky_waking {
	uint32_t from, to;
	int64_t begin_ns, end_ns;
};

struct ky_wakings_query {
	int64_t begin_ns, end_ns; /* both inclusive */
	uint64_t width_ns;	  /* of a sample: one in each is enough */
	uint32_t row; /* only those from or to this thread's row; KY_HISTORY_NO_ROW: all */
	size_t max;
};

/*
 * Read the events of the range, and give each wake-up by a thread to @put. The caller has @history. 0; 1: the range has too many events; KYMO_E_INTERRUPTED,
 * KYMO_E_MEMORY, or an error of the history. Of damaged traces come those before the damage.
 */
int ky_view_wakings(const struct ky_view *view, struct ky_history *history,
		    const struct ky_wakings_query *query, const struct ky_view_stop *stop,
		    void (*put)(void *data, const struct ky_waking *waking), void *data,
		    struct kymo_error *err);

#endif
