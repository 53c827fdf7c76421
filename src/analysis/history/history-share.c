/* SPDX-License-Identifier: MIT */
/*
 * The state history: a question about many rows, which several threads answer together. Each has a reader: a copy of the history with a buffer,
 * a leaf and expectations of its own. All else is the history's, and nobody changes it meanwhile.
 */
#include <stdlib.h>

#include "analysis/history/history-internal.h"
#include "base/error.h"
#include "os/thread-pool.h"

#define READERS_MAX 8u
/* Fewer pieces of work are not worth the wake-up of a thread. */
#define PIECES_ALONE 4u

struct share {
	struct ky_thread_pool *pool;
	size_t n_running; /* readers; under the pool's lock */
	ky_history_work work;
	void *data;
	size_t n;
	atomic_size_t next;	/* piece of work */
	atomic_bool has_failed; /* a reader, so that the others end, too */
	atomic_bool is_claimed; /* of struct ky_expected */
};

struct reader {
	struct ky_task task;
	struct share *share;
	struct ky_history history;
	int status;
	struct kymo_error err;
};

static void history_share_run(struct ky_task *task)
{
	struct reader *reader = (struct reader *)task; /* its first member */
	struct share *share = reader->share;

	while (reader->status >= 0 &&
	       !atomic_load_explicit(&share->has_failed, memory_order_relaxed)) {
		size_t i = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);

		if (i >= share->n)
			break;
		reader->status = share->work(share->data, &reader->history, i, &reader->err);
	}
	if (reader->status < 0)
		atomic_store_explicit(&share->has_failed, true, memory_order_relaxed);
	ky_thread_pool_lock(share->pool);
	share->n_running--;
	ky_thread_pool_unlock(share->pool);
}

static bool history_share_is_over(void *data)
{
	const struct share *share = data;

	return !share->n_running;
}

static void history_share_open(struct reader *reader, struct share *share,
			       const struct ky_history *history)
{
	reader->task = (struct ky_task){.run = history_share_run};
	reader->share = share;
	reader->history = *history;
	reader->history.buffer.data = NULL;
	reader->history.buffer.len = reader->history.buffer.cap = 0;
	reader->history.leaf_at = 0;
	reader->history.leaf_row = 0;
	reader->history.expected.is_claimed = &share->is_claimed;
	reader->status = 0;
	ky_error_clear(&reader->err);
}

/* What a reader found out. */
static int history_share_close(struct reader *reader, struct ky_history *history, int status,
			       struct kymo_error *err)
{
	history->is_damaged |= reader->history.is_damaged;
	ky_vec_fini(&reader->history.buffer);
	if (status < 0 || reader->status >= 0)
		return status;
	if (err)
		*err = reader->err;
	return reader->status;
}

static int history_share_alone(struct ky_history *history, size_t n, ky_history_work work,
			       void *data, struct kymo_error *err)
{
	int status = 0;

	for (size_t i = 0; i < n && status >= 0; i++)
		status = work(data, history, i, err);
	return status;
}

/* How many readers @n pieces of work have. The first question about many starts the threads. */
static size_t history_share_n_readers(struct ky_history *history, size_t n)
{
	unsigned int n_cpus = ky_cpus_usable();
	struct kymo_error ignored; /* then this thread does it all */

	if (n < PIECES_ALONE || n_cpus < 2)
		return 1;
	if (!history->pool && ky_thread_pool_new(n_cpus < READERS_MAX ? n_cpus : READERS_MAX,
						 &history->pool, &ignored) < 0)
		return 1;
	return ky_thread_pool_jobs(history->pool);
}

int ky_history_share(struct ky_history *history, size_t n, ky_history_work work, void *data,
		     struct kymo_error *err)
{
	size_t n_readers = history_share_n_readers(history, n);
	struct reader *readers = n_readers > 1 ? calloc(n_readers, sizeof(*readers)) : NULL;
	struct share share = {.work = work, .data = data, .n = n, .n_running = n_readers};
	int status = 0;

	if (!readers)
		return history_share_alone(history, n, work, data, err);
	share.pool = history->pool;
	for (size_t i = 0; i < n_readers; i++)
		history_share_open(&readers[i], &share, history);
	for (size_t i = 1; i < n_readers; i++)
		ky_thread_pool_add(share.pool, &readers[i].task);
	history_share_run(&readers[0].task);
	ky_thread_pool_wait(share.pool, history_share_is_over, &share);
	for (size_t i = 0; i < n_readers; i++)
		status = history_share_close(&readers[i], history, status, err);
	free(readers);
	return status;
}

/* ---- pictures -------------------------------------------------------------------------------- */

struct picture {
	const uint32_t *rows;
	int64_t begin_ns, end_ns;
	size_t n_pixels;
	struct ky_history_pixel *pixels;
};

static int history_share_paint(void *data, struct ky_history *reader, size_t i,
			       struct kymo_error *err)
{
	const struct picture *picture = data;

	return ky_history_pixels(reader, picture->rows[i], picture->begin_ns, picture->end_ns,
				 picture->n_pixels, picture->pixels + i * picture->n_pixels, err);
}

/* ---- what the kernel's cache lacks ------------------------------------------------------------- */

#define ROWS_BROUGHT ((size_t)25) /* in one piece of work */

static int history_share_bring_some(void *data, struct ky_history *reader, size_t i,
				    struct kymo_error *err)
{
	const struct ky_expected *all = data, before = reader->expected;
	size_t from = i * ROWS_BROUGHT, n = all->n_rows - from;

	(void)err;
	reader->expected = *all;
	reader->expected.rows += from;
	reader->expected.n_rows = n < ROWS_BROUGHT ? n : ROWS_BROUGHT;
	reader->expected.is_claimed = NULL;
	ky_history_prefetch(reader);
	reader->expected = before;
	return 0;
}

/*
 * The first row of a picture tells whether the cache lacks what is expected: then all threads ask for it before they paint. What
 * lacks later, one of them asks for.
 */
static int history_share_paint_first(struct ky_history *history, struct picture *picture,
				     struct kymo_error *err)
{
	struct ky_expected all = history->expected;
	atomic_bool is_claimed = true; /* by all threads */
	int status;

	history->expected.is_claimed = &is_claimed;
	status = history_share_paint(picture, history, 0, err);
	history->expected.is_claimed = NULL;
	if (status >= 0 && history->expected.is_missed)
		status = ky_history_share(history, (all.n_rows + ROWS_BROUGHT - 1) / ROWS_BROUGHT,
					  history_share_bring_some, &all, err);
	return status;
}

int ky_history_picture(struct ky_history *history, const uint32_t *rows, size_t n_rows,
		       int64_t begin_ns, int64_t end_ns, size_t n_pixels,
		       struct ky_history_pixel *pixels, struct kymo_error *err)
{
	struct picture picture = {rows, begin_ns, end_ns, n_pixels, pixels};
	bool is_asked = history->expected.n_rows && !history->expected.is_brought && n_rows;
	int status = is_asked ? history_share_paint_first(history, &picture, err) : 0;

	if (status < 0)
		return status;
	picture.rows += is_asked;
	picture.pixels += is_asked * n_pixels;
	return ky_history_share(history, n_rows - is_asked, history_share_paint, &picture, err);
}
