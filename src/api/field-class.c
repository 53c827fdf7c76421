/* SPDX-License-Identifier: MIT */
/* kymo/model.h: field classes. */
#include <string.h>

#include "api/api.h"
#include "ctf/model/walk.h"

#define SAME(name) ((int)KYMO_##name == (int)KY_##name)

_Static_assert(SAME(FIELD_BITS) && SAME(FIELD_BITMAP) && SAME(FIELD_BOOL) && SAME(FIELD_UINT) &&
		       SAME(FIELD_SINT) && SAME(FIELD_FLOAT) && SAME(FIELD_VARUINT) &&
		       SAME(FIELD_VARSINT) && SAME(FIELD_STRING) && SAME(FIELD_TEXT) &&
		       SAME(FIELD_BLOB) && SAME(FIELD_ARRAY) && SAME(FIELD_STRUCT) &&
		       SAME(FIELD_OPTIONAL) && SAME(FIELD_VARIANT),
	       "field kinds");
_Static_assert(SAME(ENCODING_NONE) && SAME(ENCODING_UTF8) && SAME(ENCODING_ASCII) &&
		       SAME(ENCODING_UTF16BE) && SAME(ENCODING_UTF16LE) && SAME(ENCODING_UTF32BE) &&
		       SAME(ENCODING_UTF32LE),
	       "encodings");

/* The part of the union that belongs to its kind, or NULL. */
static const struct ky_field_class *field_class_number(const struct kymo_field_class *cls)
{
	const struct ky_field_class *in = field_class_in(cls);

	return in && in->kind <= KY_FIELD_VARSINT ? in : NULL;
}

static const struct ky_field_class *field_class_text(const struct kymo_field_class *cls)
{
	const struct ky_field_class *in = field_class_in(cls);

	return in && in->kind >= KY_FIELD_STRING && in->kind <= KY_FIELD_BLOB ? in : NULL;
}

enum kymo_field_kind kymo_field_class_kind(const struct kymo_field_class *cls)
{
	return cls ? (enum kymo_field_kind)field_class_in(cls)->kind : KYMO_FIELD_BITS;
}

const char *kymo_field_kind_text(enum kymo_field_kind kind)
{
	static const char *const texts[] = {
		[KYMO_FIELD_BITS] = "bit array",
		[KYMO_FIELD_BITMAP] = "bit map",
		[KYMO_FIELD_BOOL] = "boolean",
		[KYMO_FIELD_UINT] = "unsigned integer",
		[KYMO_FIELD_SINT] = "signed integer",
		[KYMO_FIELD_FLOAT] = "floating point number",
		[KYMO_FIELD_VARUINT] = "unsigned integer of variable size",
		[KYMO_FIELD_VARSINT] = "signed integer of variable size",
		[KYMO_FIELD_STRING] = "string",
		[KYMO_FIELD_TEXT] = "text",
		[KYMO_FIELD_BLOB] = "bytes",
		[KYMO_FIELD_ARRAY] = "array",
		[KYMO_FIELD_STRUCT] = "structure",
		[KYMO_FIELD_OPTIONAL] = "optional field",
		[KYMO_FIELD_VARIANT] = "variant",
	};

	return (unsigned int)kind <= KYMO_FIELD_VARIANT ? texts[kind] : "unknown kind";
}

uint64_t kymo_field_class_size_bits(const struct kymo_field_class *cls)
{
	if (!cls || field_class_in(cls)->fixed_bits < 0)
		return KYMO_VARIES;
	return (uint64_t)field_class_in(cls)->fixed_bits;
}

uint32_t kymo_field_class_align_bits(const struct kymo_field_class *cls)
{
	return cls ? field_class_in(cls)->align_bits : 1;
}

const char *kymo_field_class_type_name(const struct kymo_field_class *cls)
{
	return cls ? field_class_in(cls)->type_name : NULL;
}

const struct kymo_clock *kymo_field_class_clock(const struct kymo_field_class *cls)
{
	return field_class_number(cls) ? clock_out(field_class_number(cls)->num.clock) : NULL;
}

const char *kymo_field_class_media_type(const struct kymo_field_class *cls)
{
	return field_class_text(cls) ? field_class_text(cls)->text.media_type : NULL;
}

const char *kymo_field_class_attributes(const struct kymo_field_class *cls)
{
	return cls ? field_class_in(cls)->attributes : NULL;
}

const char *kymo_field_class_member_attributes(const struct kymo_field_class *cls, size_t i)
{
	const struct ky_field_class *in = field_class_in(cls);

	if (i >= kymo_field_class_n_members(cls))
		return NULL;
	return in->kind == KY_FIELD_STRUCT ? in->st.members[i].attributes
					   : in->var.options[i].attributes;
}

unsigned int kymo_field_class_base(const struct kymo_field_class *cls)
{
	return field_class_number(cls) && field_class_number(cls)->num.base
		       ? field_class_number(cls)->num.base
		       : 10;
}

bool kymo_field_class_is_big_endian(const struct kymo_field_class *cls)
{
	return field_class_number(cls) && field_class_number(cls)->num.big_endian;
}

enum kymo_encoding kymo_field_class_encoding(const struct kymo_field_class *cls)
{
	return field_class_text(cls) ? (enum kymo_encoding)field_class_text(cls)->text.encoding
				     : KYMO_ENCODING_NONE;
}

/* ---- labels ------------------------------------------------------------------------------ */

bool kymo_field_class_is_enum(const struct kymo_field_class *cls)
{
	return field_class_number(cls) && field_class_number(cls)->num.is_enum;
}

size_t kymo_field_class_n_labels(const struct kymo_field_class *cls)
{
	return field_class_number(cls) ? field_class_number(cls)->num.n_mappings : 0;
}

const char *kymo_field_class_label(const struct kymo_field_class *cls, size_t i, size_t *n_ranges)
{
	const struct ky_mapping *mapping;

	if (i >= kymo_field_class_n_labels(cls))
		return NULL;
	mapping = &field_class_number(cls)->num.mappings[i];
	if (n_ranges)
		*n_ranges = mapping->n_ranges;
	return mapping->label;
}

bool kymo_field_class_label_range(const struct kymo_field_class *cls, size_t i, size_t range,
				  uint64_t *begin, uint64_t *end)
{
	const struct ky_mapping *mapping;

	if (i >= kymo_field_class_n_labels(cls))
		return false;
	mapping = &field_class_number(cls)->num.mappings[i];
	if (range >= mapping->n_ranges)
		return false;
	if (begin)
		*begin = mapping->ranges[range].begin.u;
	if (end)
		*end = mapping->ranges[range].end.u;
	return true;
}

const char *kymo_field_class_label_of(const struct kymo_field_class *cls, uint64_t value)
{
	return field_class_number(cls) ? ky_enum_label(field_class_number(cls), value) : NULL;
}

/* ---- what consists of others ---------------------------------------------------------------- */

size_t kymo_field_class_n_members(const struct kymo_field_class *cls)
{
	const struct ky_field_class *in = field_class_in(cls);

	if (!in)
		return 0;
	if (in->kind == KY_FIELD_STRUCT)
		return in->st.n_members;
	return in->kind == KY_FIELD_OPTIONAL || in->kind == KY_FIELD_VARIANT ? in->var.n_options
									     : 0;
}

const struct kymo_field_class *kymo_field_class_member(const struct kymo_field_class *cls, size_t i)
{
	const struct ky_field_class *in = field_class_in(cls);

	if (i >= kymo_field_class_n_members(cls))
		return NULL;
	return field_class_out(in->kind == KY_FIELD_STRUCT ? in->st.members[i].cls
							   : in->var.options[i].cls);
}

const char *kymo_field_class_member_name(const struct kymo_field_class *cls, size_t i)
{
	const struct ky_field_class *in = field_class_in(cls);

	if (i >= kymo_field_class_n_members(cls))
		return NULL;
	return in->kind == KY_FIELD_STRUCT ? in->st.members[i].display : in->var.options[i].display;
}

const struct kymo_field_class *kymo_field_class_find_member(const struct kymo_field_class *cls,
							    const char *name)
{
	for (size_t i = 0; name && i < kymo_field_class_n_members(cls); i++) {
		const char *here = kymo_field_class_member_name(cls, i);

		if (here && !strcmp(here, name))
			return kymo_field_class_member(cls, i);
	}
	return NULL;
}

const struct kymo_field_class *kymo_field_class_element(const struct kymo_field_class *cls)
{
	const struct ky_field_class *in = field_class_in(cls);

	return in && in->kind == KY_FIELD_ARRAY ? field_class_out(in->array.element) : NULL;
}

uint64_t kymo_field_class_length(const struct kymo_field_class *cls)
{
	const struct ky_field_class *in = field_class_in(cls);

	if (!in)
		return 0;
	switch (in->kind) {
	case KY_FIELD_ARRAY:
		return in->array.length_ref ? KYMO_VARIES : in->array.length;
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return in->text.length_ref ? KYMO_VARIES : in->text.length_bytes;
	default:
		return KYMO_VARIES;
	}
}

const struct kymo_field_class *
kymo_field_class_length_or_selector(const struct kymo_field_class *cls, enum kymo_scope *scope)
{
	const struct ky_field_ref *ref = cls ? ky_field_ref_of(field_class_in(cls)) : NULL;

	if (!ref)
		return NULL;
	if (scope)
		*scope = (enum kymo_scope)ref->scope;
	return field_class_out(ref->target);
}

bool kymo_field_class_option_range(const struct kymo_field_class *cls, size_t i, size_t range,
				   uint64_t *begin, uint64_t *end)
{
	const struct ky_field_class *in = field_class_in(cls);

	if (!in || (in->kind != KY_FIELD_VARIANT && in->kind != KY_FIELD_OPTIONAL) ||
	    i >= in->var.n_options || range >= in->var.options[i].n_ranges)
		return false;
	if (begin)
		*begin = in->var.options[i].ranges[range].begin.u;
	if (end)
		*end = in->var.options[i].ranges[range].end.u;
	return true;
}
