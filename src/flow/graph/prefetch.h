/* SPDX-License-Identifier: MIT */
/*
 * A stage that reads ahead of its consumer in a pool's threads. Its input is one stream (its source
 * and filter), whose next batches it decodes while the merge handles others; or the whole graph up
 * to the merge, while the consumer handles merged events.
 *
 * Guarantees
 *  - Batches, their order, losses, errors and warnings are those of the input. Warnings come in
 *    the consumer's thread, before their batch.
 *  - Memory: at most 32 batches. Batches of a stream are copies, and the links of an event lead
 *    to a copy of its packet's description in the batch; windows of a merge are held. Batches
 *    have no window: the consumer cannot hold them.
 *
 * Calls that may run at the same time: next, seek and close are calls of the thread that owns the
 * pool. One task at a time uses the input, or the owner when there is no task. A slot of the ring
 * belongs to the task from its release by the consumer until the task has published it, both under
 * the pool's lock.
 */
#ifndef KY_FLOW_GRAPH_PREFETCH_H
#define KY_FLOW_GRAPH_PREFETCH_H

#include "flow/graph/flow.h"
#include "os/thread-pool.h"

/*
 * @input: taken over, on failure too. @log: the log of its source, taken over; its warnings go to
 *	@to (borrowed). Both NULL: the source has another log. @pool is borrowed.
 */
int ky_prefetch_open(struct ky_thread_pool *pool, struct ky_flow *input, struct ky_log_keep *log,
		     const struct ky_log *to, struct ky_flow **flow, struct kymo_error *err);

/*
 * Begins to read while the consumer is not ready yet. Not for a consumer that will seek: the read
 * may give warnings.
 */
void ky_prefetch_start(struct ky_flow *flow);

/* A log for ky_prefetch_open(), on the heap; NULL when memory is out. */
struct ky_log_keep *ky_prefetch_log_new(void);

#endif
