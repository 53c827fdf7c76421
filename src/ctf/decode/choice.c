/* SPDX-License-Identifier: MIT */
/* Which option of a variant or optional field an event has, by its selector. */
#include "ctf/decode/plan-interpreter.h"

static bool in_ranges(const struct ky_range *ranges, size_t n, uint64_t value, bool is_signed)
{
	for (size_t i = 0; i < n; i++) {
		if (is_signed ? (int64_t)value >= ranges[i].begin.s &&
					(int64_t)value <= ranges[i].end.s
			      : value >= ranges[i].begin.u && value <= ranges[i].end.u)
			return true;
	}
	return false;
}

size_t ky_option_selected(const struct ky_cursor *c, const struct ky_field_class *cls)
{
	const struct ky_field_class *tag = cls->var.selector->target;
	bool is_signed = tag->kind == KY_FIELD_SINT || tag->kind == KY_FIELD_VARSINT;
	uint64_t value = c->slots[tag->slot];
	size_t i;

	for (i = 0; i < cls->var.n_options; i++) {
		const struct ky_option *option = &cls->var.options[i];

		if (tag->kind == KY_FIELD_BOOL
			    ? value != 0
			    : in_ranges(option->ranges, option->n_ranges, value, is_signed))
			break;
	}
	return i;
}

static void count_choice(const struct ky_cursor *c, const struct ky_field_class *cls, size_t i)
{
	uint64_t number = ++c->slots[cls->var.count_slot];

	c->slots[cls->slot] = number;
	if (i == cls->var.n_options)
		return;
	for (const struct ky_option_target *at = cls->var.options[i].targets; at; at = at->next)
		c->slots[at->cls->slot + 1] = number;
}

size_t ky_option_enter(const struct ky_cursor *c, const struct ky_field_class *cls)
{
	size_t i = ky_option_selected(c, cls);

	if (__builtin_expect(cls->var.count_slot != KY_NO_SLOT, 0))
		count_choice(c, cls, i);
	return i;
}
