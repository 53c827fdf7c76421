/* SPDX-License-Identifier: MIT */
#include "ctf/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

bool ky_range_clip(struct ky_range *range, bool is_signed, unsigned int bits)
{
	int64_t max = (int64_t)ky_mask_bits(bits - 1);

	if (!is_signed) {
		if (range->end.u > ky_mask_bits(bits))
			range->end.u = ky_mask_bits(bits);
		return range->begin.u <= range->end.u;
	}
	if (range->begin.s < -max - 1)
		range->begin.s = -max - 1;
	if (range->end.s > max)
		range->end.s = max;
	return range->begin.s <= range->end.s;
}

struct ky_trace_class *ky_trace_class_new(void)
{
	struct ky_trace_class *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	ky_arena_init(&trace->arena);
	ky_map_init(&trace->streams_by_id);
	trace->major = 1;
	trace->minor = 8;
	trace->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	return trace;
}

void ky_stream_class_fini(struct ky_stream_class *stream)
{
	ky_vec_fini(&stream->events);
	ky_map_fini(&stream->events_by_id);
}

void ky_trace_class_free(struct ky_trace_class *trace)
{
	if (!trace)
		return;
	ky_vec_foreach(&trace->streams, stream)
		ky_stream_class_fini(*stream);
	ky_vec_fini(&trace->env);
	ky_vec_fini(&trace->clocks);
	ky_vec_fini(&trace->streams);
	ky_vec_fini(&trace->events);
	ky_map_fini(&trace->streams_by_id);
	ky_arena_fini(&trace->arena);
	free(trace);
}

struct ky_clock_class *ky_clock_class_new(struct ky_trace_class *trace, const char *name)
{
	struct ky_clock_class *clock = ky_arena_new(&trace->arena, struct ky_clock_class);

	if (!clock)
		return NULL;
	clock->name = ky_arena_strdup(&trace->arena, name ? name : "");
	clock->frequency_hz = 1000000000;
	if (!clock->name || ky_vec_push(&trace->clocks, clock) < 0)
		return NULL;
	return clock;
}

struct ky_stream_class *ky_stream_class_new(struct ky_trace_class *trace, uint64_t id)
{
	struct ky_stream_class *stream = ky_arena_new(&trace->arena, struct ky_stream_class);

	if (!stream)
		return NULL;
	stream->id = id;
	stream->has_id = true;
	stream->trace = trace;
	ky_map_init(&stream->events_by_id);
	if (ky_map_set(&trace->streams_by_id, id, stream) < 0 ||
	    ky_vec_push(&trace->streams, stream) < 0)
		return NULL;
	return stream;
}

struct ky_event_class *ky_event_class_new(struct ky_stream_class *stream, uint64_t id,
					  const char *name)
{
	struct ky_trace_class *trace = stream->trace;
	struct ky_event_class *event = ky_arena_new(&trace->arena, struct ky_event_class);

	if (!event)
		return NULL;
	event->id = id;
	event->name = ky_arena_strdup(&trace->arena, name ? name : "");
	event->loglevel = KY_LOGLEVEL_NONE;
	event->index = (uint32_t)trace->events.len;
	event->stream = stream;
	if (!event->name || ky_vec_reserve(&trace->events, 1) < 0 ||
	    ky_vec_reserve(&stream->events, 1) < 0 ||
	    ky_map_set(&stream->events_by_id, id, event) < 0)
		return NULL;
	trace->events.data[trace->events.len++] = event;
	stream->events.data[stream->events.len++] = event;
	return event;
}

void ky_event_class_forget(const struct ky_event_class *event)
{
	struct ky_stream_class *stream = event->stream;
	struct ky_trace_class *trace = stream->trace;

	if (trace->events.len && trace->events.data[trace->events.len - 1] == event)
		trace->events.len--;
	if (stream->events.len && stream->events.data[stream->events.len - 1] == event)
		stream->events.len--;
	(void)ky_map_del(&stream->events_by_id, event->id);
}

struct ky_field_class *ky_field_class_new(struct ky_trace_class *trace, enum ky_field_kind kind)
{
	struct ky_field_class *cls = ky_arena_new(&trace->arena, struct ky_field_class);

	if (!cls)
		return NULL;
	cls->kind = kind;
	cls->align_bits = 1;
	cls->slot = KY_NO_SLOT;
	cls->fixed_bits = -1;
	if (kind == KY_FIELD_STRUCT)
		cls->st.min_align_bits = 1;
	else if (kind < KY_FIELD_STRING)
		cls->num.base = 10;
	return cls;
}

static struct ky_env *env_add(struct ky_trace_class *trace, const char *name)
{
	struct ky_env env = {.name = ky_arena_strdup(&trace->arena, name)};

	if (!env.name || ky_vec_push(&trace->env, env) < 0)
		return NULL;
	return ky_vec_last(&trace->env);
}

int ky_env_add_text(struct ky_trace_class *trace, const char *name, const char *text)
{
	const char *copy = ky_arena_strdup(&trace->arena, text);
	struct ky_env *env = copy ? env_add(trace, name) : NULL;

	if (!env)
		return KYMO_E_MEMORY;
	env->is_text = true;
	env->text = copy;
	return KYMO_OK;
}

int ky_env_add_number(struct ky_trace_class *trace, const char *name, int64_t number)
{
	struct ky_env *env = env_add(trace, name);

	if (!env)
		return KYMO_E_MEMORY;
	env->number = number;
	return KYMO_OK;
}

const struct ky_env *ky_env_find(const struct ky_trace_class *trace, const char *name)
{
	for (size_t i = 0; i < trace->env.len; i++)
		if (!strcmp(trace->env.data[i].name, name))
			return &trace->env.data[i];
	return NULL;
}

const struct ky_member *ky_struct_member(const struct ky_field_class *st, const char *name)
{
	if (!st || st->kind != KY_FIELD_STRUCT)
		return NULL;
	for (size_t i = 0; i < st->st.n_members; i++)
		if (!strcmp(st->st.members[i].name, name))
			return &st->st.members[i];
	for (size_t i = 0; i < st->st.n_members; i++)
		if (!strcmp(st->st.members[i].display, name))
			return &st->st.members[i];
	return NULL;
}

const struct ky_field_class *ky_scope_root(const struct ky_event_class *event, enum ky_scope scope)
{
	const struct ky_stream_class *stream = event->stream;

	switch (scope) {
	case KY_SCOPE_PACKET_HEADER:
		return stream->trace->packet_header;
	case KY_SCOPE_PACKET_CONTEXT:
		return stream->packet_context;
	case KY_SCOPE_EVENT_HEADER:
		return stream->event_header;
	case KY_SCOPE_STREAM_CONTEXT:
		return stream->event_context;
	case KY_SCOPE_EVENT_CONTEXT:
		return event->context;
	case KY_SCOPE_PAYLOAD:
		return event->payload;
	default:
		return NULL;
	}
}

const char *ky_scope_name(enum ky_scope scope)
{
	static const char *const names[] = {
		[KY_SCOPE_PACKET_HEADER] = "trace.packet.header",
		[KY_SCOPE_PACKET_CONTEXT] = "stream.packet.context",
		[KY_SCOPE_EVENT_HEADER] = "stream.event.header",
		[KY_SCOPE_STREAM_CONTEXT] = "stream.event.context",
		[KY_SCOPE_EVENT_CONTEXT] = "event.context",
		[KY_SCOPE_PAYLOAD] = "event.fields",
	};

	return (unsigned int)scope < KY_SCOPE_COUNT ? names[scope] : "";
}

static bool model_model_is_signed(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
}

static bool mapping_covers(const struct ky_field_class *cls, const struct ky_mapping *mapping,
			   uint64_t value)
{
	for (size_t i = 0; i < mapping->n_ranges; i++) {
		const struct ky_range *range = &mapping->ranges[i];

		if (model_model_is_signed(cls)
			    ? range->begin.s <= (int64_t)value && (int64_t)value <= range->end.s
			    : range->begin.u <= value && value <= range->end.u)
			return true;
	}
	return false;
}

const char *ky_enum_label(const struct ky_field_class *cls, uint64_t value)
{
	for (size_t i = 0; i < cls->num.n_mappings; i++)
		if (mapping_covers(cls, &cls->num.mappings[i], value))
			return cls->num.mappings[i].label;
	return NULL;
}

size_t ky_enum_labels(const struct ky_field_class *cls, uint64_t value, const char **labels,
		      size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		if (!mapping_covers(cls, &cls->num.mappings[i], value))
			continue;
		if (n < max)
			labels[n] = cls->num.mappings[i].label;
		n++;
	}
	return n;
}

static bool flag_is_set(const struct ky_mapping *flag, const uint64_t *words, size_t n_words)
{
	for (size_t i = 0; i < flag->n_ranges; i++) {
		for (uint64_t bit = flag->ranges[i].begin.u;
		     bit <= flag->ranges[i].end.u && bit / 64 < n_words; bit++) {
			if (words[bit / 64] >> bit % 64 & 1)
				return true;
		}
	}
	return false;
}

size_t ky_flag_labels(const struct ky_field_class *cls, const uint64_t *words, size_t n_words,
		      const char **labels, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		if (!flag_is_set(&cls->num.mappings[i], words, n_words))
			continue;
		if (n < max)
			labels[n] = cls->num.mappings[i].label;
		n++;
	}
	return n;
}
