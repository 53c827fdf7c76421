/* SPDX-License-Identifier: MIT */
/*
 * Going through a stream packet by packet, by the headers alone: over all its files, with
 * corrections of tracers' errors in packet times (quirks.h), and past damage when the options
 * require it.
 */
#ifndef KY_STORE_WALK_H
#define KY_STORE_WALK_H

#include "store/read/trace.h"

struct ky_walk {
	const struct ky_stream *stream;
	struct ky_decoder *decoder;	/* its current packet is ->packet */
	const struct ky_packet *packet; /* NULL before the first */
	uint64_t next_bytes;		/* offset of the next packet */
	uint64_t at_bytes;		/* offset of the current packet, or of unreadable data */
	uint64_t number; /* index of the current packet in its stream; KYMO_NO_OFFSET: unknown */
	uint64_t next_number;	       /* of the next one */
	uint64_t content_end_bytes;    /* of the last readable packet, in its file */
	uint64_t content_before_bytes; /* the same before the current packet */
	struct ky_decoder *ahead;      /* for the quirks; NULL when the tracer has none */
	uint64_t *counts;	       /* for the quirks, too */
};

/* Borrows @stream. Returns 0 or KYMO_E_MEMORY. */
int ky_walk_init(struct ky_walk *walk, const struct ky_stream *stream, struct kymo_error *err);
void ky_walk_fini(struct ky_walk *walk);

/*
 * Continue at @offset_bytes, the begin of a packet (ky_packet_entry.offset_bytes). The walk looks
 * up the packet's number only for an error.
 */
void ky_walk_go(struct ky_walk *walk, uint64_t offset_bytes);

/* Continue at the place of @from, in the same stream: in the same packet, at the same event. */
void ky_walk_copy(struct ky_walk *to, const struct ky_walk *from);

/*
 * Go to the next packet: walk->packet; walk->decoder is then before its first event. Returns 1; 0
 * at the stream's end; KYMO_E_AGAIN, with @err unset, where the stream may continue; KYMO_E_FORMAT
 * with the place when there is no readable packet.
 */
int ky_walk_next(struct ky_walk *walk, struct kymo_error *err);

/* Returns to the begin of the current packet, of which the caller has read no event. */
void ky_walk_back(struct ky_walk *walk);

/*
 * The caller must call this after the packet's events: KYMO_E_FORMAT when the file ends before the
 * packet's end.
 */
int ky_walk_leave(struct ky_walk *walk, struct kymo_error *err);

/*
 * Completes the place of an error from decoding the current packet: file, packet, event. Returns
 * its code.
 */
int ky_walk_error(const struct ky_walk *walk, struct kymo_error *err);

/*
 * After an error (@err, complete, from any of the functions above), find the next packet: at the
 * end of the damaged packet according to its size, if a packet or the file's end is there; else by
 * a forward search for the magic number and the UUID. The walk is then before that packet, or at
 * the end of the file.
 *
 * Returns true when the option recover is set (ky_trace_options) and @err is damage. *skipped_bytes
 * is then the distance from the damage to the place where reading continues.
 */
bool ky_walk_recover(struct ky_walk *walk, const struct kymo_error *err, uint64_t *skipped_bytes);

#endif
