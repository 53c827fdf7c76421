/* SPDX-License-Identifier: MIT */
/* Field locations of CTF 2: from a path to the classes whose values count. */
#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/ctf2/ctf2-read.h"
#include "ctf/ctf2/ctf2-write.h"

struct locator {
	struct ky_ctf2_reader *r;
	const struct ky_ctf2_pending *p;
	enum ky_scope scope; /* where the path runs */
	KY_VEC(struct ky_field_class *) now, next;
};

static struct ky_ctf2_place *ctf2_locate_place_of(const struct locator *l,
						  const struct ky_field_class *cls)
{
	return ky_map_get(&l->r->places, (uint64_t)(uintptr_t)cls);
}

/* Does @cls contain the class that needs the location? */
static bool contains_user(const struct locator *l, const struct ky_field_class *cls)
{
	for (const struct ky_ctf2_place *at = l->p->place; at; at = at->parent) {
		if (at->cls == cls)
			return true;
	}
	return false;
}

static struct ky_field_class *struct_above(const struct ky_ctf2_place *place)
{
	for (place = place->parent; place; place = place->parent) {
		if (place->cls->kind == KY_FIELD_STRUCT)
			return place->cls;
	}
	return NULL;
}

static int ctf2_locate_push(struct locator *l, struct ky_field_class *cls)
{
	return ky_vec_push(&l->next, cls) < 0 ? ky_error_nomem(l->r->err) : KYMO_OK;
}

KY_DEEP2(int, ctf2_locate_unwrap, struct locator *, struct ky_field_class *)

/* Of a variant that is being decoded only the current option counts, else any may. */
static int unwrap_options(struct locator *l, struct ky_field_class *cls)
{
	bool inside = contains_user(l, cls);
	int ret = KYMO_OK;

	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		if (!inside || contains_user(l, cls->var.options[i].cls))
			ret = ctf2_locate_unwrap_deep(KYMO_E_MEMORY, l, cls->var.options[i].cls);
	}
	return ret;
}

static int ctf2_locate_unwrap(struct locator *l, struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_ARRAY:
		/* Only the current element is known: the user must be inside the array. */
		if (!contains_user(l, cls))
			return ky_json_error(l->r->err, l->p->location,
					     "the location leads into an array that does not "
					     "contain the field that needs it");
		return ctf2_locate_unwrap_deep(KYMO_E_MEMORY, l, cls->array.element);
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return unwrap_options(l, cls);
	default:
		return ctf2_locate_push(l, cls);
	}
}

static int step_name(struct locator *l, const struct ky_json *name)
{
	int ret = KYMO_OK;
	size_t i;

	ky_vec_foreach(&l->now, at) {
		if ((*at)->kind != KY_FIELD_STRUCT)
			continue;
		i = ky_child_named(&l->r->tables, *at, (*at)->st.n_members, name->string.data,
				   strlen(name->string.data));
		if (i != KY_NO_CHILD && ret == KYMO_OK)
			ret = ctf2_locate_unwrap(l, (*at)->st.members[i].cls);
	}
	if (ret == KYMO_OK && !l->next.len)
		return ky_json_error(l->r->err, name, "there is no field '%s' at this location",
				     name->string.data);
	return ret;
}

static int step_parent(struct locator *l, const struct ky_json *node)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&l->now, at) {
		struct ky_field_class *above = struct_above(ctf2_locate_place_of(l, *at));

		if (!above)
			return ky_json_error(l->r->err, node, "there is no parent structure here");
		ret = ctf2_locate_push(l, above);
		if (ret < 0)
			return ret;
	}
	return ret;
}

static int origin(struct locator *l, struct ky_field_class *const roots[KY_SCOPE_COUNT])
{
	const struct ky_json *node = ky_json_get(l->p->location, "origin");
	struct ky_field_class *above;

	l->scope = l->p->scope;
	if (!node) {
		above = struct_above(l->p->place);
		if (!above)
			return ky_json_error(l->r->err, l->p->location,
					     "no structure contains the field");
		return ctf2_locate_push(l, above);
	}
	for (int i = 0; node->kind == KY_JSON_STRING && i < KY_SCOPE_COUNT; i++) {
		if (strcmp(ky_ctf2_origin((enum ky_scope)i), node->string.data) != 0)
			continue;
		l->scope = (enum ky_scope)i;
		if (l->scope > l->p->scope)
			return ky_json_error(l->r->err, node,
					     "the origin is decoded after the field that needs it");
		if (!roots[i])
			return ky_json_error(l->r->err, node, "there is no %s",
					     ky_ctf2_origin((enum ky_scope)i));
		return ctf2_locate_push(l, roots[i]);
	}
	return ky_json_error(l->r->err, node, "unknown origin of a field location");
}

static int ctf2_locate_walk(struct locator *l, struct ky_field_class *const roots[KY_SCOPE_COUNT])
{
	const struct ky_json *path = ky_json_get(l->p->location, "path");
	int ret = origin(l, roots);

	for (const struct ky_json *at = path->list.first; at && ret == KYMO_OK; at = at->next) {
		ky_vec_clear(&l->now);
		ky_vec_foreach(&l->next, cls) {
			if (ky_vec_push(&l->now, *cls) < 0)
				return ky_error_nomem(l->r->err);
		}
		ky_vec_clear(&l->next);
		if (at->kind == KY_JSON_STRING)
			ret = step_name(l, at);
		else if (at->kind == KY_JSON_NULL && at->next)
			ret = step_parent(l, at);
		else
			ret = ky_json_error(l->r->err, at,
					    "a path holds names and null, and ends with a name");
	}
	return ret;
}

enum value_type { VALUE_NONE, VALUE_BOOL, VALUE_UNSIGNED, VALUE_SIGNED };

static enum value_type value_type(const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_BOOL:
		return VALUE_BOOL;
	case KY_FIELD_UINT:
	case KY_FIELD_VARUINT:
		return VALUE_UNSIGNED;
	case KY_FIELD_SINT:
	case KY_FIELD_VARSINT:
		return VALUE_SIGNED;
	default:
		return VALUE_NONE;
	}
}

static int check_target(struct locator *l, const struct ky_field_class *cls, enum value_type first)
{
	enum value_type type = value_type(cls);

	if (l->scope == l->p->scope && ctf2_locate_place_of(l, cls)->order >= l->p->place->order)
		return ky_json_error(l->r->err, l->p->location,
				     "the field at the location is decoded after the one that "
				     "needs it");
	if (l->p->is_length
		    ? type != VALUE_UNSIGNED
		    : type == VALUE_NONE || type != first ||
			      (type == VALUE_BOOL && l->p->place->cls->kind == KY_FIELD_VARIANT))
		return ky_json_error(l->r->err, l->p->location,
				     "the field at the location cannot serve as %s",
				     l->p->is_length ? "a length" : "a selector");
	return KYMO_OK;
}

/* A range of an option of a variant, moved so that signed ones are in the order of unsigned ones. */
struct selecting {
	uint64_t begin, end;
	size_t option;
};

static int ctf2_locate_by_begin(const void *a, const void *b)
{
	const struct selecting *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->option < y->option ? -1 : x->option > y->option;
}

KY_VEC_TYPE(selecting_list, struct selecting);

static int list_ranges(const struct ky_field_class *cls, bool is_signed,
		       struct selecting_list *list)
{
	uint64_t move = is_signed ? UINT64_C(1) << 63 : 0;

	for (size_t i = 0; i < cls->var.n_options; i++) {
		const struct ky_option *option = &cls->var.options[i];

		for (size_t j = 0; j < option->n_ranges; j++) {
			const struct ky_range *range = &option->ranges[j];

			if (!ky_range_is_never(range) &&
			    ky_vec_push(list, (struct selecting){range->begin.u ^ move,
								 range->end.u ^ move, i}) < 0)
				return KYMO_E_MEMORY;
		}
	}
	return KYMO_OK;
}

/*
 * The later one of two options of @cls whose ranges intersect; KY_NO_CHILD: there are none. One option's ranges
 * never do. Each range is compared with the one before it that ends last.
 */
static size_t intersecting_option(const struct selecting_list *list)
{
	const struct selecting *last = NULL;
	size_t found = KY_NO_CHILD;

	ky_vec_foreach(list, at) {
		if (last && at->begin <= last->end) {
			size_t later = at->option > last->option ? at->option : last->option;

			found = later < found ? later : found;
		}
		if (!last || at->end > last->end)
			last = at;
	}
	return found;
}

static int check_ranges(struct locator *l, bool is_signed)
{
	const struct ky_field_class *cls = l->p->place->cls;
	const struct ky_json *node = ky_json_get(l->p->node, "options")->list.first;
	struct selecting_list list = KY_VEC_INIT;
	size_t option = KY_NO_CHILD;
	int ret = list_ranges(cls, is_signed, &list);

	if (ret == KYMO_OK) {
		qsort(list.data, list.len, sizeof(*list.data), ctf2_locate_by_begin);
		option = intersecting_option(&list);
	}
	ky_vec_fini(&list);
	if (ret < 0)
		return ky_error_nomem(l->r->err);
	if (option == KY_NO_CHILD)
		return KYMO_OK;
	while (option--)
		node = node->next;
	return ky_json_error(l->r->err, node, "the ranges of two options intersect");
}

/* Now that the selector is known, its values can be read as what they are. */
static int read_ranges(struct locator *l, enum value_type type)
{
	struct ky_field_class *cls = l->p->place->cls;
	const struct ky_json *list = ky_json_get(l->p->node, "options"), *node;
	unsigned int bits = l->next.len > 1 ? 64 : ky_ctf2_value_bits(l->next.data[0]);
	int ret = KYMO_OK;

	if (cls->kind == KY_FIELD_OPTIONAL) {
		node = ky_json_get(l->p->node, "selector-field-ranges");
		if (type == VALUE_BOOL)
			return KYMO_OK;
		if (!node)
			return ky_json_error(l->r->err, l->p->node,
					     "property 'selector-field-ranges' is missing");
		return ky_ctf2_ranges(l->r, node, type == VALUE_SIGNED, bits,
				      &cls->var.options[0].ranges, &cls->var.options[0].n_ranges);
	}
	node = list->list.first;
	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++, node = node->next) {
		struct ky_option *option = &cls->var.options[i];

		ret = ky_ctf2_ranges(l->r, ky_json_get(node, "selector-field-ranges"),
				     type == VALUE_SIGNED, bits, &option->ranges,
				     &option->n_ranges);
	}
	return ret < 0 ? ret : check_ranges(l, type == VALUE_SIGNED);
}

/* The path as it is written, for messages. */
static const char *path_text(struct locator *l)
{
	const struct ky_json *path = ky_json_get(l->p->location, "path");
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *copy;

	for (const struct ky_json *at = path->list.first; at; at = at->next) {
		ky_strbuf_adds(&text, at->kind == KY_JSON_STRING ? at->string.data : "..");
		if (at->next)
			ky_strbuf_addc(&text, '.');
	}
	copy = ky_arena_strdup(&l->r->trace->arena, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	return copy;
}

static int ctf2_locate_settle(struct locator *l)
{
	struct ky_field_ref *ref = l->p->ref;
	enum value_type type = value_type(l->next.data[0]);
	int ret = KYMO_OK;

	ky_vec_foreach(&l->next, cls) {
		ret = check_target(l, *cls, type);
		if (ret < 0)
			return ret;
	}
	ref->scope = l->scope;
	ref->target = l->next.data[0];
	ref->n_more = l->next.len - 1;
	ref->more = ky_arena_memdup(&l->r->trace->arena, l->next.data + 1,
				    ref->n_more * sizeof(*ref->more));
	ref->text = path_text(l);
	if (!ref->more || !ref->text)
		return ky_error_nomem(l->r->err);
	return l->p->is_length ? KYMO_OK : read_ranges(l, type);
}

int ky_ctf2_locate(struct ky_ctf2_reader *r, struct ky_field_class *const roots[KY_SCOPE_COUNT])
{
	int ret = KYMO_OK;

	ky_vec_foreach(&r->pending, pending) {
		struct locator l = {.r = r, .p = pending};

		ret = ctf2_locate_walk(&l, roots);
		if (ret == KYMO_OK)
			ret = ctf2_locate_settle(&l);
		ky_vec_fini(&l.now);
		ky_vec_fini(&l.next);
		if (ret < 0)
			break;
	}
	ky_vec_clear(&r->pending);
	return ret;
}
