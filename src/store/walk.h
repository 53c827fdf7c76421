/* SPDX-License-Identifier: MIT */
/*
 * Going through a stream packet by packet, by the headers alone: over the files that it lies in,
 * with the tracers' mistakes in packet times put right (quirks.h), and over damage when asked to.
 */
#ifndef KY_STORE_WALK_H
#define KY_STORE_WALK_H

#include "store/trace.h"

struct ky_walk {
	const struct ky_stream *stream;
	struct ky_decoder *decoder;	/* its current packet is ->packet */
	const struct ky_packet *packet; /* NULL before the first */
	uint64_t next_bytes;		/* where the next packet begins */
	uint64_t at_bytes;    /* where the current one begins, or what could not be read */
	uint64_t number;      /* of the current packet in its stream; KYMO_NO_OFFSET: unknown */
	uint64_t next_number; /* of the next one */
	uint64_t content_end_bytes;    /* of the last packet that could be read, in its file */
	uint64_t content_before_bytes; /* the same before the current packet */
	struct ky_decoder *ahead;      /* for the quirks; NULL when there is none */
	uint64_t *counts;	       /* likewise */
};

/* @stream is borrowed. 0 or KYMO_E_MEMORY. */
int ky_walk_init(struct ky_walk *walk, const struct ky_stream *stream, struct kymo_error *err);
void ky_walk_fini(struct ky_walk *walk);

/*
 * Go on at @offset_bytes, where a packet begins (ky_packet_entry.offset_bytes). Which packet that is
 * is found out when there is an error to tell.
 */
void ky_walk_go(struct ky_walk *walk, uint64_t offset_bytes);

/* Go on where @from stands, in the same stream: in the same packet, at the same event. */
void ky_walk_copy(struct ky_walk *to, const struct ky_walk *from);

/*
 * The next packet: walk->packet, and walk->decoder stands before its first event.
 * Returns 1; 0 at the stream's end; KYMO_E_AGAIN, without a word in @err, where the stream may go on; KYMO_E_FORMAT with the
 * place when there is no readable packet.
 */
int ky_walk_next(struct ky_walk *walk, struct kymo_error *err);

/* Stand before the current packet again, of which no event was read. */
void ky_walk_back(struct ky_walk *walk);

/* To be called when the packet's events were read: KYMO_E_FORMAT when the file ends before it. */
int ky_walk_leave(struct ky_walk *walk, struct kymo_error *err);

/*
 * Complete the place of an error that decoding the current packet gave: file, packet, event.
 * Returns its code.
 */
int ky_walk_error(const struct ky_walk *walk, struct kymo_error *err);

/*
 * After an error (@err, complete, of any of the above) find the next packet: where the size of
 * the damaged one says, if there is one or the file's end; else by searching forward for
 * the magic number and the UUID. The walk stands before it then, or at the end of the file.
 *
 * Returns true when the trace is to be recovered (ky_trace_options) and @err is damage; then
 * *skipped_bytes tells how much lies between the damage and where it goes on.
 */
bool ky_walk_recover(struct ky_walk *walk, const struct kymo_error *err, uint64_t *skipped_bytes);

#endif
