/* SPDX-License-Identifier: MIT */
/*
 * Lengths, optional fields and variants. What CTF 1.8 cannot refer to, or what has no labels for
 * all that it selects, gets a copy before the field that it is for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/metadata/downgrade-internal.h"
#include "ctf/metadata/same-labels.h"
#include "ctf/tsdl/tsdl-lex.h"
#include "ctf/model/walk.h"

/* ---- copies --------------------------------------------------------------------------------- */

/* @ref refers to a copy from now on, which holds what @kind can hold. NULL: no memory. */
static struct ky_field_class *copy_for(struct ky_downgrade *l, struct ky_field_ref *ref,
				       enum ky_field_kind kind, const char *what)
{
	struct ky_field_class *cls = ky_field_class_new(l->trace, kind);

	if (!cls || ky_vec_push(&l->copies, (struct ky_downgrade_copy){cls, what}) < 0) {
		ky_error_nomem(l->err);
		return NULL;
	}
	cls->align_bits = 8;
	cls->num.length_bits = 64;
	cls->num.base = 10;
	cls->num.big_endian = l->trace->big_endian;
	ref->target = cls;
	ref->text = NULL;
	ref->n_more = 0;
	ref->choice = NULL;
	ref->scope = l->scope;
	return cls;
}

/* What lies in an option CTF 1.8 may find, but not in any of several; and not all readers look there. */
static bool needs_copy(const struct ky_field_ref *ref)
{
	return ref->n_more || ref->choice;
}

/* ---- selectors ------------------------------------------------------------------------------ */

static bool stands_in(const struct ky_downgrade *l, const struct ky_downgrade_open *open,
		      const struct ky_field_class *cls)
{
	return ky_map_get(&l->done, (uint64_t)(uintptr_t)cls) == open->st;
}

static bool downgrade_choice_has_name(const struct ky_downgrade_open *open, const char *name)
{
	ky_vec_foreach(open->done, member) {
		if (strcmp(member->name, name) == 0)
			return true;
	}
	return false;
}

/* Does the name of @tag, a member of a structure around, lead to it from here? */
static bool name_leads_to(const struct ky_downgrade *l, const struct ky_field_class *tag)
{
	size_t n = l->open.len, at = n;

	while (at && !stands_in(l, &l->open.data[at - 1], tag))
		at--;
	if (!at)
		return false;
	/* Where it stands in the innermost one, nothing comes between. */
	ky_vec_foreach(l->open.data[at - 1].done, m) {
		if (at == n)
			break;
		for (size_t inner = at; m->cls == tag && inner < n; inner++) {
			if (downgrade_choice_has_name(&l->open.data[inner], m->name))
				return false;
		}
	}
	return true;
}

/*
 * What selects an option of @cls: neither Babeltrace's grammar has more than one name there, which is
 * looked for in the same scope; and Babeltrace 1 finds only what stands in the same structure. In
 * headers, which are better left alone, the latter is not asked for.
 */
static bool needs_near_selector(const struct ky_downgrade *l, const struct ky_field_class *cls)
{
	const struct ky_field_ref *ref = cls->var.selector;
	const struct ky_downgrade_open *here = ky_vec_last(&l->open);

	if (needs_copy(ref) || ref->scope != l->scope)
		return true;
	if (stands_in(l, here, ref->target))
		return false;
	if (l->scope >= KY_SCOPE_STREAM_CONTEXT && here->st->st.members[*here->index].cls == cls)
		return true;
	return !name_leads_to(l, ref->target);
}

/* Of the same sign, so that ranges mean the same. */
static struct ky_field_class *copy_of_selector(struct ky_downgrade *l, struct ky_field_ref *ref)
{
	return copy_for(l, ref, ky_field_is_signed(ref->target) ? KY_FIELD_SINT : KY_FIELD_UINT,
			"selector");
}

int ky_downgrade_length(struct ky_downgrade *l, struct ky_field_class *cls)
{
	struct ky_field_ref *ref = ky_field_ref_of(cls);

	if (!ref || !needs_copy(ref))
		return KYMO_OK;
	return copy_for(l, ref, KY_FIELD_UINT, "length") ? KYMO_OK : KYMO_E_MEMORY;
}

/* ---- labels --------------------------------------------------------------------------------- */

/* Where the labels of a tag are, in their order. */
struct labels {
	const struct ky_field_class *tag;
	size_t *order; /* NULL: as they stand */
};

static int compare_labels(const void *a, const void *b, void *tag)
{
	const struct ky_mapping *mappings = ((const struct ky_field_class *)tag)->num.mappings;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return strcmp(mappings[x].label, mappings[y].label) ?: (x > y) - (x < y);
}

/* Labels of the same name are not many, or few labels are looked through. labels_fini() is due. */
static bool labels_init(struct labels *labels, const struct ky_field_class *tag)
{
	labels->tag = tag;
	labels->order = calloc(tag->num.n_mappings + 1, sizeof(*labels->order));
	if (!labels->order)
		return false;
	for (size_t i = 0; i < tag->num.n_mappings; i++)
		labels->order[i] = i;
	qsort_r(labels->order, tag->num.n_mappings, sizeof(*labels->order), compare_labels,
		(void *)(uintptr_t)tag);
	return true;
}

static void labels_fini(struct labels *labels)
{
	free(labels->order);
}

/* The first label that is not before @name. */
static size_t first_label(const struct labels *labels, const char *name)
{
	size_t from = 0, upto = labels->tag->num.n_mappings;

	while (from < upto) {
		size_t middle = from + (upto - from) / 2;

		if (strcmp(labels->tag->num.mappings[labels->order[middle]].label, name) < 0)
			from = middle + 1;
		else
			upto = middle;
	}
	return from;
}

/* Do the labels @name of the tag stand for the very ranges that select @option? */
static bool label_selects(const struct labels *labels, const char *name,
			  const struct ky_option *option)
{
	KY_VEC(struct ky_range) ranges = KY_VEC_INIT;
	bool selects = true;

	for (size_t i = first_label(labels, name); i < labels->tag->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &labels->tag->num.mappings[labels->order[i]];

		if (strcmp(mapping->label, name) != 0)
			break;
		for (size_t j = 0; j < mapping->n_ranges && selects; j++)
			selects = ranges.len < option->n_ranges &&
				  ky_vec_push(&ranges, mapping->ranges[j]) == 0;
	}
	selects = selects &&
		  ky_same_ranges(ranges.data, ranges.len, option->ranges, option->n_ranges);
	ky_vec_fini(&ranges);
	return selects;
}

static bool downgrade_choice_is_never(const struct ky_option *option)
{
	return option->n_ranges == 1 && ky_range_is_never(option->ranges);
}

/*
 * What no number selects needs a label all the same: Babeltrace 2 gives up where an option has none. The
 * copy of a selector that is shorter than itself has numbers to spare: *@n from the greatest on down.
 */
static int spare_number(struct ky_downgrade *l, const struct ky_field_class *tag,
			struct ky_option *option, uint64_t *n)
{
	struct ky_range *range = ky_arena_array(&l->trace->arena, 1, sizeof(*range));

	if (!range)
		return ky_error_nomem(l->err);
	range->begin.u = (ky_field_is_signed(tag) ? (uint64_t)INT64_MAX : UINT64_MAX) - (*n)++;
	range->end = range->begin;
	option->ranges = range;
	return KYMO_OK;
}

static bool has_spare_numbers(const struct ky_field_class *tag)
{
	return (tag->kind == KY_FIELD_UINT || tag->kind == KY_FIELD_SINT) &&
	       tag->num.length_bits < 64;
}

/* ---- optional fields ------------------------------------------------------------------------ */

/*
 * The labels that select nothing, or the field. Of a boolean there are some; an integer that has none
 * gets some; one that has others cannot serve.
 */
static bool tag_selects(const struct ky_field_class *tag, const char *name,
			const struct ky_option *option)
{
	struct labels labels;
	bool selects = labels_init(&labels, tag) && label_selects(&labels, name, option);

	labels_fini(&labels);
	return selects;
}

static int optional_labels(struct ky_downgrade *l, const struct ky_field_class *cls,
			   struct ky_option *present, const char **in, const char **out)
{
	struct ky_field_ref *ref = cls->var.selector;
	static const struct ky_range no = {{0}, {0}};
	struct ky_field_class *tag = ref->target;
	bool by_bool = !present->n_ranges,
	     spare = downgrade_choice_is_never(present) && has_spare_numbers(tag);
	bool copy = needs_near_selector(l, cls) || spare;
	uint64_t n_spare = 0;

	*in = by_bool ? "true" : "present";
	*out = by_bool ? "false" : "absent";
	if (!copy && (by_bool || tag_selects(tag, *in, present)))
		return KYMO_OK;
	if (copy || tag->num.n_mappings)
		tag = copy_of_selector(l, ref);
	if (!tag || (spare && spare_number(l, tag, present, &n_spare) < 0))
		return KYMO_E_MEMORY;
	if (by_bool)
		return ky_downgrade_label_two(l, tag, *out, &no, 1, *in);
	return ky_downgrade_label_two(l, tag, *in, present->ranges, present->n_ranges, *out);
}

int ky_downgrade_optional(struct ky_downgrade *l, struct ky_field_class *cls)
{
	struct ky_option *options = ky_arena_array(&l->trace->arena, 2, sizeof(*options));
	const char *in, *out;
	int ret;

	if (!options)
		return ky_error_nomem(l->err);
	options[1] = cls->var.options[0];
	options[0].cls = ky_field_class_new(l->trace, KY_FIELD_STRUCT);
	if (!options[0].cls)
		return ky_error_nomem(l->err);
	ret = optional_labels(l, cls, &options[1], &in, &out);
	options[0].name = options[0].display = out;
	options[1].name = options[1].display = in;
	cls->kind = KY_FIELD_VARIANT;
	cls->var.options = options;
	cls->var.n_options = 2;
	return ret;
}

/* ---- variants ------------------------------------------------------------------------------- */

/*
 * The label of @tag that selects @option: it may bear the '_' that the option's name is shown
 * without. NULL: none does.
 */
static const char *downgrade_choice_label_of(const struct labels *labels,
					     const struct ky_option *option, const char *with)
{
	if (ky_tsdl_is_name(option->display) && option->display[0] != '_' &&
	    label_selects(labels, option->display, option))
		return option->display;
	return ky_tsdl_is_name(with) && label_selects(labels, with, option) ? with : NULL;
}

/* Take the labels of @tag as names of options, when they select them. *serves: they do. */
static int take_labels(struct ky_downgrade *l, const struct ky_field_class *tag,
		       struct ky_field_class *variant, bool *serves)
{
	struct labels labels;
	int ret = KYMO_OK;

	*serves = tag->num.n_mappings > 0;
	if (!*serves)
		return KYMO_OK;
	if (!labels_init(&labels, tag))
		return ky_error_nomem(l->err);
	for (size_t i = 0; i < variant->var.n_options && *serves && !ret; i++) {
		struct ky_option *option = &variant->var.options[i];
		const char *with, *label;

		with = option->display ? ky_arena_printf(&l->trace->arena, "_%s", option->display)
				       : "";
		if (!with)
			ret = ky_error_nomem(l->err);
		label = with && *with ? downgrade_choice_label_of(&labels, option, with) : NULL;
		*serves = label;
		option->name = label;
	}
	labels_fini(&labels);
	return ret;
}

/* The options' names become labels. */
static int give_labels(struct ky_downgrade *l, struct ky_field_class *tag,
		       const struct ky_field_class *variant)
{
	struct ky_mapping *mappings =
		ky_arena_array(&l->trace->arena, variant->var.n_options, sizeof(*mappings));

	if (!mappings)
		return ky_error_nomem(l->err);
	for (size_t i = 0; i < variant->var.n_options; i++) {
		const struct ky_option *option = &variant->var.options[i];

		mappings[i].label = option->name;
		mappings[i].ranges = option->ranges;
		mappings[i].n_ranges = option->n_ranges;
	}
	tag->num.mappings = mappings;
	tag->num.n_mappings = variant->var.n_options;
	tag->num.is_enum = true;
	return KYMO_OK;
}

static bool has_never(const struct ky_field_class *variant)
{
	for (size_t i = 0; i < variant->var.n_options; i++) {
		if (downgrade_choice_is_never(&variant->var.options[i]))
			return true;
	}
	return false;
}

int ky_downgrade_variant(struct ky_downgrade *l, struct ky_field_class *cls)
{
	struct ky_field_ref *ref = cls->var.selector;
	struct ky_field_class *tag = ref->target;
	bool serves = false, spare = has_spare_numbers(tag) && has_never(cls);
	bool copy = needs_near_selector(l, cls) || spare;
	int ret = copy ? KYMO_OK : take_labels(l, tag, cls, &serves);
	uint64_t n_spare = 0;

	if (ret < 0 || serves)
		return ret;
	ret = ky_downgrade_option_names(l, cls);
	if (ret < 0)
		return ret;
	if (copy || tag->num.n_mappings)
		tag = copy_of_selector(l, ref);
	if (!tag)
		return KYMO_E_MEMORY;
	for (size_t i = 0; spare && i < cls->var.n_options; i++) {
		struct ky_option *option = &cls->var.options[i];

		if (downgrade_choice_is_never(option) && spare_number(l, tag, option, &n_spare) < 0)
			return KYMO_E_MEMORY;
	}
	return give_labels(l, tag, cls);
}
