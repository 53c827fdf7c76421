/* SPDX-License-Identifier: MIT */
/* Where the values of names are: in the record of an event, or with the thread in which it happens. */
#include <string.h>

#include "kernel/condition/condition.h"
#include "query/nearest.h"

static const struct {
	const char *name;
	enum ky_name_kind kind; /* KY_NAME_CONTEXT: also without "$ctx." */
	enum ky_condition_source source;
} condition_contexts[] = {
	{"$cpu", KY_NAME_CPU, KY_CONDITION_CPU},
	{"cpu_id", KY_NAME_CONTEXT, KY_CONDITION_CPU},
	{"tid", KY_NAME_CONTEXT, KY_CONDITION_TID},
	{"pid", KY_NAME_CONTEXT, KY_CONDITION_PID},
	{"vtid", KY_NAME_CONTEXT, KY_CONDITION_TID},
	{"vpid", KY_NAME_CONTEXT, KY_CONDITION_PID},
	{"uid", KY_NAME_CONTEXT, KY_CONDITION_UID},
	{"procname", KY_NAME_CONTEXT, KY_CONDITION_COMM},
	{"comm", KY_NAME_CONTEXT, KY_CONDITION_COMM},
};

#define N_CONTEXTS (sizeof(condition_contexts) / sizeof(condition_contexts[0]))

static bool condition_integer(const struct ky_event_field *field, uint32_t bytes,
			      struct ky_condition_field *to)
{
	to->source = KY_CONDITION_INTEGER;
	to->size = bytes;
	to->is_signed = field->is_signed;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static bool of_record(const struct ky_event_field *field, struct ky_condition_field *to)
{
	to->offset = field->offset;
	to->size = field->size;
	to->is_relative = field->is_relative;
	switch (field->how) {
	case KY_HOW_COPY:
		return condition_integer(field, field->bytes, to);
	case KY_HOW_PRIO:
		to->add = -100;
		return condition_integer(field, field->size, to);
	case KY_HOW_TEXT:
	case KY_HOW_RWBS:
		to->source = KY_CONDITION_CHARS;
		return true;
	case KY_HOW_STRING:
	case KY_HOW_COMM:
		to->source = KY_CONDITION_DYNAMIC;
		return !field->is_rest;
	case KY_HOW_ADDRESS:
	case KY_HOW_CONTENT:
		to->source = KY_CONDITION_USER;
		return field->size == 8;
	case KY_HOW_TID:
		to->source = KY_CONDITION_TID;
		return true;
	default:
		return false;
	}
}

static bool of_thread(enum ky_name_kind kind, const char *name, struct ky_condition_field *to)
{
	for (size_t i = 0; i < N_CONTEXTS; i++) {
		bool is_context = condition_contexts[i].kind == KY_NAME_CONTEXT;

		if (kind != condition_contexts[i].kind && !(kind == KY_NAME_FIELD && is_context))
			continue;
		if (is_context && strcmp(name, condition_contexts[i].name) != 0)
			continue;
		to->source = condition_contexts[i].source;
		to->is_signed = to->source == KY_CONDITION_TID || to->source == KY_CONDITION_PID;
		return true;
	}
	return false;
}

bool ky_condition_find_field(const struct ky_condition_event *event, enum ky_name_kind kind,
			     const char *name, struct ky_condition_field *to,
			     const struct ky_event_field **source)
{
	memset(to, 0, sizeof(*to));
	*source = NULL;
	for (size_t i = 0;
	     i < event->n_fields && (kind == KY_NAME_FIELD || kind == KY_NAME_PAYLOAD); i++) {
		if (strcmp(event->fields[i].name, name) != 0)
			continue;
		*source = &event->fields[i];
		return of_record(&event->fields[i], to);
	}
	return of_thread(kind, name, to);
}

int ky_condition_unknown(const struct ky_node *node, const struct ky_condition_event *events,
			 size_t n_events, struct kymo_error *err)
{
	struct ky_nearest nearest = {.name = node->name.name};

	for (size_t i = 0; i < n_events; i++)
		for (size_t f = 0; f < events[i].n_fields; f++)
			ky_nearest_offer(&nearest, events[i].fields[f].name);
	for (size_t i = 1; i < N_CONTEXTS && node->name.kind != KY_NAME_PAYLOAD; i++)
		ky_nearest_offer(&nearest, condition_contexts[i].name);
	if (n_events == 1)
		ky_query_error(err, node->column, "event %s has no field '%s'", events[0].name,
			       node->name.name);
	else
		ky_query_error(err, node->column, "none of these events has a field '%s'",
			       node->name.name);
	ky_nearest_hint(&nearest, err);
	return KYMO_E_INVALID;
}

bool ky_condition_is_text(const struct ky_condition_field *field)
{
	return field->source == KY_CONDITION_CHARS || field->source == KY_CONDITION_DYNAMIC ||
	       field->source == KY_CONDITION_USER || field->source == KY_CONDITION_COMM;
}

bool ky_condition_reach(const struct ky_condition_field *field, uint32_t *record_bytes)
{
	uint32_t end = field->offset + (field->source == KY_CONDITION_DYNAMIC ? 4
					: field->source == KY_CONDITION_USER  ? 8
									      : field->size);

	switch (field->source) {
	case KY_CONDITION_INTEGER:
	case KY_CONDITION_DYNAMIC:
	case KY_CONDITION_USER:
		break;
	case KY_CONDITION_CHARS:
		return field->offset <= KY_CONDITION_RECORD_BYTES - 8;
	default:
		return true;
	}
	if (field->offset > KY_CONDITION_RECORD_BYTES - 8 || end > KY_CONDITION_RECORD_BYTES)
		return false;
	if (end > *record_bytes)
		*record_bytes = end;
	return true;
}
