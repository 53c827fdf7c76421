/* SPDX-License-Identifier: MIT */
/* The packet around the events: its header and context, its begin and its end. */
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "ctf/encode/repack-internal.h"
#include "ctf/decode/running-clock.h"

/* ---- header and context ------------------------------------------------------------------- */

/* Sizes and times of variable length take all the bytes they may ever need. */
static void repack_packet_set_role(struct ky_value *v, uint64_t value)
{
	v->u = value;
	if (v->cls->kind == KY_FIELD_VARUINT)
		v->n_children = KY_LEB128_MAX_BYTES * 7;
}

/* Times that nothing has changed stay what they were, all the bits of each field. */
static void set_time(struct ky_value *v, uint64_t cycles, bool changed)
{
	repack_packet_set_role(v, changed ? cycles : v->u);
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
					    "cannot rewrite packets whose field %s has several "
					    "roles",
					    v->name);
		switch (v->cls->role) {
		case KY_ROLE_PACKET_SIZE:
			repack_packet_set_role(v, packet_bits);
			break;
		case KY_ROLE_CONTENT_SIZE:
			repack_packet_set_role(v, content_bits);
			break;
		case KY_ROLE_SEQUENCE:
			repack_packet_set_role(v, r->sequence);
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
	ret = ky_repack_encode(r, &r->header, err);
	return ret < 0 ? ret : ky_repack_encode(r, &r->patched, err);
}

static void repack_packet_note_fields(struct ky_repacker *r)
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

static int repack_packet_open_packet(struct ky_repacker *r, struct kymo_error *err)
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
static void repack_packet_set_uuid(struct ky_repacker *r)
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
	struct ky_event view = {.cls = &cls, .packet = &r->in, .end_bits = in->header_bits};
	int ret;

	if (!r->e.data) {
		ret = ky_repack_grow(r, 0, err);
		if (ret < 0)
			return ret;
	}
	r->in = *in;
	r->sequence = sequence;
	r->begin_cycles = in->begin_cycles;
	r->moved_begin = false;
	if (r->as)
		r->as_stream = ky_repack_stream(r->as, in->stream_class);
	ret = ky_repack_decode(r, &r->header, &view, KY_SCOPE_PACKET_HEADER, 0, err);
	if (ret >= 0)
		ret = ky_repack_decode(r, &r->context, &view, KY_SCOPE_PACKET_CONTEXT,
				       in->told_begin_cycles, err);
	if (ret < 0)
		return ret;
	if (in->foreign)
		repack_packet_set_uuid(r);
	repack_packet_note_fields(r);
	return repack_packet_open_packet(r, err);
}

int ky_repacker_continue(struct ky_repacker *r, uint64_t begin_cycles, uint64_t sequence,
			 struct kymo_error *err)
{
	r->sequence = sequence;
	r->begin_cycles = begin_cycles;
	r->moved_begin = true;
	return repack_packet_open_packet(r, err);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* After bits that do not fill a byte, a reader would search for another event without this check. */
static bool ends_inside_byte(const struct ky_repacker *r)
{
	const struct ky_field_class *header = ky_repack_header(r);

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
			"the packets of this stream have no content size, and these events end "
			"inside a byte");
	/* Without a content size, the packet holds nothing but its content. */
	ret = ky_repack_align(r, r->has_both_sizes ? 64 : 8, err);
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
