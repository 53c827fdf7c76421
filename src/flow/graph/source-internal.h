/* SPDX-License-Identifier: MIT */
/* What source.c (reading) and source-place.c (moving about) share. */
#ifndef KY_FLOW_GRAPH_SOURCE_INTERNAL_H
#define KY_FLOW_GRAPH_SOURCE_INTERNAL_H

#include "flow/graph/loss.h"
#include "flow/graph/source.h"
#include "store/walk.h"

struct source {
	struct ky_flow flow;
	const struct ky_stream *stream;
	const struct ky_log *log;
	struct ky_walk walk;
	uint64_t released_bytes; /* everything before was given back */
	uint64_t release_bytes;	 /* the step of giving back */
	struct ky_event *room;	 /* where the next batch shall lie; NULL: in ->events */
	size_t n_room;
	int64_t until_ns;	 /* with ->room: what is later may wait */
	struct ky_event *events; /* BATCH_EVENTS; NULL as long as there was always room */
	int64_t limit_ns;	 /* see ky_source_limit() */
	int64_t beyond_ns;	 /* of what lies at the limit */
	bool at_limit;
	int batch_events;
	bool in_packet, ended, warned, warned_foreign;
	bool resuming; /* events of the packet at resume_bytes that begin before resume_bits are not wanted */
	uint64_t resume_bytes, resume_bits;
	bool seeking; /* events before seek_ns are not wanted */
	int64_t seek_ns;
	struct ky_loss_tracker losses;
	struct ky_loss loss;
	struct ky_packet_list packets;
	bool has_packets;
	struct kymo_error damage; /* what loss.damage points to; 2 KiB, behind what is read often */
};

static inline struct source *ky_source_of(struct ky_flow *flow)
{
	return (struct source *)flow;
}

/* Go into the next packet, and note in s->loss what was lost before it (*lost). 1, 0 or negative. */
int ky_source_enter(struct source *s, bool *lost, struct kymo_error *err);
/* See flow.h. */
int ky_source_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
/* Give back the memory of what lies before @upto_bytes, a step behind. */
void ky_source_release(struct source *s, uint64_t upto_bytes);

#endif
