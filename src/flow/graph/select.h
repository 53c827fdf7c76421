/* SPDX-License-Identifier: MIT */
/*
 * Selection: the events of a trace set that a graph delivers.
 *
 * The decoder makes the decisions that depend only on an event's class. A filter over values is
 * evaluated stream by stream, before the merge. A time range makes the graph seek to its begin.
 */
#ifndef KY_FLOW_GRAPH_SELECT_H
#define KY_FLOW_GRAPH_SELECT_H

#include "base/log.h"
#include "flow/graph/flow.h"

struct ky_thread_pool;

/* The event of a stream after which reading continues. */
struct ky_stream_place {
	bool is_known;	       /* false: reading starts at the stream's begin */
	uint64_t packet_bytes; /* offset of the event's packet in the stream */
	uint64_t end_bits;     /* end of the event in that packet */
};

struct ky_selection {
	const char *filter; /* an expression (query/filter.h), or NULL */
	/* Wildcards for event names, see ky_glob_choose(). None: all. */
	const char *const *events;
	size_t n_events;
	/* Wildcards for stream names (file names), in the same way; none: all. */
	const char *const *streams;
	size_t n_streams;
	const bool *
		only; /* by ky_stream.index: whether the stream is selected at all; NULL: all are */
	int64_t begin_ns; /* from the origin, inclusive; INT64_MIN: from the start */
	int64_t end_ns;	  /* inclusive; INT64_MAX: to the end */
	uint64_t head;	  /* maximum number of events; UINT64_MAX: no limit */
	uint64_t skip;	  /* number of events to skip first */
	/*
	 * By ky_stream.index: where reading continues after an earlier graph; NULL: from the begin.
	 */
	const struct ky_stream_place *places;
	struct ky_thread_pool *pool; /* reads ahead; NULL: no reading ahead */
	/*
	 * Read the whole graph ahead, as one task, for consumers with much work per event. Else
	 * each stream is decoded ahead of the merge.
	 */
	bool whole_ahead;
	/*
	 * Whether reading ends with KYMO_E_INTERRUPTED. Each stream asks before each packet, also while no event matches. With a
	 * pool, any thread asks. NULL: never.
	 */
	bool (*is_over)(void *data);
	void *over_data;
};

/* Initialises a selection of everything. */
void ky_selection_init(struct ky_selection *selection);

/*
 * The usual graph (ky_flow_open_set()) for the events of @selection. The strings are borrowed until
 * the graph's close. Warnings of its sources come at the close, stream by stream, in the same way
 * with any pool.
 *
 * Returns 0; KYMO_E_INVALID for a malformed filter, or a wildcard that matches no event (stream); a
 * status of opening the streams; or KYMO_E_MEMORY.
 */
int ky_flow_open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			  struct ky_flow **flow, struct kymo_error *err);

/*
 * Passes the warnings of that graph's sources on now, after its next() has returned 0 or an error.
 */
void ky_flow_selected_tell(struct ky_flow *flow);

/* One stream's part of a selection. */
struct ky_part {
	struct ky_flow *flow; /* the owner may close it and set it to NULL before the others */
	const struct ky_stream *stream;
	struct ky_log_keep log; /* the warnings of its source */
};

/* The same graph without the merge, for passes whose order does not matter. */
struct ky_parts {
	struct ky_part *parts; /* in the order of the streams */
	size_t n;
};

/* @selection: head and skip, which need an order, must not be set. Errors as above. */
int ky_parts_open(const struct ky_trace_set *set, const struct ky_selection *selection,
		  struct ky_parts **parts, struct kymo_error *err);
void ky_parts_close(struct ky_parts *parts); /* NULL is allowed */

/*
 * The same graph several times, each with its own sources, for callers that move the sources
 * (source.h).
 */
struct ky_copy {
	struct ky_flow *flow;	  /* a merge: ky_merge_restart() */
	struct ky_flow **sources; /* by number of the stream */
};

struct ky_copies {
	struct ky_copy *copies;
	size_t n;
	const struct ky_stream *const *streams;
	size_t n_streams;
};

/* @selection: head and skip must not be set; the caller seeks to its begin. Errors as above. */
int ky_copies_open(const struct ky_trace_set *set, const struct ky_selection *selection, size_t n,
		   struct ky_copies **copies, struct kymo_error *err);
void ky_copies_close(struct ky_copies *copies); /* NULL is allowed */

#endif
