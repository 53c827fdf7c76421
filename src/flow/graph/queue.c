/* SPDX-License-Identifier: MIT */
#include "flow/graph/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* So many batches of the input at once: one packet may have few events. */
#define PULLS_MAX 4
/* Of what will be read next, so much is fetched before. */
#define PREFETCH_BYTES_MAX ((size_t)2048)

void ky_queue_init(struct ky_queue *q, struct ky_flow *input)
{
	*q = (struct ky_queue){.input = input, .end_ns = INT64_MIN, .next_ns = INT64_MIN};
}

void ky_queue_reset(struct ky_queue *q, struct ky_windows *windows)
{
	struct ky_window_packet *packet;

	for (; q->first < q->end; q->first++) {
		struct ky_loss *loss = ky_entry_loss(&q->entries[q->first]);

		if (loss)
			ky_loss_drop(loss);
		free(loss);
	}
	while ((packet = q->packets)) {
		q->packets = packet->next;
		ky_windows_retire(windows, packet);
	}
	q->newest = NULL;
	q->first = q->end = 0;
	q->end_ns = q->next_ns = INT64_MIN;
	q->rest = (struct ky_batch){.n_events = 0};
	q->ended = q->waits = false;
	q->code = KYMO_OK;
}

void ky_queue_fini(struct ky_queue *q, struct ky_windows *windows)
{
	ky_queue_reset(q, windows);
	ky_flow_close(q->input);
	free(q->entries);
	free(q->keys);
}

/* ---- filling --------------------------------------------------------------------------------- */

/* Room for @cap entries, those that wait come first; much more only as long as these need it. */
static int queue_make_room(struct ky_queue *q, size_t cap)
{
	struct ky_event *entries = q->entries;
	int64_t *keys = q->keys;
	size_t n = ky_queue_length(q);

	if (cap > q->cap || (ky_queue_is_wide(q, cap) && n <= cap)) {
		entries = ky_events_new(cap + 2);
		keys = malloc((cap + 2) * sizeof(*keys));
		if (!entries || !keys) {
			free(entries);
			free(keys);
			return KYMO_E_MEMORY;
		}
	}
	if (n && entries + q->first != q->entries) {
		memmove(entries, q->entries + q->first, n * sizeof(*entries));
		memmove(keys, q->keys + q->first, n * sizeof(*keys));
	}
	q->first = 0;
	q->end = n;
	if (entries == q->entries)
		return KYMO_OK;
	free(q->entries);
	free(q->keys);
	q->entries = entries;
	q->keys = keys;
	q->cap = cap;
	return KYMO_OK;
}

/* The copy that the next entries point at becomes one of @packet. */
static int queue_begin_packet(struct ky_queue *q, struct ky_windows *windows,
			      const struct ky_packet *packet)
{
	struct ky_window_packet *copy = ky_windows_packet(windows, packet);

	if (!copy)
		return KYMO_E_MEMORY;
	if (q->newest && !q->newest->n_left) {
		/* Its events were all taken, or it had none; so were those before it. */
		ky_windows_retire(windows, q->newest);
		q->packets = q->newest = NULL;
	}
	if (q->newest)
		q->newest->next = copy;
	else
		q->packets = copy;
	q->newest = copy;
	return KYMO_OK;
}

/* An event entry is one of the newest packet, and so is a loss. */
static int add_loss(struct ky_queue *q, struct ky_windows *windows, const struct ky_batch *batch)
{
	static const struct ky_packet none;
	struct ky_event *entry = &q->entries[q->end];
	struct ky_loss *loss;

	if (!q->newest && queue_begin_packet(q, windows, &none) < 0)
		return KYMO_E_MEMORY;
	loss = malloc(sizeof(*loss));
	if (!loss)
		return KYMO_E_MEMORY;
	*loss = *batch->loss;
	if (ky_loss_keep(loss) < 0) {
		free(loss);
		return KYMO_E_MEMORY;
	}
	*entry = (struct ky_event){
		.ns = loss->ns,
		.cycles = batch->n_events && batch->events[0].ns == loss->ns,
		.begin_bits = (uintptr_t)loss,
	};
	if (entry->ns > q->end_ns)
		q->end_ns = entry->ns;
	q->newest->n_left++;
	q->keys[q->end++] = q->end_ns;
	return KYMO_OK;
}

/* What follows does not come before something that was left out: a place in the order, without event. */
static int add_floor(struct ky_queue *q, struct ky_windows *windows, int64_t ns)
{
	static const struct ky_packet none;

	if (!q->newest && queue_begin_packet(q, windows, &none) < 0)
		return KYMO_E_MEMORY;
	q->entries[q->end] = (struct ky_event){.ns = ns};
	q->newest->n_left++;
	q->keys[q->end++] = q->end_ns = ns;
	return KYMO_OK;
}

/* The place of the next entry is where the events were put: they go one further. */
static void queue_make_way(struct ky_queue *q)
{
	if (!q->rest.n_events || q->rest.events != q->entries + q->end)
		return;
	memmove(q->entries + q->end + 1, q->rest.events, q->rest.n_events * sizeof(*q->entries));
	q->rest.events++;
}

/* Copies what fits of q->rest, unless it already is where it shall be. */
static int queue_add_events(struct ky_queue *q, struct ky_windows *windows)
{
	struct ky_event *to = q->entries + q->end;
	size_t room = q->cap + 2 - q->end;
	size_t n = room < q->rest.n_events ? room : q->rest.n_events;
	const struct ky_packet *packet = q->rest.events->packet;
	int64_t latest_ns = q->end_ns;

	if (!q->newest || q->newest->packet.data != packet->data) {
		if (queue_begin_packet(q, windows, packet) < 0)
			return KYMO_E_MEMORY;
	}
	if (to != q->rest.events)
		memmove(to, q->rest.events, n * sizeof(*to));
	for (size_t i = 0; i < n; i++) {
		to[i].packet = &q->newest->packet;
		latest_ns = to[i].ns > latest_ns ? to[i].ns : latest_ns;
		q->keys[q->end + i] = latest_ns;
	}
	q->end_ns = latest_ns;
	q->newest->n_left += n;
	q->end += n;
	q->rest.events += n;
	q->rest.n_events -= n;
	q->read_bytes = (size_t)((to[n - 1].end_bits - to[0].begin_bits) / 8);
	return KYMO_OK;
}

/* Put what is at hand of the input into the queue. */
static int add_rest(struct ky_queue *q, struct ky_windows *windows)
{
	if (q->rest.loss) {
		queue_make_way(q);
		if (add_loss(q, windows, &q->rest) < 0)
			return KYMO_E_MEMORY;
		q->rest.loss = NULL;
	}
	if (q->rest.has_floor && q->rest.floor_ns > q->end_ns) {
		queue_make_way(q);
		if (add_floor(q, windows, q->rest.floor_ns) < 0)
			return KYMO_E_MEMORY;
	}
	q->rest.has_floor = false;
	if (q->rest.n_events && queue_add_events(q, windows) < 0)
		return KYMO_E_MEMORY;
	if (!q->rest.n_events && q->rest.has_next && q->rest.next_ns > q->next_ns)
		q->next_ns = q->rest.next_ns;
	return KYMO_OK;
}

/* The next batch of the input. An error is an end too. */
static void pull(struct ky_queue *q, int64_t until_ns)
{
	int ret;

	ky_flow_room(q->input, q->entries + q->end, q->cap - q->end, until_ns);
	ret = ky_flow_next(q->input, &q->rest, &q->err);
	if (ret > 0) {
		q->stream = q->rest.stream;
		return;
	}
	q->waits = ret == KYMO_E_AGAIN;
	if (q->waits && q->rest.has_next && q->rest.next_ns > q->next_ns)
		q->next_ns = q->rest.next_ns;
	q->rest = (struct ky_batch){.n_events = 0};
	if (q->waits)
		return;
	q->ended = true;
	q->code = ret;
}

int ky_queue_fill(struct ky_queue *q, struct ky_windows *windows, size_t cap, int64_t until_ns)
{
	unsigned int n_pulls;

	if (queue_make_room(q, cap) < 0)
		return KYMO_E_MEMORY;
	/* Events that are hard to find are not looked for before they are needed. */
	n_pulls = q->stream ? PULLS_MAX : 1;
	q->waits = false;
	while (!q->ended && !q->waits && q->end < q->cap &&
	       (!q->end || (n_pulls && ky_queue_is_short(q, until_ns)))) {
		if (!q->rest.n_events && !q->rest.loss) {
			pull(q, until_ns);
			n_pulls -= n_pulls > 0;
		}
		if (add_rest(q, windows) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

int ky_queue_narrow(struct ky_queue *q, size_t cap)
{
	return ky_queue_length(q) <= cap ? queue_make_room(q, cap) : KYMO_OK;
}

void ky_queue_prefetch(const struct ky_queue *q)
{
	ky_flow_fetch(q->input,
		      q->read_bytes < PREFETCH_BYTES_MAX ? q->read_bytes : PREFETCH_BYTES_MAX);
}

/* ---- taking ---------------------------------------------------------------------------------- */

void ky_queue_take(struct ky_queue *q, struct ky_windows *windows, size_t n)
{
	q->first += n;
	while (n) {
		struct ky_window_packet *packet = q->packets;
		size_t here = packet->n_left < n ? packet->n_left : n;

		packet->n_left -= here;
		n -= here;
		if (packet->n_left || packet == q->newest)
			continue;
		q->packets = packet->next;
		ky_windows_retire(windows, packet);
	}
}
