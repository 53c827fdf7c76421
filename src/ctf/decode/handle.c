/* SPDX-License-Identifier: MIT */
/*
 * Single fields by handle (decode.h).
 *
 * Every field class stands at one place of its scope's plan, so the number of its step says
 * through which members and options the way leads; only elements of arrays need a number each.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "ctf/decode/decode.h"
#include "ctf/decode/plan.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/decode/stored-stacks.h"
#include "ctf/model/walk.h"

/* Handles read without an allocation; traces that need more slots take the heap. */
#define STACK_SLOTS 64

/* ---- finding the field in an event --------------------------------------------------------- */

/* What the slow way to a field needs. */
struct search {
	struct ky_cursor c;
	const struct ky_scope_plan *plan;
	uint32_t at; /* step at which the cursor stands, aligned */
	uint64_t stack[STACK_SLOTS];
};

static void search_fini(struct search *s)
{
	if (s->c.slots != s->stack)
		free(s->c.slots);
}

/* Stand at step @at, which begins here. */
static bool handle_stand_at(struct search *s, uint32_t at)
{
	const struct ky_field_class *cls = s->plan->steps[at].cls;

	s->at = at;
	s->c.at_bits = ky_align_up(s->c.at_bits, cls->align_bits);
	if (ky_has_unit(cls))
		s->c.at_bits = ky_align_up(s->c.at_bits, ky_unit_align(cls, s->c.at_bits));
	return s->c.at_bits <= s->c.end_bits;
}

/* From a structure to the member that holds step @target. */
static bool enter_struct(struct search *s, uint32_t target)
{
	uint32_t child = s->at + 1;

	while (target >= s->plan->steps[child].next)
		child = s->plan->steps[child].next;
	return ky_run(&s->c, s->plan, s->at + 1, child, NULL) == KYMO_OK &&
	       handle_stand_at(s, child);
}

/* The value at @ref, or @otherwise without one. False: it is not there. */
static bool length_at(const struct search *s, const struct ky_field_ref *ref, uint64_t otherwise,
		      uint64_t *length)
{
	*length = ref ? s->c.slots[ref->target->slot] : otherwise;
	return !ref || ky_is_there(&s->c, ref);
}

static bool length_of(const struct search *s, const struct ky_field_class *cls, uint64_t *length)
{
	switch (cls->kind) {
	case KY_FIELD_ARRAY:
		return length_at(s, cls->array.length_ref, cls->array.length, length);
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return length_at(s, cls->text.length_ref, cls->text.length_bytes, length);
	default:
		*length = 0;
		return true;
	}
}

static bool enter_element(struct search *s, uint32_t i)
{
	uint64_t length;

	return length_of(s, s->plan->steps[s->at].cls, &length) && i < length &&
	       ky_run_elements(&s->c, s->plan, s->at, i, NULL) == KYMO_OK &&
	       handle_stand_at(s, s->at + 1);
}

/* Into what a variant or optional field holds. */
static bool enter_option(struct search *s)
{
	const struct ky_step *step = &s->plan->steps[s->at];
	size_t i;

	if (!ky_is_there(&s->c, step->cls->var.selector))
		return false;
	i = ky_option_enter(&s->c, step->cls);
	return i < step->cls->var.n_options && handle_stand_at(s, step->option_steps[i]);
}

static bool is_option(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_OPTIONAL || cls->kind == KY_FIELD_VARIANT;
}

static bool handle_descend(struct search *s, const struct ky_handle *handle)
{
	uint32_t n_arrays = 0;
	bool ok = handle_stand_at(s, 0);

	while (ok && s->at != handle->step) {
		switch (s->plan->steps[s->at].cls->kind) {
		case KY_FIELD_STRUCT:
			ok = enter_struct(s, handle->step);
			break;
		case KY_FIELD_ARRAY:
			ok = enter_element(s, handle->elements[n_arrays++]);
			break;
		default:
			ok = enter_option(s) && handle->step >= s->at &&
			     handle->step < s->plan->steps[s->at].next;
		}
	}
	return ok;
}

/* Run over what lies before the field, which fills the slots. search_fini() must follow. */
static bool search_field(struct search *s, const struct ky_event *event,
			 const struct ky_handle *handle)
{
	size_t n_slots = event->cls->stream->trace->n_slots;

	s->c = (struct ky_cursor){.data = event->packet->data, .end_bits = event->end_bits};
	s->plan = ky_scope_plan_of(event->cls, handle->scope);
	s->c.slots = s->stack;
	if (n_slots > STACK_SLOTS)
		s->c.slots = malloc(n_slots * sizeof(*s->c.slots));
	if (!s->c.slots)
		return false;
	memset(s->c.slots, 0, n_slots * sizeof(*s->c.slots));
	return ky_enter_scope(&s->c, event, handle->scope, NULL) == KYMO_OK &&
	       handle_descend(s, handle);
}

static bool search_place(const struct ky_event *event, const struct ky_handle *handle,
			 struct ky_place *place)
{
	struct search s;
	bool found = search_field(&s, event, handle);

	while (found && is_option(s.plan->steps[s.at].cls))
		found = enter_option(&s);
	if (found) {
		place->cls = s.plan->steps[s.at].cls;
		place->at_bits = s.c.at_bits;
		found = length_of(&s, place->cls, &place->length);
	}
	search_fini(&s);
	return found;
}

static uint64_t fixed_scope_begin(const struct ky_event *event, enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_STREAM_CONTEXT:
		return event->begin_bits + event->stream_context_bits;
	case KY_SCOPE_EVENT_CONTEXT:
		return event->begin_bits + event->event_context_bits;
	case KY_SCOPE_PAYLOAD:
		return event->begin_bits + event->payload_bits;
	case KY_SCOPE_EVENT_HEADER:
		return event->begin_bits;
	case KY_SCOPE_PACKET_CONTEXT:
		return event->packet->context_begin_bits;
	default:
		return 0;
	}
}

static inline uint64_t fixed_place(const struct ky_event *event, const struct ky_handle *handle)
{
	return ky_align_up(fixed_scope_begin(event, handle->scope), handle->scope_align_bits) +
	       (uint64_t)handle->fixed_at_bits;
}

/* The place is known beforehand, and nothing has to be read to know the length. */
static inline bool is_fixed(const struct ky_handle *handle)
{
	if (__builtin_expect(handle->fixed_at_bits < 0, 0))
		return false;
	switch (handle->cls->kind) {
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return !handle->cls->text.length_ref;
	case KY_FIELD_ARRAY:
		return !handle->cls->array.length_ref;
	default:
		return !is_option(handle->cls);
	}
}

bool ky_handle_place(const struct ky_event *event, const struct ky_handle *handle,
		     struct ky_place *place)
{
	const struct ky_field_class *cls = handle->cls;

	if (!cls)
		return false;
	if (__builtin_expect(!is_fixed(handle), 0))
		return search_place(event, handle, place);
	place->cls = cls;
	place->at_bits = fixed_place(event, handle);
	place->length = cls->kind == KY_FIELD_ARRAY ? cls->array.length
			: cls->kind == KY_FIELD_TEXT || cls->kind == KY_FIELD_BLOB
				? cls->text.length_bytes
				: 0;
	return place->at_bits <= event->end_bits;
}

bool ky_handle_option(const struct ky_event *event, const struct ky_handle *handle, size_t *option)
{
	struct search s;
	bool found;

	if (!handle->cls || !is_option(handle->cls))
		return false;
	found = search_field(&s, event, handle) && ky_is_there(&s.c, handle->cls->var.selector);
	if (found) {
		*option = ky_option_selected(&s.c, handle->cls);
		found = *option < handle->cls->var.n_options;
	}
	search_fini(&s);
	return found;
}

int ky_handle_decode(struct ky_values *values, const struct ky_event *event,
		     const struct ky_handle *handle, struct kymo_error *err)
{
	struct search s;
	bool found;
	int ret = 0;

	ky_vec_clear(&values->list);
	if (!handle->cls)
		return 0;
	found = search_field(&s, event, handle);
	if (found) {
		s.c.values = values;
		ret = ky_run(&s.c, s.plan, s.at, s.plan->steps[s.at].next, err);
	}
	search_fini(&s);
	if (ret < 0) {
		ky_error_offset(err, event->packet->file_offset_bytes + s.c.at_bits / 8);
		return ret;
	}
	if (handle->scope == KY_SCOPE_STREAM_CONTEXT &&
	    ky_stored_stacks_are_in(event->cls->stream) && ky_stored_stacks_fill(values, event) < 0)
		return ky_error_nomem(err);
	return (int)values->list.len;
}

/* ---- values ------------------------------------------------------------------------------- */

bool ky_place_number(const struct ky_event *event, const struct ky_place *place, uint64_t *value)
{
	const struct ky_field_class *cls = place->cls;
	const uint8_t *from;
	unsigned int n_bits;

	if (place->at_bits > event->end_bits)
		return false;
	switch (cls->kind) {
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		from = event->packet->data + place->at_bits / 8;
		return ky_leb128_read(&from, event->packet->data + event->end_bits / 8,
				      cls->kind == KY_FIELD_VARSINT, value, &n_bits) == KYMO_OK;
	case KY_FIELD_BITS:
	case KY_FIELD_BITMAP:
	case KY_FIELD_BOOL:
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
		if ((cls->num.length_bits > 64 && cls->kind != KY_FIELD_BOOL) ||
		    event->end_bits - place->at_bits < cls->num.length_bits)
			return false;
		*value = ky_number_read(cls, event->packet->data, place->at_bits);
		return true;
	default:
		return false;
	}
}

bool ky_get_number(const struct ky_event *event, const struct ky_handle *handle, uint64_t *value)
{
	struct ky_place place;

	if (ky_get_plain(event, handle, value))
		return true;
	return ky_handle_place(event, handle, &place) && ky_place_number(event, &place, value);
}

bool ky_place_real(const struct ky_event *event, const struct ky_place *place, double *value)
{
	const struct ky_field_class *cls = place->cls;
	uint64_t raw;

	if (cls->kind != KY_FIELD_FLOAT || cls->num.length_bits > 128 ||
	    place->at_bits > event->end_bits ||
	    event->end_bits - place->at_bits < cls->num.length_bits)
		return false;
	raw = ky_number_read(cls, event->packet->data, place->at_bits);
	memcpy(value, &raw, sizeof(*value));
	return true;
}

bool ky_get_real(const struct ky_event *event, const struct ky_handle *handle, double *value)
{
	struct ky_place place;

	return ky_handle_place(event, handle, &place) && ky_place_real(event, &place, value);
}

uint64_t ky_place_word(const struct ky_event *event, const struct ky_place *place,
		       unsigned int word)
{
	const struct ky_field_class *cls = place->cls;

	if (cls->kind >= KY_FIELD_VARUINT || place->at_bits > event->end_bits ||
	    event->end_bits - place->at_bits < cls->num.length_bits)
		return 0;
	return ky_number_word(cls, event->packet->data, place->at_bits, word);
}

const char *ky_place_bytes(const struct ky_event *event, const struct ky_place *place,
			   size_t *len_bytes)
{
	const struct ky_field_class *cls = place->cls;
	uint64_t room, length = place->length;
	const uint8_t *text;

	*len_bytes = 0;
	if (cls->kind < KY_FIELD_STRING || cls->kind > KY_FIELD_BLOB ||
	    place->at_bits > event->end_bits)
		return NULL;
	room = (event->end_bits - place->at_bits) / 8;
	text = event->packet->data + place->at_bits / 8;
	if (cls->kind == KY_FIELD_STRING || length > room)
		length = room;
	*len_bytes = length;
	if (cls->kind != KY_FIELD_BLOB)
		*len_bytes = ky_text_length(text, length, ky_code_unit_bytes(cls->text.encoding));
	return (const char *)text;
}

const char *ky_get_text(const struct ky_event *event, const struct ky_handle *handle,
			size_t *len_bytes)
{
	struct ky_place place;
	const char *text = NULL;

	*len_bytes = 0;
	if (ky_handle_place(event, handle, &place) && place.cls->kind != KY_FIELD_BLOB)
		text = ky_place_bytes(event, &place, len_bytes);
	return text ? text : "";
}

bool ky_get_array_bytes(const struct ky_event *event, const struct ky_handle *array, size_t from,
			uint8_t *bytes, size_t n)
{
	struct ky_place place;

	if (!array->cls || !ky_handle_place(event, array, &place) || place.length < from + n)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct ky_handle element;

		if (ky_handle_child(&element, event->cls, array, from + i) < 0)
			return false;
		bytes[i] = (uint8_t)ky_get_u64(event, &element, 0);
	}
	return true;
}
