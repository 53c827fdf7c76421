/* SPDX-License-Identifier: MIT */
/*
 * Passes over the streams of a trace whose order nobody sees: one stream after the other, each in
 * one thread, as many at once as the pool has jobs. There is no merge.
 *
 * Guarantees
 *  - Totals, warnings and their order, and the error are the same with any number of jobs.
 *  - Of several streams with an error the first one's counts, in the order of the streams; all
 *    of them are read as far as they can be. In ky_pass_run() damage (KYMO_E_FORMAT, KYMO_E_LIMIT)
 *    counts behind all other errors, which end the pass.
 *
 * Who may run beside whom: a stream's part runs in one thread. Traces, streams and filters are
 * immutable meanwhile; totals are added up under the pool's lock. ->loss and the log are called in the thread
 * that owns the pool only.
 */
#ifndef KY_FLOW_GRAPH_PARALLEL_H
#define KY_FLOW_GRAPH_PARALLEL_H

#include "flow/graph/select.h"
#include "flow/graph/summary.h"
#include "os/thread-pool.h"

/*
 * Call @part(@data, i) for every i below @n, in any thread and order, but large ones first.
 *
 * @sizes: how much work each is; NULL: all alike.
 * Returns 0, or the error of the lowest i that had one; the others are carried out nevertheless.
 */
int ky_parallel_each(struct ky_thread_pool *pool, size_t n, const uint64_t *sizes,
		     int (*part)(void *data, size_t i, struct kymo_error *err), void *data,
		     struct kymo_error *err);

/*
 * ky_stream_summarize() for @n streams, or ky_stream_survey().
 *
 * @summaries: one per stream, out.
 * @counts: one pointer per stream, to where it adds its events by class; streams of one trace share.
 *	NULL: a survey, nothing is counted.
 * @stop: see ky_stream_summarize(); any thread calls it.
 */
int ky_parallel_summarize(struct ky_thread_pool *pool, struct ky_stream *const *streams, size_t n,
			  struct ky_stream_summary *summaries, uint64_t *const *counts,
			  bool (*stop)(void), struct kymo_error *err);

/* A pass that decodes everything selected, as a merged one would, and counts it. */
struct ky_pass {
	/*
	 * Takes the batches of one stream in their order, in any thread; of several streams at the same time.
	 * An error of damage ends the stream, any other one the pass. NULL: nobody wants them.
	 */
	int (*batch)(void *data, const struct ky_batch *batch, struct kymo_error *err);
	/* @stream was read to its end without an error, where @batch is called; or NULL. */
	int (*end)(void *data, const struct ky_stream *stream, struct kymo_error *err);
	void *batch_data;
	/* Called one at a time, in any thread; or NULL. */
	void (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_data;
	/* Called in the end, in the order of time; NULL: losses are not told. */
	void (*loss)(void *data, const struct ky_loss *loss);
	void *data;
	bool (*stop)(void); /* becomes true: end with KYMO_E_INTERRUPTED; NULL: go to the end */
	uint64_t n_events;  /* out; also of what came before an error */
};

/*
 * @selection: without head and skip, which need an order.
 * Returns 0, what ky_flow_open_selected() gives, KYMO_E_INTERRUPTED, or the first error.
 */
int ky_pass_run(struct ky_pass *pass, struct ky_thread_pool *pool, const struct ky_trace_set *set,
		const struct ky_selection *selection, struct kymo_error *err);

/*
 * The same where only the number counts: with nothing selected but event types and streams, events
 * are counted without being decoded (count.c).
 */
int ky_count_run(struct ky_pass *pass, struct ky_thread_pool *pool, const struct ky_trace_set *set,
		 const struct ky_selection *selection, struct kymo_error *err);

#endif
