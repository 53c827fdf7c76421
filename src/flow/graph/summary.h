/* SPDX-License-Identifier: MIT */
/*
 * What is in a stream, without looking into its events: numbers of packets and events by class,
 * time range, losses. Counting goes past the views that a source makes.
 */
#ifndef KY_FLOW_GRAPH_SUMMARY_H
#define KY_FLOW_GRAPH_SUMMARY_H

#include "flow/graph/flow.h"

struct ky_stream_summary {
	const struct ky_stream *stream;
	uint64_t packets, events;
	uint64_t lost_events, lost_packets;
	KY_VEC(struct ky_loss) losses; /* each of them, and each damage that was passed over */
	uint64_t damages, skipped_bytes;
	int64_t begin_ns, end_ns; /* of its events; INT64_MAX and INT64_MIN when there is none */
};

/*
 * Count what @stream holds.
 *
 * @counts: by ky_event_class.index of the stream's trace; grows.
 * @stop: asked between packets: true ends it with KYMO_E_INTERRUPTED; NULL: go to the end.
 * Returns 0, or the error of the first damage (that is not passed over): then @summary and @counts
 * cover what came before. ky_stream_summary_fini() must follow in every case.
 */
int ky_stream_summarize(const struct ky_stream *stream, struct ky_stream_summary *summary,
			uint64_t *counts, bool (*stop)(void), struct kymo_error *err);

/*
 * The same from what the index or the packets' headers tell, in time that depends on the number of
 * packets and not on their size. Events are not counted (->events is 0), and damage inside of packets
 * is not met.
 */
int ky_stream_survey(const struct ky_stream *stream, struct ky_stream_summary *summary,
		     struct kymo_error *err);

void ky_stream_summary_fini(struct ky_stream_summary *summary);

#endif
