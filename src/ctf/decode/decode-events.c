/* SPDX-License-Identifier: MIT */
/*
 * The events of a packet. Two ways exist: the general one in this file runs plans, and serves every trace; the short one
 * (decode-short.c) is faster, and leaves to the general one what it does not know.
 */
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

int ky_decode_skip_body(struct ky_cursor *c, struct ky_event *event, struct kymo_error *err)
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

static int decode_events_read_event(struct ky_decoder *d, struct ky_cursor *c,
				    struct ky_event *event, struct kymo_error *err)
{
	int ret;

	event->begin_bits = c->at_bits;
	ret = read_event_header(d, c, &event->cls, err);
	if (ret == KYMO_OK)
		ret = ky_decode_skip_body(c, event, err);
	if (ret < 0)
		return ret;
	if (c->at_bits == event->begin_bits)
		return ky_error_set(err, KYMO_E_FORMAT, "event record without a single bit");
	ky_decode_fill_event(d, event, d->clock,
			     ky_decode_to_ns(d->packet.stream_class->clock, d->clock), c->at_bits);
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
	ns = ky_decode_to_ns(d->packet.stream_class->clock, before);
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
		n += ky_decode_short(d, events + n, max - n);
		if (n >= max || d->at_limit)
			break;
		if (!general_event(d, &events[n], !n))
			break;
		if (!d->wanted || d->wanted[events[n].cls->index])
			n++;
	}
	return n ? n : end_of_events(d, err);
}

int ky_decoder_skip(struct ky_decoder *d, struct kymo_error *err)
{
	struct ky_event event;

	while (d->in_packet) {
		ky_decode_short_skip(d);
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
		struct ky_decode_tally tally = {.counts = counts};

		ky_decode_short_count(d, &tally);
		if (tally.any) {
			decode_events_widen(begin_ns, end_ns,
					    ky_decode_to_ns(clock, tally.first_cycles));
			decode_events_widen(begin_ns, end_ns,
					    ky_decode_to_ns(clock, tally.last_cycles));
		}
		if (!general_event(d, &event, true))
			break;
		counts[event.cls->index]++;
		decode_events_widen(begin_ns, end_ns, event.ns);
	}
	return end_of_events(d, err);
}
