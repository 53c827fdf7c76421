/* SPDX-License-Identifier: MIT */
/* Integer range sets of CTF 2: what labels, flags and options stand for. */
#include <stdlib.h>

#include "base/error.h"
#include "ctf/ctf2/ctf2-read.h"

static bool is_integer(const struct ky_json *node)
{
	return node->kind == KY_JSON_INTEGER || node->kind == KY_JSON_BIG;
}

static bool is_below_zero(const struct ky_json *bound)
{
	return bound->kind == KY_JSON_BIG ? *bound->number == '-' : bound->integer.negative;
}

/* @bound as a value of 64 bits: the nearest when it does not fit. */
static uint64_t ctf2_ranges_nearest(const struct ky_json *bound, bool is_signed)
{
	if (is_below_zero(bound)) {
		if (!is_signed)
			return 0;
		return bound->kind == KY_JSON_BIG ? (uint64_t)INT64_MIN : bound->integer.u;
	}
	if (bound->kind == KY_JSON_BIG || (is_signed && bound->integer.u > INT64_MAX))
		return is_signed ? INT64_MAX : UINT64_MAX;
	return bound->integer.u;
}

/* Does anything from @lower to @upper have a place in 64 bits? */
static bool is_possible(const struct ky_json *lower, const struct ky_json *upper, bool is_signed)
{
	if (is_below_zero(upper) && (!is_signed || upper->kind == KY_JSON_BIG))
		return false;
	return is_below_zero(lower) ||
	       (lower->kind == KY_JSON_INTEGER && (!is_signed || lower->integer.u <= INT64_MAX));
}

static int by_begin_u(const void *a, const void *b)
{
	const struct ky_range *x = a, *y = b;

	return (x->begin.u > y->begin.u) - (x->begin.u < y->begin.u);
}

static int by_begin_s(const void *a, const void *b)
{
	const struct ky_range *x = a, *y = b;

	return (x->begin.s > y->begin.s) - (x->begin.s < y->begin.s);
}

size_t ky_ctf2_unite(struct ky_range *ranges, size_t n, bool is_signed)
{
	size_t kept = 0;

	qsort(ranges, n, sizeof(*ranges), is_signed ? by_begin_s : by_begin_u);
	for (size_t i = 1; i < n; i++) {
		struct ky_range *last = &ranges[kept], *next = &ranges[i];

		if (is_signed ? next->begin.s > last->end.s : next->begin.u > last->end.u)
			ranges[++kept] = *next;
		else if (is_signed ? next->end.s > last->end.s : next->end.u > last->end.u)
			last->end = next->end;
	}
	return kept + 1;
}

static int ctf2_ranges_read_range(struct ky_ctf2_reader *r, const struct ky_json *item,
				  const struct ky_json **lower, const struct ky_json **upper)
{
	if (item->kind != KY_JSON_ARRAY || item->list.len != 2 || !is_integer(item->list.first) ||
	    !is_integer(item->list.first->next))
		return ky_json_error(r->err, item, "a range is an array of two integers");
	*lower = item->list.first;
	*upper = item->list.first->next;
	if (ky_json_less(*upper, *lower))
		return ky_json_error(r->err, item, "the range's bounds are reversed");
	return KYMO_OK;
}

int ky_ctf2_ranges(struct ky_ctf2_reader *r, const struct ky_json *node, bool is_signed,
		   unsigned int bits, const struct ky_range **ranges, size_t *n_ranges)
{
	struct ky_range *out;
	size_t n = 0;

	if (node->kind != KY_JSON_ARRAY || !node->list.len)
		return ky_json_error(r->err, node, "an array of integer ranges is expected");
	out = ky_arena_array(&r->trace->arena, node->list.len, sizeof(*out));
	if (!out)
		return ky_error_nomem(r->err);
	for (const struct ky_json *item = node->list.first; item; item = item->next) {
		const struct ky_json *lower = NULL, *upper = NULL;

		if (ctf2_ranges_read_range(r, item, &lower, &upper) < 0)
			return KYMO_E_FORMAT;
		out[n].begin.u = ctf2_ranges_nearest(lower, is_signed);
		out[n].end.u = ctf2_ranges_nearest(upper, is_signed);
		n += is_possible(lower, upper, is_signed) &&
		     ky_range_clip(&out[n], is_signed, bits);
	}
	if (n)
		n = ky_ctf2_unite(out, n, is_signed);
	else
		out[n++] = KY_RANGE_NEVER;
	*ranges = out;
	*n_ranges = n;
	return KYMO_OK;
}

unsigned int ky_ctf2_value_bits(const struct ky_field_class *cls)
{
	bool is_fixed = cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT;

	return is_fixed && cls->num.length_bits < 64 ? cls->num.length_bits : 64;
}
