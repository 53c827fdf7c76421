/* SPDX-License-Identifier: MIT */
#include "abi/packet.h"
#include "ctf/decode/decode-internal.h"

#include <stdlib.h>
#include <string.h>

struct ky_decoder *ky_decoder_new(const struct ky_trace_class *trace)
{
	struct ky_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->trace = trace;
	d->limit_ns = INT64_MAX;
	d->floor_ns = INT64_MIN;
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

void ky_decoder_set_stream(struct ky_decoder *d, const struct ky_stream *stream)
{
	d->stream = stream;
}

/* ---- packets ----------------------------------------------------------------------------- */

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
		ky_damaged(d, c.at_bits, err);
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
	/* CTF 2: without a field the id is 0. CTF 1.8: then there is but one class. */
	if (has_id || d->trace->major >= 2)
		return ky_map_get(&d->trace->streams_by_id, id);
	return d->trace->streams.len == 1 ? d->trace->streams.data[0] : NULL;
}

/* What the value at @i of the packet header means. */
static int header_role(struct ky_decoder *d, size_t i, enum ky_role role, uint64_t *class_id,
		       bool *has_class_id, struct kymo_error *err)
{
	const struct ky_value *v = &d->values.list.data[i];

	switch (role) {
	case KY_ROLE_MAGIC:
		if (v->u == KY_CTF_MAGIC)
			return KYMO_OK;
		ky_error_set(err, KYMO_E_FORMAT, "packet magic number is 0x%llx instead of 0x%x",
			     (unsigned long long)v->u, KY_CTF_MAGIC);
		ky_damaged(d, 0, err);
		return KYMO_E_FORMAT;
	case KY_ROLE_TRACE_UUID:
		if (!d->trace->has_uuid || uuid_matches(&d->values, i, d->trace->uuid)) {
			d->own_uuid_seen = true;
			return KYMO_OK;
		}
		d->packet.foreign = true;
		if (d->trace->lax_uuid && !d->own_uuid_seen)
			return KYMO_OK;
		ky_error_set(err, KYMO_E_FORMAT,
			     "packet UUID differs from the metadata's: the file belongs to another "
			     "trace");
		ky_damaged(d, 0, err);
		return KYMO_E_FORMAT;
	case KY_ROLE_STREAM_CLASS_ID:
		*has_class_id = true;
		*class_id = v->u;
		return KYMO_OK;
	case KY_ROLE_STREAM_ID:
		d->packet.has_stream_id = true;
		d->packet.stream_id = v->u;
		return KYMO_OK;
	default:
		return KYMO_OK;
	}
}

static int decode_read_header(struct ky_decoder *d, struct kymo_error *err)
{
	struct ky_packet *p = &d->packet;
	uint64_t class_id = 0;
	bool has_class_id = false;
	int ret = packet_scope(d, d->trace->packet_header_plan, err);

	for (size_t i = 0; i < d->values.list.len && ret == KYMO_OK; i++) {
		const struct ky_field_class *cls = d->values.list.data[i].cls;

		ret = header_role(d, i, cls->role, &class_id, &has_class_id, err);
		for (uint32_t more = cls->more_roles; more && ret == KYMO_OK; more &= more - 1)
			ret = header_role(d, i, (enum ky_role)__builtin_ctz(more), &class_id,
					  &has_class_id, err);
	}
	if (ret < 0)
		return ret;
	p->stream_class = find_stream_class(d, has_class_id, class_id);
	if (p->stream_class)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_FORMAT, "no stream class with id %llu in the metadata",
		     (unsigned long long)class_id);
	ky_damaged(d, 0, err);
	return KYMO_E_FORMAT;
}

static void context_role(struct ky_decoder *d, const struct ky_value *v, enum ky_role role,
			 bool *has_packet, bool *has_content)
{
	struct ky_packet *p = &d->packet;

	switch (role) {
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
		ky_clock_update(&d->clock, v->u, ky_clock_bits(v));
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
	ky_damaged(d, 0, err);
	return KYMO_E_FORMAT;
}

static int64_t decode_to_ns(const struct ky_packet *p, uint64_t cycles)
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
	ky_vec_foreach(&d->values.list, v) {
		context_role(d, v, v->cls->role, &has_packet, &has_content);
		for (uint32_t more = v->cls->more_roles; more; more &= more - 1)
			context_role(d, v, (enum ky_role)__builtin_ctz(more), &has_packet,
				     &has_content);
	}
	ret = settle_sizes(d, has_packet, has_content, d->avail_bits, err);
	if (ret < 0)
		return ret;
	p->header_bits = d->at_bits;
	p->told_begin_cycles = p->begin_cycles;
	p->told_end_cycles = p->end_cycles;
	p->begin_ns = p->has_begin ? decode_to_ns(p, p->begin_cycles) : INT64_MIN;
	p->end_ns = p->has_end ? decode_to_ns(p, p->end_cycles) : INT64_MIN;
	return KYMO_OK;
}

int64_t ky_decoder_latest(const struct ky_decoder *d)
{
	int64_t ns = d->passed_event ? decode_to_ns(&d->packet, d->clock) : INT64_MIN;

	return ns > d->floor_ns ? ns : d->floor_ns;
}

/* The events of the packet so far count as those before. */
static void decode_leave_packet(struct ky_decoder *d)
{
	d->floor_ns = ky_decoder_latest(d);
	d->passed_event = false;
	d->at_limit = false;
}

int ky_decoder_packet(struct ky_decoder *d, const uint8_t *data, uint64_t avail_bytes,
		      uint64_t file_offset_bytes, const struct ky_packet **packet,
		      struct kymo_error *err)
{
	int ret;

	decode_leave_packet(d);
	memset(&d->packet, 0, sizeof(d->packet));
	d->packet.stream = d->stream;
	d->packet.data = data;
	d->packet.file_offset_bytes = file_offset_bytes;
	d->packet.cpu_id = UINT32_MAX;
	d->at_bits = 0;
	d->avail_bits = (avail_bytes > UINT64_C(1) << 57 ? UINT64_C(1) << 57 : avail_bytes) * 8;
	d->clock = 0;
	d->has_pending = false;
	d->in_packet = false;
	ret = decode_read_header(d, err);
	if (ret == KYMO_OK)
		ret = read_context(d, err);
	if (ret < 0)
		return ret;
	if (d->avail_bits > d->packet.content_bits)
		d->avail_bits = d->packet.content_bits;
	d->in_packet = true;
	ky_decoder_set_limit_cycles(d);
	*packet = &d->packet;
	return KYMO_OK;
}

void ky_decoder_correct_times(struct ky_decoder *d, uint64_t begin_cycles, uint64_t end_cycles)
{
	struct ky_packet *p = &d->packet;

	p->begin_cycles = begin_cycles;
	p->end_cycles = end_cycles;
	p->begin_ns = decode_to_ns(p, begin_cycles);
	p->end_ns = decode_to_ns(p, end_cycles);
}

/* ---- parts of a stream ------------------------------------------------------------------- */

void ky_decoder_set_limit_cycles(struct ky_decoder *d)
{
	const struct ky_clock_class *clock = d->packet.stream_class->clock;

	d->limit_cycles = UINT64_MAX;
	if (clock && d->limit_ns != INT64_MAX)
		d->limit_cycles = ky_clock_from_ns(clock, d->limit_ns);
}

void ky_decoder_limit(struct ky_decoder *d, int64_t ns)
{
	d->limit_ns = ns;
	d->at_limit = false;
	if (d->in_packet)
		ky_decoder_set_limit_cycles(d);
}

bool ky_decoder_at_limit(const struct ky_decoder *d, int64_t *ns)
{
	*ns = d->beyond_ns;
	return d->at_limit;
}

int64_t ky_decoder_floor(const struct ky_decoder *d)
{
	return d->floor_ns;
}

void ky_decoder_forget(struct ky_decoder *d)
{
	d->floor_ns = INT64_MIN;
	d->passed_event = false;
}

const struct ky_packet *ky_decoder_copy(struct ky_decoder *to, const struct ky_decoder *from)
{
	to->packet = from->packet;
	to->at_bits = from->at_bits;
	to->avail_bits = from->avail_bits;
	to->clock = from->clock;
	to->in_packet = from->in_packet;
	to->own_uuid_seen = from->own_uuid_seen;
	to->has_pending = false;
	to->at_limit = false;
	/* Fields of the packet's own may be what fields of events refer to. */
	if (from->in_packet)
		memcpy(to->slots, from->slots, to->trace->n_slots * sizeof(*to->slots));
	if (to->in_packet)
		ky_decoder_set_limit_cycles(to);
	ky_decoder_forget(to);
	return &to->packet;
}

uint64_t ky_decoder_place(const struct ky_decoder *d, uint64_t *clock)
{
	*clock = d->clock;
	return d->at_bits;
}
