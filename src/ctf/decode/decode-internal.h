/* SPDX-License-Identifier: MIT */
/* What decode.c (packets) and decode-events.c (events) share. */
#ifndef KY_CTF_DECODE_DECODE_INTERNAL_H
#define KY_CTF_DECODE_DECODE_INTERNAL_H

#include "base/bits.h"
#include "base/error.h"
#include "ctf/decode/decode.h"
#include "ctf/decode/plan.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/decode/running-clock.h"

struct ky_decoder {
	const struct ky_trace_class *trace;
	const struct ky_stream *stream;
	struct ky_packet packet;
	struct ky_values values; /* of packet headers and contexts, and of general event headers */
	uint64_t *slots;
	const uint8_t *wanted; /* by event class index; NULL: all */
	uint64_t at_bits;
	uint64_t avail_bits; /* what the file holds of the packet; less than content: truncated */
	uint64_t clock;
	struct kymo_error pending; /* damage behind events that have been delivered */
	bool has_pending;
	bool in_packet;
	bool own_uuid_seen;    /* in a packet before: another UUID is damage then, not a copy's */
	int64_t limit_ns;      /* events at or after it are not for now; INT64_MAX: none is */
	uint64_t limit_cycles; /* in the current packet's clock; nothing earlier is beyond it */
	int64_t beyond_ns;     /* of the event at the limit */
	bool at_limit;	       /* the next event lies beyond it */
	bool passed_event;     /* of the current packet */
	int64_t floor_ns;      /* the latest event before time went back, or before this packet */
};

/* The earliest that the clock may say at the limit: see ky_decoder_limit(). */
void ky_decoder_set_limit_cycles(struct ky_decoder *d);

/* Note the place of an error within the file. Returns its code. */
static inline int ky_damaged(const struct ky_decoder *d, uint64_t at_bits, struct kymo_error *err)
{
	ky_error_offset(err, d->packet.file_offset_bytes + at_bits / 8);
	return err ? err->code : KYMO_E_FORMAT;
}

#endif
