/* SPDX-License-Identifier: MIT */
#include "record/request/user-event.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- checking ------------------------------------------------------------------------- */

#define FIELD_LENGTH_MAX 65536

/* A text within the record, at most KY_NAME_MAX bytes; NULL: not such a text. */
static const char *user_event_text_at(const struct ky_event_record *record, uint32_t offset,
				      size_t max)
{
	const char *text = (const char *)record + offset;
	size_t room;

	if (offset >= record->bytes)
		return NULL;
	room = record->bytes - offset;
	room = max < room ? max + 1 : room;
	return memchr(text, 0, room) ? text : NULL;
}

static bool user_event_is_name(const char *name, bool may_have_colon)
{
	if (!name || !*name)
		return false;
	for (; *name; name++) {
		bool is_plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
				(*name >= '0' && *name <= '9') || *name == '_';

		if (!is_plain && !(may_have_colon && *name == ':'))
			return false;
	}
	return true;
}

/*
 * *room: what the labels may have altogether, which all have bytes of their own. Otherwise a small record could
 * say the same labels for each of its fields, and its metadata would be many times as large.
 */
static bool labels_ok(const struct ky_event_record *record, const struct ky_field_record *field,
		      uint64_t *room)
{
	const struct ky_label_record *label;
	uint64_t bytes = (uint64_t)field->n_labels * sizeof(*label);

	if (field->n_labels > KY_ENUM_LABELS_MAX || field->labels % 8 ||
	    field->labels > record->bytes || bytes > record->bytes - field->labels)
		return false;
	label = (const void *)((const char *)record + field->labels);
	for (uint32_t i = 0; i < field->n_labels; i++) {
		const char *name = user_event_text_at(record, label[i].name, KY_NAME_MAX);
		bool is_signed = field->flags & KY_FIELD_SIGNED;

		if (!name)
			return false;
		bytes += strlen(name) + 1;
		if (bytes > *room)
			return false;
		if (is_signed ? label[i].first > label[i].last
			      : (uint64_t)label[i].first > (uint64_t)label[i].last)
			return false;
	}
	*room -= bytes;
	return true;
}

static bool is_size(unsigned int bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static bool elements_ok(const struct ky_field_record *field, bool is_float)
{
	return is_float ? field->element_bytes == 4 || field->element_bytes == 8
			: is_size(field->element_bytes);
}

static bool kind_ok(const struct ky_event_record *record, const struct ky_field_record *field,
		    uint64_t *room)
{
	switch (field->kind) {
	case KY_KIND_INTEGER:
		return elements_ok(field, false);
	case KY_KIND_FLOAT:
		return elements_ok(field, true);
	case KY_KIND_ENUM:
		return elements_ok(field, false) && labels_ok(record, field, room);
	case KY_KIND_ARRAY:
		return field->length <= FIELD_LENGTH_MAX &&
		       elements_ok(field, field->flags & KY_FIELD_FLOAT_ELEMENTS);
	case KY_KIND_SEQUENCE:
		return elements_ok(field, field->flags & KY_FIELD_FLOAT_ELEMENTS);
	case KY_KIND_TEXT_ARRAY:
		return field->length <= FIELD_LENGTH_MAX;
	case KY_KIND_BOOLEAN:
	case KY_KIND_STRING:
	case KY_KIND_TEXT:
	case KY_KIND_BLOB:
		return true;
	default:
		return false;
	}
}

static bool field_ok(const struct ky_event_record *record, uint32_t number, uint64_t *room)
{
	const struct ky_field_record *field = &record->fields[number];
	const char *name = user_event_text_at(record, field->name, KY_NAME_MAX);

	if (!user_event_is_name(name, true) || !kind_ok(record, field, room))
		return false;
	for (uint32_t i = 0; i < number; i++) {
		/* The ones before were checked. */
		if (strcmp((const char *)record + record->fields[i].name, name) == 0)
			return false;
	}
	return true;
}

static bool record_ok(const struct ky_event_record *record)
{
	bool is_context = record->kind == KY_EVENT_CONTEXT;
	unsigned int most = is_context ? KY_CONTEXT_FIELDS_MAX : KY_EVENT_FIELDS_MAX;
	size_t fields = record->n_fields * sizeof(record->fields[0]);
	uint64_t room = record->bytes;

	if (record->kind > KY_EVENT_QUERY || record->log_level > 14 || record->n_fields > most ||
	    fields > record->bytes - sizeof(*record) || record->number >= KY_EVENTS_MAX ||
	    record->enable_byte >= KY_ENABLE_BYTES || record->page >= KY_CONTROL_PAGES)
		return false;
	if (!user_event_text_at(record, record->file, record->bytes))
		return false;
	/* Contexts are no event: their record needs no name. */
	if (!is_context &&
	    (!user_event_is_name(user_event_text_at(record, record->provider, KY_NAME_MAX),
				 false) ||
	     !user_event_is_name(user_event_text_at(record, record->name, KY_NAME_MAX), false)))
		return false;
	for (uint32_t i = 0; i < record->n_fields; i++) {
		if (!field_ok(record, i, &room))
			return false;
	}
	return true;
}

size_t ky_user_event_next(const void *at, const void *end, struct ky_user_event *event,
			  bool *is_good)
{
	size_t left = (size_t)((const char *)end - (const char *)at);
	const struct ky_event_record *record = at;

	*is_good = false;
	if (left < sizeof(*record) || record->bytes < sizeof(*record) || record->bytes % 8 ||
	    record->bytes > KY_RECORD_BYTES_MAX || record->bytes > left)
		return 0;
	*is_good = record_ok(record);
	if (*is_good) {
		bool is_context = record->kind == KY_EVENT_CONTEXT;

		*event = (struct ky_user_event){
			.record = record,
			/* Of contexts they were not looked at. */
			.provider = is_context ? "" : (const char *)record + record->provider,
			.name = is_context ? "" : (const char *)record + record->name,
			.file = (const char *)record + record->file,
			.number = record->number,
			.is_query = record->kind == KY_EVENT_QUERY,
		};
	}
	return record->bytes;
}

/* ---- names ---------------------------------------------------------------------------- */

void ky_user_event_name(const struct ky_user_event *event, char name[KY_USER_EVENT_NAME_BYTES])
{
	snprintf(name, KY_USER_EVENT_NAME_BYTES, "%s:%s", event->provider, event->name);
}

const char *ky_user_field_name(const struct ky_user_event *event, unsigned int field)
{
	return (const char *)event->record + event->record->fields[field].name;
}

bool ky_user_field_is_float(const struct ky_field_record *field)
{
	bool has_elements = field->kind == KY_KIND_ARRAY || field->kind == KY_KIND_SEQUENCE;

	return field->kind == KY_KIND_FLOAT ||
	       (has_elements && (field->flags & KY_FIELD_FLOAT_ELEMENTS) != 0);
}

void ky_user_field_type(const struct ky_field_record *field, char type[48])
{
	bool is_float = ky_user_field_is_float(field);
	const char *element = is_float ? "float" : field->flags & KY_FIELD_SIGNED ? "int" : "uint";
	unsigned int bits = field->element_bytes * 8u;

	switch (field->kind) {
	case KY_KIND_BOOLEAN:
		snprintf(type, 48, "bool");
		break;
	case KY_KIND_STRING:
		snprintf(type, 48, "string");
		break;
	case KY_KIND_ENUM:
		snprintf(type, 48, "enum %s%u", element, bits);
		break;
	case KY_KIND_ARRAY:
		snprintf(type, 48, "%s%u[%u]", element, bits, field->length);
		break;
	case KY_KIND_SEQUENCE:
		snprintf(type, 48, "%s%u[]", element, bits);
		break;
	case KY_KIND_TEXT:
		snprintf(type, 48, "text");
		break;
	case KY_KIND_TEXT_ARRAY:
		snprintf(type, 48, "char[%u]", field->length);
		break;
	case KY_KIND_BLOB:
		snprintf(type, 48, "blob");
		break;
	default:
		snprintf(type, 48, "%s%u", element, bits);
	}
}

static const char *const level_names[] = {
	"EMERG",	"ALERT",      "CRIT",		"ERR",		 "WARNING",
	"NOTICE",	"INFO",	      "DEBUG_SYSTEM",	"DEBUG_PROGRAM", "DEBUG_PROCESS",
	"DEBUG_MODULE", "DEBUG_UNIT", "DEBUG_FUNCTION", "DEBUG_LINE",	 "DEBUG",
};

const char *ky_log_level_name(unsigned int level)
{
	return level < sizeof(level_names) / sizeof(level_names[0]) ? level_names[level] : "?";
}

int ky_log_level_parse(const char *text, size_t len)
{
	int number = -1, end = 0;
	char word[16];

	if (!len || len >= sizeof(word))
		return -1;
	memcpy(word, text, len);
	word[len] = 0;
	for (int i = 0; i < 15; i++) {
		if (strcasecmp(word, level_names[i]) == 0)
			return i;
	}
	if (strcasecmp(word, "ERROR") == 0)
		return 3;
	return sscanf(word, "%2d%n", &number, &end) == 1 && !word[end] && number >= 0 &&
			       number <= 14
		       ? number
		       : -1;
}

bool ky_user_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *again = NULL;

	for (;;) {
		if (*pattern == '*') {
			star = ++pattern;
			again = text;
			continue;
		}
		if (!*text && !*pattern)
			return true;
		if (*text) {
			const char *literal =
				*pattern == '\\' && pattern[1] ? pattern + 1 : pattern;

			if (*literal && *literal == *text) {
				pattern = literal + 1;
				text++;
				continue;
			}
		}
		if (!star || !*again)
			return false;
		pattern = star;
		text = ++again;
	}
}
