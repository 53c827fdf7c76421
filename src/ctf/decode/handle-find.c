/* SPDX-License-Identifier: MIT */
/* Handles of fields, by name or by position (decode.h). */
#include <string.h>

#include "ctf/decode/decode.h"
#include "ctf/decode/plan.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/model/walk.h"

bool ky_handle_root(struct ky_handle *handle, const struct ky_event_class *event,
		    enum ky_scope scope)
{
	const struct ky_scope_plan *plan = ky_scope_plan_of(event, scope);

	memset(handle, 0, sizeof(*handle));
	handle->scope = scope;
	if (!plan->root)
		return false;
	handle->cls = plan->root;
	handle->scope_align_bits = plan->root->align_bits;
	return true;
}

static int child_of_struct(struct ky_handle *handle, const struct ky_step *steps, uint64_t i)
{
	const struct ky_field_class *st = handle->cls;
	int64_t at = handle->fixed_at_bits;
	uint32_t step = handle->step + 1;

	if (i >= st->st.n_members)
		return KYMO_E_NOT_FOUND;
	for (uint64_t n = 0;; n++) {
		const struct ky_field_class *cls = st->st.members[n].cls;

		if (at >= 0)
			at = (int64_t)ky_align_up((uint64_t)at, cls->align_bits);
		if (n == i)
			break;
		if (at >= 0)
			at = cls->fixed_bits < 0 ? -1 : at + cls->fixed_bits;
		step = steps[step].next;
	}
	handle->cls = st->st.members[i].cls;
	handle->step = step;
	/* Which unit a bit field lies in may vary where it is the first thing that does. */
	handle->fixed_at_bits = ky_has_unit(handle->cls) ? -1 : at;
	return KYMO_OK;
}

static int child_of_array(struct ky_handle *handle, uint64_t i)
{
	const struct ky_field_class *array = handle->cls, *element = array->array.element;
	uint64_t stride, offset;

	if (i > UINT32_MAX || (!array->array.length_ref && i >= array->array.length))
		return KYMO_E_NOT_FOUND;
	if (handle->n_arrays == KY_HANDLE_ARRAYS_MAX)
		return KYMO_E_LIMIT;
	handle->elements[handle->n_arrays++] = (uint32_t)i;
	if (array->fixed_bits < 0)
		handle->fixed_at_bits = -1;
	if (handle->fixed_at_bits >= 0) {
		stride = ky_align_up((uint64_t)element->fixed_bits, element->align_bits);
		offset = ky_align_up((uint64_t)handle->fixed_at_bits, element->align_bits);
		handle->fixed_at_bits = (int64_t)(offset + i * stride);
	}
	handle->cls = element;
	handle->step++;
	return KYMO_OK;
}

static int child_of_variant(struct ky_handle *handle, const struct ky_step *steps, uint64_t i)
{
	if (i >= handle->cls->var.n_options)
		return KYMO_E_NOT_FOUND;
	handle->fixed_at_bits = -1;
	handle->step = steps[handle->step].option_steps[i];
	handle->cls = handle->cls->var.options[i].cls;
	return KYMO_OK;
}

static int find_child(struct ky_handle *child, const struct ky_step *steps, uint64_t i)
{
	switch (child->cls->kind) {
	case KY_FIELD_STRUCT:
		return child_of_struct(child, steps, i);
	case KY_FIELD_ARRAY:
		return child_of_array(child, i);
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return child_of_variant(child, steps, i);
	default:
		return KYMO_E_NOT_FOUND;
	}
}

/* The offset in struct ky_event of where @scope begins; 0: it begins elsewhere. */
static uint32_t offset_of_scope(enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_STREAM_CONTEXT:
		return offsetof(struct ky_event, stream_context_bits);
	case KY_SCOPE_EVENT_CONTEXT:
		return offsetof(struct ky_event, event_context_bits);
	case KY_SCOPE_PAYLOAD:
		return offsetof(struct ky_event, payload_bits);
	default:
		return 0;
	}
}

/* Can it be read by a load, or as it is? Most of what is asked for can. */
static void find_plain(struct ky_handle *handle)
{
	const struct ky_field_class *cls = handle->cls;
	uint32_t bits =
		cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT ? cls->num.length_bits : 0;

	handle->plain_scope = offset_of_scope(handle->scope);
	if (handle->fixed_at_bits < 0 || !handle->plain_scope)
		return;
	if (cls->kind == KY_FIELD_TEXT && !cls->text.length_ref &&
	    cls->text.length_bytes <= UINT32_MAX && ky_code_unit_bytes(cls->text.encoding) == 1)
		handle->plain_text_bytes = (uint32_t)cls->text.length_bytes;
	if ((bits != 8 && bits != 16 && bits != 32 && bits != 64) || cls->num.bits_reversed)
		return;
	handle->plain_bytes = (uint8_t)(bits / 8);
	handle->plain_signed = cls->kind == KY_FIELD_SINT;
	handle->plain_big = cls->num.big_endian;
}

int ky_handle_child(struct ky_handle *child, const struct ky_event_class *event,
		    const struct ky_handle *parent, uint64_t i)
{
	int ret;

	*child = *parent;
	ret = find_child(child, ky_scope_plan_of(event, parent->scope)->steps, i);
	if (ret == KYMO_OK)
		find_plain(child);
	return ret;
}

static bool handle_find_is_name(const struct ky_member *member, const char *name)
{
	return strcmp(member->display, name) == 0 || strcmp(member->name, name) == 0;
}

bool ky_handle_find(struct ky_handle *handle, const struct ky_event_class *event,
		    enum ky_scope scope, const char *name)
{
	struct ky_handle root;

	memset(handle, 0, sizeof(*handle));
	if (!ky_handle_root(&root, event, scope))
		return false;
	for (size_t i = 0; i < root.cls->st.n_members; i++) {
		if (handle_find_is_name(&root.cls->st.members[i], name))
			return ky_handle_child(handle, event, &root, i) == KYMO_OK;
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
