/* SPDX-License-Identifier: MIT */
/*
 * A stage that reads ahead of its consumer in a pool's threads. What lies below it is one stream (its
 * source, its filter), whose next batches are decoded while the merge is busy with others; or the whole
 * graph up to the merge, while the consumer thinks about what was merged.
 *
 * Guarantees
 *  - Batches, their order, losses, errors and warnings are those of the input. Warnings are told in
 *    the consumer's thread, before the batch that they are about.
 *  - Memory: at most 32 batches. Those of a stream are copied, and who follows the links of an event finds
 *    a copy of its packet's description that belongs to the batch; the windows of a merge are held.
 *    Batches have no window: they cannot be held by the consumer.
 *
 * Who may run beside whom: next, seek and close are calls of the thread that owns the pool. The
 * input is touched by one task at a time, or by the owner while there is none. A slot of the
 * ring belongs to the task from its release by the consumer until the task has published it,
 * both under the pool's lock.
 */
#ifndef KY_FLOW_GRAPH_PREFETCH_H
#define KY_FLOW_GRAPH_PREFETCH_H

#include "flow/graph/flow.h"
#include "os/thread-pool.h"

/*
 * @input: taken over, on failure too. @log: what it warns through (its source), taken over; the
 * warnings go to @to (borrowed). Both NULL: its warnings have another way. @pool is borrowed.
 */
int ky_prefetch_open(struct ky_thread_pool *pool, struct ky_flow *input, struct ky_log_keep *log,
		     const struct ky_log *to, struct ky_flow **flow, struct kymo_error *err);

/* Begin to read, while the consumer is not ready yet. Not where it will seek: @flow may warn meanwhile. */
void ky_prefetch_start(struct ky_flow *flow);

/* A log for ky_prefetch_open(), on the heap; NULL when out of memory. */
struct ky_log_keep *ky_prefetch_log_new(void);

#endif
