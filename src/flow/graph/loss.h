/* SPDX-License-Identifier: MIT */
/*
 * Losses of one stream, found by comparing each packet with the one before: the counter of
 * discarded events is cumulative, sequence numbers have no gaps. The first packet tells nothing.
 */
#ifndef KY_FLOW_GRAPH_LOSS_H
#define KY_FLOW_GRAPH_LOSS_H

#include "flow/graph/flow.h"

/* What is remembered of the packet before; all zero but end_ns (INT64_MIN) at the begin. */
struct ky_loss_tracker {
	bool has_discarded, has_sequence;
	uint64_t discarded, sequence;
	int64_t end_ns;
};

void ky_loss_tracker_init(struct ky_loss_tracker *tracker);

/* Take note of the next packet of @stream; true when *loss says what is missing before it. */
bool ky_loss_tracker_packet(struct ky_loss_tracker *tracker, const struct ky_stream *stream,
			    const struct ky_packet *packet, struct ky_loss *loss);

#endif
