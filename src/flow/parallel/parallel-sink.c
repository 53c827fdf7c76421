/* SPDX-License-Identifier: MIT */
#include "flow/parallel/parallel-sink.h"

#include <stdlib.h>

#include "base/error.h"
#include "flow/graph/window.h"

#define PIECE_EVENTS 2048
/* Events may be long, and their text is longer still. */
#define PIECE_BYTES ((uint64_t)256 << 10)
#define PIECES_MAX  40

struct piece;

/* Neighbours in the order, of one batch. */
struct share {
	struct ky_batch batch; /* without its loss */
	bool held;	       /* its window is */
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
	KY_VEC(struct share) shares;
	size_t n_events;
	uint64_t n_bytes;
	struct ky_event before; /* the last one with a time before this piece */
	bool has_before;
	int code; /* of formatting */
	struct kymo_error err;
};

struct parallel {
	struct ky_sink sink;
	struct ky_thread_pool *pool;
	struct piece *pieces;
	size_t n_pieces;
	size_t filling;	    /* the owner's; its state is PIECE_FREE, or soon will be */
	bool ready_to_fill; /* pieces[filling] is free and empty */
	struct ky_event before;
	bool has_before;
	/* Under the pool's lock: */
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

static int format_shares(struct piece *piece)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&piece->shares, share) {
		if (ret == KYMO_OK)
			ret = ky_sink_batch(piece->sink, &share->batch, &piece->err);
	}
	return ret;
}

static void parallel_sink_fail(struct parallel *p, int code, const struct kymo_error *err)
{
	if (p->code == KYMO_OK) {
		p->code = code;
		p->err = *err;
	}
}

/* Write the oldest piece, which is done. Under the lock, but not while it writes. */
static void parallel_sink_write_piece(struct parallel *p, struct piece *piece)
{
	struct kymo_error err = {.code = KYMO_OK};
	int ret = KYMO_OK;

	if (p->code == KYMO_OK) {
		ky_thread_pool_unlock(p->pool);
		ret = ky_sink_flush(piece->sink, &err);
		ky_thread_pool_lock(p->pool);
	}
	if (ret < 0)
		parallel_sink_fail(p, ret, &err);
	if (piece->code < 0)
		parallel_sink_fail(p, piece->code, &piece->err);
	piece->state = PIECE_FREE;
	p->writing = (p->writing + 1) % p->n_pieces;
	ky_thread_pool_tell(p->pool);
}

static void run_piece(struct ky_task *task)
{
	struct piece *piece = (struct piece *)task;
	struct parallel *p = piece->owner;
	bool wanted;

	ky_thread_pool_lock(p->pool);
	wanted = p->code == KYMO_OK;
	ky_thread_pool_unlock(p->pool);
	if (wanted) {
		piece->sink->ops->resume(piece->sink, piece->has_before ? &piece->before : NULL);
		piece->code = format_shares(piece);
	}
	ky_thread_pool_lock(p->pool);
	piece->state = PIECE_DONE;
	if (!p->has_writer) {
		p->has_writer = true;
		while (p->pieces[p->writing].state == PIECE_DONE)
			parallel_sink_write_piece(p, &p->pieces[p->writing]);
		p->has_writer = false;
	}
	ky_thread_pool_unlock(p->pool);
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

static int parallel_sink_result(struct parallel *p, struct kymo_error *err)
{
	int code;

	ky_thread_pool_lock(p->pool);
	code = p->code;
	if (code < 0 && err)
		*err = p->err;
	ky_thread_pool_unlock(p->pool);
	return code;
}

static void drop_shares(struct piece *piece)
{
	ky_vec_foreach(&piece->shares, share) {
		if (share->held)
			ky_window_release(share->batch.window);
	}
	ky_vec_clear(&piece->shares);
}

/* The piece to fill, empty. */
static struct piece *parallel_sink_next_piece(struct parallel *p)
{
	struct piece *piece = &p->pieces[p->filling];

	if (p->ready_to_fill)
		return piece;
	ky_thread_pool_wait(p->pool, piece_is_free, p);
	drop_shares(piece);
	piece->n_events = 0;
	piece->n_bytes = 0;
	piece->before = p->before;
	piece->has_before = p->has_before;
	piece->code = KYMO_OK;
	p->ready_to_fill = true;
	return piece;
}

/* Hand the piece that is being filled to the pool. */
static void send_piece(struct parallel *p)
{
	struct piece *piece = &p->pieces[p->filling];

	ky_thread_pool_lock(p->pool);
	piece->state = PIECE_BUSY;
	ky_thread_pool_unlock(p->pool);
	p->filling = (p->filling + 1) % p->n_pieces;
	p->ready_to_fill = false;
	ky_thread_pool_add(p->pool, &piece->task);
}

static bool is_full(const struct piece *piece)
{
	return piece->n_events >= PIECE_EVENTS || piece->n_bytes >= PIECE_BYTES;
}

/* The next piece's stamp may need the last time before it. */
static void note_time(struct parallel *p, const struct ky_event *events, size_t n)
{
	while (n && events[n - 1].ns == INT64_MIN)
		n--;
	if (!n)
		return;
	p->before.ns = events[n - 1].ns;
	p->before.cycles = events[n - 1].cycles;
	p->has_before = true;
}

/* Add what fits of @batch, and hold its window. Returns how many events, or KYMO_E_MEMORY. */
static ssize_t add_share(struct parallel *p, struct piece *piece, const struct ky_batch *batch)
{
	struct share share = {.batch = *batch, .held = batch->window != NULL};
	size_t n;

	for (n = 0; n < batch->n_events && !is_full(piece); n++) {
		piece->n_bytes += (batch->events[n].end_bits - batch->events[n].begin_bits) / 8;
		piece->n_events++;
	}
	share.batch.n_events = n;
	share.batch.loss = NULL;
	if (ky_vec_push(&piece->shares, share) < 0)
		return KYMO_E_MEMORY;
	if (share.held)
		ky_window_hold(batch->window);
	note_time(p, batch->events, n);
	return (ssize_t)n;
}

static int parallel_flush(struct ky_sink *sink, struct kymo_error *err)
{
	struct parallel *p = parallel_of(sink);

	if (p->ready_to_fill && p->pieces[p->filling].n_events)
		send_piece(p);
	ky_thread_pool_wait(p->pool, all_written, p);
	return parallel_sink_result(p, err);
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
		piece = parallel_sink_next_piece(p);
		n = add_share(p, piece, &rest);
		if (n < 0)
			return ky_error_nomem(err);
		rest.events += n;
		rest.n_events -= (size_t)n;
		if (!is_full(piece))
			continue;
		send_piece(p);
		ret = parallel_sink_result(p, err);
		if (ret < 0)
			return ret;
	}
	/* Events that cannot be held must be written now. */
	return batch->window ? KYMO_OK : parallel_flush(sink, err);
}

static void parallel_free(struct ky_sink *sink)
{
	static const struct kymo_error none;
	struct parallel *p = parallel_of(sink);

	/* What is still to come is not wanted. */
	ky_thread_pool_lock(p->pool);
	parallel_sink_fail(p, KYMO_E_INTERRUPTED, &none);
	ky_thread_pool_unlock(p->pool);
	ky_thread_pool_wait(p->pool, all_written, p);
	for (size_t i = 0; i < p->n_pieces; i++) {
		drop_shares(&p->pieces[i]);
		ky_vec_fini(&p->pieces[i].shares);
		ky_sink_free(p->pieces[i].sink);
	}
	free(p->pieces);
	free(p);
}

static const struct ky_sink_ops parallel_ops = {
	.batch = parallel_batch,
	.flush = parallel_flush,
	.finish = parallel_flush,
	.free = parallel_free,
	.any_stream = true,
};

static bool init_pieces(struct parallel *p, struct ky_sink *(*make)(void *data), void *data)
{
	for (size_t i = 0; i < p->n_pieces; i++) {
		struct piece *piece = &p->pieces[i];

		piece->task.run = run_piece;
		piece->owner = p;
		if (!piece->sink)
			piece->sink = make(data);
		if (!piece->sink)
			return false;
		piece->sink->ops->hold(piece->sink);
	}
	return true;
}

struct ky_sink *ky_parallel_sink_new(struct ky_thread_pool *pool,
				     struct ky_sink *(*make)(void *data), void *data)
{
	unsigned int jobs = ky_thread_pool_jobs(pool);
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
	p->pool = pool;
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
