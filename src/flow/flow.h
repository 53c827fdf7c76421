/* SPDX-License-Identifier: MIT */
/*
 * The read graph: stages that pull batches of events from one another.
 *
 *	source (one stream) ... -> merge -> [trim, filter ...] -> sink
 *
 * A stage yields runs of events that are borrowed: valid until the next ky_flow_next() or
 * ky_flow_seek() on that stage. A stage owns the stages that it reads from.
 * Threads: one at a time per graph.
 */
#ifndef KY_FLOW_FLOW_H
#define KY_FLOW_FLOW_H

#include "store/trace.h"

/*
 * What is missing before an event: records that the tracer could not keep, between two packets
 * of a stream, or in a trace that is read in spite of damage (ky_trace_options.recover) a damage.
 */
struct ky_loss {
	const struct ky_stream *stream;
	uint64_t events;	  /* discarded event records; 0 when only packets are missing */
	uint64_t packets;	  /* missing packets (sequence numbers) */
	int64_t begin_ns, end_ns; /* they lie in between; INT64_MIN when not known */
	/* NULL, or what is wrong and where; valid as long as the batch. */
	const struct kymo_error *damage;
	uint64_t skipped_bytes; /* from there to where reading went on */
};

/* Make @loss outlive its batch: its damage becomes a copy. 0 or KYMO_E_MEMORY. */
int ky_loss_keep(struct ky_loss *loss);
/* Free what ky_loss_keep() made. */
void ky_loss_drop(struct ky_loss *loss);

/*
 * What a stage yields: events of one stream in time order, none later than any event of a
 * later batch of the merge. A loss lies before events[0]; n_events may then be 0.
 */
struct ky_batch {
	const struct ky_stream *stream;
	const struct ky_event *events;
	size_t n_events;
	const struct ky_loss *loss; /* or NULL */
};

struct ky_flow;

struct ky_flow_ops {
	/* 1: *batch is set; 0: the end; negative: an error. Events before it came first. */
	int (*next)(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err);
	/* Continue with the first event at or after @ns (from the origin). NULL: not supported. */
	int (*seek)(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
	void (*close)(struct ky_flow *flow);
};

struct ky_flow {
	const struct ky_flow_ops *ops;
};

static inline int ky_flow_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	return flow->ops->next(flow, batch, err);
}

int ky_flow_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
void ky_flow_close(struct ky_flow *flow); /* NULL is fine */

/* All events of one stream. */
int ky_source_open(const struct ky_stream *stream, struct ky_flow **flow, struct kymo_error *err);

/*
 * Decode only events whose class' byte in @wanted (by ky_event_class.index) is not 0; NULL: all.
 * @source is what ky_source_open() gave; @wanted is borrowed.
 */
void ky_source_want(struct ky_flow *source, const uint8_t *wanted);

/* @n sources are read at the same time, turn by turn: take no more memory than such a share. */
void ky_source_share(struct ky_flow *source, size_t n);

/* Send what @source warns of to @log (borrowed) instead of its trace's. */
void ky_source_log(struct ky_flow *source, const struct ky_log *log);

/*
 * Merge @inputs by (time, stream index, position): the order is total. Takes the inputs over,
 * on failure too. Damage in one input: the others are still delivered to their end, then
 * the first error is returned.
 */
int ky_merge_open(struct ky_flow **inputs, size_t n_inputs, struct ky_flow **flow,
		  struct kymo_error *err);

/* The usual graph: every stream of @set, merged. */
int ky_flow_open_set(const struct ky_trace_set *set, struct ky_flow **flow, struct kymo_error *err);

#endif
