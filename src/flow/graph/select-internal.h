/* SPDX-License-Identifier: MIT */
/* What select.c (one graph) and select-parts.c (several at once) share. */
#ifndef KY_FLOW_GRAPH_SELECT_INTERNAL_H
#define KY_FLOW_GRAPH_SELECT_INTERNAL_H

#include "flow/graph/select.h"
#include "query/filter.h"

KY_VEC_TYPE(ky_stream_list, const struct ky_stream *);

/* What is decided before anything is read, and what sources and filters borrow. */
struct ky_selected {
	struct ky_filter *filter;
	uint8_t **wanted; /* [trace][event class index], or NULL entries: all */
	size_t n_traces;
	int64_t end_ns;
	const struct ky_stream_place *places; /* of the selection */
	struct ky_stream_list picked;	      /* the streams, in their order */
};

/* 0, or what ky_flow_open_selected() gives. To be freed on failure, too. */
int ky_selected_init(struct ky_selected *s, const struct ky_trace_set *set,
		     const struct ky_selection *selection, struct kymo_error *err);
void ky_selected_fini(struct ky_selected *s);

/*
 * The source of picked stream @i, with its filter.
 *
 * @n_streams: so many are read at the same time.
 * @bottom: NULL, or out: what is below the other stages.
 */
int ky_selected_stream(const struct ky_selected *s, const struct ky_trace_set *set, size_t i,
		       size_t n_streams, const struct ky_log *log, struct ky_flow **flow,
		       struct ky_flow **bottom, struct kymo_error *err);

/*
 * Merge @n of @flows, which are taken over with their array; or only close them, when opening them went wrong with
 * @ret, which is returned then.
 */
int ky_selected_merge(struct ky_flow **flows, size_t n, int ret, struct ky_flow **merged,
		      struct kymo_error *err);

/* Leave out what lies outside the time range. Takes @flow over. */
int ky_selected_limit(struct ky_flow *flow, const struct ky_selection *selection,
		      struct ky_flow **limited, struct kymo_error *err);

#endif
