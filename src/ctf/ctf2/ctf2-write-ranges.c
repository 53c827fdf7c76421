/* SPDX-License-Identifier: MIT */
/* Integer range sets as CTF 2 metadata: what labels, flags and options stand for. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "ctf/ctf2/ctf2-read.h"
#include "ctf/ctf2/ctf2-writer.h"

static void put_bound(struct ky_ctf2_writer *w, uint64_t value, bool is_signed)
{
	if (is_signed)
		ky_strbuf_addi(&w->out, (int64_t)value);
	else
		ky_strbuf_addu(&w->out, value);
}

void ky_ctf2_put_ranges(struct ky_ctf2_writer *w, const struct ky_range *ranges, size_t n,
			bool is_signed)
{
	for (size_t i = 0; i < n; i++) {
		if (w->out.data[w->out.len - 1] != '[')
			ky_strbuf_adds(&w->out, ", ");
		if (ky_range_is_never(&ranges[i])) {
			/* In words that are allowed, and mean the same. */
			ky_strbuf_adds(&w->out,
				       is_signed ? "[9223372036854775808, 9223372036854775808]"
						 : "[-1, -1]");
			continue;
		}
		ky_strbuf_addc(&w->out, '[');
		put_bound(w, ranges[i].begin.u, is_signed);
		ky_strbuf_adds(&w->out, ", ");
		put_bound(w, ranges[i].end.u, is_signed);
		ky_strbuf_addc(&w->out, ']');
	}
}

bool ky_ctf2_is_signed(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
}

/* ---- labels ------------------------------------------------------------------------------------- */

/* A mapping, and the place of the first with its label. */
struct labelled {
	const struct ky_mapping *mapping;
	size_t index, first;
};

static int by_label(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;
	int order = strcmp(x->mapping->label, y->mapping->label);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int by_first(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* The mappings of @cls, those with one label beside each other; NULL: no memory. */
static struct labelled *by_labels(const struct ky_field_class *cls)
{
	struct labelled *all = calloc(cls->num.n_mappings, sizeof(*all));

	if (!all)
		return NULL;
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		all[i].mapping = &cls->num.mappings[i];
		all[i].index = i;
	}
	qsort(all, cls->num.n_mappings, sizeof(*all), by_label);
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		bool is_other = !i || strcmp(all[i].mapping->label, all[i - 1].mapping->label) != 0;

		all[i].first = is_other ? all[i].index : all[i - 1].first;
	}
	qsort(all, cls->num.n_mappings, sizeof(*all), by_first);
	return all;
}

/* The ranges of @n mappings with one label, as a reader will have them: sorted, without overlaps. */
static int put_united(struct ky_ctf2_writer *w, const struct labelled *same, size_t n,
		      bool is_signed)
{
	struct ky_range *ranges;
	size_t n_ranges = 0;

	for (size_t i = 0; i < n; i++)
		n_ranges += same[i].mapping->n_ranges;
	ranges = calloc(n_ranges + 1, sizeof(*ranges));
	if (!ranges)
		return ky_error_nomem(w->err);
	n_ranges = 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < same[i].mapping->n_ranges; j++) {
			if (!ky_range_is_never(&same[i].mapping->ranges[j]))
				ranges[n_ranges++] = same[i].mapping->ranges[j];
		}
	}
	if (n_ranges)
		n_ranges = ky_ctf2_unite(ranges, n_ranges, is_signed);
	else
		ranges[n_ranges++] = KY_RANGE_NEVER;
	ky_ctf2_put_ranges(w, ranges, n_ranges, is_signed);
	free(ranges);
	return KYMO_OK;
}

int ky_ctf2_put_mappings(struct ky_ctf2_writer *w, const char *name,
			 const struct ky_field_class *cls)
{
	struct labelled *all;
	size_t n = cls->num.n_mappings, end;
	int ret = KYMO_OK;

	if (!n)
		return KYMO_OK;
	all = by_labels(cls);
	if (!all)
		return ky_error_nomem(w->err);
	ky_ctf2_put_key(w, name);
	ky_ctf2_open_with(w, '{');
	for (size_t i = 0; i < n && ret == KYMO_OK; i = end) {
		for (end = i + 1; end < n && all[end].first == all[i].first;)
			end++;
		ky_ctf2_put_key(w, all[i].mapping->label);
		ky_strbuf_addc(&w->out, '[');
		ret = put_united(w, &all[i], end - i, ky_ctf2_is_signed(cls));
		ky_strbuf_addc(&w->out, ']');
	}
	ky_ctf2_close_with(w, '}');
	free(all);
	return ret;
}
