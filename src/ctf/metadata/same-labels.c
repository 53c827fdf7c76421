/* SPDX-License-Identifier: MIT */
#include "ctf/metadata/same-labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "ctf/model/unicode.h"
#include "ctf/model/walk.h"

/* Of fewer, looking at all of them takes less than a list in order. */
#define SEARCHED_MIN 16

/* ---- labels --------------------------------------------------------------------------------- */

/* One range of one label. */
struct labelled {
	struct ky_range range;
	const char *label;
};
KY_VEC_TYPE(labelled_list, struct labelled);

static int compare_ranges(const void *a, const void *b)
{
	const struct ky_range *x = a, *y = b;

	if (x->begin.u != y->begin.u)
		return x->begin.u < y->begin.u ? -1 : 1;
	return x->end.u < y->end.u ? -1 : x->end.u > y->end.u;
}

static int compare_labelled(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;

	return compare_ranges(&x->range, &y->range) ?: ky_utf8_compare(x->label, y->label);
}

static bool list_labels(const struct ky_field_class *cls, struct labelled_list *list)
{
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &cls->num.mappings[i];

		for (size_t j = 0; j < mapping->n_ranges; j++) {
			if (!ky_range_is_never(&mapping->ranges[j]) &&
			    ky_vec_push(list,
					(struct labelled){mapping->ranges[j], mapping->label}) < 0)
				return false;
		}
	}
	return true;
}

static bool same_labels_has_label(const struct labelled_list *list, const struct labelled *labelled)
{
	if (list->len >= SEARCHED_MIN)
		return bsearch(labelled, list->data, list->len, sizeof(*list->data),
			       compare_labelled) != NULL;
	ky_vec_foreach(list, at) {
		if (compare_labelled(at, labelled) == 0)
			return true;
	}
	return false;
}

/* Labels stay; what had none may have got some, to select options by. */
bool ky_same_labels(const struct ky_field_class *a, const struct ky_field_class *b)
{
	struct labelled_list wanted = KY_VEC_INIT, there = KY_VEC_INIT;
	bool same = true;

	if (!ky_field_is_int(a) || !a->num.n_mappings)
		return true;
	same = list_labels(a, &wanted) && list_labels(b, &there);
	if (same && there.len >= SEARCHED_MIN)
		qsort(there.data, there.len, sizeof(*there.data), compare_labelled);
	for (size_t i = 0; i < wanted.len && same; i++)
		same = same_labels_has_label(&there, &wanted.data[i]);
	ky_vec_fini(&wanted);
	ky_vec_fini(&there);
	return same;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* A copy of @ranges in their order; NULL without memory. */
static struct ky_range *in_order(const struct ky_range *ranges, size_t n)
{
	struct ky_range *copy = calloc(n + 1, sizeof(*copy));

	if (!copy)
		return NULL;
	memcpy(copy, ranges, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), compare_ranges);
	return copy;
}

bool ky_same_ranges(const struct ky_range *a, size_t n_a, const struct ky_range *b, size_t n_b)
{
	struct ky_range *x, *y;
	bool same;

	if (n_a != n_b)
		return false;
	if (!n_a || memcmp(a, b, n_a * sizeof(*a)) == 0)
		return true;
	x = in_order(a, n_a);
	y = in_order(b, n_b);
	same = x && y && memcmp(x, y, n_a * sizeof(*x)) == 0;
	free(x);
	free(y);
	return same;
}
