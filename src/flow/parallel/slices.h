/* SPDX-License-Identifier: MIT */
/*
 * Lines in parallel: the time of a trace is cut into slices; each is decoded, merged and formatted by
 * one thread, from its own sources to its own bytes, and these are written in order.
 *
 *	cutter -> slice 0 -> sources, filters, merge, sink in thread A -> bytes --+
 *		  slice 1 -> sources, filters, merge, sink in thread B -> bytes --+-> fd, in order
 *
 * Why that is the same as one merge: docs/design/read-path.md.
 *
 * Guarantees
 *  - Bytes, losses and the places where they are told, warnings, and the error are those of one graph
 *    and one sink, whatever the number of jobs. A warning of a source is told once per stream, in the
 *    end, stream by stream.
 *  - The cutter is not believed: a slice that does not end where the next one was begun makes the
 *    next ones be read anew.
 *  - Memory: what slices take together is bounded, whatever the number of jobs. One whose lines are more
 *    than a share of 32 MiB goes on when it is its turn to be written.
 *
 * Who may run beside whom: run is called by the thread that owns the pool, which cuts. A slice belongs to
 * the owner while it is free, to one task while that runs, and then to whichever task writes: the
 * one that finds the oldest slice ready and nobody writing. Who owns it changes under the pool's lock.
 */
#ifndef KY_FLOW_PARALLEL_SLICES_H
#define KY_FLOW_PARALLEL_SLICES_H

#include "flow/graph/select.h"
#include "flow/graph/sink.h"
#include "os/thread-pool.h"

struct ky_slices {
	struct ky_thread_pool *pool;
	/* Makes a sink that can hold and begin; NULL from it counts as out of memory. */
	struct ky_sink *(*make)(void *data);
	void *data;
	int fd;
	/*
	 * Takes what a sink of @make holds, which it forgets then; NULL: its bytes go to @fd. An error ends
	 * all. As the next ones:
	 */
	int (*write)(void *data, struct ky_sink *held, struct kymo_error *err);
	void *write_data;
	/* Called one at a time and in order, in any thread: */
	void (*loss)(void *data, const struct ky_loss *loss);
	void *loss_data;
	void (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes); /* or NULL */
	void *progress_data;
	/* Becomes true: end with KYMO_E_INTERRUPTED. Any thread calls it. */
	bool (*stop)(void);
};

/* Can this be cut? There must be more than one job, and no count of events to begin or end at. */
bool ky_slices_fit(const struct ky_thread_pool *pool, const struct ky_trace_set *set,
		   const struct ky_selection *selection);

/*
 * Write the lines of what @selection selects. Returns what a drained graph gives: 0, the error of the
 * graph or of the sink, KYMO_E_INTERRUPTED, or what opening gives.
 */
int ky_slices_run(const struct ky_slices *slices, const struct ky_trace_set *set,
		  const struct ky_selection *selection, struct kymo_error *err);

#endif
