/* SPDX-License-Identifier: MIT */
/*
 * The events of a packet. Two ways: the general one runs plans, and serves every trace; the
 * short one knows LTTng's two headers and jumps over bodies of fixed size. The short way
 * never fails: what it cannot do, and what looks wrong, it leaves to the general one.
 */
#include <string.h>

#include "ctf/decode/decode-internal.h"

/* ---- the general way ---------------------------------------------------------------------- */

static const struct ky_event_class *event_class(const struct ky_stream_class *stream, uint64_t id)
{
	const struct ky_stream_plan *plan = stream->plan;

	if (id < plan->n_by_id)
		return plan->by_id[id].cls;
	return id < KY_BY_ID_MAX ? NULL : ky_map_get(&stream->events_by_id, id);
}

static int unknown_event(uint64_t id, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "no event class with id %llu in the metadata",
			    (unsigned long long)id);
}

/* Any header: decode it, then look at what its fields mean. */
static int general_header(struct ky_decoder *d, struct ky_cursor *c, uint64_t *id, bool *has_id,
			  struct kymo_error *err)
{
	const struct ky_scope_plan *plan = &d->packet.stream_class->plan->event_header;
	int ret;

	ky_vec_clear(&d->values.list);
	c->values = &d->values;
	ret = ky_run(c, plan, 0, plan->n_steps, err);
	c->values = NULL;
	if (ret < 0)
		return ret;
	ky_vec_foreach(&d->values.list, v) {
		if (ky_has_role(v->cls, KY_ROLE_EVENT_ID)) {
			*id = v->u;
			*has_id = true;
		}
		if (ky_has_role(v->cls, KY_ROLE_CLOCK_BEGIN) && v->cls->num.clock)
			ky_clock_update(&d->clock, v->u, ky_clock_bits(v));
	}
	return KYMO_OK;
}

static int read_event_header(struct ky_decoder *d, struct ky_cursor *c,
			     const struct ky_event_class **cls, struct kymo_error *err)
{
	const struct ky_stream_class *stream = d->packet.stream_class;
	bool has_id = false;
	uint64_t id = 0;
	int ret = KYMO_OK;

	if (stream->event_header)
		ret = general_header(d, c, &id, &has_id, err);
	if (ret < 0)
		return ret;
	/* CTF 2: without a field the id is 0. CTF 1.8: then there is but one class. */
	has_id |= stream->trace->major >= 2;
	*cls = has_id ? event_class(stream, id) : stream->plan->only_event;
	if (*cls)
		return KYMO_OK;
	if (has_id)
		return unknown_event(id, err);
	return ky_error_set(err, KYMO_E_FORMAT,
			    "events carry no id, but the stream has %zu event classes",
			    stream->events.len);
}

/* Step over a body of any kind; notes where its scopes begin. */
static int skip_body(struct ky_cursor *c, struct ky_event *event, struct kymo_error *err)
{
	const struct ky_event_plan *plan = event->cls->plan;
	int ret;

	event->stream_context_bits = (uint32_t)(c->at_bits - event->begin_bits);
	ret = ky_skip_scope(c, &event->cls->stream->plan->event_context, err);
	event->event_context_bits = (uint32_t)(c->at_bits - event->begin_bits);
	if (ret == KYMO_OK)
		ret = ky_skip_scope(c, &plan->context, err);
	event->payload_bits = (uint32_t)(c->at_bits - event->begin_bits);
	if (ret == KYMO_OK)
		ret = ky_skip_scope(c, &plan->payload, err);
	if (ret == KYMO_OK && c->at_bits - event->begin_bits > UINT32_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "event of more than 512 MiB");
	return ret;
}

static inline int64_t decode_events_to_ns(const struct ky_clock_class *clock, uint64_t cycles)
{
	int64_t ns;

	if (!clock)
		return INT64_MIN;
	if (clock->frequency_hz == 1000000000 && !clock->line.is_set &&
	    !__builtin_add_overflow(clock->base_ns, cycles, &ns))
		return ns;
	return ky_clock_to_ns(clock, cycles);
}

static inline void fill_event(const struct ky_decoder *d, struct ky_event *event, uint64_t clock,
			      uint64_t end_bits)
{
	event->end_bits = end_bits;
	event->packet = &d->packet;
	event->cycles = clock;
	event->cpu_id = d->packet.cpu_id;
	event->ns = decode_events_to_ns(d->packet.stream_class->clock, clock);
}

static int decode_events_read_event(struct ky_decoder *d, struct ky_cursor *c,
				    struct ky_event *event, struct kymo_error *err)
{
	int ret;

	event->begin_bits = c->at_bits;
	ret = read_event_header(d, c, &event->cls, err);
	if (ret == KYMO_OK)
		ret = skip_body(c, event, err);
	if (ret < 0)
		return ret;
	if (c->at_bits == event->begin_bits)
		return ky_error_set(err, KYMO_E_FORMAT, "event record without a single bit");
	fill_event(d, event, d->clock, c->at_bits);
	return KYMO_OK;
}

/* The missing rest of a packet is damage, too, which follows its events. */
static int end_of_packet(struct ky_decoder *d, struct kymo_error *err)
{
	d->in_packet = false;
	if (d->avail_bits >= d->packet.content_bits)
		return 0;
	ky_error_set(err, KYMO_E_FORMAT,
		     "packet is truncated: %llu bytes of content, %llu in the file",
		     (unsigned long long)(d->packet.content_bits / 8),
		     (unsigned long long)(d->avail_bits / 8));
	ky_damaged(d, d->avail_bits, err);
	return KYMO_E_FORMAT;
}

static int fail_event(struct ky_decoder *d, int code, uint64_t at_bits)
{
	d->in_packet = false;
	d->has_pending = true;
	/* The last event of a truncated packet is cut: that is what to tell, not the field. */
	if (code == KYMO_E_FORMAT && d->avail_bits < d->packet.content_bits)
		return end_of_packet(d, &d->pending);
	ky_damaged(d, at_bits, &d->pending);
	return code;
}

/* The event that was just read lies before the one before it: batches end there. */
static bool goes_back(struct ky_decoder *d, uint64_t before, bool first)
{
	int64_t ns;

	if (!d->passed_event || d->clock >= before)
		return false;
	if (!first)
		return true;
	ns = decode_events_to_ns(d->packet.stream_class->clock, before);
	if (ns > d->floor_ns)
		d->floor_ns = ns;
	return false;
}

/*
 * One event, the @first of a batch or not. 1, or 0: at the end of the content, at the limit, where time
 * goes back behind the first, or at damage, which is pending then.
 */
static int general_event(struct ky_decoder *d, struct ky_event *event, bool first)
{
	const struct ky_field_class *header = d->packet.stream_class->event_header;
	struct ky_cursor c = {
		.data = d->packet.data,
		.at_bits = d->at_bits,
		.end_bits = d->avail_bits,
		.slots = d->slots,
	};
	uint64_t before = d->clock;
	int ret;

	if (header)
		c.at_bits = ky_align_up(c.at_bits, header->align_bits);
	if (c.at_bits >= c.end_bits)
		return 0;
	ret = decode_events_read_event(d, &c, event, &d->pending);
	if (ret < 0) {
		fail_event(d, ret, c.at_bits);
		d->clock = before;
		return 0;
	}
	d->at_limit = event->ns >= d->limit_ns && d->limit_ns != INT64_MAX;
	if (d->at_limit || goes_back(d, before, first)) {
		d->beyond_ns = event->ns;
		d->clock = before;
		return 0;
	}
	d->at_bits = c.at_bits;
	d->passed_event = true;
	return 1;
}

/* ---- the short way -------------------------------------------------------------------------- */

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
			n_bytes < room ? memchr(body + n_bytes, 0, room - n_bytes) : NULL;

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
	if (skip_body(&c, event, NULL) < 0 || c.at_bits % 8)
		return -1;
	return (int64_t)((c.at_bits - at_bits) / 8);
}

/* What the counting pass keeps. */
struct tally {
	uint64_t *counts;
	uint64_t first_cycles, last_cycles;
	bool any;
};

/*
 * Go on as far as the short way leads: up to @max events into @events, or all of them into
 * @tally, or just over them. Inlined once per header and purpose, so that each loop holds only what it needs.
 */
static inline __attribute__((always_inline)) int short_events(struct ky_decoder *d,
							      struct ky_event *events, int max,
							      struct tally *tally, bool large,
							      bool skip)
{
	const struct ky_stream_plan *plan = d->packet.stream_class->plan;
	const uint8_t *data = d->packet.data, *wanted = tally ? NULL : d->wanted;
	uint64_t at = d->at_bits / 8, end = d->avail_bits / 8, clock = d->clock, guess = 0;
	uint64_t limit = d->limit_cycles;
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
		event->cls = by_id->cls;
		event->begin_bits = at * 8;
		if (__builtin_expect(body >= 0, 1)) {
			if ((uint64_t)body > end - at - head)
				break;
			/* An event that is whole; other kinds are judged by the general way. */
			if (!tally && __builtin_expect(stamp >= limit, 0)) {
				/* Without a limit the last time of all is like any other. */
				d->at_limit = d->limit_ns != INT64_MAX;
				d->beyond_ns =
					decode_events_to_ns(d->packet.stream_class->clock, stamp);
				break;
			}
			event->stream_context_bits = head * 8;
			event->event_context_bits = head * 8 + by_id->context_bits;
			event->payload_bits = head * 8 + by_id->payload_bits;
		} else {
			if (!tally && stamp >= limit)
				break;
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
		fill_event(d, event, clock, at * 8);
		n++;
	}
	if (tally)
		tally->last_cycles = clock;
	d->passed_event |= at * 8 != d->at_bits;
	d->at_bits = at * 8;
	d->clock = clock;
	return n;
}

static int short_way(struct ky_decoder *d, struct ky_event *events, int max)
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

static void short_count(struct ky_decoder *d, struct tally *tally)
{
	if (d->at_bits % 8)
		return;
	if (d->packet.stream_class->plan->header_kind == KY_HEADER_LARGE)
		short_events(d, NULL, 0, tally, true, false);
	else if (d->packet.stream_class->plan->header_kind == KY_HEADER_COMPACT)
		short_events(d, NULL, 0, tally, false, false);
}

/* ---- both ------------------------------------------------------------------------------------ */

static int take_pending(struct ky_decoder *d, struct kymo_error *err)
{
	d->has_pending = false;
	if (err)
		*err = d->pending;
	return d->pending.code;
}

/* No event was left: the limit, damage, or the packet's end. */
static int end_of_events(struct ky_decoder *d, struct kymo_error *err)
{
	if (d->has_pending)
		return take_pending(d, err);
	return d->in_packet && !d->at_limit ? end_of_packet(d, err) : 0;
}

void ky_decoder_want(struct ky_decoder *d, const uint8_t *wanted)
{
	d->wanted = wanted;
}

int ky_decoder_next(struct ky_decoder *d, struct ky_event *events, int max, struct kymo_error *err)
{
	int n = 0;

	while (d->in_packet && n < max) {
		n += short_way(d, events + n, max - n);
		if (n >= max || d->at_limit)
			break;
		if (!general_event(d, &events[n], !n))
			break;
		if (!d->wanted || d->wanted[events[n].cls->index])
			n++;
	}
	return n ? n : end_of_events(d, err);
}

static void short_skip(struct ky_decoder *d)
{
	if (d->at_bits % 8)
		return;
	if (d->packet.stream_class->plan->header_kind == KY_HEADER_LARGE)
		short_events(d, NULL, 0, NULL, true, true);
	else if (d->packet.stream_class->plan->header_kind == KY_HEADER_COMPACT)
		short_events(d, NULL, 0, NULL, false, true);
}

int ky_decoder_skip(struct ky_decoder *d, struct kymo_error *err)
{
	struct ky_event event;

	while (d->in_packet) {
		short_skip(d);
		if (d->at_limit || !general_event(d, &event, true))
			break;
	}
	return end_of_events(d, err);
}

bool ky_decoder_peek(struct ky_decoder *d, int64_t *ns)
{
	uint64_t at_bits = d->at_bits, clock = d->clock;
	int64_t limit_ns = d->limit_ns, floor_ns = d->floor_ns;
	bool in_packet = d->in_packet, passed_event = d->passed_event;
	struct ky_event event;
	int ret;

	d->limit_ns = INT64_MAX;
	ret = in_packet && !d->has_pending ? general_event(d, &event, true) : 0;
	d->at_bits = at_bits;
	d->clock = clock;
	d->limit_ns = limit_ns;
	d->floor_ns = floor_ns;
	d->in_packet = in_packet;
	d->passed_event = passed_event;
	d->has_pending = false;
	if (ret)
		*ns = event.ns;
	return ret;
}

static void decode_events_widen(int64_t *begin_ns, int64_t *end_ns, int64_t ns)
{
	if (ns == INT64_MIN)
		return;
	if (ns < *begin_ns)
		*begin_ns = ns;
	if (ns > *end_ns)
		*end_ns = ns;
}

int ky_decoder_count(struct ky_decoder *d, uint64_t *counts, int64_t *begin_ns, int64_t *end_ns,
		     struct kymo_error *err)
{
	const struct ky_clock_class *clock =
		d->packet.stream_class ? d->packet.stream_class->clock : NULL;
	struct ky_event event;

	while (d->in_packet) {
		struct tally tally = {.counts = counts};

		short_count(d, &tally);
		if (tally.any) {
			decode_events_widen(begin_ns, end_ns,
					    decode_events_to_ns(clock, tally.first_cycles));
			decode_events_widen(begin_ns, end_ns,
					    decode_events_to_ns(clock, tally.last_cycles));
		}
		if (!general_event(d, &event, true))
			break;
		counts[event.cls->index]++;
		decode_events_widen(begin_ns, end_ns, event.ns);
	}
	return end_of_events(d, err);
}
