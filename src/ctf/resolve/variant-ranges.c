/* SPDX-License-Identifier: MIT */
/* CTF 1.8: which values of a variant's selector mean which option, by the labels of the enumeration. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ctf/resolve/resolve.h"
#include "ctf/model/model.h"

/* The options of a variant, by name and as they are displayed. */
struct options {
	struct ky_names named, displayed;
};

static int list_options(struct options *options, const struct ky_field_class *variant)
{
	for (size_t i = 0; i < variant->var.n_options; i++) {
		struct ky_option *option = &variant->var.options[i];

		option->ranges = NULL;
		option->n_ranges = 0;
		if (!ky_names_get(&options->named, option->name) &&
		    ky_names_set(&options->named, option->name, option) < 0)
			return KYMO_E_MEMORY;
		if (ky_names_set(&options->displayed, option->display, option) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

/* The option that @label selects: the one of that name, else the one displayed so. */
static struct ky_option *option_of_label(const struct options *options, const char *label)
{
	struct ky_option *option = ky_names_get(&options->named, label);

	return option ? option : ky_names_get(&options->displayed, label);
}

/* How many ranges each option gets. */
static int count_ranges(const struct options *options, const struct ky_field_class *tag,
			uint64_t *budget)
{
	for (size_t i = 0; i < tag->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &tag->num.mappings[i];
		struct ky_option *option = option_of_label(options, mapping->label);
		uint64_t work = 1 + (option ? mapping->n_ranges : 0);

		if (work > *budget)
			return KYMO_E_LIMIT;
		*budget -= work;
		if (option)
			option->n_ranges += mapping->n_ranges;
	}
	return KYMO_OK;
}

/* One label's are the tag's own; several labels' are copied. */
static int add_ranges(struct ky_trace_class *trace, struct ky_option *option, size_t *n_added,
		      const struct ky_mapping *mapping)
{
	struct ky_range *ranges = (struct ky_range *)option->ranges;

	if (mapping->n_ranges == option->n_ranges) {
		option->ranges = mapping->ranges;
		return KYMO_OK;
	}
	if (!ranges) {
		ranges = ky_arena_array(&trace->arena, option->n_ranges, sizeof(*ranges));
		option->ranges = ranges;
	}
	if (!ranges)
		return KYMO_E_MEMORY;
	memcpy(ranges + *n_added, mapping->ranges, mapping->n_ranges * sizeof(*ranges));
	*n_added += mapping->n_ranges;
	return KYMO_OK;
}

static int fill_ranges(struct ky_trace_class *trace, const struct options *options,
		       const struct ky_field_class *variant)
{
	const struct ky_field_class *tag = variant->var.selector->target;
	size_t *n_added = calloc(variant->var.n_options + 1, sizeof(*n_added));
	int ret = n_added ? KYMO_OK : KYMO_E_MEMORY;

	for (size_t i = 0; i < tag->num.n_mappings && ret == KYMO_OK; i++) {
		const struct ky_mapping *mapping = &tag->num.mappings[i];
		struct ky_option *option = option_of_label(options, mapping->label);

		if (option && mapping->n_ranges)
			ret = add_ranges(trace, option, &n_added[option - variant->var.options],
					 mapping);
	}
	free(n_added);
	return ret;
}

int ky_variant_ranges(struct ky_trace_class *trace, struct ky_field_class *variant,
		      uint64_t *budget)
{
	uint64_t work = variant->var.n_options;
	struct options options;
	int ret;

	if (work > *budget)
		return KYMO_E_LIMIT;
	*budget -= work;
	ky_names_init(&options.named);
	ky_names_init(&options.displayed);
	ret = list_options(&options, variant);
	if (ret == KYMO_OK)
		ret = count_ranges(&options, variant->var.selector->target, budget);
	if (ret == KYMO_OK)
		ret = fill_ranges(trace, &options, variant);
	ky_names_fini(&options.named);
	ky_names_fini(&options.displayed);
	return ret;
}
