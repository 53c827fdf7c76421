/* SPDX-License-Identifier: MIT */
/*
 * The contents of a stream without its fields: numbers of packets and events by class, time range,
 * losses. Counting does not make the views of a source.
 */
#ifndef KY_FLOW_GRAPH_SUMMARY_H
#define KY_FLOW_GRAPH_SUMMARY_H

#include "flow/graph/flow.h"

struct ky_stream_summary {
	const struct ky_stream *stream;
	uint64_t packets, events;
	uint64_t lost_events, lost_packets;
	KY_VEC(struct ky_loss) losses; /* all losses, including damage that reading skipped */
	uint64_t damages, skipped_bytes;
	int64_t begin_ns, end_ns; /* of its events; INT64_MAX and INT64_MIN without events */
};

/*
 * Count the contents of @stream.
 *
 * @counts: by ky_event_class.index of the stream's trace; the function adds to it.
 * @stop: called between packets; true ends the function with KYMO_E_INTERRUPTED; NULL: never.
 * Returns 0, or the error of the first damage (without recover): @summary and @counts then cover
 * the part before it. The caller must call ky_stream_summary_fini() in any case.
 */
int ky_stream_summarize(const struct ky_stream *stream, struct ky_stream_summary *summary,
			uint64_t *counts, bool (*stop)(void), struct kymo_error *err);

/*
 * The same from the index or the packets' headers, in time that depends on the number of packets
 * and not on their size. It does not count events (->events is 0), and does not notice damage
 * inside of packets.
 */
int ky_stream_survey(const struct ky_stream *stream, struct ky_stream_summary *summary,
		     struct kymo_error *err);

void ky_stream_summary_fini(struct ky_stream_summary *summary);

#endif
