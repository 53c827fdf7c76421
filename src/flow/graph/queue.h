/* SPDX-License-Identifier: MIT */
/*
 * What the merge has read of one input and not delivered yet: the events of one stream, in its
 * order, with copies of what they borrow.
 *
 * A loss stands in the queue as an entry of its own, before the event that it comes before; and so does
 * a time that nothing behind it precedes, where one without its event was passed (ky_batch.floor_ns).
 */
#ifndef KY_FLOW_GRAPH_QUEUE_H
#define KY_FLOW_GRAPH_QUEUE_H

#include "flow/graph/window.h"

struct ky_queue {
	struct ky_flow *input;
	struct ky_event *entries; /* room for cap, and for two that are no events */
	/* When each one's turn is, the latest time up to it: streams whose time goes back keep their order. */
	int64_t *keys;
	size_t cap, first, end; /* entries[first] to entries[end - 1] wait */
	int64_t end_ns;	   /* the latest time of all that were read: nothing to come is earlier */
	int64_t next_ns;   /* nor than this, which was seen of what comes next */
	size_t read_bytes; /* how much was read last at once */
	const struct ky_stream *stream;		   /* NULL: nothing was read yet */
	struct ky_batch rest;			   /* of the input, what had no room */
	struct ky_window_packet *packets, *newest; /* of the entries, in order */
	bool ended;
	bool waits; /* the input had nothing yet, when it was asked last */
	int code;   /* how the input ended: 0, or its error */
	struct kymo_error err;
};

/* Takes @input over. */
void ky_queue_init(struct ky_queue *queue, struct ky_flow *input);
void ky_queue_fini(struct ky_queue *queue, struct ky_windows *windows);
/* Forget everything that waits: the input was moved. */
void ky_queue_reset(struct ky_queue *queue, struct ky_windows *windows);

/*
 * Read some batches more, up to @cap entries and, if the input can do so, to @until_ns: at least one, or
 * the input has ended. An error of the input is kept in ->code. 0 or KYMO_E_MEMORY.
 */
int ky_queue_fill(struct ky_queue *queue, struct ky_windows *windows, size_t cap, int64_t until_ns);
/* Give back the room that it needed once, if @cap entries are enough now. 0 or KYMO_E_MEMORY. */
int ky_queue_narrow(struct ky_queue *queue, size_t cap);
/* It will be filled soon: fetch what will be read. */
void ky_queue_prefetch(const struct ky_queue *queue);

/* The first @n entries go into windows->current. */
void ky_queue_take(struct ky_queue *queue, struct ky_windows *windows, size_t n);

static inline size_t ky_queue_length(const struct ky_queue *queue)
{
	return queue->end - queue->first;
}

/* Nothing to come is earlier. */
static inline int64_t ky_queue_reach(const struct ky_queue *queue)
{
	return queue->next_ns > queue->end_ns ? queue->next_ns : queue->end_ns;
}

/* Was it not read to @until_ns yet? INT64_MAX is no time to stop at, though events may be there. */
static inline bool ky_queue_is_short(const struct ky_queue *queue, int64_t until_ns)
{
	return until_ns == INT64_MAX || ky_queue_reach(queue) < until_ns;
}

/* Does it have room for much more than @cap entries? */
static inline bool ky_queue_is_wide(const struct ky_queue *queue, size_t cap)
{
	return queue->cap / 2 >= cap;
}

/* ---- losses as entries ---------------------------------------------------------------------- */

/* Is it a place in the order only, not an event? */
static inline bool ky_entry_is_bare(const struct ky_event *entry)
{
	return __builtin_expect(!entry->cls, 0);
}

/* What is lost before the next entry; NULL: nothing, or @entry is an event. The window frees it. */
static inline struct ky_loss *ky_entry_loss(const struct ky_event *entry)
{
	return __builtin_expect(!entry->cls, 0) ? (struct ky_loss *)(uintptr_t)entry->begin_bits
						: NULL;
}

/* Is the next entry the event that came with the loss? */
static inline bool ky_entry_has_event(const struct ky_event *entry)
{
	return entry->cycles;
}

#endif
