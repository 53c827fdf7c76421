/* SPDX-License-Identifier: MIT */
/* Numbers: of one order of bits, of no more than 64 bits, and with labels where they select. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/metadata/downgrade-internal.h"
#include "ctf/model/walk.h"

/* ---- labels --------------------------------------------------------------------------------- */

static int downgrade_numbers_by_begin(const void *a, const void *b, void *is_signed)
{
	const struct ky_range *x = a, *y = b;

	if (*(const bool *)is_signed)
		return x->begin.s < y->begin.s ? -1 : x->begin.s > y->begin.s;
	return x->begin.u < y->begin.u ? -1 : x->begin.u > y->begin.u;
}

static __int128 bound(uint64_t value, bool is_signed)
{
	return is_signed ? (__int128)(int64_t)value : (__int128)value;
}

/* All values of @cls that none of @ranges holds. */
static int other_ranges(struct ky_downgrade *l, const struct ky_field_class *cls,
			const struct ky_range *ranges, size_t n_ranges, struct ky_mapping *mapping)
{
	bool is_signed = ky_field_is_signed(cls);
	uint32_t bits = cls->num.length_bits - is_signed;
	__int128 max = ((__int128)1 << bits) - 1, next = is_signed ? -max - 1 : 0;
	struct ky_range *sorted, *others;
	size_t n = 0;

	sorted = ky_arena_memdup(&l->trace->arena, ranges, n_ranges * sizeof(*ranges));
	others = ky_arena_array(&l->trace->arena, n_ranges + 1, sizeof(*others));
	if (!sorted || !others)
		return ky_error_nomem(l->err);
	qsort_r(sorted, n_ranges, sizeof(*sorted), downgrade_numbers_by_begin, &is_signed);
	for (size_t i = 0; i < n_ranges && next <= max; i++) {
		__int128 begin = bound(sorted[i].begin.u, is_signed);
		__int128 end = bound(sorted[i].end.u, is_signed);

		if (begin > max)
			begin = max + 1;
		if (begin > next) {
			others[n].begin.u = (uint64_t)next;
			others[n++].end.u = (uint64_t)(begin - 1);
		}
		if (end >= next)
			next = end + 1;
	}
	if (next <= max) {
		others[n].begin.u = (uint64_t)next;
		others[n++].end.u = (uint64_t)max;
	}
	mapping->ranges = others;
	mapping->n_ranges = n;
	return KYMO_OK;
}

int ky_downgrade_label_two(struct ky_downgrade *l, struct ky_field_class *cls, const char *in,
			   const struct ky_range *ranges, size_t n_ranges, const char *out)
{
	struct ky_mapping *mappings = ky_arena_array(&l->trace->arena, 2, sizeof(*mappings));

	if (!mappings || other_ranges(l, cls, ranges, n_ranges, &mappings[0]) < 0)
		return ky_error_nomem(l->err);
	mappings[0].label = out;
	mappings[1] = (struct ky_mapping){in, ranges, n_ranges};
	cls->num.mappings = mappings;
	cls->num.n_mappings = 2;
	cls->num.is_enum = true;
	return KYMO_OK;
}

/* ---- more than 64 bits ---------------------------------------------------------------------- */

/* Words may begin inside of a byte, where the number does or where the last one is not whole. */
static struct ky_field_class *word_class(struct ky_downgrade *l,
					 const struct ky_field_class *number, uint32_t at_bits,
					 uint32_t bits)
{
	struct ky_field_class *word = ky_field_class_new(l->trace, KY_FIELD_UINT);

	if (!word)
		return NULL;
	word->align_bits = number->align_bits % 8 || at_bits % 8 ? 1 : 8;
	word->num.length_bits = bits;
	word->num.base = 16;
	word->num.big_endian = number->num.big_endian;
	return word;
}

/*
 * A structure of 64-bit words, where the bits of the number are: the least significant word comes
 * first when it is little-endian, else last. Their names tell which of its bits they are.
 */
static int lower_words(struct ky_downgrade *l, struct ky_field_class *cls)
{
	uint32_t bits = cls->num.length_bits, n = (bits + 63) / 64;
	struct ky_member *members = ky_arena_array(&l->trace->arena, n, sizeof(*members));
	struct ky_field_class number = *cls;

	if (!members)
		return ky_error_nomem(l->err);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = 64 * i, upto = from + 64 < bits ? from + 64 : bits;
		struct ky_member *m = &members[number.num.big_endian ? n - 1 - i : i];

		m->cls = word_class(l, &number, number.num.big_endian ? bits - upto : from,
				    upto - from);
		m->display = ky_arena_printf(&l->trace->arena, "bits_%u_%u", from, upto - 1);
		m->name = ky_arena_printf(&l->trace->arena, "_bits_%u_%u", from, upto - 1);
		if (!m->cls || !m->display || !m->name)
			return ky_error_nomem(l->err);
		/* The sign is in the highest. */
		if (number.kind == KY_FIELD_SINT && i == n - 1)
			m->cls->kind = KY_FIELD_SINT;
	}
	memset(&cls->st, 0, sizeof(cls->st));
	cls->kind = KY_FIELD_STRUCT;
	cls->st.members = members;
	cls->st.n_members = n;
	cls->st.min_align_bits = number.align_bits;
	return KYMO_OK;
}

/* ---- the others ----------------------------------------------------------------------------- */

/* Integers of variable length get all the bits that they may have; bits have one order. */
static void plain_bits(struct ky_downgrade *l, struct ky_field_class *cls)
{
	cls->num.bits_reversed = false;
	if (cls->kind != KY_FIELD_VARUINT && cls->kind != KY_FIELD_VARSINT)
		return;
	cls->kind = cls->kind == KY_FIELD_VARUINT ? KY_FIELD_UINT : KY_FIELD_SINT;
	cls->num.length_bits = 64;
	cls->num.big_endian = l->trace->big_endian;
}

static int lower_bool(struct ky_downgrade *l, struct ky_field_class *cls)
{
	static const struct ky_range no = {{0}, {0}};

	/* It says yes or no, however long it is. */
	if (cls->num.length_bits > 64)
		cls->num.length_bits = 8;
	cls->kind = KY_FIELD_UINT;
	cls->num.base = 10;
	return ky_downgrade_label_two(l, cls, "false", &no, 1, "true");
}

int ky_downgrade_number(struct ky_downgrade *l, struct ky_field_class *cls)
{
	plain_bits(l, cls);
	/* CTF 1.8 has floats of up to 128 bits. */
	if (cls->kind == KY_FIELD_FLOAT && cls->num.length_bits <= 128)
		return KYMO_OK;
	if (cls->kind == KY_FIELD_BOOL)
		return lower_bool(l, cls);
	if (cls->num.length_bits > 64)
		return lower_words(l, cls);
	if (cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT)
		return KYMO_OK;
	cls->num.base = 16;
	if (cls->kind == KY_FIELD_BITMAP)
		cls->num.n_mappings = 0;
	cls->kind = KY_FIELD_UINT;
	return KYMO_OK;
}

/* ---- roles ---------------------------------------------------------------------------------- */

/* In CTF 1.8 any field that a clock is mapped to tells a time. */
static void give_role(struct ky_field_class *cls, enum ky_role role)
{
	cls->role = role;
	cls->more_roles = 0;
	if (role != KY_ROLE_CLOCK_BEGIN && role != KY_ROLE_CLOCK_END)
		cls->num.clock = NULL;
}

/*
 * Of several fields with one role in a structure the last counts, and CTF 1.8 has one name for it: those
 * before become plain fields. Times, which all move the clock, stay mapped to it.
 */
static void drop_roles(struct ky_field_class *st)
{
	uint32_t seen = 0;

	for (size_t i = st->st.n_members; i-- > 0;) {
		struct ky_field_class *cls = st->st.members[i].cls;

		if (cls->role == KY_ROLE_NONE || cls->role == KY_ROLE_CPU_ID)
			continue;
		if (seen & UINT32_C(1) << cls->role) {
			if (cls->role != KY_ROLE_CLOCK_BEGIN && ky_field_is_num(cls))
				cls->num.clock = NULL;
			cls->role = KY_ROLE_NONE;
		}
		seen |= UINT32_C(1) << cls->role;
	}
}

int ky_downgrade_roles(struct ky_downgrade *l, struct ky_field_class *st)
{
	size_t n = st->st.n_members, at = 0;
	struct ky_member *members;

	for (size_t i = 0; i < st->st.n_members; i++)
		n += (size_t)__builtin_popcount(st->st.members[i].cls->more_roles);
	if (n == st->st.n_members) {
		drop_roles(st);
		return KYMO_OK;
	}
	members = ky_arena_array(&l->trace->arena, n, sizeof(*members));
	if (!members)
		return ky_error_nomem(l->err);
	for (size_t i = 0; i < st->st.n_members; i++) {
		struct ky_field_class *cls = st->st.members[i].cls;

		members[at++] = st->st.members[i];
		for (uint32_t more = cls->more_roles; more; more &= more - 1) {
			struct ky_field_class *copy = ky_field_class_new(l->trace, cls->kind);

			if (!copy)
				return ky_error_nomem(l->err);
			*copy = *cls;
			give_role(copy, (enum ky_role)__builtin_ctz(more));
			members[at] = st->st.members[i];
			members[at++].cls = copy;
		}
		if (cls->more_roles)
			give_role(cls, cls->role);
	}
	st->st.members = members;
	st->st.n_members = n;
	drop_roles(st);
	return KYMO_OK;
}
