/* SPDX-License-Identifier: MIT */
/*
 * A sink that writes CTF traces: it puts the events into packets like those of the input, in one
 * file per input stream.
 *
 * Environment, clocks, UUID and log levels stay. So do the losses that a reader reports: counters
 * of discarded events are those of the input's packets, and sequence numbers skip the missing
 * packets. Of a selection, the sink writes packets without an event only where a loss needs one
 * before it; of whole streams (ky_ctf_sink_keep()) it writes all packets.
 */
#ifndef KY_FLOW_SINKS_CTF_SINK_H
#define KY_FLOW_SINKS_CTF_SINK_H

#include "flow/graph/parallel.h"
#include "flow/graph/sink.h"
#include "os/thread-pool.h"
#include "store/packets/packet-store.h"

/*
 * @set: the source of the batches (borrowed).
 * @store: empty; the sink takes it over, on failure too. One trace becomes the store's own; several
 *	get paths below, with their input's names below the common directory.
 * @major: 1 (CTF 1.8) or 2.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when that version cannot describe a field (@err names it); or an
 * error of writing.
 */
int ky_ctf_sink_open(const struct ky_trace_set *set, struct ky_packet_store *store, uint32_t major,
		     struct ky_sink **sink, struct kymo_error *err);

/* The output trace of @stream's trace. */
struct ky_store_trace *ky_ctf_sink_files(const struct ky_sink *sink,
					 const struct ky_stream *stream);

/*
 * Whether the sink can keep the bytes of @stream unchanged. If not, it writes its events one by
 * one.
 */
bool ky_ctf_sink_copies(const struct ky_sink *sink, const struct ky_stream *stream);

/*
 * The sink will get the whole of each stream whose byte in @whole (by ky_stream.index) is true: it
 * also writes their packets without events. The caller must call this before ky_ctf_sink_pass().
 */
void ky_ctf_sink_keep(struct ky_sink *sink, const bool *whole);

/*
 * Write all events of @selection to @sink, several streams at a time; the caller then finishes the
 * sink. The output does not depend on the number of jobs. @pass and the result are those of
 * ky_pass_run().
 */
int ky_ctf_sink_pass(struct ky_sink *sink, struct ky_pass *pass, struct ky_thread_pool *pool,
		     const struct ky_trace_set *set, const struct ky_selection *selection,
		     struct kymo_error *err);

/*
 * Options of copying; stop and progress may be NULL; any thread calls them, progress one at a time.
 */
struct ky_ctf_copy {
	struct ky_thread_pool *pool; /* checks and writes several streams at a time */
	bool (*stop)(void);	     /* true ends copying with KYMO_E_INTERRUPTED */
	void (*progress)(uint64_t done_bytes, uint64_t total_bytes);
};

/*
 * Copy the packets of all streams unchanged, after checking them. Of a stream with damage, with
 * another UUID than the trace, or for which ky_ctf_sink_copies() is false, the function writes
 * nothing and sets damaged[its index]; ky_ctf_sink_pass() must write its events instead. The output
 * does not depend on the number of jobs.
 */
int ky_ctf_sink_copy(struct ky_sink *sink, const struct ky_trace_set *set,
		     const struct ky_ctf_copy *how, bool *damaged, struct kymo_error *err);

#endif
