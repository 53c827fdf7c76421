/* SPDX-License-Identifier: MIT */
#include "ctf/encode/repack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/decode/plan.h"
#include "ctf/decode/stored-stacks.h"
#include "ctf/encode/repack-internal.h"
#include "ctf/decode/running-clock.h"

#define BUFFER_BYTES_MIN 4096

const struct ky_stream_class *ky_repack_stream(const struct ky_trace_class *as,
					       const struct ky_stream_class *stream)
{
	size_t n = 0;

	for (size_t i = 0; stream->trace->streams.data[i] != stream; i++)
		n += ky_stream_class_is_used(stream->trace->streams.data[i]);
	return as->streams.data[n];
}

static void repack_find_event(struct ky_repacker *r, const struct ky_event_class *event)
{
	if (ky_event_class_is_used(event))
		r->as_events[event->index] = ky_map_get(
			&ky_repack_stream(r->as, event->stream)->events_by_id, event->id);
}

static bool repack_find_events(struct ky_repacker *r, const struct ky_trace_class *trace)
{
	r->as_events = calloc(trace->events.len + 1, sizeof(*r->as_events));
	if (!r->as_events)
		return false;
	for (size_t i = 0; i < trace->events.len; i++)
		repack_find_event(r, trace->events.data[i]);
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
	if (ky_transcode_init(&r->transcode, trace, as) == KYMO_OK && r->e.slots && r->aligns &&
	    (!as || repack_find_events(r, trace)))
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
	ky_transcode_fini(&r->transcode);
	free(r->e.slots);
	free(r->e.data);
	free(r->aligns);
	free(r->as_events);
	free(r);
}

/* ---- the buffer --------------------------------------------------------------------------- */

int ky_repack_grow(struct ky_repacker *r, uint64_t more_bytes, struct kymo_error *err)
{
	uint64_t size = r->e.size_bits / 8 * 2 + more_bytes + BUFFER_BYTES_MIN;
	uint8_t *data = realloc(r->e.data, size);

	if (!data)
		return ky_error_nomem(err);
	r->e.data = data;
	r->e.size_bits = size * 8;
	return KYMO_OK;
}

int ky_repack_encode(struct ky_repacker *r, const struct ky_values *values, struct kymo_error *err)
{
	int ret = KYMO_OK;

	while (values->list.len &&
	       (ret = ky_encode_scope(&r->e, values->list.data, values->list.len, err)) > 0) {
		ret = ky_repack_grow(r, 0, err);
		if (ret < 0)
			break;
	}
	return ret;
}

int ky_repack_align(struct ky_repacker *r, uint64_t align_bits, struct kymo_error *err)
{
	while (!ky_encode_align(&r->e, align_bits)) {
		int ret = ky_repack_grow(r, 0, err);

		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
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

int ky_repack_decode(struct ky_repacker *r, struct ky_values *values, const struct ky_event *event,
		     enum ky_scope scope, uint64_t begin_cycles, struct kymo_error *err)
{
	int ret;

	if (!r->as)
		return ky_values_decode(values, event, scope, err);
	ret = ky_values_decode(&r->transcode.in, event, scope, err);
	if (ret < 0)
		return ret;
	if (!ret)
		ky_vec_clear(&r->transcode.in.list);
	r->transcode.begin_cycles = begin_cycles;
	r->transcode.end_cycles = r->in.told_end_cycles;
	ret = ky_transcode_scope(&r->transcode, root_as(r, event, scope), values, err);
	return ret < 0 ? ret : (int)values->list.len;
}

const struct ky_field_class *ky_repack_header(const struct ky_repacker *r)
{
	return r->as ? r->as_stream->event_header : r->in.stream_class->event_header;
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
	const uint8_t *at = event->packet->data + event->begin_bits / 8;

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

static uint64_t repack_max_align(struct ky_repacker *r, const struct ky_event_class *cls)
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
	return !r->as && !ky_stored_stacks_miss(event) && !(event->begin_bits % 8) &&
	       !(event->end_bits % 8) &&
	       !((event->begin_bits - r->e.at_bits) & (repack_max_align(r, event->cls) - 1));
}

static int copy_event(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	uint64_t bits = event->end_bits - event->begin_bits;
	int ret;

	if (bits > r->e.size_bits - r->e.at_bits) {
		ret = ky_repack_grow(r, bits / 8, err);
		if (ret < 0)
			return ret;
	}
	memcpy(r->e.data + r->e.at_bits / 8, event->packet->data + event->begin_bits / 8, bits / 8);
	r->e.at_bits += bits;
	return KYMO_OK;
}

static int encode_event(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	uint64_t begin_bits = r->e.at_bits;
	int ret = KYMO_OK;

	for (int scope = KY_SCOPE_EVENT_HEADER; scope < KY_SCOPE_COUNT && ret >= 0; scope++) {
		ret = ky_repack_decode(r, &r->scratch, event, (enum ky_scope)scope, event->cycles,
				       err);
		if (ret > 0)
			ret = ky_repack_encode(r, &r->scratch, err);
	}
	if (ret < 0)
		r->e.at_bits = begin_bits;
	return ret < 0 ? ret : KYMO_OK;
}

int ky_repacker_event(struct ky_repacker *r, const struct ky_event *event, struct kymo_error *err)
{
	const struct ky_field_class *header = ky_repack_header(r);
	int ret = settle_time(r, event, err);

	if (ret)
		return ret;
	if (header)
		ret = ky_repack_align(r, header->align_bits, err);
	if (ret < 0)
		return ret;
	if (can_copy(r, event))
		ret = copy_event(r, event, err);
	else
		ret = encode_event(r, event, err);
	r->n_events += ret == KYMO_OK;
	r->last_cycles = event->cycles;
	return ret;
}
