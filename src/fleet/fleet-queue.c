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
	struct ky_fleet_batch *batch; /* NULL: it went in, or failed */
};

struct ky_fleet_queue {
	struct ky_fleet *store;
	struct ky_thread_pool *pool;
	unsigned int n_flying;
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

static void fleet_queue_run(struct ky_task *base)
{
	struct ky_fleet_task *task = (struct ky_fleet_task *)base;
	struct ky_fleet_queue *queue = task->queue;
	struct kymo_error err = {0};
	uint64_t n_rows = task->batch->n_rows;
	bool is_known = false;
	int ret;

	ky_thread_pool_lock(queue->pool);
	ret = queue->status;
	ky_thread_pool_unlock(queue->pool);
	if (!ret)
		ret = queue->store->ops->put(queue->store, task->batch, &is_known, &err);
	fleet_queue_drop(task->batch);
	ky_thread_pool_lock(queue->pool);
	task->batch = NULL;
	queue->n_flying--;
	if (ret < 0 && !queue->status) {
		queue->status = ret;
		queue->error = err;
	} else if (!ret) {
		*(is_known ? &queue->n_known : &queue->n_rows) += n_rows;
		queue->n_batches += !is_known;
	}
	ky_thread_pool_unlock(queue->pool);
}

/* Is there room, and is the table's batch before this one in? */
static bool fleet_queue_is_ready(void *data)
{
	const struct ky_fleet_task *task = data;

	return !task->batch && task->queue->n_flying < FLIGHT_MAX;
}

static bool fleet_queue_is_empty(void *data)
{
	return ((const struct ky_fleet_queue *)data)->n_flying == 0;
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

int ky_fleet_queue_put(struct ky_fleet_queue *queue, struct ky_fleet_task **task,
		       struct ky_fleet_batch *batch, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!*task)
		*task = calloc(1, sizeof(**task));
	if (*task) {
		(*task)->base.run = fleet_queue_run;
		(*task)->queue = queue;
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
