/* SPDX-License-Identifier: MIT */
/* What decode.c (packets), decode-events.c and decode-short.c (events) share. */
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

static inline int64_t ky_decode_to_ns(const struct ky_clock_class *clock, uint64_t cycles)
{
	int64_t ns;

	if (!clock)
		return INT64_MIN;
	if (clock->frequency_hz == 1000000000 && !clock->line.is_set &&
	    !__builtin_add_overflow(clock->base_ns, cycles, &ns))
		return ns;
	return ky_clock_to_ns(clock, cycles);
}

static inline void ky_decode_fill_event(const struct ky_decoder *d, struct ky_event *event,
					uint64_t clock, int64_t ns, uint64_t end_bits)
{
	event->end_bits = end_bits;
	event->packet = &d->packet;
	event->cycles = clock;
	event->cpu_id = d->packet.cpu_id;
	event->ns = ns;
}

/* decode-events.c: step over a body of any kind, and write down where its scopes begin. */
int ky_decode_skip_body(struct ky_cursor *c, struct ky_event *event, struct kymo_error *err);

/*
 * decode-short.c: go on as far as the short way leads. Up to @max events into @events, returns how many; or count all events by
 * class; or skip all of them.
 */
struct ky_decode_tally {
	uint64_t *counts;
	uint64_t first_cycles, last_cycles;
	bool any;
};

int ky_decode_short(struct ky_decoder *d, struct ky_event *events, int max);
void ky_decode_short_count(struct ky_decoder *d, struct ky_decode_tally *tally);
void ky_decode_short_skip(struct ky_decoder *d);

#endif
