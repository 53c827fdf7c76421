/* SPDX-License-Identifier: MIT */
/*
 * Bit fields in C's notation: "unsigned int flags : 3;". Such a field lies within one unit, of the
 * size of its type, counted from the packet's begin like all alignment: where it does not fit into
 * what is left of the unit, it begins the next one. Where the metadata tells which it is, that
 * becomes an alignment; else it is found when decoding (num.unit_bits).
 */
#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/tsdl/tsdl-parser.h"
#include "ctf/model/walk.h"

/* Does @bits more fit into the unit that is begun? 1, 0, or -1: that varies. */
static int tsdl_bits_fits(struct ky_tsdl_struct *body, uint32_t unit_bits, uint64_t bits)
{
	const struct ky_field_class *st = body->cls;

	if (!st)
		return -1;
	for (; body->n_laid_out < st->st.n_members; body->n_laid_out++)
		ky_struct_layout_add(st->st.members[body->n_laid_out].cls, &body->align_bits,
				     &body->end_bits);
	if (body->end_bits < 0 ||
	    (body->align_bits < unit_bits && st->st.min_align_bits < unit_bits))
		return -1;
	return (uint64_t)body->end_bits % unit_bits + bits <= unit_bits;
}

static int field_size(struct ky_tsdl_parser *p, const struct ky_token *name, uint32_t unit_bits,
		      uint64_t *bits)
{
	struct ky_tsdl_attr attr = {.name = "a bit field's size"};
	int ret = ky_tsdl_value(p, &attr);

	if (ret == KYMO_OK)
		ret = ky_tsdl_attr_u64(p, &attr, bits);
	if (ret == KYMO_OK && (*bits > unit_bits || (!*bits && name)))
		return ky_tsdl_fail(p, attr.value_at,
				    "a bit field of this type has 1 to %u bits, not %llu",
				    (unsigned int)unit_bits, (unsigned long long)*bits);
	return ret;
}

int ky_tsdl_bit_field(struct ky_tsdl_parser *p, const struct ky_token *name,
		      struct ky_field_class *cls)
{
	uint32_t unit_bits = ky_field_is_int(cls) ? cls->num.length_bits : 0;
	struct ky_field_class *st = p->body->cls;
	uint64_t bits;
	int ret, fit;

	if (!unit_bits || unit_bits > 64 || (unit_bits & (unit_bits - 1)))
		return ky_tsdl_fail(
			p, p->at,
			"a bit field's type must be an integer of 1, 2, 4, 8, 16, 32 or "
			"64 bits");
	ret = field_size(p, name, unit_bits, &bits);
	if (ret < 0)
		return ret;
	/* The struct is aligned like its largest type, and that is the unit. */
	if (st && cls->align_bits > st->st.min_align_bits)
		st->st.min_align_bits = cls->align_bits;
	fit = p->body->new_unit ? 0 : tsdl_bits_fits(p->body, unit_bits, bits);
	p->body->new_unit = !bits;
	cls->num.length_bits = (uint32_t)bits;
	cls->num.unit_bits = fit < 0 ? unit_bits : 0;
	cls->align_bits = fit ? 1 : unit_bits;
	return KYMO_OK;
}
