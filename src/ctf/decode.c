/* SPDX-License-Identifier: MIT */
#include "ctf/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "ctf/plan.h"
#include "ctf/run.h"

#define CTF_MAGIC 0xC1FC1FC1u

struct ky_decoder {
	const struct ky_trace_class *trace;
	struct ky_packet packet;
	struct ky_values values; /* of packet headers and contexts, and of general event headers */
	uint64_t *slots;
	uint64_t at_bits;
	uint64_t avail_bits; /* what the file holds of the packet; less than content: truncated */
	uint64_t clock;
	uint64_t event_number;	   /* within the packet, for messages */
	struct kymo_error pending; /* damage behind events that have been delivered */
	bool has_pending;
	bool in_packet;
};

struct ky_decoder *ky_decoder_new(const struct ky_trace_class *trace)
{
	struct ky_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->trace = trace;
	d->slots = calloc((size_t)trace->n_slots + 1, sizeof(*d->slots));
	ky_values_init(&d->values);
	if (!d->slots) {
		ky_decoder_free(d);
		return NULL;
	}
	return d;
}

void ky_decoder_free(struct ky_decoder *d)
{
	if (!d)
		return;
	ky_values_fini(&d->values);
	free(d->slots);
	free(d);
}

/* ---- packets ----------------------------------------------------------------------------- */

static int damaged(const struct ky_decoder *d, uint64_t at_bits, struct kymo_error *err)
{
	ky_error_offset(err, d->packet.file_offset_bytes + at_bits / 8);
	return err ? err->code : KYMO_E_FORMAT;
}

/* Decode one scope of the packet's own into d->values. */
static int packet_scope(struct ky_decoder *d, const struct ky_scope_plan *plan,
			struct kymo_error *err)
{
	struct ky_cursor c = {
		.data = d->packet.data,
		.at_bits = d->at_bits,
		.end_bits = d->avail_bits,
		.slots = d->slots,
		.values = &d->values,
	};
	int ret;

	ky_vec_clear(&d->values.list);
	if (!plan->root)
		return KYMO_OK;
	ret = ky_run(&c, plan, 0, plan->n_steps, err);
	if (ret < 0) {
		damaged(d, c.at_bits, err);
		return ret;
	}
	d->at_bits = c.at_bits;
	return KYMO_OK;
}

/* The UUID is an array of 16 bytes (CTF 1.8) or a BLOB of that length (CTF 2). */
static bool uuid_matches(const struct ky_values *values, size_t at, const uint8_t uuid[16])
{
	const struct ky_value *v = &values->list.data[at];

	if (v->cls->kind == KY_FIELD_BLOB)
		return v->str.len_bytes == 16 && memcmp(v->str.data, uuid, 16) == 0;
	if (v->cls->kind != KY_FIELD_ARRAY || v->n_children != 16 || v->n_below != 16)
		return true;
	for (size_t i = 0; i < 16; i++) {
		if (v[1 + i].u != uuid[i])
			return false;
	}
	return true;
}

static const struct ky_stream_class *find_stream_class(const struct ky_decoder *d, bool has_id,
						       uint64_t id)
{
	if (has_id)
		return ky_map_get(&d->trace->streams_by_id, id);
	return d->trace->streams.len == 1 ? d->trace->streams.data[0] : NULL;
}

static int read_header(struct ky_decoder *d, struct kymo_error *err)
{
	struct ky_packet *p = &d->packet;
	uint64_t stream_class_id = 0;
	bool has_class_id = false;
	int ret = packet_scope(d, d->trace->packet_header_plan, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < d->values.list.len; i++) {
		const struct ky_value *v = &d->values.list.data[i];

		switch (v->cls->role) {
		case KY_ROLE_MAGIC:
			if (v->u == CTF_MAGIC)
				break;
			ky_error_set(err, KYMO_E_FORMAT,
				     "packet magic number is 0x%llx instead of 0x%x",
				     (unsigned long long)v->u, CTF_MAGIC);
			damaged(d, 0, err);
			return KYMO_E_FORMAT;
		case KY_ROLE_TRACE_UUID:
			if (!d->trace->has_uuid || uuid_matches(&d->values, i, d->trace->uuid))
				break;
			ky_error_set(err, KYMO_E_FORMAT,
				     "packet UUID differs from the metadata's: the file belongs to "
				     "another trace");
			damaged(d, 0, err);
			return KYMO_E_FORMAT;
		case KY_ROLE_STREAM_CLASS_ID:
			has_class_id = true;
			stream_class_id = v->u;
			break;
		case KY_ROLE_STREAM_ID:
			p->has_stream_id = true;
			p->stream_id = v->u;
			break;
		default:
			break;
		}
	}
	p->stream_class = find_stream_class(d, has_class_id, stream_class_id);
	if (p->stream_class)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_FORMAT, "no stream class with id %llu in the metadata",
		     (unsigned long long)stream_class_id);
	damaged(d, 0, err);
	return KYMO_E_FORMAT;
}

/* Replace the low bits of the running clock; it only moves forward. */
static inline void update_clock(uint64_t *clock, uint64_t value, unsigned int bits)
{
	uint64_t mask = ky_mask_bits(bits);

	if (bits >= 64) {
		*clock = value;
		return;
	}
	value |= *clock & ~mask;
	if (value < *clock)
		value += mask + 1;
	*clock = value;
}

/* How many bits of the clock a timestamp carries. */
static unsigned int clock_bits(const struct ky_value *v)
{
	if (v->cls->kind == KY_FIELD_VARUINT)
		return v->n_children < 64 ? v->n_children : 64;
	return v->cls->num.length_bits;
}

static void context_role(struct ky_decoder *d, const struct ky_value *v, bool *has_packet,
			 bool *has_content)
{
	struct ky_packet *p = &d->packet;

	switch (v->cls->role) {
	case KY_ROLE_PACKET_SIZE:
		p->packet_bits = v->u;
		*has_packet = true;
		break;
	case KY_ROLE_CONTENT_SIZE:
		p->content_bits = v->u;
		*has_content = true;
		break;
	case KY_ROLE_CLOCK_BEGIN:
		if (!v->cls->num.clock)
			break;
		update_clock(&d->clock, v->u, clock_bits(v));
		p->has_begin = true;
		p->begin_cycles = d->clock;
		break;
	case KY_ROLE_CLOCK_END:
		p->has_end = v->cls->num.clock != NULL;
		p->end_cycles = v->u;
		break;
	case KY_ROLE_DISCARDED:
		p->has_discarded = true;
		p->discarded = v->u;
		break;
	case KY_ROLE_SEQUENCE:
		p->has_sequence = true;
		p->sequence = v->u;
		break;
	case KY_ROLE_CPU_ID:
		p->has_cpu_id = true;
		p->cpu_id = (uint32_t)v->u;
		break;
	default:
		break;
	}
}

/* packet and content size: either may be missing, and neither is to be believed. */
static int settle_sizes(struct ky_decoder *d, bool has_packet, bool has_content,
			uint64_t avail_bits, struct kymo_error *err)
{
	struct ky_packet *p = &d->packet;

	if (!has_packet && !has_content)
		p->packet_bits = p->content_bits = avail_bits;
	else if (!has_packet)
		p->packet_bits = p->content_bits;
	else if (!has_content)
		p->content_bits = p->packet_bits;
	if (p->packet_bits == 0 || p->packet_bits % 8 || p->packet_bits > UINT64_C(1) << 60)
		ky_error_set(err, KYMO_E_FORMAT, "packet size of %llu bits is not valid",
			     (unsigned long long)p->packet_bits);
	else if (p->content_bits > p->packet_bits)
		ky_error_set(err, KYMO_E_FORMAT,
			     "packet's content of %llu bits is larger than the packet, %llu bits",
			     (unsigned long long)p->content_bits,
			     (unsigned long long)p->packet_bits);
	else if (p->content_bits < d->at_bits)
		ky_error_set(err, KYMO_E_FORMAT,
			     "packet's content of %llu bits is smaller than its header, %llu bits",
			     (unsigned long long)p->content_bits, (unsigned long long)d->at_bits);
	else
		return KYMO_OK;
	damaged(d, 0, err);
	return KYMO_E_FORMAT;
}

static int64_t to_ns(const struct ky_packet *p, uint64_t cycles)
{
	return p->stream_class->clock ? ky_clock_to_ns(p->stream_class->clock, cycles) : INT64_MIN;
}

static int read_context(struct ky_decoder *d, struct kymo_error *err)
{
	struct ky_packet *p = &d->packet;
	const struct ky_scope_plan *plan = &p->stream_class->plan->packet_context;
	bool has_packet = false, has_content = false;
	int ret;

	p->context_begin_bits = d->at_bits;
	ret = packet_scope(d, plan, err);
	if (ret < 0)
		return ret;
	ky_vec_foreach(&d->values.list, v)
		context_role(d, v, &has_packet, &has_content);
	ret = settle_sizes(d, has_packet, has_content, d->avail_bits, err);
	if (ret < 0)
		return ret;
	p->header_bits = d->at_bits;
	p->begin_ns = p->has_begin ? to_ns(p, p->begin_cycles) : INT64_MIN;
	p->end_ns = p->has_end ? to_ns(p, p->end_cycles) : INT64_MIN;
	return KYMO_OK;
}

int ky_decoder_packet(struct ky_decoder *d, const uint8_t *data, uint64_t avail_bytes,
		      uint64_t file_offset_bytes, const struct ky_packet **packet,
		      struct kymo_error *err)
{
	int ret;

	memset(&d->packet, 0, sizeof(d->packet));
	d->packet.data = data;
	d->packet.file_offset_bytes = file_offset_bytes;
	d->packet.cpu_id = UINT32_MAX;
	d->at_bits = 0;
	d->avail_bits = (avail_bytes > UINT64_C(1) << 57 ? UINT64_C(1) << 57 : avail_bytes) * 8;
	d->clock = 0;
	d->event_number = 0;
	d->has_pending = false;
	d->in_packet = false;
	ret = read_header(d, err);
	if (ret == KYMO_OK)
		ret = read_context(d, err);
	if (ret < 0)
		return ret;
	if (d->avail_bits > d->packet.content_bits)
		d->avail_bits = d->packet.content_bits;
	d->in_packet = true;
	*packet = &d->packet;
	return KYMO_OK;
}

/* ---- events ------------------------------------------------------------------------------ */

static const struct ky_event_class *event_class(const struct ky_stream_class *stream, uint64_t id)
{
	const struct ky_stream_plan *plan = stream->plan;

	if (id < plan->n_by_id)
		return plan->by_id[id];
	return id < KY_BY_ID_MAX ? NULL : ky_map_get(&stream->events_by_id, id);
}

static int unknown_event(uint64_t id, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "no event class with id %llu in the metadata",
			    (unsigned long long)id);
}

static int header_cut(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "event header goes past the packet's content");
}

/* LTTng's compact header: one 32-bit word, or a byte, a 32-bit id and a 64-bit stamp. */
static inline int compact_header(struct ky_cursor *c, uint64_t *clock, uint64_t *id,
				 struct kymo_error *err)
{
	const uint8_t *at = c->data + c->at_bits / 8;
	uint64_t room = c->end_bits - c->at_bits;

	if (room < 8 || (at[0] & 31) != 31) {
		uint32_t word;

		if (room < 32)
			return header_cut(err);
		word = ky_load32(at, false);
		*id = word & 31;
		update_clock(clock, word >> 5, 27);
		c->at_bits += 32;
		return KYMO_OK;
	}
	if (room < 104)
		return header_cut(err);
	*id = ky_load32(at + 1, false);
	*clock = ky_load64(at + 5, false);
	c->at_bits += 104;
	return KYMO_OK;
}

/* LTTng's large header: 16-bit id and 32-bit stamp, or 0xffff and the full ones. */
static inline int large_header(struct ky_cursor *c, uint64_t *clock, uint64_t *id,
			       struct kymo_error *err)
{
	const uint8_t *at = c->data + c->at_bits / 8;
	uint64_t room = c->end_bits - c->at_bits;

	if (room < 48)
		return header_cut(err);
	*id = ky_load16(at, false);
	if (*id != 0xffff) {
		update_clock(clock, ky_load32(at + 2, false), 32);
		c->at_bits += 48;
		return KYMO_OK;
	}
	if (room < 112)
		return header_cut(err);
	*id = ky_load32(at + 2, false);
	*clock = ky_load64(at + 6, false);
	c->at_bits += 112;
	return KYMO_OK;
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
		if (v->cls->role == KY_ROLE_EVENT_ID) {
			*id = v->u;
			*has_id = true;
		} else if (v->cls->role == KY_ROLE_CLOCK_BEGIN && v->cls->num.clock) {
			update_clock(&d->clock, v->u, clock_bits(v));
		}
	}
	return KYMO_OK;
}

static inline int read_event_header(struct ky_decoder *d, struct ky_cursor *c,
				    const struct ky_event_class **cls, struct kymo_error *err)
{
	const struct ky_stream_class *stream = d->packet.stream_class;
	bool has_id = true;
	uint64_t id = 0;
	int ret;

	switch (stream->plan->header_kind) {
	case KY_HEADER_LARGE:
		ret = large_header(c, &d->clock, &id, err);
		break;
	case KY_HEADER_COMPACT:
		ret = compact_header(c, &d->clock, &id, err);
		break;
	case KY_HEADER_GENERAL:
		has_id = false;
		ret = general_header(d, c, &id, &has_id, err);
		break;
	default:
		has_id = false;
		ret = KYMO_OK;
	}
	if (ret < 0)
		return ret;
	*cls = has_id ? event_class(stream, id) : stream->plan->only_event;
	if (__builtin_expect(!*cls, 0)) {
		if (has_id)
			return unknown_event(id, err);
		return ky_error_set(err, KYMO_E_FORMAT,
				    "events carry no id, but the stream has %zu event classes",
				    stream->events.len);
	}
	return KYMO_OK;
}

/* Step over the body; notes where its scopes begin. */
static inline int skip_body(struct ky_cursor *c, struct ky_event *event, struct kymo_error *err)
{
	const struct ky_event_plan *plan = event->cls->plan;
	uint64_t body = c->at_bits - event->begin_bits;
	int ret;

	event->stream_context_bits = (uint32_t)body;
	if (__builtin_expect(plan->body_bits >= 0 && !(c->at_bits & 7), 1)) {
		if ((uint64_t)plan->body_bits > c->end_bits - c->at_bits)
			return ky_error_set(err, KYMO_E_FORMAT,
					    "event of %lld bits goes past the packet's content",
					    (long long)plan->body_bits);
		event->event_context_bits = (uint32_t)body + plan->context_bits;
		event->payload_bits = (uint32_t)body + plan->payload_bits;
		c->at_bits += (uint64_t)plan->body_bits;
		return KYMO_OK;
	}
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

static inline int read_event(struct ky_decoder *d, struct ky_cursor *c, struct ky_event *event,
			     struct kymo_error *err)
{
	const struct ky_stream_class *stream = d->packet.stream_class;
	int ret;

	event->begin_bits = c->at_bits;
	ret = read_event_header(d, c, &event->cls, err);
	if (ret == KYMO_OK)
		ret = skip_body(c, event, err);
	if (ret < 0)
		return ret;
	if (__builtin_expect(c->at_bits == event->begin_bits, 0))
		return ky_error_set(err, KYMO_E_FORMAT, "event record without a single bit");
	event->end_bits = c->at_bits;
	event->packet = &d->packet;
	event->data = d->packet.data;
	event->cycles = d->clock;
	event->cpu_id = d->packet.cpu_id;
	event->ns = stream->clock ? ky_clock_to_ns(stream->clock, d->clock) : INT64_MIN;
	return KYMO_OK;
}

/* What the file lacks of a packet is damage too, told once its events are delivered. */
static int end_of_packet(struct ky_decoder *d, struct kymo_error *err)
{
	d->in_packet = false;
	if (d->avail_bits >= d->packet.content_bits)
		return 0;
	ky_error_set(err, KYMO_E_FORMAT,
		     "packet is truncated: %llu bytes of content, %llu in the file",
		     (unsigned long long)(d->packet.content_bits / 8),
		     (unsigned long long)(d->avail_bits / 8));
	damaged(d, d->avail_bits, err);
	return KYMO_E_FORMAT;
}

static int fail_event(struct ky_decoder *d, int code, uint64_t at_bits, int n,
		      struct kymo_error *err)
{
	struct kymo_error *e = &d->pending;

	d->in_packet = false;
	/* The last event of a truncated packet is cut: that is what to tell, not the field. */
	if (code == KYMO_E_FORMAT && d->avail_bits < d->packet.content_bits)
		code = end_of_packet(d, e);
	else
		damaged(d, at_bits, e);
	if (n) {
		d->has_pending = true;
		return n;
	}
	if (err)
		*err = *e;
	return code;
}

int ky_decoder_next(struct ky_decoder *d, struct ky_event *events, int max, struct kymo_error *err)
{
	struct ky_cursor c = {
		.data = d->packet.data,
		.at_bits = d->at_bits,
		.end_bits = d->avail_bits,
		.slots = d->slots,
	};
	const struct ky_field_class *header;
	int n, ret;

	if (d->has_pending) {
		d->has_pending = false;
		if (err)
			*err = d->pending;
		return d->pending.code;
	}
	if (!d->in_packet)
		return 0;
	header = d->packet.stream_class->event_header;
	for (n = 0; n < max; n++) {
		if (header)
			c.at_bits = ky_align_up(c.at_bits, header->align_bits);
		if (c.at_bits >= c.end_bits)
			break;
		ret = read_event(d, &c, &events[n], &d->pending);
		if (__builtin_expect(ret < 0, 0))
			return fail_event(d, ret, c.at_bits, n, err);
	}
	d->at_bits = c.at_bits;
	d->event_number += (uint64_t)n;
	return n ? n : end_of_packet(d, err);
}
