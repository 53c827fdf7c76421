/* SPDX-License-Identifier: MIT */
/*
 * A sink that writes CTF traces: the events that it is given, in packets like those they came
 * from, one file per input stream.
 *
 * Environment, clocks, UUID and log levels stay. So do the losses that a reader reports:
 * counters of discarded events are those of the input's packets, sequence numbers miss
 * as many packets as were missing. Of a selection, packets without an event are written only where a
 * loss needs one before it; of whole streams (ky_ctf_sink_keep()) all packets are written.
 */
#ifndef KY_FLOW_SINKS_CTF_SINK_H
#define KY_FLOW_SINKS_CTF_SINK_H

#include "flow/graph/parallel.h"
#include "flow/graph/sink.h"
#include "os/thread-pool.h"
#include "store/packet-store.h"

/*
 * @set: where the batches will come from (borrowed).
 * @store: empty, and the sink's from now on, on failure too. One trace becomes the store's own, several get paths below,
 *	named as the input's are below the directory that they have in common.
 * @major: 1 (CTF 1.8) or 2.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when that version cannot describe a field (@err names it); or
 * what writing gives.
 */
int ky_ctf_sink_open(const struct ky_trace_set *set, struct ky_packet_store *store, uint32_t major,
		     struct ky_sink **sink, struct kymo_error *err);

/* Where the streams of @stream's trace are written. */
struct ky_store_trace *ky_ctf_sink_files(const struct ky_sink *sink,
					 const struct ky_stream *stream);

/* Do the bytes of @stream stay what they are? Else its events are written one by one. */
bool ky_ctf_sink_copies(const struct ky_sink *sink, const struct ky_stream *stream);

/*
 * The streams whose byte in @whole (by ky_stream.index) is true will be given as a whole: write those
 * of their packets, too, that have no event. To be called before ky_ctf_sink_pass().
 */
void ky_ctf_sink_keep(struct ky_sink *sink, const bool *whole);

/*
 * Everything that @selection selects goes into @sink, several streams at a time; to be finished then. What is
 * written does not depend on the number of jobs. @pass and the result are those of ky_pass_run().
 */
int ky_ctf_sink_pass(struct ky_sink *sink, struct ky_pass *pass, struct ky_thread_pool *pool,
		     const struct ky_trace_set *set, const struct ky_selection *selection,
		     struct kymo_error *err);

/* How to copy; stop and progress may be NULL, and are called in any thread, progress one at a time. */
struct ky_ctf_copy {
	struct ky_thread_pool *pool; /* streams are checked, and written, several at a time */
	bool (*stop)(void);	     /* becomes true: end with KYMO_E_INTERRUPTED */
	void (*progress)(uint64_t done_bytes, uint64_t total_bytes);
};

/*
 * Copy the packets of all streams as they are. They are checked first: of a stream with damage,
 * with another UUID than the trace, or that ky_ctf_sink_copies() says no to, nothing is written,
 * damaged[its index] is set, and its events are to be written by ky_ctf_sink_pass() instead.
 * What is written does not depend on the number of jobs.
 */
int ky_ctf_sink_copy(struct ky_sink *sink, const struct ky_trace_set *set,
		     const struct ky_ctf_copy *how, bool *damaged, struct kymo_error *err);

#endif
