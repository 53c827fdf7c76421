/* SPDX-License-Identifier: MIT */
/* CTF 1.8: which values of a variant's selector mean which option, by the labels of the enumeration. */
#include <string.h>

#include "ctf/finish.h"
#include "ctf/model.h"

/* The option that @label selects: the one of that name, else the one displayed so. */
static struct ky_option *option_of_label(struct ky_field_class *variant, const char *label)
{
	struct ky_option *displayed = NULL;

	for (size_t i = 0; i < variant->var.n_options; i++) {
		struct ky_option *option = &variant->var.options[i];

		if (!strcmp(option->name, label))
			return option;
		if (!strcmp(option->display, label))
			displayed = option;
	}
	return displayed;
}

static int add_ranges(struct ky_trace_class *trace, struct ky_option *option,
		      const struct ky_mapping *mapping)
{
	size_t n = option->n_ranges + mapping->n_ranges;
	struct ky_range *ranges;

	if (!option->n_ranges) {
		option->ranges = mapping->ranges;
		option->n_ranges = n;
		return KYMO_OK;
	}
	ranges = ky_arena_array(&trace->arena, n, sizeof(*ranges));
	if (!ranges)
		return KYMO_E_MEMORY;
	memcpy(ranges, option->ranges, option->n_ranges * sizeof(*ranges));
	memcpy(ranges + option->n_ranges, mapping->ranges, mapping->n_ranges * sizeof(*ranges));
	option->ranges = ranges;
	option->n_ranges = n;
	return KYMO_OK;
}

int ky_variant_ranges(struct ky_trace_class *trace, struct ky_field_class *variant,
		      uint64_t *budget)
{
	const struct ky_field_class *tag = variant->var.selector->target;

	for (size_t i = 0; i < variant->var.n_options; i++) {
		variant->var.options[i].ranges = NULL;
		variant->var.options[i].n_ranges = 0;
	}
	for (size_t i = 0; i < tag->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &tag->num.mappings[i];
		struct ky_option *option = option_of_label(variant, mapping->label);
		uint64_t work = variant->var.n_options + (option ? option->n_ranges : 0) + 1;

		if (work > *budget)
			return KYMO_E_LIMIT;
		*budget -= work;
		if (option && add_ranges(trace, option, mapping) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}
