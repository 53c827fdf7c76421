/* SPDX-License-Identifier: MIT */
/* One stream of what ctf-sink.h writes: its events go into packets like those that they came from. */
#ifndef KY_FLOW_SINKS_CTF_STREAM_H
#define KY_FLOW_SINKS_CTF_STREAM_H

#include "flow/graph/flow.h"
#include "store/packet-store.h"

struct ky_ctf_stream;

/*
 * @as: what its trace is written as; NULL: as it is.
 * @keeps: packets without events are written, too: nothing is left out.
 * @files: where it is announced, and written. All are borrowed.
 */
int ky_ctf_stream_open(const struct ky_stream *in, const struct ky_trace_class *as, bool keeps,
		       struct ky_store_trace *files, struct ky_ctf_stream **out,
		       struct kymo_error *err);
void ky_ctf_stream_free(struct ky_ctf_stream *stream); /* NULL is fine */

/* The next batch: of this stream, and of one packet. */
int ky_ctf_stream_batch(struct ky_ctf_stream *stream, const struct ky_batch *batch,
			struct kymo_error *err);
/* The input was read to its end, without damage. */
int ky_ctf_stream_end(struct ky_ctf_stream *stream, struct kymo_error *err);
/* No more batches: write what is open. */
int ky_ctf_stream_finish(struct ky_ctf_stream *stream, struct kymo_error *err);

#endif
