/* SPDX-License-Identifier: MIT */
/*
 * The short way over events: it knows LTTng's two headers and jumps over bodies of fixed size. It never fails: what it
 * cannot do, and what looks wrong, it leaves to the general way (decode-events.c). Each function has its own loops, so
 * that the compiler keeps their variables in registers.
 */
#include <string.h>

#include "base/word.h"
#include "ctf/decode/decode-internal.h"

/* LTTng's headers; 0 when the content does not hold one. */
static inline uint32_t short_header(const uint8_t *at, uint64_t room, bool large, uint64_t *clock,
				    uint32_t *id)
{
	if (large) {
		if (room < 6)
			return 0;
		*id = ky_load16(at, false);
		if (__builtin_expect(*id != 0xffff, 1)) {
			ky_clock_update(clock, ky_load32(at + 2, false), 32);
			return 6;
		}
		if (room < 14)
			return 0;
		*id = ky_load32(at + 2, false);
		*clock = ky_load64(at + 6, false);
		return 14;
	}
	if (room < 4)
		return 0;
	*id = *at & 31;
	if (__builtin_expect(*id != 31, 1)) {
		ky_clock_update(clock, ky_load32(at, false) >> 5, 27);
		return 4;
	}
	if (room < 13)
		return 0;
	*id = ky_load32(at + 1, false);
	*clock = ky_load64(at + 5, false);
	return 13;
}

/* A payload of strings, in a body that begins at byte @at: the body's size in bytes, or -1 when it is damaged. */
static int64_t skip_strings(const struct ky_decoder *d, struct ky_event *event, uint64_t at)
{
	const struct ky_event_plan *plan = event->cls->plan;
	const uint8_t *body = d->packet.data + at;
	uint64_t room = d->avail_bits / 8 - at;
	uint64_t n_bytes = (uint64_t)plan->payload_bits / 8 + plan->strings.part_bytes[0];

	for (uint32_t i = 1; i <= plan->strings.n; i++) {
		const uint8_t *nul =
			n_bytes < room ? ky_word_find_nul(body + n_bytes, room - n_bytes) : NULL;

		if (!nul)
			return -1;
		n_bytes = (uint64_t)(nul - body) + 1 + plan->strings.part_bytes[i];
	}
	if (n_bytes > room || n_bytes >= UINT32_MAX / 8)
		return -1;
	event->stream_context_bits = (uint32_t)(at * 8 - event->begin_bits);
	event->event_context_bits = event->stream_context_bits + plan->context_bits;
	event->payload_bits = event->stream_context_bits + plan->payload_bits;
	return (int64_t)n_bytes;
}

/* A body whose size varies: its size in bytes, or -1 when it is damaged or no whole bytes. */
static int64_t skip_varying(struct ky_decoder *d, struct ky_event *event, uint64_t at_bits)
{
	struct ky_cursor c = {
		.data = d->packet.data,
		.at_bits = at_bits,
		.end_bits = d->avail_bits,
		.slots = d->slots,
	};

	if (event->cls->plan->strings.n)
		return skip_strings(d, event, at_bits / 8);
	if (ky_decode_skip_body(&c, event, NULL) < 0 || c.at_bits % 8)
		return -1;
	return (int64_t)((c.at_bits - at_bits) / 8);
}

/* An event whose body has a fixed size. */
static inline void place_event(struct ky_event *event, const struct ky_by_id *by_id,
			       uint64_t begin_bits, uint32_t head_bits)
{
	event->cls = by_id->cls;
	event->begin_bits = begin_bits;
	event->stream_context_bits = head_bits;
	event->event_context_bits = head_bits + by_id->context_bits;
	event->payload_bits = head_bits + by_id->payload_bits;
}

/* Times in ns without a correction, as most clocks have them: kept in registers by the loops. */
struct plain_clock {
	int64_t base_ns;
	bool is_plain;
};

static inline struct plain_clock plain_clock_of(const struct ky_clock_class *clock)
{
	bool is_plain = clock && clock->frequency_hz == 1000000000 && !clock->line.is_set;

	return (struct plain_clock){is_plain ? clock->base_ns : 0, is_plain};
}

static inline int64_t short_to_ns(const struct ky_decoder *d, const struct plain_clock *plain,
				  uint64_t cycles)
{
	int64_t ns;

	if (__builtin_expect(plain->is_plain, 1) &&
	    !__builtin_add_overflow(plain->base_ns, cycles, &ns))
		return ns;
	return ky_decode_to_ns(d->packet.stream_class->clock, cycles);
}

/*
 * Go on as far as the short way leads: up to @max events into @events, or all of them into
 * @tally, or just over them. Inlined once per header and purpose, so that each loop holds only what it needs.
 */
static inline __attribute__((always_inline)) int short_events(struct ky_decoder *d,
							      struct ky_event *events, int max,
							      struct ky_decode_tally *tally,
							      bool large, bool skip)
{
	const struct ky_stream_plan *plan = d->packet.stream_class->plan;
	const uint8_t *data = d->packet.data, *wanted = tally ? NULL : d->wanted;
	uint64_t at = d->at_bits / 8, end = d->avail_bits / 8, clock = d->clock, guess = 0;
	uint64_t limit = d->limit_cycles;
	const struct plain_clock plain = plain_clock_of(d->packet.stream_class->clock);
	int n = 0;

	while (tally || skip || n < max) {
		const struct ky_by_id *by_id;
		struct ky_event scratch, *event = tally || skip ? &scratch : &events[n];
		uint64_t stamp = clock;
		uint32_t id, head = short_header(data + at, end - at, large, &stamp, &id);
		int64_t body;

		if (!head || id >= plan->n_by_id)
			break;
		/* Back in time: for the general way to judge. */
		if (!tally && __builtin_expect(stamp < clock, 0))
			break;
		by_id = &plan->by_id[id];
		if (__builtin_expect(!by_id->cls, 0))
			break;
		body = by_id->body_bytes;
		if (__builtin_expect(body >= 0, 1)) {
			if ((uint64_t)body > end - at - head)
				break;
			/* An event that is whole; other kinds are judged by the general way. */
			if (!tally && __builtin_expect(stamp >= limit, 0)) {
				/* Without a limit the last time of all is like any other. */
				d->at_limit = d->limit_ns != INT64_MAX;
				d->beyond_ns =
					ky_decode_to_ns(d->packet.stream_class->clock, stamp);
				break;
			}
			if (!tally && !skip)
				place_event(event, by_id, at * 8, head * 8);
		} else {
			if (!tally && stamp >= limit)
				break;
			event->cls = by_id->cls;
			event->begin_bits = at * 8;
			body = skip_varying(d, event, (at + head) * 8);
			if (body < 0)
				break;
		}
		/*
		 * Where the next event begins hangs on loads from this one. Its size is mostly
		 * that of the last: as a branch, the guess lets the processor run ahead.
		 */
		if (__builtin_expect(head + (uint64_t)body == guess, 1)) {
			__asm__("" : "+r"(guess)); /* or the branch would become an addition */
			at += guess;
		} else {
			guess = head + (uint64_t)body;
			at += guess;
		}
		clock = stamp;
		if (tally || skip)
			__builtin_prefetch(data + at + 1024);
		if (tally) {
			tally->counts[by_id->index]++;
			if (__builtin_expect(!tally->any, 0)) {
				tally->first_cycles = clock;
				tally->any = true;
			}
			continue;
		}
		if (skip)
			continue;
		if (wanted && !wanted[by_id->index])
			continue;
		ky_decode_fill_event(d, event, clock, short_to_ns(d, &plain, clock), at * 8);
		n++;
	}
	if (tally)
		tally->last_cycles = clock;
	d->passed_event |= at * 8 != d->at_bits;
	d->at_bits = at * 8;
	d->clock = clock;
	return n;
}

int ky_decode_short(struct ky_decoder *d, struct ky_event *events, int max)
{
	/* The header is aligned to bytes; behind a body that is not, the general way aligns. */
	if (d->at_bits % 8)
		return 0;
	switch (d->packet.stream_class->plan->header_kind) {
	case KY_HEADER_LARGE:
		return short_events(d, events, max, NULL, true, false);
	case KY_HEADER_COMPACT:
		return short_events(d, events, max, NULL, false, false);
	default:
		return 0;
	}
}

void ky_decode_short_count(struct ky_decoder *d, struct ky_decode_tally *out)
{
	struct ky_decode_tally tally = *out; /* the loops keep it in registers */

	if (d->at_bits % 8)
		return;
	if (d->packet.stream_class->plan->header_kind == KY_HEADER_LARGE)
		short_events(d, NULL, 0, &tally, true, false);
	else if (d->packet.stream_class->plan->header_kind == KY_HEADER_COMPACT)
		short_events(d, NULL, 0, &tally, false, false);
	*out = tally;
}

void ky_decode_short_skip(struct ky_decoder *d)
{
	if (d->at_bits % 8)
		return;
	if (d->packet.stream_class->plan->header_kind == KY_HEADER_LARGE)
		short_events(d, NULL, 0, NULL, true, true);
	else if (d->packet.stream_class->plan->header_kind == KY_HEADER_COMPACT)
		short_events(d, NULL, 0, NULL, false, true);
}
