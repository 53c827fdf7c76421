/* SPDX-License-Identifier: MIT */
/* Alignment and size of field classes (resolve.h). */
#include "base/bits.h"
#include "base/deep.h"
#include "ctf/resolve/resolve.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/model/walk.h"

/* Sizes beyond this are as good as unknown: no packet holds them. */
#define FIXED_BITS_MAX (INT64_C(1) << 60)

static int64_t fixed_or_unknown(unsigned __int128 bits)
{
	return bits > FIXED_BITS_MAX ? -1 : (int64_t)bits;
}

static void layout_add_member(const struct ky_field_class *member, uint32_t *align_bits,
			      int64_t *bits)
{
	if (member->align_bits > *align_bits)
		*align_bits = member->align_bits;
	if (*bits < 0 || member->fixed_bits < 0)
		*bits = -1;
	else
		*bits = fixed_or_unknown(ky_align_up((uint64_t)*bits, member->align_bits) +
					 (uint64_t)member->fixed_bits);
}

/*
 * Offsets of members are constants relative to the struct's begin, because the struct is
 * aligned at least as strictly as each member; only what follows a member of variable size moves.
 */
static void layout_struct(struct ky_field_class *cls)
{
	uint32_t align = cls->st.min_align_bits ? cls->st.min_align_bits : 1;
	int64_t bits = 0;

	for (size_t i = 0; i < cls->st.n_members; i++)
		layout_add_member(cls->st.members[i].cls, &align, &bits);
	cls->align_bits = align;
	cls->fixed_bits = bits;
}

static void layout_array(struct ky_field_class *cls)
{
	const struct ky_field_class *element = cls->array.element;
	unsigned __int128 stride;

	cls->align_bits = element->align_bits > cls->array.min_align_bits
				  ? element->align_bits
				  : cls->array.min_align_bits;
	cls->fixed_bits = -1;
	if (cls->array.length_ref || element->fixed_bits < 0)
		return;
	stride = ky_align_up((uint64_t)element->fixed_bits, element->align_bits);
	cls->fixed_bits = cls->array.length ? fixed_or_unknown((cls->array.length - 1) * stride +
							       (uint64_t)element->fixed_bits)
					    : 0;
}

void ky_struct_layout_add(struct ky_field_class *member, uint32_t *align_bits, int64_t *bits)
{
	/* What contains others knows its own layout since it was complete. */
	if (!ky_field_n_children(member))
		ky_field_layout_one(member);
	layout_add_member(member, align_bits, bits);
}

static bool half_unit(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_TEXT &&
	       cls->text.length_bytes % ky_code_unit_bytes(cls->text.encoding);
}

void ky_field_layout_one(struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		layout_struct(cls);
		break;
	case KY_FIELD_ARRAY:
		layout_array(cls);
		break;
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		cls->align_bits = 8;
		/* Half a code unit at the end is an error that depends on the text. */
		cls->fixed_bits =
			cls->text.length_ref || half_unit(cls)
				? -1
				: fixed_or_unknown((unsigned __int128)cls->text.length_bytes * 8);
		break;
	case KY_FIELD_STRING:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		cls->align_bits = 8;
		cls->fixed_bits = -1;
		break;
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		/* The selected option aligns, not the choice. */
		cls->align_bits = 1;
		cls->fixed_bits = -1;
		break;
	default:
		cls->fixed_bits = cls->num.unit_bits ? -1 : (int64_t)cls->num.length_bits;
	}
}

KY_DEEP1(int, layout, struct ky_field_class *)

static int layout(struct ky_field_class *cls)
{
	for (size_t i = 0; i < ky_field_n_children(cls); i++) {
		int ret = layout_deep(KYMO_E_MEMORY, ky_field_child(cls, i));

		if (ret < 0)
			return ret;
	}
	ky_field_layout_one(cls);
	return KYMO_OK;
}

int ky_field_layout(struct ky_field_class *cls)
{
	return layout(cls);
}
