/* SPDX-License-Identifier: MIT */
/*
 * Batches on their way into a store, beside the decoding of the next ones. The batches of one table go one after the other.
 *
 *	ky_fleet_queue_new(store, &queue, err);
 *	ky_fleet_queue_put(queue, &task, batch, err);	waits while too many are on their way
 *	ky_fleet_queue_wait(queue, err);		for all
 */
#ifndef KY_FLEET_FLEET_QUEUE_H
#define KY_FLEET_FLEET_QUEUE_H

#include "fleet/fleet.h"

struct ky_fleet_queue;
struct ky_fleet_task;

int ky_fleet_queue_new(struct ky_fleet *store, struct ky_fleet_queue **queue,
		       struct kymo_error *err);
/* After ky_fleet_queue_wait(). NULL is allowed. */
void ky_fleet_queue_free(struct ky_fleet_queue *queue);
/*
 * Takes @batch, also on failure. *@task is that of the table, NULL at first: the caller frees it in the end. 0, or what this or an earlier batch
 * failed with.
 */
int ky_fleet_queue_put(struct ky_fleet_queue *queue, struct ky_fleet_task **task,
		       struct ky_fleet_batch *batch, struct kymo_error *err);
/* Makes @table, which must outlive it, before the batches that follow: a server takes its time for that. As above, but failures come with the next batch. */
int ky_fleet_queue_table(struct ky_fleet_queue *queue, struct ky_fleet_task **task,
			 const struct ky_fleet_table *table, struct kymo_error *err);
int ky_fleet_queue_wait(struct ky_fleet_queue *queue, struct kymo_error *err);
void ky_fleet_task_free(struct ky_fleet_task *task);
/* Adds what went in since the last call. */
void ky_fleet_queue_result(struct ky_fleet_queue *queue, struct ky_fleet_result *result);

#endif
