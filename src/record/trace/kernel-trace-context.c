/* SPDX-License-Identifier: MIT */
/* Filters that compare context fields which the recording does not have: how it gets them. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "record/trace/kernel-trace-internal.h"

#define NAME_BYTES 128

/* Does a counter's name become @field in a trace, where names have no '-'? */
static bool is_field_of(const struct ky_os_counter *counter, const char *field)
{
	const char *name = counter->name;

	for (; *name && *field; name++, field++)
		if (*name != *field && !(*name == '-' && *field == '_'))
			return false;
	return !*name && !*field;
}

/* "perf_cpu_page_faults" is asked for as "perf:cpu:page-faults". */
static bool spell_counter(const char *field, char text[NAME_BYTES])
{
	static const char *const prefixes[][2] = {{"perf_cpu_", "perf:cpu:"},
						  {"perf_thread_", "perf:thread:"}};
	const struct ky_os_counter *counter;

	for (size_t p = 0; p < 2; p++) {
		size_t len = strlen(prefixes[p][0]);

		if (strncmp(field, prefixes[p][0], len) != 0)
			continue;
		for (size_t i = 0; (counter = ky_os_counter_at(i)); i++)
			if (is_field_of(counter, field + len) &&
			    (!p || ky_counter_has_threads(counter))) {
				snprintf(text, NAME_BYTES, "%s%s", prefixes[p][1], counter->name);
				return true;
			}
	}
	return false;
}

/* The context that @name was meant for, where it is near enough. NULL: none is. */
static const char *kernel_trace_context_nearest(const char *name)
{
	size_t best = strlen(name) / 3 + 1;
	const char *found = NULL, *other;

	for (size_t i = 0; (other = ky_convert_context_name(i)); i++) {
		size_t distance = ky_edit_distance(name, other);

		if (distance <= best && (!found || distance < best)) {
			found = other;
			best = distance;
		}
	}
	return found;
}

void ky_kernel_trace_explain_context(const struct ky_kernel_trace *kernel, const char *filter,
				     struct kymo_error *err)
{
	const struct ky_trace_class *trace = kernel->trace;
	char name[NAME_BYTES], text[NAME_BYTES];
	const char *near;

	if (!ky_filter_missing_context(filter, &trace, 1, name, sizeof(name)))
		return;
	if (ky_convert_context_find(name, strlen(name)))
		snprintf(text, sizeof(text), "%s", name);
	else if (!spell_counter(name, text)) {
		near = kernel_trace_context_nearest(name);
		if (near)
			ky_error_hint(err, "did you mean $ctx.%s? It needs %s in the context", near,
				      near);
		else
			ky_error_hint(err, "the help of kymo record names the context fields");
		return;
	}
	if (kernel->is_running)
		ky_error_hint(err,
			      "this recording was started without %s in the context, and a running "
			      "recording cannot add context fields: start another with it",
			      text);
	else
		ky_error_hint(err,
			      "add %s to the context: a recording has only the context fields that "
			      "it selects",
			      text);
}
