/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: single fields, by handle. */
#include <string.h>

#include "api/api.h"
#include "base/error.h"

_Static_assert(sizeof(struct ky_handle) <= sizeof(((struct kymo_field *)NULL)->internal),
	       "room for the handle");
_Static_assert(_Alignof(struct ky_handle) <= _Alignof(struct kymo_field), "alignment");

static const struct ky_handle *handle_of(const struct kymo_field *field)
{
	return (const struct ky_handle *)(const void *)field->internal;
}

static int find(const struct kymo_event_class *event_class, int scope, const char *name,
		struct kymo_field *field)
{
	const struct ky_event_class *cls = event_class_in(event_class);
	struct ky_handle handle;
	bool found;

	if (!field)
		return KYMO_E_INVALID;
	memset(field, 0, sizeof(*field));
	if (!cls || !name || scope >= (int)KY_SCOPE_COUNT)
		return KYMO_E_INVALID;
	found = scope < 0 ? ky_handle_find_any(&handle, cls, name)
			  : ky_handle_find(&handle, cls, (enum ky_scope)scope, name);
	if (!found)
		return KYMO_E_NOT_FOUND;
	field->event_class = event_class;
	field->field_class = field_class_out(handle.cls);
	memcpy(field->internal, &handle, sizeof(handle));
	return KYMO_OK;
}

int kymo_field_find(const struct kymo_event_class *event_class, const char *name,
		    struct kymo_field *field)
{
	return find(event_class, -1, name, field);
}

int kymo_field_find_in(const struct kymo_event_class *event_class, enum kymo_scope scope,
		       const char *name, struct kymo_field *field)
{
	return find(event_class, (int)((unsigned int)scope & 0xff), name, field);
}

/* A handle is good for its own event class only: elsewhere its offsets mean nothing. */
static inline bool fits(const struct kymo_event *event, const struct kymo_field *field)
{
	return event && field && field->event_class && event->event_class == field->event_class;
}

static inline bool is_signed(const struct kymo_field *field)
{
	enum ky_field_kind kind = field_class_in(field->field_class)->kind;

	return kind == KY_FIELD_SINT || kind == KY_FIELD_VARSINT;
}

bool kymo_event_get_u64(const struct kymo_event *event, const struct kymo_field *field,
			uint64_t *value)
{
	uint64_t bits;

	if (!fits(event, field) || !value ||
	    !ky_get_number(event_in(event), handle_of(field), &bits))
		return false;
	if ((int64_t)bits < 0 && is_signed(field))
		return false;
	*value = bits;
	return true;
}

bool kymo_event_get_i64(const struct kymo_event *event, const struct kymo_field *field,
			int64_t *value)
{
	uint64_t bits;

	if (!fits(event, field) || !value ||
	    !ky_get_number(event_in(event), handle_of(field), &bits))
		return false;
	if ((int64_t)bits < 0 && !is_signed(field))
		return false;
	*value = (int64_t)bits;
	return true;
}

bool kymo_event_get_f64(const struct kymo_event *event, const struct kymo_field *field,
			double *value)
{
	uint64_t bits;

	if (!fits(event, field) || !value)
		return false;
	if (ky_get_real(event_in(event), handle_of(field), value))
		return true;
	if (!ky_get_number(event_in(event), handle_of(field), &bits))
		return false;
	*value = is_signed(field) ? (double)(int64_t)bits : (double)bits;
	return true;
}

const char *kymo_event_get_text(const struct kymo_event *event, const struct kymo_field *field,
				size_t *len_bytes)
{
	const struct ky_event *in = event_in(event);
	enum ky_encoding encoding;
	const char *text;
	size_t len;

	if (len_bytes)
		*len_bytes = 0;
	if (!fits(event, field) || !len_bytes)
		return NULL;
	text = ky_get_text(in, handle_of(field), &len);
	/* What is not there gives "", which does not lie in the packet. */
	if ((uintptr_t)text < (uintptr_t)in->data ||
	    (uintptr_t)text > (uintptr_t)in->data + in->end_bits / 8)
		return NULL;
	encoding = field_class_in(field->field_class)->text.encoding;
	if (encoding > KY_ENCODING_ASCII)
		return NULL;
	*len_bytes = len;
	return text;
}

const char *kymo_event_get_label(const struct kymo_event *event, const struct kymo_field *field)
{
	uint64_t bits;

	if (!fits(event, field) || !ky_get_number(event_in(event), handle_of(field), &bits))
		return NULL;
	return ky_enum_label(field_class_in(field->field_class), bits);
}
