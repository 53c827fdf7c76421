/* SPDX-License-Identifier: MIT */
/*
 * Lines in parallel: the time of a trace is cut into slices. One thread decodes, merges and formats
 * each slice, from its own sources to its own bytes, and the bytes are written in order.
 *
 *	cutter -> slice 0 -> sources, filters, merge, sink in thread A -> bytes --+
 *		  slice 1 -> sources, filters, merge, sink in thread B -> bytes --+-> fd, in order
 *
 * docs/design/read-path.md explains why the result is that of one merge.
 *
 * Guarantees
 *  - Bytes, losses and their places, warnings, and the error are those of one graph and one
 *    sink, with any number of jobs. A warning of a source comes once per stream, at the end,
 *    stream by stream.
 *  - The code does not rely on the cutter: when a slice does not end at the begin of the next
 *    one, the next ones are read again.
 *  - Memory: the memory of all slices together is limited, with any number of jobs. A slice
 *    whose lines exceed its share of 32 MiB continues in its turn to be written.
 *
 * Calls that may run at the same time: the thread that owns the pool calls run, and cuts. A slice
 * belongs to the owner while it is free, to one task while that runs, and then to the task that
 * writes: the one that finds the oldest slice ready and no other task writing. The owner of a slice
 * changes under the pool's lock.
 */
#ifndef KY_FLOW_PARALLEL_SLICES_H
#define KY_FLOW_PARALLEL_SLICES_H

#include "flow/graph/select.h"
#include "flow/graph/sink.h"
#include "os/thread-pool.h"

struct ky_slices {
	struct ky_thread_pool *pool;
	/* Makes a sink that supports hold and begin; NULL from it counts as lack of memory. */
	struct ky_sink *(*make)(void *data);
	void *data;
	int fd;
	/*
	 * Takes the contents of a sink of @make, which then drops them; NULL: the bytes go to @fd.
	 * An error ends the run. Called like the next ones:
	 */
	int (*write)(void *data, struct ky_sink *held, struct kymo_error *err);
	void *write_data;
	/* Called one at a time and in order, in any thread: */
	void (*loss)(void *data, const struct ky_loss *loss);
	void *loss_data;
	void (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes); /* or NULL */
	void *progress_data;
	/* true ends the run with KYMO_E_INTERRUPTED. Any thread calls it. */
	bool (*stop)(void);
};

/* Whether this can be cut: there must be more than one job, and no limit by a number of events. */
bool ky_slices_fit(const struct ky_thread_pool *pool, const struct ky_trace_set *set,
		   const struct ky_selection *selection);

/*
 * Write the lines of the events in @selection. Returns the result of a drained graph: 0, the error
 * of the graph or of the sink, KYMO_E_INTERRUPTED, or an error of opening.
 */
int ky_slices_run(const struct ky_slices *slices, const struct ky_trace_set *set,
		  const struct ky_selection *selection, struct kymo_error *err);

#endif
