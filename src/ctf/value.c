/* SPDX-License-Identifier: MIT */
/* Reading field values from event views: whole scopes, and single fields by handle. */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "ctf/decode.h"
#include "ctf/plan.h"
#include "ctf/run.h"

/* Handles read without an allocation; traces that need more slots take the heap. */
#define STACK_SLOTS 64

void ky_values_init(struct ky_values *values)
{
	memset(values, 0, sizeof(*values));
}

void ky_values_fini(struct ky_values *values)
{
	ky_vec_fini(&values->list);
	free(values->slots);
	values->slots = NULL;
	values->n_slots = 0;
}

static int need_slots(struct ky_values *values, size_t n, struct kymo_error *err)
{
	uint64_t *slots;

	if (n <= values->n_slots)
		return KYMO_OK;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return ky_error_nomem(err);
	free(values->slots);
	values->slots = slots;
	values->n_slots = n;
	return KYMO_OK;
}

int ky_values_decode(struct ky_values *values, const struct ky_event *event, enum ky_scope scope,
		     struct kymo_error *err)
{
	const struct ky_scope_plan *plan = ky_scope_plan_of(event->cls, scope);
	struct ky_cursor c = {.data = event->data, .end_bits = event->end_bits};
	int ret;

	ky_vec_clear(&values->list);
	if (!plan->root)
		return 0;
	ret = need_slots(values, event->cls->stream->trace->n_slots, err);
	if (ret < 0)
		return ret;
	c.slots = values->slots;
	ret = ky_enter_scope(&c, event, scope, err);
	if (ret == KYMO_OK) {
		c.values = values;
		ret = ky_run(&c, plan, 0, plan->n_steps, err);
	}
	if (ret < 0) {
		ky_error_offset(err, event->packet->file_offset_bytes + c.at_bits / 8);
		return ret;
	}
	return (int)values->list.len;
}

/* ---- handles ------------------------------------------------------------------------------ */

static bool is_name(const struct ky_member *member, const char *name)
{
	return strcmp(member->display, name) == 0 || strcmp(member->name, name) == 0;
}

bool ky_handle_find(struct ky_handle *handle, const struct ky_event_class *event,
		    enum ky_scope scope, const char *name)
{
	const struct ky_scope_plan *plan = ky_scope_plan_of(event, scope);
	int64_t at = 0;

	memset(handle, 0, sizeof(*handle));
	handle->scope = scope;
	if (!plan->root)
		return false;
	handle->scope_align_bits = plan->root->align_bits;
	for (size_t i = 0; i < plan->root->st.n_members; i++) {
		const struct ky_member *member = &plan->root->st.members[i];

		if (at >= 0)
			at = (int64_t)ky_align_up((uint64_t)at, member->cls->align_bits);
		if (is_name(member, name)) {
			handle->cls = member->cls;
			handle->member = (uint32_t)i;
			handle->fixed_at_bits = at;
			return true;
		}
		if (at >= 0)
			at = member->cls->fixed_bits < 0 ? -1 : at + member->cls->fixed_bits;
	}
	return false;
}

bool ky_handle_find_any(struct ky_handle *handle, const struct ky_event_class *event,
			const char *name)
{
	static const enum ky_scope order[] = {KY_SCOPE_PAYLOAD, KY_SCOPE_EVENT_CONTEXT,
					      KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_PACKET_CONTEXT};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (ky_handle_find(handle, event, order[i], name))
			return true;
	}
	return false;
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

/* The step of top-level member @member of a scope. */
static uint32_t member_step(const struct ky_scope_plan *plan, uint32_t member)
{
	uint32_t step = 1;

	while (member--)
		step = plan->steps[step].next;
	return step;
}

/* Run the plan up to the field: fills the slots of what lies before it. */
static bool run_to_field(const struct ky_event *event, const struct ky_handle *handle,
			 struct ky_cursor *c)
{
	const struct ky_scope_plan *plan = ky_scope_plan_of(event->cls, handle->scope);
	uint32_t step = member_step(plan, handle->member);

	if (ky_enter_scope(c, event, handle->scope, NULL) < 0)
		return false;
	c->at_bits = ky_align_up(c->at_bits, plan->root->align_bits);
	if (c->at_bits > c->end_bits || ky_run(c, plan, 1, step, NULL) < 0)
		return false;
	c->at_bits = ky_align_up(c->at_bits, handle->cls->align_bits);
	return true;
}

/* The slow way to a field, and to the value of what it refers to (@ref may be NULL). */
static bool search_field(const struct ky_event *event, const struct ky_handle *handle,
			 const struct ky_field_ref *ref, uint64_t *ref_value, uint64_t *at_bits)
{
	size_t n_slots = event->cls->stream->trace->n_slots;
	uint64_t stack[STACK_SLOTS];
	struct ky_cursor c = {.data = event->data, .end_bits = event->end_bits, .slots = stack};
	bool found;

	if (n_slots > STACK_SLOTS)
		c.slots = malloc(n_slots * sizeof(*c.slots));
	if (!c.slots)
		return false;
	found = run_to_field(event, handle, &c);
	if (found && ref)
		*ref_value = c.slots[ref->target->slot];
	if (c.slots != stack)
		free(c.slots);
	*at_bits = c.at_bits;
	return found;
}

/* Where the field begins: known beforehand, or found by running over what lies before it. */
static inline bool find_field(const struct ky_event *event, const struct ky_handle *handle,
			      const struct ky_field_ref *ref, uint64_t *ref_value,
			      uint64_t *at_bits)
{
	if (__builtin_expect(handle->fixed_at_bits < 0 || ref, 0))
		return search_field(event, handle, ref, ref_value, at_bits);
	*at_bits = ky_align_up(fixed_scope_begin(event, handle->scope), handle->scope_align_bits) +
		   (uint64_t)handle->fixed_at_bits;
	return true;
}

bool ky_get_number(const struct ky_event *event, const struct ky_handle *handle, uint64_t *value)
{
	const struct ky_field_class *cls = handle->cls;
	const uint8_t *from;
	unsigned int n_bits;
	uint64_t at;

	if (!cls || !find_field(event, handle, NULL, NULL, &at) || at > event->end_bits)
		return false;
	switch (cls->kind) {
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		from = event->data + at / 8;
		return ky_leb128_read(&from, event->data + event->end_bits / 8,
				      cls->kind == KY_FIELD_VARSINT, value, &n_bits) == KYMO_OK;
	case KY_FIELD_BITS:
	case KY_FIELD_BITMAP:
	case KY_FIELD_BOOL:
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
		if (cls->num.length_bits > 64 || event->end_bits - at < cls->num.length_bits)
			return false;
		*value = ky_number_read(cls, event->data, at);
		return true;
	default:
		return false;
	}
}

bool ky_get_real(const struct ky_event *event, const struct ky_handle *handle, double *value)
{
	const struct ky_field_class *cls = handle->cls;
	uint64_t at, raw;

	if (!cls || cls->kind != KY_FIELD_FLOAT || cls->num.length_bits > 128 ||
	    !find_field(event, handle, NULL, NULL, &at) || at > event->end_bits ||
	    event->end_bits - at < cls->num.length_bits)
		return false;
	raw = ky_number_read(cls, event->data, at);
	memcpy(value, &raw, sizeof(*value));
	return true;
}

uint64_t ky_get_u64(const struct ky_event *event, const struct ky_handle *handle,
		    uint64_t otherwise)
{
	uint64_t value;

	return ky_get_number(event, handle, &value) ? value : otherwise;
}

int64_t ky_get_i64(const struct ky_event *event, const struct ky_handle *handle, int64_t otherwise)
{
	uint64_t value;

	return ky_get_number(event, handle, &value) ? (int64_t)value : otherwise;
}

const char *ky_get_text(const struct ky_event *event, const struct ky_handle *handle,
			size_t *len_bytes)
{
	const struct ky_field_class *cls = handle->cls;
	uint64_t at, room, length = UINT64_MAX;
	const uint8_t *text, *nul;

	*len_bytes = 0;
	if (!cls || (cls->kind != KY_FIELD_STRING && cls->kind != KY_FIELD_TEXT))
		return "";
	if (cls->kind == KY_FIELD_TEXT)
		length = cls->text.length_bytes;
	if (!find_field(event, handle, cls->kind == KY_FIELD_TEXT ? cls->text.length_ref : NULL,
			&length, &at) ||
	    at > event->end_bits)
		return "";
	room = (event->end_bits - at) / 8;
	if (length < room)
		room = length;
	text = event->data + at / 8;
	nul = memchr(text, 0, room);
	*len_bytes = nul ? (size_t)(nul - text) : room;
	return (const char *)text;
}
