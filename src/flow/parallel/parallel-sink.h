/* SPDX-License-Identifier: MIT */
/*
 * A sink that formats in a pool's threads: it cuts the sequence of events into pieces of a few
 * thousand. A sink per piece turns the piece into bytes, and the pieces are written in order.
 *
 *	merge -> parallel sink -> piece 0 -> its sink, formatting in thread A --+
 *				  piece 1 -> its sink, formatting in thread B --+-> fd, in order
 *				  piece 2 (being filled)
 *
 * Guarantees
 *  - The bytes are those of a single sink, with any number of jobs: also when an event cannot
 *    be written, which ends the output after the event before it.
 *  - The events of a batch are not copied: their window is held until the piece's next use, or
 *    until the sink is freed. Their graph must live until then. Batches without a window are
 *    written before ky_sink_batch() returns.
 *  - flush returns when everything before it is written. The first call of batch, flush or
 *    finish after an error of formatting or writing returns that error.
 *  - Memory: at most jobs + 4 pieces (no more than 40), each up to 2048 events or, for long
 *    events, 256 KiB of their bytes, and the output of these.
 *
 * Calls that may run at the same time: the sink's calls come one at a time, in the thread that owns
 * the pool. A piece belongs to the owner's thread while it is filled, to one task while that
 * formats it, and then to the task that writes: the one that finds the oldest piece ready and no
 * other task writing. The owner of a piece changes under the pool's lock.
 */
#ifndef KY_FLOW_PARALLEL_PARALLEL_SINK_H
#define KY_FLOW_PARALLEL_PARALLEL_SINK_H

#include "flow/graph/sink.h"
#include "os/thread-pool.h"

/*
 * @make(@data) makes a sink; it is called for each piece, and all of them write to the same file.
 * NULL from it counts as lack of memory. @pool is borrowed and must outlive the sink. With one job,
 * or when @make's sink does not support hold and resume, the result is one such sink. Returns NULL
 * when memory is out.
 */
struct ky_sink *ky_parallel_sink_new(struct ky_thread_pool *pool,
				     struct ky_sink *(*make)(void *data), void *data);

#endif
