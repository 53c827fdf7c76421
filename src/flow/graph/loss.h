/* SPDX-License-Identifier: MIT */
/*
 * Losses of one stream, found by comparing each packet with the one before: the counter of
 * discarded events is cumulative, and sequence numbers have no gaps. The first packet reports no
 * loss.
 */
#ifndef KY_FLOW_GRAPH_LOSS_H
#define KY_FLOW_GRAPH_LOSS_H

#include "flow/graph/flow.h"

/* State of the packet before; initially all zeros except end_ns (INT64_MIN). */
struct ky_loss_tracker {
	bool has_discarded, has_sequence;
	uint64_t discarded, sequence;
	int64_t end_ns;
};

void ky_loss_tracker_init(struct ky_loss_tracker *tracker);

/* Notes the next packet of @stream. Returns true when *loss has a loss before it. */
bool ky_loss_tracker_packet(struct ky_loss_tracker *tracker, const struct ky_stream *stream,
			    const struct ky_packet *packet, struct ky_loss *loss);

#endif
