/* SPDX-License-Identifier: MIT */
/*
 * Going through a tree of field classes without a switch in every caller.
 * Trees are as deep as their metadata says: recursion needs base/deep.h.
 */
#ifndef KY_CTF_MODEL_WALK_H
#define KY_CTF_MODEL_WALK_H

#include "ctf/model/model.h"

static inline size_t ky_field_n_children(const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return cls->st.n_members;
	case KY_FIELD_ARRAY:
		return cls->array.element ? 1 : 0;
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return cls->var.n_options;
	default:
		return 0;
	}
}

static inline struct ky_field_class *ky_field_child(const struct ky_field_class *cls, size_t i)
{
	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return cls->st.members[i].cls;
	case KY_FIELD_ARRAY:
		return cls->array.element;
	default:
		return cls->var.options[i].cls;
	}
}

/* The length, tag or selector that @cls itself needs, or NULL. */
static inline struct ky_field_ref *ky_field_ref_of(const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return cls->text.length_ref;
	case KY_FIELD_ARRAY:
		return cls->array.length_ref;
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return cls->var.selector;
	default:
		return NULL;
	}
}

/* Does @cls use the num part of the union? */
static inline bool ky_field_is_num(const struct ky_field_class *cls)
{
	return cls->kind < KY_FIELD_STRING;
}

/* Is it a bit field in C's notation whose place in its unit varies? */
static inline bool ky_has_unit(const struct ky_field_class *cls)
{
	return ky_field_is_num(cls) && cls->num.unit_bits;
}

/* The alignment of a number that would begin at @at_bits of its packet (num.unit_bits). */
static inline uint32_t ky_unit_align(const struct ky_field_class *cls, uint64_t at_bits)
{
	uint32_t unit = cls->num.unit_bits;

	return unit && (at_bits & (unit - 1)) + cls->num.length_bits > unit ? unit
									    : cls->align_bits;
}

static inline bool ky_field_is_int(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT ||
	       cls->kind == KY_FIELD_VARUINT || cls->kind == KY_FIELD_VARSINT;
}

static inline bool ky_field_is_signed(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
}

#endif
