/* SPDX-License-Identifier: MIT */
/* The shared part of select.c (one graph) and select-parts.c (several at once). */
#ifndef KY_FLOW_GRAPH_SELECT_INTERNAL_H
#define KY_FLOW_GRAPH_SELECT_INTERNAL_H

#include "flow/graph/select.h"
#include "query/filter.h"

KY_VEC_TYPE(ky_stream_list, const struct ky_stream *);

/* Decisions before reading, and the data that sources and filters borrow. */
struct ky_selected {
	struct ky_filter *filter;
	uint8_t **wanted; /* [trace][event class index], or NULL entries: all */
	size_t n_traces;
	int64_t end_ns;
	const struct ky_stream_place *places; /* of the selection, as the next ones */
	bool (*is_over)(void *data);
	void *over_data;
	struct ky_stream_list picked; /* the streams, in their order */
};

/* Returns 0, or a status of ky_flow_open_selected(). The caller must free it on failure, too. */
int ky_selected_init(struct ky_selected *s, const struct ky_trace_set *set,
		     const struct ky_selection *selection, struct kymo_error *err);
void ky_selected_fini(struct ky_selected *s);

/*
 * The source of selected stream @i, with its filter.
 *
 * @n_streams: the number of streams that are read at the same time.
 * @bottom: NULL, or out: the lowest stage.
 */
int ky_selected_stream(const struct ky_selected *s, const struct ky_trace_set *set, size_t i,
		       size_t n_streams, const struct ky_log *log, struct ky_flow **flow,
		       struct ky_flow **bottom, struct kymo_error *err);

/*
 * Merge @n of @flows, which the function takes over with their array. When opening them failed with
 * @ret, the function only closes them and returns @ret.
 */
int ky_selected_merge(struct ky_flow **flows, size_t n, int ret, struct ky_flow **merged,
		      struct kymo_error *err);

/* Limits @flow to the time range. Takes @flow over. */
int ky_selected_limit(struct ky_flow *flow, const struct ky_selection *selection,
		      struct ky_flow **limited, struct kymo_error *err);

#endif
