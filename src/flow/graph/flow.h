/* SPDX-License-Identifier: MIT */
/*
 * The read graph: stages that pull batches of events from one another.
 *
 *	source (one stream) ... -> merge -> [trim, filter ...] -> sink
 *
 * A stage yields events that are borrowed: valid until the next ky_flow_next() or ky_flow_seek()
 * on that stage, or as long as their window is held. A stage owns the stages that it reads from.
 * Threads: one at a time per graph.
 */
#ifndef KY_FLOW_GRAPH_FLOW_H
#define KY_FLOW_GRAPH_FLOW_H

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
	/* When it is told: as its packet's first event, whatever is wanted; without one, at begin_ns. */
	int64_t ns;
};

/* Make @loss outlive its batch: its damage becomes a copy. 0 or KYMO_E_MEMORY. */
int ky_loss_keep(struct ky_loss *loss);
/* Free what ky_loss_keep() made. */
void ky_loss_drop(struct ky_loss *loss);

struct ky_window;

/*
 * What a stage yields: events in the order of time, none later than any event of a later batch of
 * the merge. A loss lies before events[0]; n_events may then be 0.
 * Before the merge all events are of one stream, and of one packet.
 */
struct ky_batch {
	const struct ky_stream *stream; /* whose events they are; NULL: see their packets */
	const struct ky_event *events;
	size_t n_events;
	const struct ky_loss *loss; /* or NULL */
	struct ky_window *window; /* for holding the events (window.h); NULL: they cannot be held */
	/* Before the merge: time went back; an event before these was at floor_ns, wanted or not. */
	bool has_floor;
	int64_t floor_ns;
	/* Before the merge: what follows these events begins at next_ns, or later. */
	bool has_next;
	int64_t next_ns;
};

/* The stream of @event of @batch. */
static inline const struct ky_stream *ky_batch_stream(const struct ky_batch *batch,
						      const struct ky_event *event)
{
	return batch->stream ? batch->stream : event->packet->stream;
}

/*
 * Go through a batch by runs, for those who deal with one stream at a time: cut off @rest its loss and
 * its first events, as far as they are of one packet. False when nothing is left.
 */
static inline bool ky_batch_run(struct ky_batch *rest, struct ky_batch *run)
{
	size_t n = 0;

	if (!rest->n_events && !rest->loss)
		return false;
	while (n < rest->n_events && rest->events[n].packet == rest->events[0].packet)
		n++;
	*run = *rest;
	run->n_events = n;
	if (n)
		run->stream = ky_batch_stream(rest, rest->events);
	rest->events += n;
	rest->n_events -= n;
	rest->loss = NULL;
	return true;
}

struct ky_flow;

struct ky_flow_ops {
	/*
	 * 1: *batch is set; 0: the end; negative: an error. Events before it came first. KYMO_E_AGAIN: nothing yet, of
	 * a trace that is being written; before the merge, has_next and next_ns of *batch are valid then.
	 */
	int (*next)(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err);
	/* Continue with the first event at or after @ns (from the origin). NULL: not supported. */
	int (*seek)(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
	void (*close)(struct ky_flow *flow);
	/* As ky_flow_broken(); NULL: not known before the end. */
	int (*broken)(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err);
	/* NULL: batches lie where the stage wants. */
	void (*room)(struct ky_flow *flow, struct ky_event *room, size_t n, int64_t until_ns);
	void (*fetch)(const struct ky_flow *flow, size_t n_bytes); /* or NULL */
};

struct ky_flow {
	const struct ky_flow_ops *ops;
};

static inline int ky_flow_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	return flow->ops->next(flow, batch, err);
}

/*
 * Ask for the events of the next batch to be put to @room, no more than @n, at least one; and for none
 * at @until_ns or later, unless it is the only one. A stage that can not do so does as it likes;
 * batch->events tells.
 */
static inline void ky_flow_room(struct ky_flow *flow, struct ky_event *room, size_t n,
				int64_t until_ns)
{
	if (flow->ops->room)
		flow->ops->room(flow, room, n, until_ns);
}

/* @flow will have its turn soon: have the processor fetch @n_bytes of what it reads next. */
static inline void ky_flow_fetch(const struct ky_flow *flow, size_t n_bytes)
{
	if (flow->ops->fetch)
		flow->ops->fetch(flow, n_bytes);
}

int ky_flow_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
/*
 * Of streams that damage ended, as far as was read: what is wrong with the @i'th, which is returned, and the
 * time *@ns of its last event (INT64_MIN: it had none). 0: there are no more. All that end before an event
 * that was delivered are among them.
 */
int ky_flow_broken(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err);
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

/*
 * Of a source that has delivered nothing: begin in the packet at byte @packet_bytes of the stream, behind what ends at bit
 * @end_bits of it.
 */
void ky_source_resume(struct ky_flow *source, uint64_t packet_bytes, uint64_t end_bits);

/* Send what @source warns of to @log (borrowed) instead of its trace's. */
void ky_source_log(struct ky_flow *source, const struct ky_log *log);

/*
 * Merge @inputs by (time, stream index, position): the order is total. Each is one stream, and they
 * are in the streams' order. Takes them over, on failure too. Its batches have a window.
 * Damage in one input: the others are still delivered to their end, then the first error, in the
 * order of the merge, is returned.
 * Returns 0, KYMO_E_MEMORY, or KYMO_E_UNSUPPORTED for more streams than can be merged (a million).
 */
int ky_merge_open(struct ky_flow **inputs, size_t n_inputs, struct ky_flow **flow,
		  struct kymo_error *err);

/* Go on with what the inputs of @merge yield now: they were moved. */
void ky_merge_restart(struct ky_flow *merge);

/*
 * Read what the inputs of @merge yield up to their end, before any of it is delivered. Returns how many
 * events; KYMO_E_LIMIT when there are more than @max, or KYMO_E_MEMORY: restart it then.
 */
ssize_t ky_merge_prefill(struct ky_flow *merge, size_t max);

/* The usual graph: every stream of @set, merged. */
int ky_flow_open_set(const struct ky_trace_set *set, struct ky_flow **flow, struct kymo_error *err);

#endif
