/* SPDX-License-Identifier: MIT */
/*
 * The place of merged events and the data that they borrow: descriptions of packets, losses. A
 * consumer that needs events longer than until the next call holds their window.
 *
 * Windows are reused in the order of their begin. Borrowed data live as long as any window that is
 * not younger than the last one with events of that packet. Threads: only the thread of the merge
 * makes calls. Other threads may read a held window's events.
 */
#ifndef KY_FLOW_GRAPH_WINDOW_H
#define KY_FLOW_GRAPH_WINDOW_H

#include <stdlib.h>

#include "flow/graph/flow.h"

/* The description of a packet at the time of its events. */
struct ky_window_packet {
	struct ky_packet packet;
	struct ky_window_packet *next;
	size_t n_left; /* for the merge: events that are not in a window yet */
};

/* Room for @n events, each in a cache line of its own; NULL when memory is out. For free(). */
static inline struct ky_event *ky_events_new(size_t n)
{
	return (struct ky_event *)aligned_alloc(KY_EVENT_ALIGN, n * sizeof(struct ky_event));
}

struct ky_window {
	struct ky_event *events;
	size_t n_events, cap;
	unsigned int n_holders;
	KY_VEC(struct ky_loss *) losses;  /* freed at the window's next use */
	struct ky_window_packet *retired; /* freed then, too */
	struct ky_window *next;
};

/* Keeps @window's events valid. */
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
	struct ky_window *oldest, *current; /* linked by ->next, oldest first */
	struct ky_window *spare;
	struct ky_window_packet *spare_packets;
};

/* All zeros are a valid empty object. */
void ky_windows_fini(struct ky_windows *windows);

/* Begins a window with room for @n events: windows->current. Returns 0 or KYMO_E_MEMORY. */
int ky_windows_next(struct ky_windows *windows, size_t n);

/* A copy of @packet, or NULL when memory is out. The caller must give it to ky_windows_retire(). */
struct ky_window_packet *ky_windows_packet(struct ky_windows *windows,
					   const struct ky_packet *packet);
/* Windows after the current one will have no events of @packet. */
void ky_windows_retire(struct ky_windows *windows, struct ky_window_packet *packet);

#endif
