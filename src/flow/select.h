/* SPDX-License-Identifier: MIT */
/*
 * Selecting: which events of a trace set a graph delivers.
 *
 * What can be decided from an event's class is decided while decoding; a filter over values
 * is evaluated stream by stream, before the merge; the time range seeks to its begin.
 */
#ifndef KY_FLOW_SELECT_H
#define KY_FLOW_SELECT_H

#include "flow/flow.h"

struct ky_selection {
	const char *filter; /* an expression (query/filter.h), or NULL */
	/* Wildcards over event names; an event passes when any matches. None: all pass. */
	const char *const *events;
	size_t n_events;
	/* Wildcards over stream names (file names); none: all. */
	const char *const *streams;
	size_t n_streams;
	int64_t begin_ns; /* from the origin, inclusive; INT64_MIN: from the start */
	int64_t end_ns;	  /* inclusive; INT64_MAX: to the end */
	uint64_t head;	  /* at most so many events; UINT64_MAX: all */
	uint64_t skip;	  /* leave out so many first */
};

/* Everything. */
void ky_selection_init(struct ky_selection *selection);

/*
 * The usual graph (ky_flow_open_set()) for the events that @selection names. The strings are
 * borrowed until the graph is closed.
 *
 * Returns 0; KYMO_E_INVALID for a malformed filter, or a wildcard that no event (stream)
 * matches; what opening the streams gives; or KYMO_E_MEMORY.
 */
int ky_flow_open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			  struct ky_flow **flow, struct kymo_error *err);

#endif
