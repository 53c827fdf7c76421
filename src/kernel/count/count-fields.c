/* SPDX-License-Identifier: MIT */
/* What events are counted by that is no field of a condition: the event, and call stacks. */
#include <string.h>

#include "kernel/count/count-internal.h"

static const struct {
	const char *name;
	enum ky_count_source source;
} count_fields_stacks[] = {
	{"kernel_stack", KY_COUNT_KERNEL_STACK},
	{"user_stack", KY_COUNT_USER_STACK},
};

bool ky_count_find_field(const struct ky_count_event *event, enum ky_name_kind kind,
			 const char *name, struct ky_condition_field *to,
			 const struct ky_event_field **source)
{
	const struct ky_condition_event of = {
		.name = event->name, .fields = event->fields, .n_fields = event->n_fields};

	if (ky_condition_find_field(&of, kind, name, to, source))
		return true;
	if (*source)
		return false;
	if (kind == KY_NAME_EVENT)
		to->source = KY_COUNT_EVENT;
	for (size_t i = 0; i < sizeof(count_fields_stacks) / sizeof(count_fields_stacks[0]); i++)
		if ((kind == KY_NAME_FIELD || kind == KY_NAME_CONTEXT) &&
		    strcmp(name, count_fields_stacks[i].name) == 0)
			to->source = count_fields_stacks[i].source;
	return to->source != KY_CONDITION_NONE;
}
