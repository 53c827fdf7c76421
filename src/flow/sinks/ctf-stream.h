/* SPDX-License-Identifier: MIT */
/* One stream of ctf-sink.h's output: it puts its events into packets like those of the input. */
#ifndef KY_FLOW_SINKS_CTF_STREAM_H
#define KY_FLOW_SINKS_CTF_STREAM_H

#include "flow/graph/flow.h"
#include "store/packets/packet-store.h"

struct ky_ctf_stream;

/*
 * @as: the class of the output trace; NULL: unchanged.
 * @keeps: also write packets without events, because the stream is complete.
 * @files: the trace of the output stream. All are borrowed.
 */
int ky_ctf_stream_open(const struct ky_stream *in, const struct ky_trace_class *as, bool keeps,
		       struct ky_store_trace *files, struct ky_ctf_stream **out,
		       struct kymo_error *err);
void ky_ctf_stream_free(struct ky_ctf_stream *stream); /* NULL is allowed */

/* The next batch: of this stream, and of one packet. */
int ky_ctf_stream_batch(struct ky_ctf_stream *stream, const struct ky_batch *batch,
			struct kymo_error *err);
/* The input was read to its end, without damage. */
int ky_ctf_stream_end(struct ky_ctf_stream *stream, struct kymo_error *err);
/* The end: writes the open packet. */
int ky_ctf_stream_finish(struct ky_ctf_stream *stream, struct kymo_error *err);

#endif
