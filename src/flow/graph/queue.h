/* SPDX-License-Identifier: MIT */
/*
 * The queue of one input of the merge: events of one stream that were read and not delivered yet,
 * in the stream's order, with copies of the data that they borrow.
 *
 * A loss is an entry of its own in the queue, before its event. So is a time before which no later
 * event lies, where the event of that time was not selected (ky_batch.floor_ns).
 */
#ifndef KY_FLOW_GRAPH_QUEUE_H
#define KY_FLOW_GRAPH_QUEUE_H

#include "flow/graph/window.h"

struct ky_queue {
	struct ky_flow *input;
	struct ky_event *entries; /* room for cap, and for two entries that are not events */
	/*
	 * The latest time up to each entry, by which the merge orders them: streams whose time goes
	 * back keep their order.
	 */
	int64_t *keys;
	size_t cap, first, end; /* entries[first] to entries[end - 1] are in the queue */
	int64_t end_ns;	   /* the latest time of all events so far: future events are not earlier */
	int64_t next_ns;   /* another lower bound for future events */
	size_t read_bytes; /* size of the last read */
	const struct ky_stream *stream; /* NULL: nothing was read yet */
	struct ky_batch rest;		/* the part of the input's batch that had no room */
	struct ky_window_packet *packets, *newest; /* of the entries, in order */
	bool ended;
	bool waits; /* the input had no events yet at the last call */
	int code;   /* end of the input: 0, or its error */
	struct kymo_error err;
};

/* Takes @input over. */
void ky_queue_init(struct ky_queue *queue, struct ky_flow *input);
void ky_queue_fini(struct ky_queue *queue, struct ky_windows *windows);
/* Drops all entries, after the input was moved. */
void ky_queue_reset(struct ky_queue *queue, struct ky_windows *windows);

/*
 * Read some more batches, up to @cap entries and, if the input supports it, up to @until_ns. At
 * least one event is read unless the input has ended. ->code keeps an error of the input. Returns 0
 * or KYMO_E_MEMORY.
 */
int ky_queue_fill(struct ky_queue *queue, struct ky_windows *windows, size_t cap, int64_t until_ns);
/* Frees surplus room, if @cap entries are enough now. Returns 0 or KYMO_E_MEMORY. */
int ky_queue_narrow(struct ky_queue *queue, size_t cap);
/* Prefetches the data for the next fill. */
void ky_queue_prefetch(const struct ky_queue *queue);

/* Moves the first @n entries into windows->current. */
void ky_queue_take(struct ky_queue *queue, struct ky_windows *windows, size_t n);

static inline size_t ky_queue_length(const struct ky_queue *queue)
{
	return queue->end - queue->first;
}

/* The lower bound for future events. */
static inline int64_t ky_queue_reach(const struct ky_queue *queue)
{
	return queue->next_ns > queue->end_ns ? queue->next_ns : queue->end_ns;
}

/*
 * Whether the queue is not filled up to @until_ns yet. INT64_MAX is not a time to stop at, though
 * events may have it.
 */
static inline bool ky_queue_is_short(const struct ky_queue *queue, int64_t until_ns)
{
	return until_ns == INT64_MAX || ky_queue_reach(queue) < until_ns;
}

/* Whether the queue has room for much more than @cap entries. */
static inline bool ky_queue_is_wide(const struct ky_queue *queue, size_t cap)
{
	return queue->cap / 2 >= cap;
}

/* ---- losses as entries ---------------------------------------------------------------------- */

/* Whether the entry is only a place in the order, not an event. */
static inline bool ky_entry_is_bare(const struct ky_event *entry)
{
	return __builtin_expect(!entry->cls, 0);
}

/* The loss before the next entry; NULL: none, or @entry is an event. The window frees it. */
static inline struct ky_loss *ky_entry_loss(const struct ky_event *entry)
{
	return __builtin_expect(!entry->cls, 0) ? (struct ky_loss *)(uintptr_t)entry->begin_bits
						: NULL;
}

/* Whether the next entry is the event that came with the loss. */
static inline bool ky_entry_has_event(const struct ky_event *entry)
{
	return entry->cycles;
}

#endif
