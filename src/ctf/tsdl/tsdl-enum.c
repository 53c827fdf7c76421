/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include "base/bits.h"
#include "base/error.h"
#include "ctf/model/walk.h"

struct labelled_range {
	size_t label;
	struct ky_range range;
};

struct enumeration {
	struct ky_field_class *cls;
	KY_VEC(const char *) labels;
	KY_VEC(struct labelled_range) ranges;
	struct ky_names by_label; /* -> index + 1 */
	struct ky_range next;	  /* .begin: the value of a label without one */
	bool overflown;		  /* there is no next value */
};

/* A constant as the enumeration's integer type holds it. */
static int enum_value(struct ky_tsdl_parser *p, const struct enumeration *e, struct ky_range *range)
{
	struct ky_tsdl_attr attr = {.name = "an enumeration's value"};
	unsigned int bits = e->cls->num.length_bits;
	uint64_t limit;
	int ret = ky_tsdl_value(p, &attr);

	if (ret < 0)
		return ret;
	if (attr.kind != KY_ATTR_NUMBER)
		return ky_tsdl_fail(p, attr.value_at, "an enumeration's value must be a number");
	limit = ky_field_is_signed(e->cls) ? ky_mask_bits(bits - 1) + attr.negative
		: attr.negative		   ? 0
					   : ky_mask_bits(bits);
	if (attr.number > limit)
		return ky_tsdl_fail(p, attr.value_at,
				    "this value does not fit in the enumeration's %u-bit %s type",
				    bits, ky_field_is_signed(e->cls) ? "signed" : "unsigned");
	range->begin.u = attr.negative ? -attr.number : attr.number;
	return KYMO_OK;
}

/* "= VALUE", "= FIRST ... LAST", or the next value. */
static int enum_range(struct ky_tsdl_parser *p, struct enumeration *e, struct ky_range *range)
{
	const struct ky_token *token = p->at;
	struct ky_range last;
	bool empty;
	int ret;

	if (!ky_tsdl_accept(p, '=')) {
		*range = e->next;
		if (e->overflown)
			return ky_tsdl_fail(p, token - 1,
					    "no value is left for this label in the enumeration's "
					    "integer type");
		range->end = range->begin;
		return KYMO_OK;
	}
	token = p->at;
	ret = enum_value(p, e, range);
	if (ret < 0)
		return ret;
	range->end = range->begin;
	if (!ky_tsdl_accept(p, KY_PUNCT_ELLIPSIS))
		return KYMO_OK;
	ret = enum_value(p, e, &last);
	if (ret < 0)
		return ret;
	range->end = last.begin;
	empty = ky_field_is_signed(e->cls) ? range->begin.s > range->end.s
					   : range->begin.u > range->end.u;
	return empty ? ky_tsdl_fail(p, token, "this range ends before it begins") : KYMO_OK;
}

static void tsdl_enum_set_next(struct enumeration *e, const struct ky_range *range)
{
	unsigned int bits = e->cls->num.length_bits;
	uint64_t most = ky_mask_bits(ky_field_is_signed(e->cls) ? bits - 1 : bits);

	e->overflown = range->end.u == most;
	e->next.begin.u = range->end.u + 1;
}

/* The same label may stand there several times: one mapping of several ranges. */
static int tsdl_enum_add_label(struct ky_tsdl_parser *p, struct enumeration *e, const char *label,
			       const struct ky_range *range)
{
	size_t index = (size_t)(uintptr_t)ky_names_get(&e->by_label, label);
	struct labelled_range entry = {.range = *range};

	if (!index) {
		label = ky_arena_strdup(&p->trace->arena, label);
		if (!label || ky_vec_push(&e->labels, label) < 0)
			return ky_error_nomem(p->err);
		index = e->labels.len;
		if (ky_names_set(&e->by_label, label, (void *)(uintptr_t)index) < 0)
			return ky_error_nomem(p->err);
	}
	entry.label = index - 1;
	return ky_vec_push(&e->ranges, entry) < 0 ? ky_error_nomem(p->err) : KYMO_OK;
}

static int enum_labels(struct ky_tsdl_parser *p, struct enumeration *e)
{
	struct ky_range range;
	const char *label;
	int ret;

	do {
		if (e->labels.len && ky_tsdl_is(p, '}'))
			break; /* a comma after the last label */
		if (p->at->kind != KY_TOKEN_WORD && p->at->kind != KY_TOKEN_TEXT)
			return ky_tsdl_expected(p, "a label");
		label = (p->at++)->text;
		ret = enum_range(p, e, &range);
		if (ret == KYMO_OK)
			ret = tsdl_enum_add_label(p, e, label, &range);
		if (ret < 0)
			return ret;
		tsdl_enum_set_next(e, &range);
	} while (ky_tsdl_accept(p, ','));
	return ky_tsdl_expect(p, '}', "',' or '}'");
}

static int store_mappings(struct ky_tsdl_parser *p, const struct enumeration *e)
{
	struct ky_arena *arena = &p->trace->arena;
	struct ky_mapping *mappings =
		ky_arena_array(arena, e->labels.len, sizeof(struct ky_mapping));
	struct ky_range *ranges = ky_arena_array(arena, e->ranges.len, sizeof(*ranges));
	struct ky_range *at = ranges;

	if (!mappings || !ranges)
		return ky_error_nomem(p->err);
	for (size_t i = 0; i < e->ranges.len; i++)
		mappings[e->ranges.data[i].label].n_ranges++;
	for (size_t i = 0; i < e->labels.len; i++) {
		mappings[i].label = e->labels.data[i];
		mappings[i].ranges = at;
		at += mappings[i].n_ranges;
		mappings[i].n_ranges = 0;
	}
	for (size_t i = 0; i < e->ranges.len; i++) {
		struct ky_mapping *mapping = &mappings[e->ranges.data[i].label];
		size_t index = (size_t)(mapping->ranges - ranges) + mapping->n_ranges++;

		ranges[index] = e->ranges.data[i].range;
	}
	e->cls->num.mappings = mappings;
	e->cls->num.n_mappings = e->labels.len;
	return KYMO_OK;
}

static int enum_body(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	struct enumeration e = {.cls = cls};
	int ret;

	cls->num.is_enum = true;
	ky_names_init(&e.by_label);
	ret = enum_labels(p, &e);
	if (ret == KYMO_OK)
		ret = store_mappings(p, &e);
	ky_vec_fini(&e.labels);
	ky_vec_fini(&e.ranges);
	ky_names_fini(&e.by_label);
	return ret;
}

/* The integer type behind the colon, or `int`. */
static int enum_base(struct ky_tsdl_parser *p, const struct ky_tsdl_type *type,
		     struct ky_field_class **cls)
{
	const struct ky_token *token = p->at;
	int ret = KYMO_OK;

	if (ky_tsdl_accept(p, ':')) {
		token = p->at;
		ret = ky_tsdl_type_name(p, cls);
	} else {
		const struct ky_field_class *plain = ky_tsdl_look_up(p, "int");

		token = type->token;
		if (!plain)
			return ky_tsdl_fail(p, token,
					    "an enumeration without an integer type is of type "
					    "int, which is not defined");
		ret = ky_tsdl_copy(p, plain, cls);
	}
	if (ret < 0)
		return ret;
	if (!ky_field_is_int(*cls) || (*cls)->num.is_enum || (*cls)->num.length_bits > 64)
		return ky_tsdl_fail(p, token,
				    "an enumeration's type must be an integer of up to 64 bits");
	(*cls)->type_name = NULL;
	return KYMO_OK;
}

int ky_tsdl_enum(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	int ret = enum_base(p, type, &type->cls);

	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, '{', "'{'");
	return ret < 0 ? ret : enum_body(p, type->cls);
}
