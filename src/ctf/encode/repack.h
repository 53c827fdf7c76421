/* SPDX-License-Identifier: MIT */
/*
 * Packets with some of their events: header and context of a packet that was read, and those
 * of its events that somebody wants, put together anew as a packet of the same stream class.
 *
 * Written as another trace model says, all events are encoded anew (transcode.h).
 *
 * Otherwise an event whose bits do not depend on where it stands is copied; others are decoded and
 * encoded at their new place. Sizes are set, and the begin where that is needed: a time
 * stamp of a few bits counts from the event before, so it tells another time when that event is
 * left out. Then the packet begins at this event.
 *
 * Use: begin, event ..., end. When event says that the packet must end here: end, continue,
 * the event again.
 * Threads: one at a time per repacker.
 */
#ifndef KY_CTF_ENCODE_REPACK_H
#define KY_CTF_ENCODE_REPACK_H

#include "ctf/decode/decode.h"

/* A finished packet; the bytes are valid until the next begin or continue. */
struct ky_repacked {
	const uint8_t *data;
	uint64_t size_bytes;
	uint64_t content_bits;
	bool has_times;
	uint64_t begin_cycles, end_cycles;
	uint64_t discarded, sequence;
	uint64_t stream_class_id, stream_id;
};

struct ky_repacker;

/*
 * @as: NULL, or the trace model to write packets of @trace as; ky_same_layout() has said that it can.
 * Both are borrowed. NULL when out of memory.
 */
struct ky_repacker *ky_repacker_new(const struct ky_trace_class *trace,
				    const struct ky_trace_class *as);
void ky_repacker_free(struct ky_repacker *repacker); /* NULL is fine */

/*
 * Begin a packet like @in (its bytes must stay until the packet has ended), numbered @sequence
 * where packets are numbered.
 */
int ky_repacker_begin(struct ky_repacker *repacker, const struct ky_packet *in, uint64_t sequence,
		      struct kymo_error *err);

/*
 * Add @event of that packet.
 * Returns 0; 1 when it needs a packet of its own begin; KYMO_E_UNSUPPORTED when the stream has
 * nothing to tell that begin with; KYMO_E_FORMAT or KYMO_E_MEMORY.
 */
int ky_repacker_event(struct ky_repacker *repacker, const struct ky_event *event,
		      struct kymo_error *err);

/*
 * Finish the packet. @cut: the input packet is continued in another one.
 * Returns 0; KYMO_E_UNSUPPORTED when the events end inside a byte and the stream has no field to
 * say so; KYMO_E_LIMIT when the packet is too large for its size fields; KYMO_E_MEMORY.
 */
int ky_repacker_end(struct ky_repacker *repacker, bool cut, struct ky_repacked *out,
		    struct kymo_error *err);

/* Begin another packet like the last, at @begin_cycles. */
int ky_repacker_continue(struct ky_repacker *repacker, uint64_t begin_cycles, uint64_t sequence,
			 struct kymo_error *err);

#endif
