/* SPDX-License-Identifier: MIT */
/*
 * Passes over the streams of a trace whose order does not matter. Each stream runs in one thread,
 * as many at once as the pool has jobs. There is no merge.
 *
 * Guarantees
 *  - Totals, warnings and their order, and the error are the same with any number of jobs.
 *  - When several streams have an error, the first one in the order of the streams counts; all
 *    streams are read as far as possible. In ky_pass_run(), damage (KYMO_E_FORMAT,
 *    KYMO_E_LIMIT) counts less than other errors, which end the pass.
 *
 * Calls that may run at the same time: a stream's part runs in one thread. Traces, streams and
 * filters are immutable meanwhile; the pool's lock protects totals. Only the thread that owns the
 * pool calls ->loss and the log.
 */
#ifndef KY_FLOW_GRAPH_PARALLEL_H
#define KY_FLOW_GRAPH_PARALLEL_H

#include "flow/graph/select.h"
#include "flow/graph/summary.h"
#include "os/thread-pool.h"

/*
 * Call @part(@data, i) for every i below @n, in any thread and order, but large ones first.
 *
 * @sizes: the amount of work of each; NULL: all equal.
 * Returns 0, or the error of the lowest failed i; the other calls run nevertheless.
 */
int ky_parallel_each(struct ky_thread_pool *pool, size_t n, const uint64_t *sizes,
		     int (*part)(void *data, size_t i, struct kymo_error *err), void *data,
		     struct kymo_error *err);

/*
 * ky_stream_summarize() for @n streams, or ky_stream_survey().
 *
 * @summaries: one per stream, out.
 * @counts: one pointer per stream, to the place for its events by class; streams of one trace share
 *	it. NULL: a survey, which counts nothing.
 * @stop: see ky_stream_summarize(); any thread calls it.
 */
int ky_parallel_summarize(struct ky_thread_pool *pool, struct ky_stream *const *streams, size_t n,
			  struct ky_stream_summary *summaries, uint64_t *const *counts,
			  bool (*stop)(void), struct kymo_error *err);

/* A pass that decodes and counts the same events as a merged graph. */
struct ky_pass {
	/*
	 * Takes the batches of one stream in their order, in any thread, and those of several
	 * streams at the same time. An error of damage ends the stream, any other error the pass.
	 * NULL: the batches are only counted.
	 */
	int (*batch)(void *data, const struct ky_batch *batch, struct kymo_error *err);
	/*
	 * @stream was read to its end without an error; called in the same thread as @batch; or
	 * NULL.
	 */
	int (*end)(void *data, const struct ky_stream *stream, struct kymo_error *err);
	void *batch_data;
	/* Called one at a time, in any thread; or NULL. */
	void (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_data;
	/* Called at the end, in the order of time; NULL: losses are not reported. */
	void (*loss)(void *data, const struct ky_loss *loss);
	void *data;
	bool (*stop)(void); /* true ends the pass with KYMO_E_INTERRUPTED; NULL: never */
	uint64_t n_events;  /* out; includes events before an error */
};

/*
 * @selection: without head and skip, which need an order. Returns 0, a status of
 *	ky_flow_open_selected(), KYMO_E_INTERRUPTED, or the first error.
 */
int ky_pass_run(struct ky_pass *pass, struct ky_thread_pool *pool, const struct ky_trace_set *set,
		const struct ky_selection *selection, struct kymo_error *err);

/*
 * The same when only the number matters: when the selection has only event names and streams, the
 * pass counts events without decoding them (count.c).
 */
int ky_count_run(struct ky_pass *pass, struct ky_thread_pool *pool, const struct ky_trace_set *set,
		 const struct ky_selection *selection, struct kymo_error *err);

#endif
