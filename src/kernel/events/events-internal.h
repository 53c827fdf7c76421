/* SPDX-License-Identifier: MIT */
/* Between events.c, which has the rules, and events-arguments.c, which knows the types of system calls' arguments. */
#ifndef KY_KERNEL_EVENTS_EVENTS_INTERNAL_H
#define KY_KERNEL_EVENTS_EVENTS_INTERNAL_H

#include "kernel/events/events.h"

/* The field of @format that is called @name; NULL: it has none. */
const struct ky_format_field *ky_event_source(const struct ky_format *format, const char *name);

/* Where @to comes from and what it is, as of a field without a rule. */
void ky_event_as_format_says(const struct ky_format_field *from, struct ky_event_field *to);

/* @to, of which this was said already, is an argument of call @format. */
void ky_event_argument(const struct ky_format *format, const struct ky_format_field *from,
		       struct ky_event_field *to);

/* Is @field no argument, but the text of one? */
bool ky_event_is_text_of_another(const struct ky_format *format,
				 const struct ky_format_field *field);

#endif
