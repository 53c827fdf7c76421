/* SPDX-License-Identifier: MIT */
#include "store/read/join-classes.h"

#include <string.h>

static size_t n_members(const struct ky_field_class *cls)
{
	return cls && cls->kind == KY_FIELD_STRUCT ? cls->st.n_members : 0;
}

static bool same_scope(const struct ky_field_class *a, const struct ky_field_class *b)
{
	return !a == !b && n_members(a) == n_members(b) && (!a || a->fixed_bits == b->fixed_bits);
}

/* Does @large describe what @small does, as far as ids, names and sizes tell? */
static bool covers_stream(const struct ky_stream_class *large, const struct ky_stream_class *small)
{
	if (!large || large->has_id != small->has_id ||
	    !same_scope(large->packet_context, small->packet_context) ||
	    !same_scope(large->event_header, small->event_header) ||
	    !same_scope(large->event_context, small->event_context))
		return false;
	ky_vec_foreach(&small->events, it) {
		const struct ky_event_class *event = *it;
		const struct ky_event_class *other = ky_map_get(&large->events_by_id, event->id);

		if (!other || strcmp(other->name, event->name) != 0 ||
		    !same_scope(other->context, event->context) ||
		    !same_scope(other->payload, event->payload))
			return false;
	}
	return true;
}

bool ky_join_covers(const struct ky_trace_class *large, const struct ky_trace_class *small)
{
	if (large->major != small->major || large->big_endian != small->big_endian ||
	    !same_scope(large->packet_header, small->packet_header) ||
	    large->clocks.len != small->clocks.len)
		return false;
	for (size_t i = 0; i < large->clocks.len; i++) {
		if (large->clocks.data[i]->frequency_hz != small->clocks.data[i]->frequency_hz)
			return false;
	}
	ky_vec_foreach(&small->streams, stream) {
		if (!covers_stream(ky_map_get(&large->streams_by_id, (*stream)->id), *stream))
			return false;
	}
	return true;
}

/* Is it an identity, or were the bytes just never filled in? */
bool ky_join_has_identity(const struct ky_trace_class *cls)
{
	static const uint8_t none[16];

	return cls->has_uuid && memcmp(cls->uuid, none, sizeof(none)) != 0;
}

static int join_classes_compare_entries(const struct ky_env *x, const struct ky_env *y)
{
	int ret = strcmp(x->name, y->name) ?: x->is_text - y->is_text;

	if (ret)
		return ret;
	return x->is_text ? strcmp(x->text, y->text)
			  : (x->number > y->number) - (x->number < y->number);
}

int ky_join_compare(const struct ky_trace_class *a, const struct ky_trace_class *b)
{
	int ret = memcmp(a->uuid, b->uuid, sizeof(a->uuid))
			  ?: (a->env.len > b->env.len) - (a->env.len < b->env.len);

	for (size_t i = 0; i < a->env.len && !ret; i++)
		ret = join_classes_compare_entries(&a->env.data[i], &b->env.data[i]);
	return ret;
}

bool ky_join_is_possible(const struct ky_trace_class *a, const struct ky_trace_class *b)
{
	return ky_join_covers(a, b) || ky_join_covers(b, a);
}
