/* SPDX-License-Identifier: MIT */
#include "ctf/model/model.h"

#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/decode/plan.h"
#include "ctf/model/walk.h"

/* Referred to, but not numbered yet. */
#define SLOT_WANTED (KY_NO_SLOT - 1)

/* An option of a choice (a variant, an optional field), while and after what it has is numbered. */
struct in_option {
	struct in_option *up; /* the option that the choice lies in, or NULL */
	struct ky_field_class *choice;
	struct ky_option *option;
	uint32_t count_slot; /* the outermost choice's */
	bool open;	     /* being numbered */
};

/* What lies in an option and is referred to. */
struct choosable {
	struct in_option *in;
	bool noted; /* in ky_option.targets */
};

struct linker {
	struct ky_trace_class *trace;
	bool by_name;		    /* CTF 1.8: ranges of options come from the tag's labels */
	KY_VEC(uint8_t) slot_scope; /* of each slot that is visible now */
	enum ky_scope scope;
	uint64_t budget;
	bool big_endian, little_endian, odd; /* numbers that are so, or of parts of bytes */
	struct in_option *in;		     /* the innermost option that is being numbered */
	struct ky_map choosables;	     /* field class -> struct choosable * */
	struct ky_arena arena;		     /* of those */
	struct kymo_error *err;
};

static int bad_ref(struct linker *l, const struct ky_field_ref *ref, const char *what)
{
	int ret = ky_error_set(l->err, KYMO_E_FORMAT, "\"%s\" %s",
			       ref && ref->text ? ref->text : "?", what);

	if (ref && ref->line)
		ky_error_line(l->err, ref->line, ref->column);
	return ret;
}

/* ---- references -------------------------------------------------------------------------- */

static bool is_length(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_VARUINT ||
	       (cls->kind == KY_FIELD_UINT && cls->num.length_bits <= 64);
}

static bool is_selector(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_BOOL || (ky_field_is_int(cls) && cls->num.length_bits <= 64);
}

static int check_ref(struct linker *l, const struct ky_field_class *cls,
		     const struct ky_field_ref *ref)
{
	const struct ky_field_class *target = ref ? ref->target : NULL;

	if (!target)
		return bad_ref(l, ref, "names no field that is decoded earlier");
	if (cls->kind == KY_FIELD_VARIANT && l->by_name &&
	    !(ky_field_is_int(target) && target->num.is_enum))
		return bad_ref(l, ref, "is no enumeration, and cannot be a variant's tag");
	if (cls->kind == KY_FIELD_VARIANT || cls->kind == KY_FIELD_OPTIONAL) {
		if (!is_selector(target))
			return bad_ref(l, ref, "is no integer of up to 64 bits or boolean");
	} else if (!is_length(target)) {
		return bad_ref(l, ref,
			       "is no unsigned integer of up to 64 bits, and cannot be a "
			       "length");
	}
	for (size_t i = 0; i < ref->n_more; i++) {
		if (ref->more[i]->kind != KY_FIELD_BOOL && ref->more[i]->num.length_bits > 64)
			return bad_ref(l, ref, "is no integer of up to 64 bits in all its forms");
	}
	return KYMO_OK;
}

KY_DEEP2(int, mark_refs, struct linker *, struct ky_field_class *)

/* First pass: every class that a reference names gets a slot. */
static int mark_refs(struct linker *l, struct ky_field_class *cls)
{
	struct ky_field_ref *ref = ky_field_ref_of(cls);
	int ret;

	if (ref || cls->kind == KY_FIELD_VARIANT || cls->kind == KY_FIELD_OPTIONAL) {
		ret = check_ref(l, cls, ref);
		if (ret < 0)
			return ret;
		if (ref->target->slot == KY_NO_SLOT)
			ref->target->slot = SLOT_WANTED;
		for (size_t i = 0; i < ref->n_more; i++) {
			if (ref->more[i]->slot == KY_NO_SLOT)
				ref->more[i]->slot = SLOT_WANTED;
		}
	}
	for (size_t i = 0; i < ky_field_n_children(cls); i++) {
		ret = mark_refs_deep(KYMO_E_MEMORY, l, ky_field_child(cls, i));
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static bool has_ranges(const struct ky_field_class *variant)
{
	for (size_t i = 0; i < variant->var.n_options; i++) {
		if (variant->var.options[i].n_ranges)
			return true;
	}
	return false;
}

/* Fields that stand in for one another leave their values in one place. */
static void share_slot(const struct ky_field_ref *ref)
{
	uint32_t slot = ref->target->slot;

	for (size_t i = 0; i < ref->n_more; i++)
		slot = ref->more[i]->slot < slot ? ref->more[i]->slot : slot;
	ref->target->slot = slot;
	for (size_t i = 0; i < ref->n_more; i++)
		ref->more[i]->slot = slot;
}

static int new_slot(struct linker *l, uint32_t *slot)
{
	*slot = (uint32_t)l->slot_scope.len;
	return ky_vec_push(&l->slot_scope, (uint8_t)l->scope) < 0 ? KYMO_E_MEMORY : KYMO_OK;
}

/* Slots to tell whether @cls, which is referred to, was there: struct ky_option_target. */
static int new_choosable(struct linker *l, struct ky_field_class *cls)
{
	struct choosable *one = ky_arena_new(&l->arena, struct choosable);
	struct in_option *outermost = l->in;
	uint32_t behind;
	int ret = one ? new_slot(l, &behind) : KYMO_E_MEMORY;

	while (outermost->up)
		outermost = outermost->up;
	if (ret == KYMO_OK && outermost->choice->slot == KY_NO_SLOT) {
		ret = new_slot(l, &outermost->choice->slot);
		if (ret == KYMO_OK)
			ret = new_slot(l, &behind);
	}
	for (struct in_option *at = l->in; at && ret == KYMO_OK; at = at->up) {
		if (at->choice->slot == KY_NO_SLOT)
			ret = new_slot(l, &at->choice->slot);
		at->count_slot = outermost->choice->slot + 1;
	}
	if (ret < 0)
		return ret;
	*one = (struct choosable){.in = l->in};
	return ky_map_set(&l->choosables, (uint64_t)(uintptr_t)cls, one);
}

static int note_target(struct linker *l, const struct ky_field_class *cls)
{
	struct choosable *one = ky_map_get(&l->choosables, (uint64_t)(uintptr_t)cls);
	struct ky_option_target *target;

	if (!one || one->noted)
		return KYMO_OK;
	target = ky_arena_new(&l->trace->arena, struct ky_option_target);
	if (!target)
		return KYMO_E_MEMORY;
	*target = (struct ky_option_target){cls, one->in->option->targets};
	one->in->option->targets = target;
	one->in->choice->var.count_slot = one->in->count_slot;
	one->noted = true;
	return KYMO_OK;
}

/* Of the choices around the target those count that are not around the reference, which is at hand. */
static int find_choice(struct linker *l, struct ky_field_ref *ref)
{
	const struct choosable *one = ky_map_get(&l->choosables, (uint64_t)(uintptr_t)ref->target);
	struct in_option *outermost = NULL;
	int ret;

	for (struct in_option *at = one ? one->in : NULL; at && !at->open; at = at->up)
		outermost = at;
	if (!outermost)
		return KYMO_OK;
	ref->choice = outermost->choice;
	outermost->choice->var.count_slot = outermost->count_slot;
	ret = note_target(l, ref->target);
	for (size_t i = 0; i < ref->n_more && ret == KYMO_OK; i++)
		ret = note_target(l, ref->more[i]);
	return ret;
}

static int link_ref(struct linker *l, struct ky_field_class *cls, struct ky_field_ref *ref)
{
	uint32_t slot = ref->target->slot;

	if (slot >= l->slot_scope.len)
		return bad_ref(l, ref, "is decoded later than what refers to it");
	ref->scope = l->slot_scope.data[slot];
	share_slot(ref);
	if (find_choice(l, ref) < 0)
		return ky_error_nomem(l->err);
	if (cls->kind != KY_FIELD_VARIANT || !l->by_name || has_ranges(cls))
		return KYMO_OK;
	switch (ky_variant_ranges(l->trace, cls, &l->budget)) {
	case KYMO_OK:
		return KYMO_OK;
	case KYMO_E_LIMIT:
		return ky_error_set(l->err, KYMO_E_LIMIT, KY_VARIANT_LIMIT_TEXT);
	default:
		return ky_error_nomem(l->err);
	}
}

KY_DEEP2(int, number_slots, struct linker *, struct ky_field_class *)

static void note_number(struct linker *l, const struct ky_field_class *cls)
{
	l->big_endian |= cls->num.big_endian;
	l->little_endian |= !cls->num.big_endian;
	l->odd |= cls->num.length_bits % 8 != 0;
}

static int number_options(struct linker *l, struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		struct in_option *in = ky_arena_new(&l->arena, struct in_option);

		if (!in)
			return ky_error_nomem(l->err);
		*in = (struct in_option){
			.up = l->in, .choice = cls, .option = &cls->var.options[i], .open = true};
		l->in = in;
		ret = number_slots_deep(KYMO_E_MEMORY, l, in->option->cls);
		l->in = in->up;
		in->open = false;
	}
	return ret;
}

/* Second pass, in decoding order: number the wanted slots, and say where each reference leads. */
static int number_slots(struct linker *l, struct ky_field_class *cls)
{
	struct ky_field_ref *ref = ky_field_ref_of(cls);
	int ret;

	if (ky_field_is_num(cls))
		note_number(l, cls);
	if (cls->slot == SLOT_WANTED &&
	    (new_slot(l, &cls->slot) < 0 || (l->in && new_choosable(l, cls) < 0)))
		return ky_error_nomem(l->err);
	if (ref) {
		ret = link_ref(l, cls, ref);
		if (ret < 0)
			return ret;
	}
	if (cls->kind == KY_FIELD_OPTIONAL || cls->kind == KY_FIELD_VARIANT)
		return number_options(l, cls);
	for (size_t i = 0; i < ky_field_n_children(cls); i++) {
		ret = number_slots_deep(KYMO_E_MEMORY, l, ky_field_child(cls, i));
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static int mark_scope(struct linker *l, struct ky_field_class *root)
{
	if (!root)
		return KYMO_OK;
	if (root->kind != KY_FIELD_STRUCT)
		return ky_error_set(l->err, KYMO_E_FORMAT, "%s is not a struct",
				    ky_scope_name(l->scope));
	if (ky_field_layout(root) < 0)
		return ky_error_nomem(l->err);
	return mark_refs(l, root);
}

static int number_scope(struct linker *l, enum ky_scope scope, struct ky_field_class *root)
{
	int ret;

	l->scope = scope;
	ret = root ? number_slots(l, root) : KYMO_OK;
	if (l->slot_scope.len > l->trace->n_slots)
		l->trace->n_slots = (uint32_t)l->slot_scope.len;
	return ret;
}

static int mark_event(struct linker *l, struct ky_event_class *event)
{
	int ret;

	l->scope = KY_SCOPE_EVENT_CONTEXT;
	ret = mark_scope(l, event->context);
	if (ret < 0)
		return ret;
	l->scope = KY_SCOPE_PAYLOAD;
	return mark_scope(l, event->payload);
}

static int mark_stream(struct linker *l, struct ky_stream_class *stream)
{
	struct ky_field_class *roots[] = {stream->packet_context, stream->event_header,
					  stream->event_context};
	int ret = KYMO_OK;

	for (int i = 0; i < 3 && ret == KYMO_OK; i++) {
		l->scope = KY_SCOPE_PACKET_CONTEXT + i;
		ret = mark_scope(l, roots[i]);
	}
	for (size_t i = 0; i < stream->events.len && ret == KYMO_OK; i++)
		ret = mark_event(l, stream->events.data[i]);
	return ret;
}

static int mark_all(struct linker *l)
{
	int ret;

	l->scope = KY_SCOPE_PACKET_HEADER;
	ret = mark_scope(l, l->trace->packet_header);
	for (size_t i = 0; i < l->trace->streams.len && ret == KYMO_OK; i++)
		ret = mark_stream(l, l->trace->streams.data[i]);
	return ret;
}

static int number_event(struct linker *l, struct ky_event_class *event)
{
	int ret = number_scope(l, KY_SCOPE_EVENT_CONTEXT, event->context);

	return ret < 0 ? ret : number_scope(l, KY_SCOPE_PAYLOAD, event->payload);
}

static int number_stream(struct linker *l, struct ky_stream_class *stream)
{
	struct ky_field_class *roots[] = {stream->packet_context, stream->event_header,
					  stream->event_context};
	int ret = KYMO_OK;
	size_t n;

	for (int i = 0; i < 3 && ret == KYMO_OK; i++)
		ret = number_scope(l, KY_SCOPE_PACKET_CONTEXT + i, roots[i]);
	n = l->slot_scope.len;
	for (size_t i = 0; i < stream->events.len && ret == KYMO_OK; i++) {
		/* Events of one stream never see each other: they share the numbers. */
		l->slot_scope.len = n;
		ret = number_event(l, stream->events.data[i]);
	}
	return ret;
}

static int number_all(struct linker *l)
{
	int ret = number_scope(l, KY_SCOPE_PACKET_HEADER, l->trace->packet_header);
	size_t n = l->slot_scope.len;

	for (size_t i = 0; i < l->trace->streams.len && ret == KYMO_OK; i++) {
		l->slot_scope.len = n;
		ret = number_stream(l, l->trace->streams.data[i]);
	}
	return ret;
}

/* ---- the whole --------------------------------------------------------------------------- */

KY_DEEP1(int, forget_slots, struct ky_field_class *)

static int forget_slots(struct ky_field_class *cls)
{
	struct ky_field_ref *ref = cls ? ky_field_ref_of(cls) : NULL;
	int ret = KYMO_OK;

	if (!cls)
		return ret;
	cls->slot = KY_NO_SLOT;
	if (ref)
		ref->choice = NULL;
	if (cls->kind == KY_FIELD_OPTIONAL || cls->kind == KY_FIELD_VARIANT) {
		cls->var.count_slot = KY_NO_SLOT;
		for (size_t i = 0; i < cls->var.n_options; i++)
			cls->var.options[i].targets = NULL;
	}
	for (size_t i = 0; i < ky_field_n_children(cls) && ret == KYMO_OK; i++)
		ret = forget_slots_deep(KYMO_E_MEMORY, ky_field_child(cls, i));
	return ret;
}

static int forget_all_slots(struct ky_trace_class *trace)
{
	int ret = forget_slots(trace->packet_header);

	trace->n_slots = 0;
	ky_vec_foreach(&trace->streams, stream) {
		ret |= forget_slots((*stream)->packet_context);
		ret |= forget_slots((*stream)->event_header);
		ret |= forget_slots((*stream)->event_context);
	}
	ky_vec_foreach(&trace->events, event) {
		ret |= forget_slots((*event)->context);
		ret |= forget_slots((*event)->payload);
	}
	return ret;
}

static int link_trace(struct ky_trace_class *trace, bool by_name, struct kymo_error *err)
{
	struct linker l = {
		.trace = trace, .by_name = by_name, .budget = KY_VARIANT_BUDGET, .err = err};
	int ret;

	if (forget_all_slots(trace) < 0)
		return ky_error_nomem(err);
	ky_map_init(&l.choosables);
	ky_arena_init(&l.arena);
	ret = mark_all(&l);
	if (ret == KYMO_OK)
		ret = number_all(&l);
	trace->mixes_orders = l.big_endian && l.little_endian && l.odd;
	ky_vec_fini(&l.slot_scope);
	ky_map_fini(&l.choosables);
	ky_arena_fini(&l.arena);
	return ret;
}

int ky_trace_class_finish(struct ky_trace_class *trace, bool roles_by_name, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (roles_by_name)
		ret = ky_roles_by_name(trace, err);
	else
		ky_cpu_roles(trace);
	if (ret == KYMO_OK)
		ret = link_trace(trace, roles_by_name, err);
	if (ret == KYMO_OK)
		ret = ky_stream_clocks(trace, err);
	for (size_t i = 0; i < trace->clocks.len && ret == KYMO_OK; i++)
		ret = ky_clock_finish(trace->clocks.data[i], err);
	if (ret == KYMO_OK)
		ret = ky_plans_build(trace, err);
	return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : ret;
}

int ky_event_class_finish(struct ky_event_class *event, struct kymo_error *err)
{
	struct ky_trace_class *trace = event->stream->trace;
	int ret = link_trace(trace, trace->major == 1, err);

	if (ret == KYMO_OK)
		ret = ky_stream_clocks(trace, err);
	if (ret == KYMO_OK)
		ret = ky_plans_build(trace, err);
	return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : ret;
}
