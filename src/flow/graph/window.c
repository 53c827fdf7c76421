/* SPDX-License-Identifier: MIT */
#include "flow/graph/window.h"

#include <stdlib.h>

static void drop_losses(struct ky_window *window)
{
	ky_vec_foreach(&window->losses, loss) {
		ky_loss_drop(*loss);
		free(*loss);
	}
	ky_vec_clear(&window->losses);
}

/* Unused windows become spare ones, from the oldest on. */
static void reclaim(struct ky_windows *w)
{
	struct ky_window_packet *packet;
	struct ky_window *window;

	while ((window = w->oldest) && !window->n_holders) {
		w->oldest = window->next;
		while ((packet = window->retired)) {
			window->retired = packet->next;
			packet->next = w->spare_packets;
			w->spare_packets = packet;
		}
		drop_losses(window);
		window->next = w->spare;
		w->spare = window;
	}
	if (!w->oldest)
		w->current = NULL;
}

static int window_make_room(struct ky_window *window, size_t n)
{
	if (n <= window->cap)
		return KYMO_OK;
	free(window->events);
	window->cap = 0;
	window->events = ky_events_new(n);
	if (!window->events)
		return KYMO_E_MEMORY;
	window->cap = n;
	return KYMO_OK;
}

int ky_windows_next(struct ky_windows *w, size_t n)
{
	struct ky_window *window;

	reclaim(w);
	window = w->spare ? w->spare : calloc(1, sizeof(*window));
	if (!window)
		return KYMO_E_MEMORY;
	w->spare = window;
	if (window_make_room(window, n) < 0)
		return KYMO_E_MEMORY;
	w->spare = window->next;
	window->next = NULL;
	window->n_events = 0;
	if (w->current)
		w->current->next = window;
	else
		w->oldest = window;
	w->current = window;
	return KYMO_OK;
}

struct ky_window_packet *ky_windows_packet(struct ky_windows *w, const struct ky_packet *packet)
{
	struct ky_window_packet *copy = w->spare_packets;

	if (copy)
		w->spare_packets = copy->next;
	else
		copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	copy->packet = *packet;
	copy->next = NULL;
	copy->n_left = 0;
	return copy;
}

void ky_windows_retire(struct ky_windows *w, struct ky_window_packet *packet)
{
	struct ky_window_packet **list = w->current ? &w->current->retired : &w->spare_packets;

	packet->next = *list;
	*list = packet;
}

static void free_packets(struct ky_window_packet *packet)
{
	struct ky_window_packet *next;

	for (; packet; packet = next) {
		next = packet->next;
		free(packet);
	}
}

static void free_windows(struct ky_window *window)
{
	struct ky_window *next;

	for (; window; window = next) {
		next = window->next;
		drop_losses(window);
		ky_vec_fini(&window->losses);
		free_packets(window->retired);
		free(window->events);
		free(window);
	}
}

void ky_windows_fini(struct ky_windows *w)
{
	free_windows(w->oldest);
	free_windows(w->spare);
	free_packets(w->spare_packets);
	*w = (struct ky_windows){.oldest = NULL};
}
