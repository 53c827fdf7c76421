/* SPDX-License-Identifier: MIT */
/*
 * Selecting: which events of a trace set a graph delivers.
 *
 * What can be decided from an event's class is decided while decoding; a filter over values
 * is evaluated stream by stream, before the merge; the time range seeks to its begin.
 */
#ifndef KY_FLOW_GRAPH_SELECT_H
#define KY_FLOW_GRAPH_SELECT_H

#include "base/log.h"
#include "flow/graph/flow.h"

struct ky_thread_pool;

/* Behind which event of a stream reading goes on. */
struct ky_stream_place {
	bool is_known;	       /* else from the stream's begin */
	uint64_t packet_bytes; /* where the event's packet begins in the stream */
	uint64_t end_bits;     /* where the event ends in that packet */
};

struct ky_selection {
	const char *filter; /* an expression (query/filter.h), or NULL */
	/* Wildcards over event names, see ky_glob_choose(). None: all pass. */
	const char *const *events;
	size_t n_events;
	/* Wildcards over stream names (file names), chosen in the same way; none: all. */
	const char *const *streams;
	size_t n_streams;
	const bool *only; /* by ky_stream.index: whether it is wanted at all; NULL: all are */
	int64_t begin_ns; /* from the origin, inclusive; INT64_MIN: from the start */
	int64_t end_ns;	  /* inclusive; INT64_MAX: to the end */
	uint64_t head;	  /* at most so many events; UINT64_MAX: all */
	uint64_t skip;	  /* leave out so many first */
	/* By ky_stream.index: where reading goes on, as an earlier graph left it; NULL: from the begin. */
	const struct ky_stream_place *places;
	struct ky_thread_pool *pool; /* reads ahead; NULL: only when asked for */
	/* All of the graph is read ahead, as one task, for who has much to do with each event; else each
	 * stream is decoded ahead of the merge. */
	bool whole_ahead;
};

/* Everything. */
void ky_selection_init(struct ky_selection *selection);

/*
 * The usual graph (ky_flow_open_set()) for the events that @selection names. The strings are
 * borrowed until the graph is closed. What its sources warn of is told at the close, stream by
 * stream: the same with any pool.
 *
 * Returns 0; KYMO_E_INVALID for a malformed filter, or a wildcard that no event (stream)
 * matches; what opening the streams gives; or KYMO_E_MEMORY.
 */
int ky_flow_open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			  struct ky_flow **flow, struct kymo_error *err);

/* Tell what the sources of that graph warned of now: its next() has returned 0, or an error. */
void ky_flow_selected_tell(struct ky_flow *flow);

/* One stream's part of a selection. */
struct ky_part {
	struct ky_flow *flow; /* may be closed and set to NULL before the others */
	const struct ky_stream *stream;
	struct ky_log_keep log; /* what its source warned of */
};

/* The same graph without the merge: for passes whose order nobody sees. */
struct ky_parts {
	struct ky_part *parts; /* in the order of the streams */
	size_t n;
};

/* @selection: head and skip, which need an order, must not be set. Errors as above. */
int ky_parts_open(const struct ky_trace_set *set, const struct ky_selection *selection,
		  struct ky_parts **parts, struct kymo_error *err);
void ky_parts_close(struct ky_parts *parts); /* NULL is fine */

/* The same graph several times, each with its own sources, for those who move them about (source.h). */
struct ky_copy {
	struct ky_flow *flow;	  /* a merge: ky_merge_restart() */
	struct ky_flow **sources; /* by number of the stream below */
};

struct ky_copies {
	struct ky_copy *copies;
	size_t n;
	const struct ky_stream *const *streams;
	size_t n_streams;
};

/* @selection: head and skip must not be set; its begin is for the caller to seek. Errors as above. */
int ky_copies_open(const struct ky_trace_set *set, const struct ky_selection *selection, size_t n,
		   struct ky_copies **copies, struct kymo_error *err);
void ky_copies_close(struct ky_copies *copies); /* NULL is fine */

#endif
