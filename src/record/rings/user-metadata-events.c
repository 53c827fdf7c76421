/* SPDX-License-Identifier: MIT */
/* The events of a program's trace: their classes and fields, from the program's descriptions. */
#include "record/rings/user-metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"

/* ---- the blob ------------------------------------------------------------------------- */

int ky_user_blob_check(const struct ky_user_blob *blob, struct kymo_error *err)
{
	const struct ky_blob *head = blob->head;

	if (blob->bytes < sizeof(*head) || head->magic != KY_BLOB_MAGIC)
		return ky_error_set(err, KYMO_E_FORMAT, "the ring has no description of events");
	if (head->version != KY_CONTROL_VERSION)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a ring of version %" PRIu32
				    " of libkymo-trace, and this program knows version %d",
				    head->version, KY_CONTROL_VERSION);
	if (head->head_bytes != sizeof(*head) || head->bytes < sizeof(*head) ||
	    head->bytes > KY_BLOB_BYTES)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the ring's description of events is malformed");
	return KYMO_OK;
}

bool ky_user_blob_is_of_earlier_boot(const struct ky_blob *blob, const uint8_t boot_id[16])
{
	static const uint8_t unknown[16];
	struct timespec now, up;

	if (memcmp(boot_id, unknown, sizeof(unknown)) != 0 &&
	    memcmp(blob->clock.uuid, unknown, sizeof(unknown)) != 0)
		return memcmp(blob->clock.uuid, boot_id, sizeof(unknown)) != 0;
	if (clock_gettime(CLOCK_REALTIME, &now) < 0 || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return false;
	return blob->start_realtime_ns / 1000000000 < now.tv_sec - up.tv_sec;
}

bool ky_user_blob_next(const struct ky_user_blob *blob, size_t *at, struct ky_user_event *event)
{
	const uint8_t *records = (const uint8_t *)(blob->head + 1);
	size_t room = blob->bytes - sizeof(*blob->head);
	bool is_good = false;

	while (*at < room && !is_good) {
		size_t bytes = ky_user_event_next(records + *at, records + room, event, &is_good);

		if (!bytes)
			return false;
		*at += bytes;
	}
	return is_good;
}

/* ---- fields --------------------------------------------------------------------------- */

static struct ky_field_class *number_new(struct ky_trace_class *trace,
					 const struct ky_field_record *field, bool is_float)
{
	bool is_signed = field->flags & KY_FIELD_SIGNED;
	uint8_t base = field->base == 2 || field->base == 8 || field->base == 16 ? field->base : 10;
	struct ky_field_class *cls;

	if (is_float) {
		cls = ky_field_class_new(trace, KY_FIELD_FLOAT);
		if (!cls)
			return NULL;
		cls->align_bits = 8;
		cls->num.length_bits = field->element_bytes * 8u;
		cls->num.big_endian = trace->big_endian;
	} else {
		cls = ky_int_new(trace, field->element_bytes * 8u, is_signed, base);
		if (!cls)
			return NULL;
	}
	if (field->flags & KY_FIELD_BIG_ENDIAN)
		cls->num.big_endian = true;
	else if (field->flags & KY_FIELD_LITTLE_ENDIAN)
		cls->num.big_endian = false;
	return cls;
}

static int user_metadata_add_enum(struct ky_trace_class *trace, struct ky_field_class *st,
				  const char *name, const struct ky_user_event *event,
				  const struct ky_field_record *field)
{
	const struct ky_label_record *labels =
		(const void *)((const char *)event->record + field->labels);
	struct ky_field_class *cls = ky_struct_add_enum(trace, st, name, field->element_bytes * 8u,
							field->flags & KY_FIELD_SIGNED);

	if (!cls)
		return KYMO_E_MEMORY;
	if (field->flags & (KY_FIELD_BIG_ENDIAN | KY_FIELD_LITTLE_ENDIAN))
		cls->num.big_endian = field->flags & KY_FIELD_BIG_ENDIAN;
	for (uint32_t i = 0; i < field->n_labels; i++) {
		if (ky_enum_add(trace, cls, (const char *)event->record + labels[i].name,
				labels[i].first, labels[i].last) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static bool has_member(const struct ky_field_class *st, const char *name)
{
	for (size_t i = 0; i < st->st.n_members; i++) {
		if (strcmp(st->st.members[i].name, name) == 0)
			return true;
	}
	return false;
}

/*
 * The length field of a sequence may have the name of another field. So may a field whose name had a ':', which
 * metadata cannot have. The second field gets a number, since readers refuse two fields of one name.
 */
static void make_unique(const struct ky_field_class *st, char *name, size_t size)
{
	size_t len = strlen(name);

	for (unsigned int i = 2; has_member(st, name); i++)
		snprintf(name + len, size - len, "_%u", i);
}

/* "_NAME_length" before the elements, as LTTng has it; @name begins with '_' already. */
static struct ky_field_class *add_length(struct ky_trace_class *trace, struct ky_field_class *st,
					 const char *name)
{
	char text[KY_NAME_MAX + 32];

	snprintf(text, sizeof(text), "_%s_length", name);
	make_unique(st, text, sizeof(text));
	return ky_struct_add_int(trace, st, text, 32, false, 10);
}

static int add_dynamic(struct ky_trace_class *trace, struct ky_field_class *st, const char *name,
		       const struct ky_field_record *field)
{
	struct ky_field_class *length = add_length(trace, st, name), *element;

	if (!length)
		return KYMO_E_MEMORY;
	if (field->kind == KY_KIND_TEXT)
		return ky_struct_add_dynamic_text(trace, st, name, length) ? 0 : KYMO_E_MEMORY;
	/* A blob is a sequence of bytes: CTF 1.8 has nothing else for it. */
	element = field->kind == KY_KIND_BLOB
			  ? ky_int_new(trace, 8, false, 16)
			  : number_new(trace, field, field->flags & KY_FIELD_FLOAT_ELEMENTS);
	return element && ky_struct_add_sequence(trace, st, name, element, length) ? 0
										   : KYMO_E_MEMORY;
}

static int user_metadata_add_field(struct ky_trace_class *trace, struct ky_field_class *st,
				   const struct ky_user_event *event, unsigned int number)
{
	const struct ky_field_record *field = &event->record->fields[number];
	bool is_float = ky_user_field_is_float(field);
	struct ky_field_class *cls = NULL;
	struct ky_field_record plain = {.element_bytes = 1};
	char name[KY_NAME_MAX + 16];

	snprintf(name, sizeof(name), "_%s", ky_user_field_name(event, number));
	for (char *c = name; *c; c++)
		*c = *c == ':' ? '_' : *c;
	make_unique(st, name, sizeof(name));
	switch (field->kind) {
	case KY_KIND_STRING:
		cls = ky_struct_add_string(trace, st, name);
		break;
	case KY_KIND_TEXT_ARRAY:
		cls = ky_struct_add_text(trace, st, name, field->length);
		break;
	case KY_KIND_ENUM:
		return user_metadata_add_enum(trace, st, name, event, field);
	case KY_KIND_TEXT:
	case KY_KIND_BLOB:
	case KY_KIND_SEQUENCE:
		return add_dynamic(trace, st, name, field);
	case KY_KIND_ARRAY:
		cls = number_new(trace, field, is_float);
		cls = cls ? ky_struct_add_array(trace, st, name, cls, field->length) : NULL;
		break;
	default:
		cls = number_new(trace, field->kind == KY_KIND_BOOLEAN ? &plain : field, is_float);
		if (cls && ky_struct_add(trace, st, name, cls) < 0)
			cls = NULL;
	}
	return cls ? KYMO_OK : KYMO_E_MEMORY;
}

static struct ky_field_class *fields_of(struct ky_trace_class *trace,
					const struct ky_user_event *event)
{
	struct ky_field_class *st = ky_struct_new(trace);

	for (unsigned int i = 0; st && i < event->record->n_fields; i++) {
		if (event->record->fields[i].flags & KY_FIELD_FILTER_ONLY)
			continue;
		if (user_metadata_add_field(trace, st, event, i) < 0)
			return NULL;
	}
	return st;
}

/* ---- events --------------------------------------------------------------------------- */

static int user_metadata_add_event(struct ky_stream_class *stream,
				   const struct ky_user_event *event)
{
	char name[KY_USER_EVENT_NAME_BYTES];
	struct ky_event_class *cls;

	ky_user_event_name(event, name);
	cls = ky_event_class_new(stream, event->number, name);
	if (!cls)
		return KYMO_E_MEMORY;
	cls->has_loglevel = true;
	cls->loglevel = event->record->log_level;
	cls->payload = fields_of(stream->trace, event);
	return cls->payload ? KYMO_OK : KYMO_E_MEMORY;
}

int ky_user_metadata_events(struct ky_stream_class *stream, const struct ky_user_blob *blob,
			    uint32_t *n_bad)
{
	uint64_t is_used[KY_EVENTS_MAX / 64] = {0};
	struct ky_user_event event;
	int ret = KYMO_OK;

	for (size_t at = 0; !ret && ky_user_blob_next(blob, &at, &event);) {
		uint64_t bit = UINT64_C(1) << event.number % 64;

		if (event.record->kind == KY_EVENT_CONTEXT) {
			if (stream->event_context || !event.record->n_fields)
				continue;
			stream->event_context = fields_of(stream->trace, &event);
			ret = stream->event_context ? KYMO_OK : KYMO_E_MEMORY;
			continue;
		}
		if (event.is_query || is_used[event.number / 64] & bit) {
			++*n_bad;
			continue;
		}
		is_used[event.number / 64] |= bit;
		ret = user_metadata_add_event(stream, &event);
	}
	return ret;
}

bool ky_user_blob_has_context(const struct ky_user_blob *blob, const char *name)
{
	struct ky_user_event event;

	for (size_t at = 0; ky_user_blob_next(blob, &at, &event);) {
		if (event.record->kind != KY_EVENT_CONTEXT)
			continue;
		for (unsigned int i = 0; i < event.record->n_fields; i++) {
			if (strcmp(ky_user_field_name(&event, i), name) == 0)
				return true;
		}
	}
	return false;
}
