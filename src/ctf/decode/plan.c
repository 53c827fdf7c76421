/* SPDX-License-Identifier: MIT */
#include "ctf/decode/plan.h"
#include "ctf/decode/stored-stacks.h"

#include <string.h>

#include "base/bits.h"
#include "base/deep.h"
#include "base/error.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/model/walk.h"

/* Members in one run at most: longer structs take more jumps, building stays linear. */
#define RUN_MAX 64

struct plan_builder {
	struct ky_trace_class *trace;
	KY_VEC(struct ky_step) steps;
	enum ky_scope scope;
	uint32_t outer_scopes;
	size_t referred; /* one past the last step so far that is needed */
	struct kymo_error *err;
};

KY_DEEP3(int, plan_add_class, struct plan_builder *, const struct ky_field_class *, const char *)

/* Does the decoder have to look at it, wherever it stands? */
static bool is_needed(const struct plan_builder *b, const struct ky_field_class *cls)
{
	if (cls->slot != KY_NO_SLOT)
		return true;
	/* It may share a byte with a number of the other byte order. */
	return b->trace->mixes_orders && ky_field_is_num(cls) &&
	       (cls->align_bits % 8 || cls->num.length_bits % 8);
}

static void note_ref(struct plan_builder *b, const struct ky_field_ref *ref)
{
	if (ref && ref->scope != b->scope)
		b->outer_scopes |= 1u << ref->scope;
}

/*
 * Runs among the members of a struct, from the last to the first: a run grows as long as
 * the next member is aligned no stricter than the run's first one, so that the padding
 * in between does not depend on where the run begins.
 */
static void find_runs(struct plan_builder *b, const uint32_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ky_step *first = &b->steps.data[at[i]];
		uint64_t bits = 0;
		size_t j;

		for (j = i; j < n && j < i + RUN_MAX; j++) {
			const struct ky_step *step = &b->steps.data[at[j]];
			const struct ky_field_class *cls = step->cls;

			if (!step->run_next || cls->align_bits > first->cls->align_bits)
				break;
			bits = ky_align_up(bits, cls->align_bits) + (uint64_t)cls->fixed_bits;
		}
		if (j == i)
			continue;
		first->run_bits = bits;
		first->run_next = b->steps.data[at[j - 1]].next;
	}
}

static int add_struct(struct plan_builder *b, const struct ky_field_class *cls)
{
	size_t n = cls->st.n_members;
	uint32_t *at = ky_arena_array(&b->trace->arena, n, sizeof(*at));
	int ret;

	if (!at)
		return ky_error_nomem(b->err);
	for (size_t i = 0; i < n; i++) {
		at[i] = (uint32_t)b->steps.len;
		ret = plan_add_class_deep(KYMO_E_MEMORY, b, cls->st.members[i].cls,
					  cls->st.members[i].display);
		if (ret < 0)
			return ret;
	}
	find_runs(b, at, n);
	return KYMO_OK;
}

static int add_options(struct plan_builder *b, const struct ky_field_class *cls, size_t step)
{
	uint32_t *at = ky_arena_array(&b->trace->arena, cls->var.n_options, sizeof(*at));
	int ret;

	if (!at)
		return ky_error_nomem(b->err);
	note_ref(b, cls->var.selector);
	for (size_t i = 0; i < cls->var.n_options; i++) {
		at[i] = (uint32_t)b->steps.len;
		ret = plan_add_class_deep(KYMO_E_MEMORY, b, cls->var.options[i].cls, NULL);
		if (ret < 0)
			return ret;
	}
	b->steps.data[step].option_steps = at;
	return KYMO_OK;
}

static int add_children(struct plan_builder *b, const struct ky_field_class *cls, size_t step)
{
	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return add_struct(b, cls);
	case KY_FIELD_ARRAY:
		note_ref(b, cls->array.length_ref);
		return plan_add_class_deep(KYMO_E_MEMORY, b, cls->array.element, NULL);
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return add_options(b, cls, step);
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		note_ref(b, cls->text.length_ref);
		return KYMO_OK;
	default:
		return KYMO_OK;
	}
}

static int plan_add_class(struct plan_builder *b, const struct ky_field_class *cls,
			  const char *name)
{
	size_t at = b->steps.len;
	struct ky_step *step;
	int ret;

	if (ky_vec_push(&b->steps, (struct ky_step){.cls = cls, .name = name}) < 0)
		return ky_error_nomem(b->err);
	if (is_needed(b, cls))
		b->referred = at + 1;
	ret = add_children(b, cls, at);
	if (ret < 0)
		return ret;
	step = &b->steps.data[at];
	step->next = (uint32_t)b->steps.len;
	/* It may be jumped over when its size is known and nothing inside it is needed. */
	if (cls->fixed_bits >= 0 && b->referred <= at) {
		step->run_next = step->next;
		step->run_bits = (uint64_t)cls->fixed_bits;
	}
	return KYMO_OK;
}

static int build_scope(struct ky_trace_class *trace, enum ky_scope scope,
		       const struct ky_field_class *root, struct ky_scope_plan *plan,
		       struct kymo_error *err)
{
	struct plan_builder b = {.trace = trace, .scope = scope, .err = err};
	int ret;

	memset(plan, 0, sizeof(*plan));
	if (!root)
		return KYMO_OK;
	ret = plan_add_class(&b, root, NULL);
	if (ret == KYMO_OK) {
		plan->root = root;
		plan->n_steps = (uint32_t)b.steps.len;
		plan->outer_scopes = b.outer_scopes;
		plan->steps = ky_arena_memdup(&trace->arena, b.steps.data,
					      b.steps.len * sizeof(*b.steps.data));
		if (!plan->steps)
			ret = ky_error_nomem(err);
	}
	ky_vec_fini(&b.steps);
	return ret;
}

/* ---- LTTng's event headers -------------------------------------------------------------- */

static bool is_plain_uint(const struct ky_field_class *cls, uint32_t bits, uint32_t max_align)
{
	return cls->kind == KY_FIELD_UINT && cls->num.length_bits == bits && !cls->num.big_endian &&
	       !cls->num.bits_reversed && cls->align_bits <= max_align;
}

static bool option_is(const struct ky_option *option, uint64_t begin, uint64_t end, size_t members)
{
	return option->n_ranges == 1 && option->ranges[0].begin.u == begin &&
	       option->ranges[0].end.u == end && option->cls->kind == KY_FIELD_STRUCT &&
	       option->cls->st.n_members == members;
}

static bool is_timestamp(const struct ky_field_class *cls)
{
	return cls->role == KY_ROLE_CLOCK_BEGIN && cls->num.clock;
}

static bool is_lttng_header(const struct ky_field_class *root, uint32_t id_bits,
			    uint32_t stamp_bits, uint32_t small_align)
{
	const struct ky_field_class *id, *var, *small, *full_id, *full_stamp;
	uint64_t last = (UINT64_C(1) << id_bits) - 1;

	if (!root || root->align_bits != 8 || root->st.n_members != 2)
		return false;
	id = root->st.members[0].cls;
	var = root->st.members[1].cls;
	if (!is_plain_uint(id, id_bits, small_align) || id->role != KY_ROLE_EVENT_ID ||
	    var->kind != KY_FIELD_VARIANT || var->var.n_options != 2 ||
	    var->var.selector->target != id || !option_is(&var->var.options[0], 0, last - 1, 1) ||
	    !option_is(&var->var.options[1], last, last, 2))
		return false;
	small = var->var.options[0].cls->st.members[0].cls;
	full_id = var->var.options[1].cls->st.members[0].cls;
	full_stamp = var->var.options[1].cls->st.members[1].cls;
	return is_plain_uint(small, stamp_bits, small_align) && is_timestamp(small) &&
	       is_plain_uint(full_id, 32, 8) && full_id->align_bits == 8 &&
	       full_id->role == KY_ROLE_EVENT_ID && is_plain_uint(full_stamp, 64, 8) &&
	       full_stamp->align_bits == 8 && is_timestamp(full_stamp) &&
	       var->var.options[1].cls->align_bits == 8 &&
	       var->var.options[0].cls->align_bits <= small_align;
}

static enum ky_header_kind header_kind(const struct ky_field_class *root)
{
	if (!root)
		return KY_HEADER_NONE;
	if (is_lttng_header(root, 5, 27, 1))
		return KY_HEADER_COMPACT;
	if (is_lttng_header(root, 16, 32, 8))
		return KY_HEADER_LARGE;
	return KY_HEADER_GENERAL;
}

/* ---- whole events ----------------------------------------------------------------------- */

/* Add a scope to a body of fixed size; -1 once anything varies or needs more than bytes. */
static int64_t plan_add_fixed(int64_t bits, const struct ky_scope_plan *plan)
{
	if (bits < 0 || !plan->root)
		return bits;
	if (plan->root->align_bits > 8 || !plan->steps[0].run_next || plan->root->fixed_bits % 8)
		return -1;
	bits += plan->root->fixed_bits;
	return bits < UINT32_MAX ? bits : -1;
}

/* Add a member of a payload. False: it is neither a string of bytes nor whole bytes of fixed size. */
static bool plan_add_part(struct ky_strings_plan *strings, const struct ky_step *step)
{
	const struct ky_field_class *cls = step->cls;

	if (cls->align_bits > 8)
		return false;
	if (cls->kind == KY_FIELD_STRING) {
		strings->n++;
		return strings->n <= KY_PLAN_STRINGS_MAX &&
		       ky_code_unit_bytes(cls->text.encoding) == 1;
	}
	if (!step->run_next || cls->fixed_bits < 0 || cls->fixed_bits % 8)
		return false;
	return !__builtin_add_overflow(strings->part_bytes[strings->n], cls->fixed_bits / 8,
				       &strings->part_bytes[strings->n]);
}

static void plan_find_strings(struct ky_strings_plan *strings, const struct ky_scope_plan *plan)
{
	bool fits =
		plan->root && plan->root->kind == KY_FIELD_STRUCT && plan->root->align_bits <= 8;

	for (uint32_t i = 1; fits && i < plan->n_steps; i = plan->steps[i].next)
		fits = plan_add_part(strings, &plan->steps[i]);
	if (!fits)
		strings->n = 0;
}

static int build_event(struct ky_trace_class *trace, struct ky_event_class *event,
		       struct kymo_error *err)
{
	struct ky_stream_plan *stream = event->stream->plan;
	struct ky_event_plan *plan = ky_arena_new(&trace->arena, struct ky_event_plan);
	int64_t bits;
	int ret;

	if (!plan)
		return ky_error_nomem(err);
	event->plan = plan;
	ret = build_scope(trace, KY_SCOPE_EVENT_CONTEXT, event->context, &plan->context, err);
	if (ret == KYMO_OK)
		ret = build_scope(trace, KY_SCOPE_PAYLOAD, event->payload, &plan->payload, err);
	if (ret < 0)
		return ret;
	bits = plan_add_fixed(0, &stream->event_context);
	plan->context_bits = bits < 0 ? 0 : (uint32_t)bits;
	bits = plan_add_fixed(bits, &plan->context);
	plan->payload_bits = bits < 0 ? 0 : (uint32_t)bits;
	plan->body_bits = plan_add_fixed(bits, &plan->payload);
	if (bits >= 0)
		plan_find_strings(&plan->strings, &plan->payload);
	/* A field of the body refers to header fields: the short plans would miss their values. */
	if ((plan->context.outer_scopes | plan->payload.outer_scopes) &
	    (1u << KY_SCOPE_EVENT_HEADER))
		stream->header_kind = KY_HEADER_GENERAL;
	return KYMO_OK;
}

/* After build_event(): the table repeats what the events' plans say. */
static int build_by_id(struct ky_trace_class *trace, struct ky_stream_class *stream,
		       struct kymo_error *err)
{
	struct ky_stream_plan *plan = stream->plan;
	uint64_t last = 0;

	ky_vec_foreach(&stream->events, event) {
		if ((*event)->id < KY_BY_ID_MAX && (*event)->id > last)
			last = (*event)->id;
	}
	plan->by_id = ky_arena_array(&trace->arena, last + 1, sizeof(*plan->by_id));
	if (!plan->by_id)
		return ky_error_nomem(err);
	plan->n_by_id = (uint32_t)last + 1;
	ky_vec_foreach(&stream->events, event) {
		const struct ky_event_plan *body = (*event)->plan;

		if ((*event)->id >= KY_BY_ID_MAX)
			continue;
		plan->by_id[(*event)->id] = (struct ky_by_id){
			.cls = *event,
			.body_bytes = body->body_bits < 0 || body->body_bits / 8 > INT32_MAX
					      ? -1
					      : (int32_t)(body->body_bits / 8),
			.index = (*event)->index,
			.context_bits = body->context_bits,
			.payload_bits = body->payload_bits,
		};
	}
	plan->only_event = stream->events.len == 1 ? stream->events.data[0] : NULL;
	return KYMO_OK;
}

static int build_stream(struct ky_trace_class *trace, struct ky_stream_class *stream,
			struct kymo_error *err)
{
	struct ky_stream_plan *plan = ky_arena_new(&trace->arena, struct ky_stream_plan);
	int ret;

	if (!plan)
		return ky_error_nomem(err);
	stream->plan = plan;
	ret = build_scope(trace, KY_SCOPE_PACKET_CONTEXT, stream->packet_context,
			  &plan->packet_context, err);
	if (ret == KYMO_OK)
		ret = build_scope(trace, KY_SCOPE_EVENT_HEADER, stream->event_header,
				  &plan->event_header, err);
	if (ret == KYMO_OK)
		ret = build_scope(trace, KY_SCOPE_STREAM_CONTEXT, stream->event_context,
				  &plan->event_context, err);
	if (ret < 0)
		return ret;
	plan->header_kind = header_kind(stream->event_header);
	if (plan->event_context.outer_scopes & (1u << KY_SCOPE_EVENT_HEADER))
		plan->header_kind = KY_HEADER_GENERAL;
	ky_vec_foreach(&stream->events, event) {
		ret = build_event(trace, *event, err);
		if (ret < 0)
			return ret;
	}
	return build_by_id(trace, stream, err);
}

int ky_plans_build(struct ky_trace_class *trace, struct kymo_error *err)
{
	int ret;

	trace->packet_header_plan = ky_arena_new(&trace->arena, struct ky_scope_plan);
	if (!trace->packet_header_plan)
		return ky_error_nomem(err);
	ret = build_scope(trace, KY_SCOPE_PACKET_HEADER, trace->packet_header,
			  trace->packet_header_plan, err);
	if (ret < 0)
		return ret;
	ky_vec_foreach(&trace->streams, stream) {
		ret = build_stream(trace, *stream, err);
		if (ret < 0)
			return ret;
		if (ky_stored_stacks_find(trace, *stream, &(*stream)->plan->stacks) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

const struct ky_scope_plan *ky_scope_plan_of(const struct ky_event_class *event,
					     enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_PACKET_HEADER:
		return event->stream->trace->packet_header_plan;
	case KY_SCOPE_PACKET_CONTEXT:
		return &event->stream->plan->packet_context;
	case KY_SCOPE_EVENT_HEADER:
		return &event->stream->plan->event_header;
	case KY_SCOPE_STREAM_CONTEXT:
		return &event->stream->plan->event_context;
	case KY_SCOPE_EVENT_CONTEXT:
		return &event->plan->context;
	default:
		return &event->plan->payload;
	}
}
