/* SPDX-License-Identifier: MIT */
/*
 * The read graph: stages that pull batches of events from each other.
 *
 *	source (one stream) ... -> merge -> [trim, filter ...] -> sink
 *
 * The caller borrows a stage's events: they are valid until the next ky_flow_next() or
 * ky_flow_seek() on that stage, or while their window is held. A stage owns its input stages.
 * Threads: one at a time per graph.
 */
#ifndef KY_FLOW_GRAPH_FLOW_H
#define KY_FLOW_GRAPH_FLOW_H

#include "store/read/trace.h"

/*
 * A loss before an event: records that the tracer discarded between two packets of a stream, or, in
 * a trace with the option recover (ky_trace_options.recover), a damage.
 */
struct ky_loss {
	const struct ky_stream *stream;
	uint64_t events;	  /* discarded events; 0 when only packets are missing */
	uint64_t packets;	  /* missing packets (sequence numbers) */
	int64_t begin_ns, end_ns; /* the time of the loss; INT64_MIN when unknown */
	/* NULL, or the damage with its place; valid as long as the batch. */
	const struct kymo_error *damage;
	uint64_t skipped_bytes; /* from the damage to the place where reading continues */
	/*
	 * Place of the loss in the order: the time of its packet's first event, selected or not;
	 * without an event, begin_ns.
	 */
	int64_t ns;
};

/* Makes @loss outlive its batch: copies its damage. Returns 0 or KYMO_E_MEMORY. */
int ky_loss_keep(struct ky_loss *loss);
/* Frees the copy of ky_loss_keep(). */
void ky_loss_drop(struct ky_loss *loss);

struct ky_window;

/*
 * The result of a stage: events in the order of time. After the merge, no event of a later batch is
 * earlier. A loss comes before events[0]; n_events may then be 0. Before the merge, all events of a
 * batch are of one stream and of one packet.
 */
struct ky_batch {
	const struct ky_stream
		*stream; /* the stream of the events; NULL: each packet has its own */
	const struct ky_event *events;
	size_t n_events;
	const struct ky_loss *loss; /* or NULL */
	struct ky_window *window; /* for holding the events (window.h); NULL: they cannot be held */
	/* Before the merge: time went back; an earlier event, selected or not, was at floor_ns. */
	bool has_floor;
	int64_t floor_ns;
	/* Before the merge: later events are at next_ns or later. */
	bool has_next;
	int64_t next_ns;
};

/* The stream of @event, an event of @batch. */
static inline const struct ky_stream *ky_batch_stream(const struct ky_batch *batch,
						      const struct ky_event *event)
{
	return batch->stream ? batch->stream : event->packet->stream;
}

/*
 * Go through a batch by runs, for callers that handle one stream at a time: moves the loss and the
 * first events of @rest, as far as they are of one packet, to @run. Returns false when nothing is
 * left.
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
	 * Returns 1: *batch is set; 0: the end; negative: an error, after all events before it.
	 * KYMO_E_AGAIN: no events yet, in a live trace; before the merge, has_next and next_ns of
	 * *batch are valid then.
	 */
	int (*next)(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err);
	/* Continues with the first event at or after @ns (from the origin). NULL: not supported. */
	int (*seek)(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
	void (*close)(struct ky_flow *flow);
	/* See ky_flow_broken(); NULL: not known before the end. */
	int (*broken)(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err);
	/* See ky_flow_room(); NULL: the stage chooses the memory of its batches. */
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
 * Ask the stage to put the events of the next batch to @room: at most @n, at least one, and none at
 * @until_ns or later except a single one. A stage may ignore the request; batch->events has the
 * place.
 */
static inline void ky_flow_room(struct ky_flow *flow, struct ky_event *room, size_t n,
				int64_t until_ns)
{
	if (flow->ops->room)
		flow->ops->room(flow, room, n, until_ns);
}

/* @flow runs soon: make the processor prefetch @n_bytes of its next data. */
static inline void ky_flow_fetch(const struct ky_flow *flow, size_t n_bytes)
{
	if (flow->ops->fetch)
		flow->ops->fetch(flow, n_bytes);
}

int ky_flow_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err);
/*
 * Streams that damage ended so far: the error of number @i, which is returned, and the time *@ns of
 * the stream's last event (INT64_MIN: none). 0: there are no more. The list has all streams that
 * ended before an event that the stage has delivered.
 */
int ky_flow_broken(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err);
void ky_flow_close(struct ky_flow *flow); /* NULL is allowed */

/*
 * The begin of a stage with one input, which it owns. ky_stage_seek() and ky_stage_broken() pass the request on to the
 * input; ky_stage_close() closes the input and frees the stage.
 */
struct ky_stage {
	struct ky_flow flow;
	struct ky_flow *input;
};

int ky_stage_seek(struct ky_flow *stage, int64_t ns, struct kymo_error *err);
int ky_stage_broken(struct ky_flow *stage, size_t i, int64_t *ns, struct kymo_error *err);
void ky_stage_close(struct ky_flow *stage);

/* All events of one stream. */
int ky_source_open(const struct ky_stream *stream, struct ky_flow **flow, struct kymo_error *err);

/*
 * Decode only events whose class has a nonzero byte in @wanted (by ky_event_class.index); NULL:
 * all. @source is a stage from ky_source_open(); @wanted is borrowed.
 */
void ky_source_want(struct ky_flow *source, const uint8_t *wanted);
/* Ask @is_over before each packet: true ends @source with KYMO_E_INTERRUPTED. @data is borrowed. */
void ky_source_stop(struct ky_flow *source, bool (*is_over)(void *data), void *data);

/* The number of sources that are read in turns: each limits its memory accordingly. */
void ky_source_share(struct ky_flow *source, size_t n);

/*
 * For a source that has delivered nothing: begin in the packet at byte @packet_bytes of the stream,
 * after bit @end_bits of that packet.
 */
void ky_source_resume(struct ky_flow *source, uint64_t packet_bytes, uint64_t end_bits);

/* Sends the warnings of @source to @log (borrowed) instead of its trace's log. */
void ky_source_log(struct ky_flow *source, const struct ky_log *log);

/*
 * Merge @inputs by (time, stream index, position), which is a total order. Each input is one
 * stream, and they have the streams' order. The merge takes the inputs over, on failure too. Its
 * batches have a window. After damage in one input, the merge delivers the others to their end,
 * then returns the first error in the order of the merge.
 *
 * Returns 0, KYMO_E_MEMORY, or KYMO_E_UNSUPPORTED for more streams than it supports (a million).
 */
int ky_merge_open(struct ky_flow **inputs, size_t n_inputs, struct ky_flow **flow,
		  struct kymo_error *err);

/* Drops the events in the queues of @merge, after the caller has moved its inputs. */
void ky_merge_restart(struct ky_flow *merge);

/*
 * Read all events of the inputs of @merge up to their end, before it delivers any. Returns the
 * number of events; KYMO_E_LIMIT when there are more than @max, or KYMO_E_MEMORY: the caller must
 * then restart it.
 */
ssize_t ky_merge_prefill(struct ky_flow *merge, size_t max);

/* The usual graph: every stream of @set, merged. */
int ky_flow_open_set(const struct ky_trace_set *set, struct ky_flow **flow, struct kymo_error *err);

#endif
