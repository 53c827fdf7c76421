/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/model/walk.h"

/* Another class refers to this one: set by the binder, cleared at the end of the model. */
static bool is_target(const struct ky_field_class *cls)
{
	return cls->slot != KY_NO_SLOT;
}

static uint64_t tsdl_copy_key_of(const struct ky_field_class *cls)
{
	return (uint64_t)(uintptr_t)cls;
}

KY_DEEP2(struct ky_field_class *, copy_class, struct ky_tsdl_parser *,
	 const struct ky_field_class *)

static struct ky_field_class *copy_child(struct ky_tsdl_parser *p, const struct ky_field_class *src)
{
	static struct ky_field_class no_stack;
	struct ky_field_class *cls = copy_class_deep(&no_stack, p, src);

	if (cls != &no_stack)
		return cls;
	ky_error_nomem(p->err);
	return NULL;
}

/* What lies inside the copied type is referred to in the copy; what lies outside stays. */
static int copy_ref(struct ky_tsdl_parser *p, struct ky_field_class *cls,
		    struct ky_field_ref **place)
{
	struct ky_field_ref *ref;
	struct ky_field_class *moved;

	if (!*place)
		return KYMO_OK;
	ref = ky_arena_memdup(&p->trace->arena, *place, sizeof(*ref));
	if (!ref)
		return ky_error_nomem(p->err);
	*place = ref;
	if (!ref->target)
		return ky_tsdl_bind(p, cls, false);
	moved = ky_map_get(&p->copies, tsdl_copy_key_of(ref->target));
	if (moved)
		ref->target = moved;
	return KYMO_OK;
}

static int copy_members(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	size_t n = cls->st.n_members;
	struct ky_member *members =
		ky_arena_memdup(&p->trace->arena, cls->st.members, n * sizeof(*members));

	if (!members)
		return ky_error_nomem(p->err);
	cls->st.members = members;
	for (size_t i = 0; i < n; i++) {
		members[i].cls = copy_child(p, members[i].cls);
		if (!members[i].cls)
			return p->err->code;
	}
	return KYMO_OK;
}

static int copy_options(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	size_t n = cls->var.n_options;
	struct ky_option *options =
		ky_arena_memdup(&p->trace->arena, cls->var.options, n * sizeof(*options));

	if (!options)
		return ky_error_nomem(p->err);
	cls->var.options = options;
	for (size_t i = 0; i < n; i++) {
		options[i].cls = copy_child(p, options[i].cls);
		if (!options[i].cls)
			return p->err->code;
	}
	return KYMO_OK;
}

/* What hangs below @cls, which is a flat copy so far. */
static int copy_below(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	int ret;

	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return copy_members(p, cls);
	case KY_FIELD_ARRAY:
		ret = copy_ref(p, cls, &cls->array.length_ref);
		if (ret < 0)
			return ret;
		cls->array.element = copy_child(p, cls->array.element);
		return cls->array.element ? KYMO_OK : p->err->code;
	case KY_FIELD_TEXT:
		return copy_ref(p, cls, &cls->text.length_ref);
	case KY_FIELD_VARIANT:
		ret = copy_options(p, cls);
		/* Last: binding compares the tag's labels with the options. */
		return ret < 0 ? ret : copy_ref(p, cls, &cls->var.selector);
	default:
		return KYMO_OK; /* labels are shared: they never change */
	}
}

static struct ky_field_class *copy_class(struct ky_tsdl_parser *p, const struct ky_field_class *src)
{
	struct ky_field_class *cls;

	cls = ky_tsdl_node(p, src->kind);
	if (!cls)
		return NULL;
	*cls = *src;
	cls->slot = KY_NO_SLOT;
	if (is_target(src)) {
		cls->slot = src->slot;
		if (ky_map_set(&p->copies, tsdl_copy_key_of(src), cls) < 0) {
			ky_error_nomem(p->err);
			return NULL;
		}
	}
	return copy_below(p, cls) < 0 ? NULL : cls;
}

int ky_tsdl_copy(struct ky_tsdl_parser *p, const struct ky_field_class *src,
		 struct ky_field_class **cls)
{
	if (p->copies.len) {
		ky_map_fini(&p->copies);
		ky_map_init(&p->copies);
	}
	*cls = copy_class(p, src);
	return *cls ? KYMO_OK : p->err->code;
}

int ky_tsdl_take(struct ky_tsdl_parser *p, const struct ky_tsdl_type *type,
		 struct ky_field_class **cls)
{
	if (type->shared)
		return ky_tsdl_copy(p, type->cls, cls);
	*cls = type->cls;
	return KYMO_OK;
}
