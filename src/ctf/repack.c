/* SPDX-License-Identifier: MIT */
#include "ctf/repack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/encode.h"
#include "ctf/plan.h"
#include "ctf/recast.h"
#include "ctf/running-clock.h"

#define BUFFER_BYTES_MIN 4096

struct ky_repacker {
	const struct ky_trace_class *as; /* what packets are written as; NULL: as they were */
	const struct ky_stream_class *as_stream;
	const struct ky_event_class **as_events; /* by index of the input's */
	struct ky_recast recast;
	struct ky_packet in;
	struct ky_values header, context; /* of the input packet, as they are written */
	struct ky_values patched;	  /* the context with new sizes and times */
	struct ky_values scratch;
	struct ky_encoder e;
	uint64_t *aligns; /* by event class index: ky_encode_max_align(); 0: not known yet */
	uint64_t clock;	  /* what a reader's running clock says */
	uint64_t begin_cycles, last_cycles, sequence;
	uint64_t n_events;
	bool has_begin_field, has_size_field, has_both_sizes;
	bool moved_begin;
};

/* The class of @as that @stream became: streams stay in order. */
static const struct ky_stream_class *stream_as(const struct ky_trace_class *as,
					       const struct ky_stream_class *stream)
{
	size_t i = 0;

	while (stream->trace->streams.data[i] != stream)
		i++;
	return as->streams.data[i];
}

static bool find_events(struct ky_repacker *r, const struct ky_trace_class *trace)
{
	r->as_events = calloc(trace->events.len + 1, sizeof(*r->as_events));
	if (!r->as_events)
		return false;
	for (size_t i = 0; i < trace->events.len; i++) {
		const struct ky_event_class *event = trace->events.data[i];

		r->as_events[event->index] =
			ky_map_get(&stream_as(r->as, event->stream)->events_by_id, event->id);
	}
	return true;
}

struct ky_repacker *ky_repacker_new(const struct ky_trace_class *trace,
				    const struct ky_trace_class *as)
{
	struct ky_repacker *r = calloc(1, sizeof(*r));
	uint32_t n_slots = as ? as->n_slots : trace->n_slots;

	if (!r)
		return NULL;
	r->as = as;
	ky_values_init(&r->header);
	ky_values_init(&r->context);
	ky_values_init(&r->patched);
	ky_values_init(&r->scratch);
	r->e.slots = calloc((size_t)n_slots + 1, sizeof(*r->e.slots));
	r->aligns = calloc(trace->events.len + 1, sizeof(*r->aligns));
	if (ky_recast_init(&r->recast, trace, as) == KYMO_OK && r->e.slots && r->aligns &&
	    (!as || find_events(r, trace)))
		return r;
	ky_repacker_free(r);
	return NULL;
}

void ky_repacker_free(struct ky_repacker *r)
{
	if (!r)
		return;
	ky_values_fini(&r->header);
	ky_values_fini(&r->context);
	ky_values_fini(&r->patched);
	ky_values_fini(&r->scratch);
	ky_recast_fini(&r->recast);
	free(r->e.slots);
	free(r->e.data);
	free(r->aligns);
	free(r->as_events);
	free(r);
}

/* ---- the buffer --------------------------------------------------------------------------- */

static int grow(struct ky_repacker *r, uint64_t more_bytes, struct kymo_error *err)
{
	uint64_t size = r->e.size_bits / 8 * 2 + more_bytes + BUFFER_BYTES_MIN;
	uint8_t *data = realloc(r->e.data, size);

	if (!data)
		return ky_error_nomem(err);
	r->e.data = data;
	r->e.size_bits = size * 8;
	return KYMO_OK;
}

static int encode_scope(struct ky_repacker *r, const struct ky_values *values,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	while (values->list.len &&
	       (ret = ky_encode_scope(&r->e, values->list.data, values->list.len, err)) > 0) {
		ret = grow(r, 0, err);
		if (ret < 0)
			break;
	}
	return ret;
}

/* ---- values, as they are written ---------------------------------------------------------- */

static const struct ky_field_class *root_as(const struct ky_repacker *r,
					    const struct ky_event *event, enum ky_scope scope)
{
	if (scope == KY_SCOPE_PACKET_HEADER)
		return r->as->packet_header;
	if (scope == KY_SCOPE_PACKET_CONTEXT)
		return r->as_stream->packet_context;
	return ky_scope_root(r->as_events[event->cls->index], scope);
}

/* Decode @scope of @event, whose time (or whose packet's begin) is @begin_cycles. */
static int decode(struct ky_repacker *r, struct ky_values *values, const struct ky_event *event,
		  enum ky_scope scope, uint64_t begin_cycles, struct kymo_error *err)
{
	int ret;

	if (!r->as)
		return ky_values_decode(values, event, scope, err);
	ret = ky_values_decode(&r->recast.in, event, scope, err);
	if (ret < 0)
		return ret;
	if (!ret)
		ky_vec_clear(&r->recast.in.list);
	r->recast.begin_cycles = begin_cycles;
	r->recast.end_cycles = r->in.told_end_cycles;
	ret = ky_recast_scope(&r->recast, root_as(r, event, scope), values, err);
	return ret < 0 ? ret : (int)values->list.len;
}

/* The header of the events that are written. */
static const struct ky_field_class *header_as(const struct ky_repacker *r)
{
	return r->as ? r->as_stream->event_header : r->in.stream_class->event_header;
}

/* ---- header and context ------------------------------------------------------------------- */

/* Sizes and times of variable length take all the bytes they may ever need. */
static void set_role(struct ky_value *v, uint64_t value)
{
	v->u = value;
	if (v->cls->kind == KY_FIELD_VARUINT)
		v->n_children = KY_LEB128_MAX_BYTES * 7;
}

/* Times that nothing has changed stay what they were, all the bits of each field. */
static void set_time(struct ky_value *v, uint64_t cycles, bool changed)
{
	set_role(v, changed ? cycles : v->u);
}

/* Of several roles, those that one value can have: the packet is as long as its content. */
static bool is_both_sizes(const struct ky_field_class *cls)
{
	return (cls->more_roles | 1u << cls->role) ==
	       (1u << KY_ROLE_PACKET_SIZE | 1u << KY_ROLE_CONTENT_SIZE);
}

/* Put what is known of the new packet into the context; content_bits 0: not known yet. */
static int patch_context(struct ky_repacker *r, uint64_t packet_bits, uint64_t content_bits,
			 const uint64_t *end_cycles, struct kymo_error *err)
{
	ky_vec_clear(&r->patched.list);
	if (ky_vec_reserve(&r->patched.list, r->context.list.len) < 0)
		return ky_error_nomem(err);
	ky_vec_foreach(&r->context.list, original)
		(void)ky_vec_push(&r->patched.list, *original);
	ky_vec_foreach(&r->patched.list, v) {
		if (v->cls->more_roles && !is_both_sizes(v->cls))
			return ky_error_set(err, KYMO_E_UNSUPPORTED,
					    "packets whose field %s has several roles cannot be "
					    "written anew",
					    v->name);
		switch (v->cls->role) {
		case KY_ROLE_PACKET_SIZE:
			set_role(v, packet_bits);
			break;
		case KY_ROLE_CONTENT_SIZE:
			set_role(v, content_bits);
			break;
		case KY_ROLE_SEQUENCE:
			set_role(v, r->sequence);
			continue;
		case KY_ROLE_CLOCK_BEGIN:
			set_time(v, r->begin_cycles, r->begin_cycles != r->in.told_begin_cycles);
			continue;
		case KY_ROLE_CLOCK_END:
			set_time(v, end_cycles ? *end_cycles : r->in.end_cycles,
				 end_cycles || r->in.end_cycles != r->in.told_end_cycles);
			continue;
		default:
			continue;
		}
		if (v->cls->kind == KY_FIELD_UINT && v->u & ~ky_mask_bits(v->cls->num.length_bits))
			return ky_error_set(err, KYMO_E_LIMIT,
					    "a packet of %llu bits is too large for its field %s",
					    (unsigned long long)v->u, v->name);
	}
	return KYMO_OK;
}

/* Write header and context at the packet's begin; what follows stays. */
static int write_prolog(struct ky_repacker *r, struct kymo_error *err)
{
	int ret;

	r->e.at_bits = 0;
	ret = encode_scope(r, &r->header, err);
	return ret < 0 ? ret : encode_scope(r, &r->patched, err);
}

static void note_fields(struct ky_repacker *r)
{
	bool packet = false, content = false, joint = false;

	r->has_begin_field = false;
	ky_vec_foreach(&r->context.list, v) {
		packet |= ky_has_role(v->cls, KY_ROLE_PACKET_SIZE);
		content |= ky_has_role(v->cls, KY_ROLE_CONTENT_SIZE);
		joint |= is_both_sizes(v->cls);
		r->has_begin_field |= v->cls->role == KY_ROLE_CLOCK_BEGIN && v->cls->num.clock;
	}
	r->has_size_field = packet || content;
	r->has_both_sizes = packet && content && !joint;
}

/* What a reader's clock says behind the context. */
static void start_clock(struct ky_repacker *r)
{
	r->clock = 0;
	ky_vec_foreach(&r->patched.list, v) {
		if (v->cls->role == KY_ROLE_CLOCK_BEGIN && v->cls->num.clock)
			ky_clock_update(&r->clock,
					v->cls->kind == KY_FIELD_VARUINT
						? v->u
						: v->u & ky_mask_bits(v->cls->num.length_bits),
					ky_clock_bits(v));
	}
}

static int open_packet(struct ky_repacker *r, struct kymo_error *err)
{
	int ret = patch_context(r, 0, 0, NULL, err);

	if (ret == KYMO_OK)
		ret = write_prolog(r, err);
	start_clock(r);
	r->n_events = 0;
	r->last_cycles = r->begin_cycles;
	return ret;
}

/* The trace's own UUID; only arrays are allowed to differ from it (ky_packet.foreign). */
static void set_uuid(struct ky_repacker *r)
{
	const uint8_t *uuid = r->in.stream_class->trace->uuid;

	for (size_t i = 0; i < r->header.list.len; i++) {
		struct ky_value *v = &r->header.list.data[i];

		for (size_t j = 0; v->cls->role == KY_ROLE_TRACE_UUID && j < v->n_children; j++)
			v[1 + j].u = uuid[j];
	}
}

int ky_repacker_begin(struct ky_repacker *r, const struct ky_packet *in, uint64_t sequence,
		      struct kymo_error *err)
{
	/* A view of no event: header and context need nothing but the stream class. */
	struct ky_event_class cls = {.stream =
					     (struct ky_stream_class *)(uintptr_t)in->stream_class};
	struct ky_event view = {
		.cls = &cls, .packet = &r->in, .data = in->data, .end_bits = in->header_bits};
	int ret;

	if (!r->e.data) {
		ret = grow(r, 0, err);
		if (ret < 0)
			return ret;
	}
	r->in = *in;
	r->sequence = sequence;
	r->begin_cycles = in->begin_cycles;
	r->moved_begin = false;
	if (r->as)
		r->as_stream = stream_as(r->as, in->stream_class);
	ret = decode(r, &r->header, &view, KY_SCOPE_PACKET_HEADER, 0, err);
	if (ret >= 0)
		ret = decode(r, &r->context, &view, KY_SCOPE_PACKET_CONTEXT, in->told_begin_cycles,
			     err);
	if (ret < 0)
		return ret;
	if (in->foreign)
		set_uuid(r);
	note_fields(r);
	return open_packet(r, err);
}

int ky_repacker_continue(struct ky_repacker *r, uint64_t begin_cycles, uint64_t sequence,
			 struct kymo_error *err)
{
	r->sequence = sequence;
	r->begin_cycles = begin_cycles;
	r->moved_begin = true;
	return open_packet(r, err);
}

/* ---- time --------------------------------------------------------------------------------- */

static int general_clock(struct ky_repacker *r, const struct ky_event *event, uint64_t *clock,
			 struct kymo_error *err)
{
	int ret = ky_values_decode(&r->scratch, event, KY_SCOPE_EVENT_HEADER, err);

	if (ret < 0)
		return ret;
	ky_vec_foreach(&r->scratch.list, v) {
		if (!ky_has_role(v->cls, KY_ROLE_CLOCK_BEGIN) || !v->cls->num.clock)
			continue;
		/* Written as another kind, it has room for the whole of the time. */
		if (r->as && v->cls->kind == KY_FIELD_VARUINT)
			*clock = event->cycles;
		else
			ky_clock_update(clock, v->u, ky_clock_bits(v));
	}
	return KYMO_OK;
}

/* What the event's header makes of the running clock. */
static int clock_behind(struct ky_repacker *r, const struct ky_event *event, uint64_t *clock,
			struct kymo_error *err)
{
	enum ky_header_kind kind = event->cls->stream->plan->header_kind;
	const uint8_t *at = event->data + event->begin_bits / 8;

	if (event->begin_bits % 8)
		kind = KY_HEADER_GENERAL;
	switch (kind) {
	case KY_HEADER_NONE:
		return KYMO_OK;
	case KY_HEADER_COMPACT:
		if ((*at & 31) == 31)
			*clock = ky_load64(at + 5, false);
		else
			ky_clock_update(clock, ky_load32(at, false) >> 5, 27);
		return KYMO_OK;
	case KY_HEADER_LARGE:
		if (ky_load16(at, false) == 0xffff)
			*clock = ky_load64(at + 6, false);
		else
			ky_clock_update(clock, ky_load32(at + 2, false), 32);
		return KYMO_OK;
	default:
		return general_clock(r, event, clock, err);
	}
}

static int cannot_tell_time(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_UNSUPPORTED,
		     "the time stamps of this stream are too short to leave out events between");
	ky_error_hint(err, "convert the whole of it, or to another format");
	return KYMO_E_UNSUPPORTED;
}

/* See that a reader will find the event's time. 0, 1: only in a new packet, or negative. */
static int settle_time(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	uint64_t clock = r->clock;
	int ret = clock_behind(r, event, &clock, err);

	if (ret < 0)
		return ret;
	if (clock == event->cycles || !event->cls->stream->clock) {
		r->clock = clock;
		return KYMO_OK;
	}
	if (!r->has_begin_field)
		return cannot_tell_time(err);
	if (r->n_events)
		return r->has_size_field ? 1 : cannot_tell_time(err);
	if (r->moved_begin && r->begin_cycles == event->cycles)
		return cannot_tell_time(err);
	ret = ky_repacker_continue(r, event->cycles, r->sequence, err);
	return ret < 0 ? ret : settle_time(r, event, err);
}

/* ---- events ------------------------------------------------------------------------------- */

static uint64_t max_align(struct ky_repacker *r, const struct ky_event_class *cls)
{
	uint64_t *align = &r->aligns[cls->index], of;

	if (*align)
		return *align;
	/* Copies are of whole bytes. */
	*align = 8;
	for (int scope = KY_SCOPE_EVENT_HEADER; scope < KY_SCOPE_COUNT; scope++) {
		of = ky_encode_max_align(ky_scope_plan_of(cls, (enum ky_scope)scope)->root);
		*align = of > *align ? of : *align;
	}
	return *align;
}

static bool can_copy(struct ky_repacker *r, const struct ky_event *event)
{
	return !r->as && !(event->begin_bits % 8) && !(event->end_bits % 8) &&
	       !((event->begin_bits - r->e.at_bits) & (max_align(r, event->cls) - 1));
}

static int copy_event(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	uint64_t bits = event->end_bits - event->begin_bits;
	int ret;

	if (bits > r->e.size_bits - r->e.at_bits) {
		ret = grow(r, bits / 8, err);
		if (ret < 0)
			return ret;
	}
	memcpy(r->e.data + r->e.at_bits / 8, event->data + event->begin_bits / 8, bits / 8);
	r->e.at_bits += bits;
	return KYMO_OK;
}

static int encode_event(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	uint64_t begin_bits = r->e.at_bits;
	int ret = KYMO_OK;

	for (int scope = KY_SCOPE_EVENT_HEADER; scope < KY_SCOPE_COUNT && ret >= 0; scope++) {
		ret = decode(r, &r->scratch, event, (enum ky_scope)scope, event->cycles, err);
		if (ret > 0)
			ret = encode_scope(r, &r->scratch, err);
	}
	if (ret < 0)
		r->e.at_bits = begin_bits;
	return ret < 0 ? ret : KYMO_OK;
}

int ky_repacker_event(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	const struct ky_field_class *header = header_as(r);
	int ret = settle_time(r, event, err);

	if (ret)
		return ret;
	while (header && !ky_encode_align(&r->e, header->align_bits)) {
		ret = grow(r, 0, err);
		if (ret < 0)
			return ret;
	}
	if (can_copy(r, event))
		ret = copy_event(r, event, err);
	else
		ret = encode_event(r, event, err);
	r->n_events += ret == KYMO_OK;
	r->last_cycles = event->cycles;
	return ret;
}

/* ---- the end ------------------------------------------------------------------------------ */

static int pad(struct ky_repacker *r, uint64_t align_bits, struct kymo_error *err)
{
	while (!ky_encode_align(&r->e, align_bits)) {
		int ret = grow(r, 0, err);

		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

/* Behind bits that fill no byte a reader would look for another event, were it not told better. */
static bool ends_inside_byte(const struct ky_repacker *r)
{
	const struct ky_field_class *header = header_as(r);

	return !r->has_both_sizes && r->e.at_bits % 8 && (!header || header->align_bits < 8);
}

int ky_repacker_end(struct ky_repacker *r, bool cut, struct ky_repacked *out,
		    struct kymo_error *err)
{
	uint64_t content_bits = r->e.at_bits, packet_bits;
	uint64_t end = cut || !r->in.has_end ? r->last_cycles : r->in.end_cycles;
	int ret;

	if (ends_inside_byte(r))
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"the packets of this stream do not tell where their content ends, "
			"and these events end inside a byte");
	/* Without a content size, the packet holds nothing but its content. */
	ret = pad(r, r->has_both_sizes ? 64 : 8, err);
	if (ret < 0)
		return ret;
	packet_bits = r->e.at_bits;
	if (!r->has_both_sizes)
		content_bits = packet_bits;
	ret = patch_context(r, packet_bits, content_bits, cut ? &end : NULL, err);
	if (ret == KYMO_OK)
		ret = write_prolog(r, err);
	*out = (struct ky_repacked){
		.data = r->e.data,
		.size_bytes = packet_bits / 8,
		.content_bits = content_bits,
		.has_times = r->in.has_begin && r->in.has_end,
		.begin_cycles = r->begin_cycles,
		.end_cycles = end,
		.discarded = r->in.discarded,
		.sequence = r->sequence,
		.stream_class_id = r->in.stream_class->id,
		.stream_id = r->in.stream_id,
	};
	return ret;
}
