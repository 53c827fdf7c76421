/* SPDX-License-Identifier: MIT */
/*
 * A sink that lets a pool format: it cuts the sequence of events into pieces of a few
 * thousand, each of which a sink of its own turns into bytes, and writes them in order.
 *
 *	merge -> parallel sink -> piece 0 -> its sink, formatting in thread A --+
 *				  piece 1 -> its sink, formatting in thread B --+-> fd, in order
 *				  piece 2 (being filled)
 *
 * Guarantees
 *  - The bytes are those that one sink would have written, whatever the number of jobs: also
 *    when an event cannot be written, which ends the output behind the event before it.
 *  - The events of a batch are not copied: their window is held until their piece's turn comes again,
 *    or the sink is freed. The graph that they come from must stay until then. Batches without
 *    a window are written before ky_sink_batch() returns.
 *  - flush returns when everything before it is written; an error that is met while
 *    formatting or writing is returned by that call of batch, flush or finish that learns of it.
 *  - Memory: at most jobs + 4 pieces (no more than 40), each up to 2048 events or, where events
 *    are long, 256 KiB of their bytes, and what these become in the output.
 *
 * Who may run beside whom: the sink's calls are one at a time, in the thread that owns the pool.
 * A piece belongs to the owner's thread while it is filled, to one task while it is
 * formatted, and then to whichever task writes: the one that finds the oldest piece ready
 * and nobody writing. Who owns it changes under the pool's lock.
 */
#ifndef KY_FLOW_PARALLEL_PARALLEL_SINK_H
#define KY_FLOW_PARALLEL_PARALLEL_SINK_H

#include "flow/graph/sink.h"
#include "os/thread-pool.h"

/*
 * @make(@data): makes a sink; called for each piece, all of them write to the same file. NULL from
 * it counts as out of memory.
 * @pool is borrowed and must outlive the sink. With one job, or where @make's sink can not hold and
 * resume, it is that sink alone.
 * NULL when out of memory.
 */
struct ky_sink *ky_parallel_sink_new(struct ky_thread_pool *pool,
				     struct ky_sink *(*make)(void *data), void *data);

#endif
