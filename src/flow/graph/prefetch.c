/* SPDX-License-Identifier: MIT */
#include "flow/graph/prefetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/window.h"

#define SLOTS	   32
#define LOOK_SLOTS 8
/* Few at first, so that the consumer need not wait for long. */
#define FIRST_SLOTS 2

/* A batch, with everything that it borrowed. */
struct slot {
	int ret; /* of the input: 1, or how it ended */
	struct ky_batch batch;
	struct ky_event *events;
	size_t cap;
	struct ky_packet packet;
	struct ky_loss loss;
	bool has_loss;		  /* it is a copy */
	struct ky_window *window; /* held: nothing is a copy */
	struct ky_log_keep log;
};

struct ahead {
	struct ky_flow flow;
	struct ky_task task;
	struct ky_thread_pool *pool;
	struct ky_flow *input;
	struct ky_log_keep *log; /* the input's */
	const struct ky_log *to;
	struct slot slots[SLOTS];
	/* The consumer's: */
	size_t first;	/* the slot to deliver next */
	size_t n_ready; /* known to be filled, from there on */
	size_t n_given; /* slots before first that were delivered; the last one is lent out */
	size_t n_most;	/* so many slots may be filled at once */
	bool ended;
	/* The task's, while it runs; else the owner's: */
	size_t next;
	size_t n_wanted;       /* how many slots to fill */
	struct kymo_error err; /* of the last slot: how the input ended */
	/* Under the pool's lock: */
	size_t n_filled; /* published, and not yet known to the consumer */
	size_t n_free;
	bool filling, input_ended;
};

static struct ahead *ahead_of(struct ky_flow *flow)
{
	return (struct ahead *)flow;
}

/* ---- filling, in any thread ------------------------------------------------------------------ */

static int keep_events(struct slot *slot, struct kymo_error *err)
{
	struct ky_batch *batch = &slot->batch;
	size_t n = batch->n_events;

	if (n > slot->cap) {
		free(slot->events);
		slot->cap = 0;
		slot->events = malloc(n * sizeof(*slot->events));
		if (!slot->events)
			return ky_error_nomem(err);
		slot->cap = n;
	}
	if (n) {
		slot->packet = *batch->events->packet;
		memcpy(slot->events, batch->events, n * sizeof(*slot->events));
		for (size_t i = 0; i < n; i++)
			slot->events[i].packet = &slot->packet;
	}
	batch->events = slot->events;
	return 1;
}

static int keep_loss(struct slot *slot, struct kymo_error *err)
{
	slot->loss = *slot->batch.loss;
	slot->batch.loss = &slot->loss;
	if (ky_loss_keep(&slot->loss) < 0)
		return ky_error_nomem(err);
	slot->has_loss = true;
	return 1;
}

/* A merge's events, and what they borrow, stay where they are. */
static void prefetch_hold(struct slot *slot)
{
	slot->window = slot->batch.window;
	ky_window_hold(slot->window);
	/* That is for the input's thread only. */
	slot->batch.window = NULL;
}

/* The batch has come back. */
static void prefetch_drop(struct slot *slot)
{
	if (slot->has_loss)
		ky_loss_drop(&slot->loss);
	slot->has_loss = false;
	if (slot->window)
		ky_window_release(slot->window);
	slot->window = NULL;
}

static int prefetch_keep(struct slot *slot, struct kymo_error *err)
{
	int ret;

	if (slot->batch.window) {
		prefetch_hold(slot);
		return 1;
	}
	ret = keep_events(slot, err);
	return ret > 0 && slot->batch.loss ? keep_loss(slot, err) : ret;
}

static void prefetch_fill_slot(struct ahead *a, struct slot *slot)
{
	struct ky_strbuf kept = slot->log.kept;

	prefetch_drop(slot);
	slot->ret = ky_flow_next(a->input, &slot->batch, &a->err);
	if (slot->ret > 0)
		slot->ret = prefetch_keep(slot, &a->err);
	if (!a->log)
		return;
	slot->log.kept = a->log->kept;
	a->log->kept = kept;
}

static void run_fill(struct ky_task *task)
{
	struct ahead *a = (struct ahead *)((char *)task - offsetof(struct ahead, task));
	size_t n = 0;
	int ret = 1;

	while (n < a->n_wanted && ret > 0) {
		struct slot *slot = &a->slots[a->next];

		prefetch_fill_slot(a, slot);
		a->next = (a->next + 1) % SLOTS;
		ret = slot->ret;
		n++;
	}
	ky_thread_pool_lock(a->pool);
	a->n_filled += n;
	a->n_free -= n;
	a->input_ended = ret <= 0;
	a->filling = false;
	ky_thread_pool_unlock(a->pool);
}

/* ---- the consumer's side ------------------------------------------------------------------------ */

/* Give back what was delivered, see what is there, have more made. */
static void prefetch_look(struct ahead *a)
{
	bool start;

	ky_thread_pool_lock(a->pool);
	a->n_free += a->n_given;
	a->n_ready += a->n_filled;
	a->n_filled = 0;
	start = !a->filling && !a->input_ended && a->n_free >= a->n_most;
	if (start) {
		a->filling = true;
		a->n_wanted = a->n_most;
	}
	ky_thread_pool_unlock(a->pool);
	a->n_given = 0;
	if (!start)
		return;
	if (a->n_most < SLOTS / 2)
		a->n_most *= 2;
	ky_thread_pool_add(a->pool, &a->task);
}

static bool prefetch_is_idle(void *data)
{
	return !((const struct ahead *)data)->filling;
}

static void prefetch_wait_for_more(struct ahead *a)
{
	prefetch_look(a);
	if (a->n_ready)
		return;
	ky_thread_pool_wait(a->pool, prefetch_is_idle, a);
	prefetch_look(a);
}

static int ahead_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct ahead *a = ahead_of(flow);
	struct slot *slot;

	if (a->ended)
		return 0;
	/* Now and then, for it costs the lock; the batch that was lent out has come back. */
	if (a->n_given >= LOOK_SLOTS)
		prefetch_look(a);
	if (!a->n_ready)
		prefetch_wait_for_more(a);
	slot = &a->slots[a->first];
	a->first = (a->first + 1) % SLOTS;
	a->n_ready--;
	a->n_given++;
	if (slot->log.kept.len)
		ky_log_keep_tell(&slot->log, a->to);
	if (slot->ret > 0) {
		*batch = slot->batch;
		return 1;
	}
	a->ended = true;
	if (slot->ret < 0 && err)
		*err = a->err;
	return slot->ret;
}

static void reset(struct ahead *a)
{
	ky_thread_pool_wait(a->pool, prefetch_is_idle, a);
	for (size_t i = 0; i < SLOTS; i++)
		prefetch_drop(&a->slots[i]);
	a->first = a->next = 0;
	a->n_ready = a->n_filled = 0;
	a->n_free = SLOTS;
	a->n_most = FIRST_SLOTS;
	a->n_given = 0;
	a->ended = a->input_ended = false;
}

static int ahead_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct ahead *a = ahead_of(flow);

	reset(a);
	return ky_flow_seek(a->input, ns, err);
}

static int ahead_broken(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err)
{
	struct ahead *a = ahead_of(flow);

	ky_thread_pool_wait(a->pool, prefetch_is_idle, a);
	return ky_flow_broken(a->input, i, ns, err);
}

static void free_log(struct ky_log_keep *log)
{
	if (log)
		ky_log_keep_fini(log);
	free(log);
}

static void ahead_close(struct ky_flow *flow)
{
	struct ahead *a = ahead_of(flow);

	reset(a);
	ky_flow_close(a->input);
	for (size_t i = 0; i < SLOTS; i++) {
		free(a->slots[i].events);
		ky_log_keep_fini(&a->slots[i].log);
	}
	free_log(a->log);
	free(a);
}

static const struct ky_flow_ops ahead_ops = {
	.next = ahead_next,
	.seek = ahead_seek,
	.broken = ahead_broken,
	.close = ahead_close,
};

int ky_prefetch_open(struct ky_thread_pool *pool, struct ky_flow *input, struct ky_log_keep *log,
		     const struct ky_log *to, struct ky_flow **flow, struct kymo_error *err)
{
	struct ahead *a = calloc(1, sizeof(*a));

	if (!a) {
		ky_flow_close(input);
		free_log(log);
		return ky_error_nomem(err);
	}
	a->flow.ops = &ahead_ops;
	a->task.run = run_fill;
	a->pool = pool;
	a->input = input;
	a->log = log;
	a->to = to;
	a->n_free = SLOTS;
	a->n_most = FIRST_SLOTS;
	*flow = &a->flow;
	return KYMO_OK;
}

void ky_prefetch_start(struct ky_flow *flow)
{
	prefetch_look(ahead_of(flow));
}

struct ky_log_keep *ky_prefetch_log_new(void)
{
	struct ky_log_keep *log = malloc(sizeof(*log));

	if (log)
		ky_log_keep_init(log);
	return log;
}
