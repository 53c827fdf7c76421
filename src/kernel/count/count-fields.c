/* SPDX-License-Identifier: MIT */
/* The fields that events are counted by, and those that their filters need. */
#include <string.h>

#include "kernel/count/count-internal.h"

/* ---- fields ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum ky_name_kind kind; /* KY_NAME_CONTEXT: also without "$ctx." */
	enum ky_count_source source;
} own_fields[] = {
	{"$event", KY_NAME_EVENT, KY_COUNT_EVENT},
	{"$cpu", KY_NAME_CPU, KY_COUNT_CPU},
	{"tid", KY_NAME_CONTEXT, KY_COUNT_TID},
	{"pid", KY_NAME_CONTEXT, KY_COUNT_PID},
	{"vtid", KY_NAME_CONTEXT, KY_COUNT_TID},
	{"vpid", KY_NAME_CONTEXT, KY_COUNT_PID},
	{"uid", KY_NAME_CONTEXT, KY_COUNT_UID},
	{"procname", KY_NAME_CONTEXT, KY_COUNT_COMM},
	{"comm", KY_NAME_CONTEXT, KY_COUNT_COMM},
	{"kernel_stack", KY_NAME_CONTEXT, KY_COUNT_KERNEL_STACK},
	{"user_stack", KY_NAME_CONTEXT, KY_COUNT_USER_STACK},
};

static bool count_plan_integer(const struct ky_event_field *field, uint32_t bytes,
			       struct ky_count_field *to)
{
	to->source = KY_COUNT_INTEGER;
	to->size = bytes;
	to->is_signed = field->is_signed;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static bool of_record(const struct ky_event_field *field, struct ky_count_field *to)
{
	to->offset = field->offset;
	to->size = field->size;
	to->is_relative = field->is_relative;
	switch (field->how) {
	case KY_HOW_COPY:
		return count_plan_integer(field, field->bytes, to);
	case KY_HOW_PRIO:
		to->add = -100;
		return count_plan_integer(field, field->size, to);
	case KY_HOW_TEXT:
	case KY_HOW_RWBS:
		to->source = KY_COUNT_CHARS;
		return true;
	case KY_HOW_STRING:
	case KY_HOW_COMM:
		to->source = KY_COUNT_DYNAMIC;
		return !field->is_rest;
	case KY_HOW_ADDRESS:
	case KY_HOW_CONTENT:
		to->source = KY_COUNT_USER;
		return field->size == 8;
	case KY_HOW_TID:
		to->source = KY_COUNT_TID;
		return true;
	default:
		return false;
	}
}

static bool of_program(enum ky_name_kind kind, const char *name, struct ky_count_field *to)
{
	for (size_t i = 0; i < sizeof(own_fields) / sizeof(own_fields[0]); i++) {
		bool is_kind = kind == own_fields[i].kind ||
			       (kind == KY_NAME_FIELD && own_fields[i].kind == KY_NAME_CONTEXT);

		if (!is_kind || (own_fields[i].kind == KY_NAME_CONTEXT &&
				 strcmp(name, own_fields[i].name) != 0))
			continue;
		to->source = own_fields[i].source;
		to->is_signed = own_fields[i].source == KY_COUNT_TID ||
				own_fields[i].source == KY_COUNT_PID;
		return true;
	}
	return false;
}

bool ky_count_find_field(const struct ky_count_event *event, enum ky_name_kind kind,
			 const char *name, struct ky_count_field *to,
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
	return of_program(kind, name, to);
}

bool ky_count_need_record(struct ky_count_config *config, const struct ky_count_field *field)
{
	uint32_t end = field->offset + (field->source == KY_COUNT_DYNAMIC ? 4
					: field->source == KY_COUNT_USER  ? 8
									  : field->size);

	switch (field->source) {
	case KY_COUNT_INTEGER:
	case KY_COUNT_DYNAMIC:
	case KY_COUNT_USER:
		break;
	case KY_COUNT_CHARS:
		return field->offset <= KY_COUNT_RECORD_BYTES - 8;
	default:
		return true;
	}
	if (field->offset > KY_COUNT_RECORD_BYTES - 8 || end > KY_COUNT_RECORD_BYTES)
		return false;
	if (end > config->record_bytes)
		config->record_bytes = end;
	return true;
}
