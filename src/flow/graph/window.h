/* SPDX-License-Identifier: MIT */
/*
 * Where a merge puts events that are in order, and what they borrow: descriptions of packets,
 * losses. A consumer who wants events for longer than until the next call holds their window.
 *
 * Windows are used again in the order in which they were begun: what an event borrows is kept
 * as long as any window that is not younger than the last one with events of that packet.
 * Threads: all calls by the thread whose merge it is. Others may read a held window's events.
 */
#ifndef KY_FLOW_GRAPH_WINDOW_H
#define KY_FLOW_GRAPH_WINDOW_H

#include <stdlib.h>

#include "flow/graph/flow.h"

/* The description of a packet, as it was when its events came. */
struct ky_window_packet {
	struct ky_packet packet;
	struct ky_window_packet *next;
	size_t n_left; /* the merge's: events that wait for their window */
};

/* Room for @n events, each in a cache line of its own; NULL when out of memory. For free(). */
static inline struct ky_event *ky_events_new(size_t n)
{
	return (struct ky_event *)aligned_alloc(KY_EVENT_ALIGN, n * sizeof(struct ky_event));
}

struct ky_window {
	struct ky_event *events;
	size_t n_events, cap;
	unsigned int n_holders;
	KY_VEC(struct ky_loss *) losses;  /* to be freed with the window's next use */
	struct ky_window_packet *retired; /* likewise */
	struct ky_window *next;
};

/* Keep @window's events. */
static inline void ky_window_hold(struct ky_window *window)
{
	window->n_holders++;
}

static inline void ky_window_release(struct ky_window *window)
{
	window->n_holders--;
}

/* All windows of one merge. */
struct ky_windows {
	struct ky_window *oldest, *current; /* linked by ->next from the oldest on */
	struct ky_window *spare;
	struct ky_window_packet *spare_packets;
};

/* All zeros is an empty one. */
void ky_windows_fini(struct ky_windows *windows);

/* Begin a window with room for @n events: windows->current. 0 or KYMO_E_MEMORY. */
int ky_windows_next(struct ky_windows *windows, size_t n);

/* A copy of @packet, NULL when out of memory. To be given to ky_windows_retire(). */
struct ky_window_packet *ky_windows_packet(struct ky_windows *windows,
					   const struct ky_packet *packet);
/* No later window than the current one has events of @packet. */
void ky_windows_retire(struct ky_windows *windows, struct ky_window_packet *packet);

#endif
