/* SPDX-License-Identifier: MIT */
#include "flow/graph/parallel.h"

#include <stdlib.h>

#include "base/error.h"

/* ---- all parts of something ---------------------------------------------------------------- */

struct each {
	struct ky_thread_pool *pool;
	int (*part)(void *data, size_t i, struct kymo_error *err);
	void *data;
	const uint64_t *sizes;
	size_t *order;
	size_t n;
	/* Under the pool's lock: */
	size_t next, n_ended;
	size_t failed; /* the lowest part that failed; n: none */
	int code;
	struct kymo_error err;
};

struct worker {
	struct ky_task task;
	struct each *each;
};

static void run_part(struct each *e, size_t i)
{
	struct kymo_error err = {.code = KYMO_OK};
	int ret;

	ky_thread_pool_unlock(e->pool);
	ret = e->part(e->data, i, &err);
	ky_thread_pool_lock(e->pool);
	if (ret < 0 && i < e->failed) {
		e->failed = i;
		e->code = ret;
		e->err = err;
	}
}

static void run_worker(struct ky_task *task)
{
	struct each *e = ((struct worker *)task)->each;

	ky_thread_pool_lock(e->pool);
	while (e->next < e->n)
		run_part(e, e->order[e->next++]);
	e->n_ended++;
	ky_thread_pool_unlock(e->pool);
}

struct waiting {
	const struct each *each;
	size_t n_workers;
};

static bool workers_ended(void *data)
{
	const struct waiting *waiting = data;

	return waiting->each->n_ended == waiting->n_workers;
}

static int large_first(const void *a, const void *b, void *data)
{
	const uint64_t *sizes = data;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	if (sizes && sizes[x] != sizes[y])
		return sizes[x] > sizes[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

int ky_parallel_each(struct ky_thread_pool *pool, size_t n, const uint64_t *sizes,
		     int (*part)(void *data, size_t i, struct kymo_error *err), void *data,
		     struct kymo_error *err)
{
	struct each e = {
		.pool = pool, .part = part, .data = data, .sizes = sizes, .n = n, .failed = n};
	size_t n_workers = ky_thread_pool_jobs(pool) < n ? ky_thread_pool_jobs(pool) : n;
	struct worker *workers = calloc(n_workers + 1, sizeof(*workers));
	struct waiting waiting = {&e, n_workers};

	e.order = calloc(n + 1, sizeof(*e.order));
	if (!workers || !e.order) {
		free(workers);
		free(e.order);
		return ky_error_nomem(err);
	}
	for (size_t i = 0; i < n; i++)
		e.order[i] = i;
	qsort_r(e.order, n, sizeof(*e.order), large_first, (void *)(uintptr_t)sizes);
	for (size_t i = 0; i < n_workers; i++) {
		workers[i] = (struct worker){.task.run = run_worker, .each = &e};
		ky_thread_pool_add(pool, &workers[i].task);
	}
	ky_thread_pool_wait(pool, workers_ended, &waiting);
	if (e.code < 0 && err)
		*err = e.err;
	free(workers);
	free(e.order);
	return e.code;
}

/* ---- summaries ------------------------------------------------------------------------------ */

struct summarizing {
	struct ky_thread_pool *pool;
	struct ky_stream *const *streams;
	struct ky_stream_summary *summaries;
	uint64_t *const *counts;
	bool (*stop)(void);
};

static int summarize_one(void *data, size_t i, struct kymo_error *err)
{
	const struct summarizing *s = data;
	size_t n_classes = s->streams[i]->trace->cls->events.len;
	uint64_t *counts;
	int ret;

	if (!s->counts)
		return ky_stream_survey(s->streams[i], &s->summaries[i], err);
	counts = calloc(n_classes + 1, sizeof(*counts));
	if (!counts) {
		s->summaries[i] = (struct ky_stream_summary){
			.stream = s->streams[i], .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
		return ky_error_nomem(err);
	}
	ret = ky_stream_summarize(s->streams[i], &s->summaries[i], counts, s->stop, err);
	ky_thread_pool_lock(s->pool);
	for (size_t c = 0; c < n_classes; c++)
		s->counts[i][c] += counts[c];
	ky_thread_pool_unlock(s->pool);
	free(counts);
	return ret;
}

static uint64_t *stream_sizes(struct ky_stream *const *streams, size_t n)
{
	uint64_t *sizes = calloc(n + 1, sizeof(*sizes));

	for (size_t i = 0; sizes && i < n; i++)
		sizes[i] = streams[i]->file.size_bytes;
	return sizes;
}

int ky_parallel_summarize(struct ky_thread_pool *pool, struct ky_stream *const *streams, size_t n,
			  struct ky_stream_summary *summaries, uint64_t *const *counts,
			  bool (*stop)(void), struct kymo_error *err)
{
	struct summarizing s = {pool, streams, summaries, counts, stop};
	uint64_t *sizes = stream_sizes(streams, n);
	int ret = sizes ? ky_parallel_each(pool, n, sizes, summarize_one, &s, err)
			: ky_error_nomem(err);

	free(sizes);
	return ret;
}

/* ---- the decoding pass ------------------------------------------------------------------------ */

/* A loss, and where it stands in the order of the merge. */
struct told_loss {
	struct ky_loss loss;
	int64_t ns;
	size_t number; /* within the stream */
};

struct running_pass {
	struct ky_pass *pass;
	struct ky_thread_pool *pool;
	struct ky_part *parts;
	/* Under the pool's lock: */
	KY_VEC(struct told_loss) losses;
	uint64_t done_bytes, total_bytes;
	/* Of the parts that ended for another reason than damage, the lowest; SIZE_MAX: none. */
	size_t broken;
	int broken_code;
	struct kymo_error broken_err;
};

static int parallel_note_loss(struct running_pass *r, const struct ky_batch *batch, size_t number)
{
	struct told_loss told = {
		.loss = *batch->loss,
		.ns = batch->loss->ns,
		.number = number,
	};
	int ret = ky_loss_keep(&told.loss);

	if (ret < 0)
		return ret;
	ky_thread_pool_lock(r->pool);
	ret = ky_vec_push(&r->losses, told);
	ky_thread_pool_unlock(r->pool);
	if (ret < 0)
		ky_loss_drop(&told.loss);
	return ret;
}

/* A stream was read up to *at_bytes, and now a bit further. */
static void parallel_note_progress(struct running_pass *r, const struct ky_batch *batch,
				   uint64_t *at_bytes)
{
	uint64_t bytes;

	if (!r->pass->progress || !batch->n_events)
		return;
	bytes = batch->events->packet->file_offset_bytes;
	if (bytes == *at_bytes)
		return;
	ky_thread_pool_lock(r->pool);
	r->done_bytes += bytes - *at_bytes;
	r->pass->progress(r->pass->progress_data, r->done_bytes, r->total_bytes);
	ky_thread_pool_unlock(r->pool);
	*at_bytes = bytes;
}

static bool parallel_is_damage(int code)
{
	return code == KYMO_E_FORMAT || code == KYMO_E_LIMIT;
}

/*
 * What is made of the streams is not whole, whatever else is wrong: that counts before any damage. Parts
 * behind this one need not go on; those before it do, as one of them may be the first.
 */
static int break_off(struct running_pass *r, const struct ky_part *part, int code,
		     const struct kymo_error *err)
{
	size_t i = (size_t)(part - r->parts);

	if (code >= 0 || parallel_is_damage(code))
		return code;
	ky_thread_pool_lock(r->pool);
	if (i < r->broken) {
		__atomic_store_n(&r->broken, i, __ATOMIC_RELAXED);
		r->broken_code = code;
		r->broken_err = *err;
	}
	ky_thread_pool_unlock(r->pool);
	return code;
}

static bool parallel_is_stopped(const struct running_pass *r, const struct ky_part *part)
{
	return (r->pass->stop && r->pass->stop()) ||
	       __atomic_load_n(&r->broken, __ATOMIC_RELAXED) < (size_t)(part - r->parts);
}

static int parallel_read_part(struct running_pass *r, struct ky_part *part, uint64_t *n_events,
			      struct kymo_error *err)
{
	const struct ky_pass *pass = r->pass;
	uint64_t at_bytes = 0;
	struct ky_batch batch;
	size_t n_losses = 0;
	int ret;

	while ((ret = ky_flow_next(part->flow, &batch, err)) > 0) {
		if (parallel_is_stopped(r, part))
			return ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
		*n_events += batch.n_events;
		if (batch.loss && pass->loss && parallel_note_loss(r, &batch, n_losses++) < 0)
			return ky_error_nomem(err);
		parallel_note_progress(r, &batch, &at_bytes);
		ret = pass->batch ? pass->batch(pass->batch_data, &batch, err) : KYMO_OK;
		if (ret < 0)
			return ret;
	}
	return ret == 0 && pass->end ? pass->end(pass->batch_data, part->stream, err) : ret;
}

static int pass_part(void *data, size_t i, struct kymo_error *err)
{
	struct running_pass *r = data;
	uint64_t n_events = 0;
	int ret = parallel_read_part(r, &r->parts[i], &n_events, err);

	ret = break_off(r, &r->parts[i], ret, err);
	/* Its memory is needed for the next. */
	ky_flow_close(r->parts[i].flow);
	r->parts[i].flow = NULL;
	ky_thread_pool_lock(r->pool);
	r->pass->n_events += n_events;
	ky_thread_pool_unlock(r->pool);
	return ret;
}

static int in_merge_order(const void *a, const void *b)
{
	const struct told_loss *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->loss.stream != y->loss.stream)
		return x->loss.stream->index < y->loss.stream->index ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void parallel_tell(struct running_pass *r, const struct ky_parts *parts)
{
	for (size_t i = 0; i < parts->n; i++)
		ky_log_keep_tell(&parts->parts[i].log, parts->parts[i].stream->trace->log);
	if (r->losses.len)
		qsort(r->losses.data, r->losses.len, sizeof(*r->losses.data), in_merge_order);
	ky_vec_foreach(&r->losses, told) {
		r->pass->loss(r->pass->data, &told->loss);
		ky_loss_drop(&told->loss);
	}
}

int ky_pass_run(struct ky_pass *pass, struct ky_thread_pool *pool, const struct ky_trace_set *set,
		const struct ky_selection *selection, struct kymo_error *err)
{
	struct running_pass r = {.pass = pass, .pool = pool, .broken = SIZE_MAX};
	struct ky_parts *parts;
	uint64_t *sizes;
	int ret = ky_parts_open(set, selection, &parts, err);

	pass->n_events = 0;
	if (ret < 0)
		return ret;
	r.parts = parts->parts;
	sizes = calloc(parts->n + 1, sizeof(*sizes));
	for (size_t i = 0; sizes && i < parts->n; i++) {
		sizes[i] = parts->parts[i].stream->file.size_bytes;
		r.total_bytes += sizes[i];
	}
	ret = sizes ? ky_parallel_each(pool, parts->n, sizes, pass_part, &r, err)
		    : ky_error_nomem(err);
	if (r.broken_code < 0) {
		ret = r.broken_code;
		if (err)
			*err = r.broken_err;
	}
	parallel_tell(&r, parts);
	free(sizes);
	ky_vec_fini(&r.losses);
	ky_parts_close(parts);
	return ret;
}
