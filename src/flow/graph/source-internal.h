/* SPDX-License-Identifier: MIT */
/* The shared part of source.c (reading) and source-seek.c (moving). */
#ifndef KY_FLOW_GRAPH_SOURCE_INTERNAL_H
#define KY_FLOW_GRAPH_SOURCE_INTERNAL_H

#include "flow/graph/loss.h"
#include "flow/graph/source.h"
#include "store/read/walk.h"

struct source {
	struct ky_flow flow;
	const struct ky_stream *stream;
	const struct ky_log *log;
	struct ky_walk walk;
	uint64_t released_bytes; /* everything before was given back to the kernel */
	uint64_t release_bytes;	 /* the step size of giving back */
	struct ky_event *room;	 /* place of the next batch; NULL: in ->events */
	size_t n_room;
	int64_t until_ns;	 /* with ->room: later events may wait */
	struct ky_event *events; /* BATCH_EVENTS; NULL as long as the caller always gave room */
	int64_t limit_ns;	 /* see ky_source_limit() */
	int64_t beyond_ns;	 /* time of the entry at the limit */
	bool at_limit;
	int batch_events;
	bool in_packet, ended, warned, warned_foreign;
	bool resuming; /* skip events of the packet at resume_bytes that begin before resume_bits */
	uint64_t resume_bytes, resume_bits;
	bool seeking; /* skip events before seek_ns */
	int64_t seek_ns;
	struct ky_loss_tracker losses;
	struct ky_loss loss;
	struct ky_packet_list packets;
	bool has_packets;
	bool (*is_over)(void *data); /* see ky_source_stop(); NULL: never */
	void *over_data;
	struct kymo_error
		damage; /* for loss.damage; 2 KiB, so it lies after the members that are read often */
};

static inline struct source *ky_source_of(struct ky_flow *flow)
{
	return (struct source *)flow;
}

/*
 * Enters the next packet and sets s->loss to the loss before it (*lost). Returns 1, 0 or negative.
 */
int ky_source_enter(struct source *s, bool *lost, struct kymo_error *err);
/* See flow.h. */
int ky_source_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
/* Gives back the memory before @upto_bytes, one step late. */
void ky_source_release(struct source *s, uint64_t upto_bytes);

#endif
