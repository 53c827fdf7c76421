/* SPDX-License-Identifier: MIT */
#include "flow/parallel-sink.h"

#include <stdlib.h>

#include "base/error.h"

#define PIECE_EVENTS 2048
/* Events may be long, and their text is longer still. */
#define PIECE_BYTES ((uint64_t)256 << 10)
#define PIECES_MAX  40

struct piece;

/* Neighbours in the order that come from one stream. */
struct run {
	const struct ky_stream *stream;
	size_t n_events;
};

/* A packet's description as it was when its events came; the events point at it. */
struct packet {
	struct ky_packet packet;
	struct packet *next; /* of the piece */
};

enum piece_state {
	PIECE_FREE, /* the owner's: empty, or being filled */
	PIECE_BUSY, /* queued, or being formatted */
	PIECE_DONE, /* to be written */
};

struct piece {
	struct ky_task task;
	struct parallel *owner;
	struct ky_sink *sink;
	enum piece_state state;
	struct ky_event *events; /* PIECE_EVENTS */
	size_t n_events;
	uint64_t n_bytes;
	KY_VEC(struct run) runs;
	struct packet *packets, *spare_packets;
	struct ky_event before; /* the last one with a time before this piece */
	bool has_before;
	int code; /* of formatting */
	struct kymo_error err;
};

/* What a stream's events pointed at last. */
struct last_packet {
	uint64_t piece; /* number of the piece that the copy is in; 0: none yet */
	const uint8_t *data;
	struct packet *copy;
};

struct parallel {
	struct ky_sink sink;
	struct ky_crew *crew;
	struct piece *pieces;
	size_t n_pieces;
	size_t filling;	    /* the owner's; its state is PIECE_FREE, or soon will be */
	uint64_t n_filled;  /* pieces so far, with the one being filled */
	bool ready_to_fill; /* pieces[filling] is free and empty */
	struct ky_event before;
	bool has_before;
	KY_VEC(struct last_packet) last_packets; /* by stream index */
	/* Under the crew's lock: */
	size_t writing; /* the next to be written */
	bool has_writer;
	int code; /* the first failure: nothing is written after it */
	struct kymo_error err;
};

static struct parallel *parallel_of(struct ky_sink *sink)
{
	return (struct parallel *)sink;
}

/* ---- in any thread ----------------------------------------------------------------------- */

static int format_runs(struct piece *piece)
{
	const struct ky_event *events = piece->events;
	int ret;

	ky_vec_foreach(&piece->runs, run) {
		struct ky_batch batch = {
			.stream = run->stream, .events = events, .n_events = run->n_events};

		ret = ky_sink_batch(piece->sink, &batch, &piece->err);
		if (ret < 0)
			return ret;
		events += run->n_events;
	}
	return KYMO_OK;
}

static void fail(struct parallel *p, int code, const struct kymo_error *err)
{
	if (p->code == KYMO_OK) {
		p->code = code;
		p->err = *err;
	}
}

/* Write the oldest piece, which is done. Under the lock, but not while it writes. */
static void write_piece(struct parallel *p, struct piece *piece)
{
	struct kymo_error err = {.code = KYMO_OK};
	int ret = KYMO_OK;

	if (p->code == KYMO_OK) {
		ky_crew_unlock(p->crew);
		ret = ky_sink_flush(piece->sink, &err);
		ky_crew_lock(p->crew);
	}
	if (ret < 0)
		fail(p, ret, &err);
	if (piece->code < 0)
		fail(p, piece->code, &piece->err);
	piece->state = PIECE_FREE;
	p->writing = (p->writing + 1) % p->n_pieces;
	ky_crew_tell(p->crew);
}

static void run_piece(struct ky_task *task)
{
	struct piece *piece = (struct piece *)task;
	struct parallel *p = piece->owner;
	bool wanted;

	ky_crew_lock(p->crew);
	wanted = p->code == KYMO_OK;
	ky_crew_unlock(p->crew);
	if (wanted) {
		piece->sink->ops->resume(piece->sink, piece->has_before ? &piece->before : NULL);
		piece->code = format_runs(piece);
	}
	ky_crew_lock(p->crew);
	piece->state = PIECE_DONE;
	if (!p->has_writer) {
		p->has_writer = true;
		while (p->pieces[p->writing].state == PIECE_DONE)
			write_piece(p, &p->pieces[p->writing]);
		p->has_writer = false;
	}
	ky_crew_unlock(p->crew);
}

/* ---- in the owner's thread ---------------------------------------------------------------- */

static bool piece_is_free(void *data)
{
	const struct parallel *p = data;

	return p->pieces[p->filling].state == PIECE_FREE;
}

/* All are written: then there is no writer either, or it has nothing left to do. */
static bool all_written(void *data)
{
	const struct parallel *p = data;

	return p->writing == p->filling && p->pieces[p->filling].state == PIECE_FREE &&
	       !p->has_writer;
}

static int result(struct parallel *p, struct kymo_error *err)
{
	int code;

	ky_crew_lock(p->crew);
	code = p->code;
	if (code < 0 && err)
		*err = p->err;
	ky_crew_unlock(p->crew);
	return code;
}

/* The piece to fill, empty. */
static struct piece *next_piece(struct parallel *p)
{
	struct piece *piece = &p->pieces[p->filling];

	if (p->ready_to_fill)
		return piece;
	ky_crew_wait(p->crew, piece_is_free, p);
	while (piece->packets) {
		struct packet *packet = piece->packets;

		piece->packets = packet->next;
		packet->next = piece->spare_packets;
		piece->spare_packets = packet;
	}
	piece->n_events = 0;
	piece->n_bytes = 0;
	ky_vec_clear(&piece->runs);
	piece->before = p->before;
	piece->has_before = p->has_before;
	piece->code = KYMO_OK;
	p->n_filled++;
	p->ready_to_fill = true;
	return piece;
}

/* Hand the piece that is being filled to the crew. */
static void send_piece(struct parallel *p)
{
	struct piece *piece = &p->pieces[p->filling];

	ky_crew_lock(p->crew);
	piece->state = PIECE_BUSY;
	ky_crew_unlock(p->crew);
	p->filling = (p->filling + 1) % p->n_pieces;
	p->ready_to_fill = false;
	ky_crew_add(p->crew, &piece->task);
}

static struct packet *copy_packet(struct piece *piece, const struct ky_packet *from)
{
	struct packet *packet = piece->spare_packets;

	if (packet)
		piece->spare_packets = packet->next;
	else
		packet = malloc(sizeof(*packet));
	if (!packet)
		return NULL;
	packet->packet = *from;
	packet->next = piece->packets;
	piece->packets = packet;
	return packet;
}

/* The copy of @event's packet in @piece; NULL when out of memory. */
static const struct ky_packet *packet_of(struct parallel *p, struct piece *piece,
					 const struct ky_event *event, uint32_t stream_index)
{
	struct last_packet *last;

	while (p->last_packets.len <= stream_index) {
		if (ky_vec_push(&p->last_packets, (struct last_packet){.piece = 0}) < 0)
			return NULL;
	}
	last = &p->last_packets.data[stream_index];
	if (__builtin_expect(last->piece != p->n_filled || last->data != event->data, 0)) {
		last->piece = 0;
		last->data = event->data;
		last->copy = copy_packet(piece, event->packet);
		if (!last->copy)
			return NULL;
		last->piece = p->n_filled;
	}
	return &last->copy->packet;
}

static int add_run(struct piece *piece, const struct ky_stream *stream, size_t n)
{
	if (piece->runs.len && ky_vec_last(&piece->runs)->stream == stream) {
		ky_vec_last(&piece->runs)->n_events += n;
		return KYMO_OK;
	}
	return ky_vec_push(&piece->runs, (struct run){.stream = stream, .n_events = n});
}

/* Copy what fits of @batch; returns how many events, or KYMO_E_MEMORY. */
static ssize_t fill_piece(struct parallel *p, struct piece *piece, const struct ky_batch *batch)
{
	const struct ky_packet *packet = packet_of(p, piece, batch->events, batch->stream->index);
	size_t n;

	if (!packet)
		return KYMO_E_MEMORY;
	for (n = 0;
	     n < batch->n_events && piece->n_events < PIECE_EVENTS && piece->n_bytes < PIECE_BYTES;
	     n++) {
		const struct ky_event *from = &batch->events[n];
		struct ky_event *to = &piece->events[piece->n_events];

		if (from->data != packet->data)
			break;
		*to = *from;
		to->packet = packet;
		piece->n_bytes += (from->end_bits - from->begin_bits) / 8;
		piece->n_events++;
		if (__builtin_expect(from->ns != INT64_MIN, 1)) {
			p->before.ns = from->ns;
			p->before.cycles = from->cycles;
			p->has_before = true;
		}
	}
	return add_run(piece, batch->stream, n) < 0 ? KYMO_E_MEMORY : (ssize_t)n;
}

static int parallel_batch(struct ky_sink *sink, const struct ky_batch *batch,
			  struct kymo_error *err)
{
	struct parallel *p = parallel_of(sink);
	struct ky_batch rest = *batch;
	struct piece *piece;
	ssize_t n;
	int ret;

	while (rest.n_events) {
		piece = next_piece(p);
		n = fill_piece(p, piece, &rest);
		if (n < 0)
			return ky_error_nomem(err);
		rest.events += n;
		rest.n_events -= (size_t)n;
		if (piece->n_events < PIECE_EVENTS && piece->n_bytes < PIECE_BYTES)
			continue;
		send_piece(p);
		ret = result(p, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static int parallel_flush(struct ky_sink *sink, struct kymo_error *err)
{
	struct parallel *p = parallel_of(sink);

	if (p->ready_to_fill && p->pieces[p->filling].n_events)
		send_piece(p);
	ky_crew_wait(p->crew, all_written, p);
	return result(p, err);
}

static void parallel_free(struct ky_sink *sink)
{
	static const struct kymo_error none;
	struct parallel *p = parallel_of(sink);

	/* What is still to come is not wanted. */
	ky_crew_lock(p->crew);
	fail(p, KYMO_E_INTERRUPTED, &none);
	ky_crew_unlock(p->crew);
	ky_crew_wait(p->crew, all_written, p);
	for (size_t i = 0; i < p->n_pieces; i++) {
		struct piece *piece = &p->pieces[i];
		struct packet *packet, *lists[] = {piece->packets, piece->spare_packets};

		for (size_t j = 0; j < 2; j++) {
			while ((packet = lists[j])) {
				lists[j] = packet->next;
				free(packet);
			}
		}
		ky_sink_free(piece->sink);
		ky_vec_fini(&piece->runs);
		free(piece->events);
	}
	ky_vec_fini(&p->last_packets);
	free(p->pieces);
	free(p);
}

static const struct ky_sink_ops parallel_ops = {
	.batch = parallel_batch,
	.flush = parallel_flush,
	.finish = parallel_flush,
	.free = parallel_free,
};

static bool init_pieces(struct parallel *p, struct ky_sink *(*make)(void *data), void *data)
{
	for (size_t i = 0; i < p->n_pieces; i++) {
		struct piece *piece = &p->pieces[i];

		piece->task.run = run_piece;
		piece->owner = p;
		piece->events = malloc(PIECE_EVENTS * sizeof(*piece->events));
		if (!piece->sink)
			piece->sink = make(data);
		if (!piece->events || !piece->sink)
			return false;
		piece->sink->ops->hold(piece->sink);
	}
	return true;
}

struct ky_sink *ky_parallel_sink_new(struct ky_crew *crew, struct ky_sink *(*make)(void *data),
				     void *data)
{
	unsigned int jobs = ky_crew_jobs(crew);
	struct ky_sink *first = make(data);
	struct parallel *p;

	if (!first || jobs < 2 || !first->ops->hold)
		return first;
	p = calloc(1, sizeof(*p));
	if (!p) {
		ky_sink_free(first);
		return NULL;
	}
	p->sink.ops = &parallel_ops;
	p->crew = crew;
	p->n_pieces = jobs + 4 < PIECES_MAX ? jobs + 4 : PIECES_MAX;
	p->pieces = calloc(p->n_pieces, sizeof(*p->pieces));
	if (!p->pieces) {
		ky_sink_free(first);
		free(p);
		return NULL;
	}
	p->pieces[0].sink = first;
	if (init_pieces(p, make, data))
		return &p->sink;
	parallel_free(&p->sink);
	return NULL;
}
