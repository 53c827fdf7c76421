/* SPDX-License-Identifier: MIT */
/*
 * What is in a stream, without looking into its events: numbers of packets and events by class,
 * time range, losses. Counting goes past the views that a source makes.
 */
#ifndef KY_FLOW_SUMMARY_H
#define KY_FLOW_SUMMARY_H

#include "flow/flow.h"

struct ky_stream_summary {
	const struct ky_stream *stream;
	uint64_t packets, events;
	uint64_t lost_events, lost_packets;
	int64_t begin_ns, end_ns; /* of its events; INT64_MAX and INT64_MIN when there is none */
};

/*
 * Count what @stream holds.
 *
 * @counts: by ky_event_class.index of the stream's trace; grows.
 * Returns 0, or the error of the first damage: then @summary and @counts cover what came before.
 */
int ky_stream_summarize(const struct ky_stream *stream, struct ky_stream_summary *summary,
			uint64_t *counts, struct kymo_error *err);

#endif
