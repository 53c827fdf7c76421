/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-queue.h"

#include <stdlib.h>

#include "base/error.h"
#include "os/thread-pool.h"

/* The owner decodes, and two threads pack batches or wait for the server. */
#define JOBS 3
/* Batches on their way, at most: memory. */
#define FLIGHT_MAX 4

struct ky_fleet_task {
	struct ky_task base;
	struct ky_fleet_queue *queue;
	const struct ky_fleet_table *table; /* that has to be made; NULL: it is there */
	struct ky_fleet_batch *batch;	    /* NULL: it went in, or failed */
};

struct ky_fleet_queue {
	struct ky_fleet *store;
	struct ky_thread_pool *pool;
	unsigned int n_flying, n_making;
	int status; /* of the first batch that failed */
	struct kymo_error error;
	uint64_t n_rows, n_known, n_batches;
};

int ky_fleet_queue_new(struct ky_fleet *store, struct ky_fleet_queue **out, struct kymo_error *err)
{
	struct ky_fleet_queue *queue = calloc(1, sizeof(*queue));
	int ret;

	if (!queue)
		return ky_error_nomem(err);
	queue->store = store;
	ret = ky_thread_pool_new(JOBS, &queue->pool, err);
	if (ret < 0)
		free(queue);
	else
		*out = queue;
	return ret;
}

void ky_fleet_queue_free(struct ky_fleet_queue *queue)
{
	if (!queue)
		return;
	ky_thread_pool_free(queue->pool);
	free(queue);
}

void ky_fleet_task_free(struct ky_fleet_task *task)
{
	free(task);
}

static void fleet_queue_drop(struct ky_fleet_batch *batch)
{
	ky_fleet_batch_fini(batch);
	free(batch);
}

/* Keeps what the first one failed with. */
static void fleet_queue_failed(struct ky_fleet_queue *queue, int status,
			       const struct kymo_error *err)
{
	if (status >= 0 || queue->status)
		return;
	queue->status = status;
	queue->error = *err;
}

static void fleet_queue_make(struct ky_fleet_task *task)
{
	struct ky_fleet_queue *queue = task->queue;
	struct kymo_error err = {0};
	int ret;

	ky_thread_pool_lock(queue->pool);
	ret = queue->status;
	ky_thread_pool_unlock(queue->pool);
	if (!ret)
		ret = queue->store->ops->table(queue->store, task->table, &err);
	ky_thread_pool_lock(queue->pool);
	task->table = NULL;
	queue->n_making--;
	fleet_queue_failed(queue, ret, &err);
	ky_thread_pool_unlock(queue->pool);
}

static void fleet_queue_run(struct ky_task *base)
{
	struct ky_fleet_task *task = (struct ky_fleet_task *)base;
	struct ky_fleet_queue *queue = task->queue;
	struct kymo_error err = {0};
	uint64_t n_rows;
	bool is_known = false;
	int ret;

	if (task->table) {
		fleet_queue_make(task);
		return;
	}
	n_rows = task->batch->n_rows;
	ky_thread_pool_lock(queue->pool);
	ret = queue->status;
	ky_thread_pool_unlock(queue->pool);
	if (!ret)
		ret = queue->store->ops->put(queue->store, task->batch, &is_known, &err);
	fleet_queue_drop(task->batch);
	ky_thread_pool_lock(queue->pool);
	task->batch = NULL;
	queue->n_flying--;
	fleet_queue_failed(queue, ret, &err);
	if (!ret) {
		*(is_known ? &queue->n_known : &queue->n_rows) += n_rows;
		queue->n_batches += !is_known;
	}
	ky_thread_pool_unlock(queue->pool);
}

/* Is there room, and is the table's batch before this one in? */
static bool fleet_queue_is_ready(void *data)
{
	const struct ky_fleet_task *task = data;

	return !task->batch && !task->table && task->queue->n_flying < FLIGHT_MAX;
}

static bool fleet_queue_is_empty(void *data)
{
	const struct ky_fleet_queue *queue = data;

	return !queue->n_flying && !queue->n_making;
}

static int fleet_queue_status(struct ky_fleet_queue *queue, struct kymo_error *err)
{
	int ret;

	ky_thread_pool_lock(queue->pool);
	ret = queue->status;
	if (ret < 0)
		*err = queue->error;
	ky_thread_pool_unlock(queue->pool);
	return ret;
}

static struct ky_fleet_task *fleet_queue_task(struct ky_fleet_queue *queue,
					      struct ky_fleet_task **task)
{
	if (!*task)
		*task = calloc(1, sizeof(**task));
	if (*task) {
		(*task)->base.run = fleet_queue_run;
		(*task)->queue = queue;
	}
	return *task;
}

int ky_fleet_queue_table(struct ky_fleet_queue *queue, struct ky_fleet_task **task,
			 const struct ky_fleet_table *table, struct kymo_error *err)
{
	if (!fleet_queue_task(queue, task))
		return ky_error_nomem(err);
	(*task)->table = table;
	ky_thread_pool_lock(queue->pool);
	queue->n_making++;
	ky_thread_pool_unlock(queue->pool);
	ky_thread_pool_add(queue->pool, &(*task)->base);
	return KYMO_OK;
}

int ky_fleet_queue_put(struct ky_fleet_queue *queue, struct ky_fleet_task **task,
		       struct ky_fleet_batch *batch, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (fleet_queue_task(queue, task)) {
		ky_thread_pool_wait(queue->pool, fleet_queue_is_ready, *task);
		ret = fleet_queue_status(queue, err);
	} else {
		ret = ky_error_nomem(err);
	}
	if (ret < 0) {
		fleet_queue_drop(batch);
		return ret;
	}
	(*task)->batch = batch;
	ky_thread_pool_lock(queue->pool);
	queue->n_flying++;
	ky_thread_pool_unlock(queue->pool);
	ky_thread_pool_add(queue->pool, &(*task)->base);
	return KYMO_OK;
}

int ky_fleet_queue_wait(struct ky_fleet_queue *queue, struct kymo_error *err)
{
	ky_thread_pool_wait(queue->pool, fleet_queue_is_empty, queue);
	return fleet_queue_status(queue, err);
}

void ky_fleet_queue_result(struct ky_fleet_queue *queue, struct ky_fleet_result *result)
{
	ky_thread_pool_lock(queue->pool);
	result->n_rows += queue->n_rows;
	result->n_known += queue->n_known;
	result->n_batches += queue->n_batches;
	queue->n_rows = queue->n_known = queue->n_batches = 0;
	ky_thread_pool_unlock(queue->pool);
}
