/* SPDX-License-Identifier: MIT */
/*
 * A sink that writes CTF traces: the events that it is given, in packets like those they came
 * from, one file per input stream.
 *
 * Environment, clocks, UUID and log levels stay. So do the losses that a reader reports:
 * counters of discarded events are those of the input's packets, sequence numbers miss
 * as many packets as were missing; packets without an event are written only where a loss needs
 * one before it.
 */
#ifndef KY_FLOW_CTF_SINK_H
#define KY_FLOW_CTF_SINK_H

#include "flow/sink.h"

/*
 * @set: where the batches will come from (borrowed).
 * @path: an empty directory. One trace is written into it, several into directories below, named
 *	as the input's are below the one that they have in common.
 * @major: 1 (CTF 1.8) or 2.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when that version cannot describe a field (@err names it); or
 * what writing gives.
 */
int ky_ctf_sink_open(const struct ky_trace_set *set, const char *path, uint32_t major,
		     struct ky_sink **sink, struct kymo_error *err);

/*
 * Copy the packets of @stream as they are. They are checked first: when one of them is damaged,
 * or has another UUID than the trace, nothing is written, and the stream's events are to be given
 * to the sink instead. Returns 1 when the stream was copied, 0 when it was not, or negative.
 */
int ky_ctf_sink_copy(struct ky_sink *sink, const struct ky_stream *stream, struct kymo_error *err);

#endif
