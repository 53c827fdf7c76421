/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: reading single fields of events. */
#include <string.h>

#include "api/api.h"
#include "base/error.h"

/* A handle is good for its own event class only: elsewhere its offsets mean nothing. */
static inline bool get_fits(const struct kymo_event *event, const struct kymo_field *field)
{
	return event && field && field->event_class && event->event_class == field->event_class;
}

static inline bool get_find(const struct kymo_event *event, const struct kymo_field *field,
			    struct ky_place *place)
{
	return get_fits(event, field) && ky_handle_place(event_in(event), handle_of(field), place);
}

static inline bool get_is_signed(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
}

bool kymo_event_has(const struct kymo_event *event, const struct kymo_field *field)
{
	struct ky_place place;

	return get_find(event, field, &place);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* @negative: the number is negative when its top bit is set. */
static inline bool get_bits(const struct kymo_event *event, const struct kymo_field *field,
			    uint64_t *bits, bool *is_negative)
{
	struct ky_place place;

	if (!get_find(event, field, &place) || !ky_place_number(event_in(event), &place, bits))
		return false;
	*is_negative = (int64_t)*bits < 0 && get_is_signed(place.cls);
	return true;
}

bool kymo_event_get_u64(const struct kymo_event *event, const struct kymo_field *field,
			uint64_t *value)
{
	bool is_negative;
	uint64_t bits;

	if (!value || !get_bits(event, field, &bits, &is_negative) || is_negative)
		return false;
	*value = bits;
	return true;
}

bool kymo_event_get_i64(const struct kymo_event *event, const struct kymo_field *field,
			int64_t *value)
{
	bool is_negative;
	uint64_t bits;

	if (!value || !get_bits(event, field, &bits, &is_negative) ||
	    ((int64_t)bits < 0 && !is_negative))
		return false;
	*value = (int64_t)bits;
	return true;
}

bool kymo_event_get_f64(const struct kymo_event *event, const struct kymo_field *field,
			double *value)
{
	struct ky_place place;
	uint64_t bits;

	if (!value || !get_find(event, field, &place))
		return false;
	if (ky_place_real(event_in(event), &place, value))
		return true;
	if (!ky_place_number(event_in(event), &place, &bits))
		return false;
	*value = get_is_signed(place.cls) ? (double)(int64_t)bits : (double)bits;
	return true;
}

/* Fill what lies above the number's own bits. */
static void extend(const struct ky_field_class *cls, uint64_t *words, size_t n_words)
{
	size_t bits = cls->num.length_bits, top = (bits - 1) / 64;
	bool is_negative = get_is_signed(cls) && words[top] >> (bits - 1) % 64 & 1;

	if (is_negative && bits % 64)
		words[top] |= UINT64_MAX << bits % 64;
	for (size_t i = top + 1; i < n_words; i++)
		words[i] = is_negative ? UINT64_MAX : 0;
}

bool kymo_event_get_words(const struct kymo_event *event, const struct kymo_field *field,
			  uint64_t *words, size_t n_words)
{
	const struct ky_event *in = event_in(event);
	struct ky_place place;
	uint64_t bits, length;

	if (!words || !n_words || !get_find(event, field, &place) ||
	    place.cls->kind >= KY_FIELD_STRING)
		return false;
	length = place.cls->num.length_bits;
	if (place.cls->kind == KY_FIELD_VARUINT || place.cls->kind == KY_FIELD_VARSINT) {
		if (!ky_place_number(in, &place, &bits))
			return false;
		for (size_t i = 1; i < n_words; i++)
			words[i] = (int64_t)bits < 0 && get_is_signed(place.cls) ? UINT64_MAX : 0;
		words[0] = bits;
		return true;
	}
	if (!length || n_words < (length + 63) / 64 || place.at_bits > in->end_bits ||
	    in->end_bits - place.at_bits < length)
		return false;
	for (unsigned int i = 0; i < (length + 63) / 64; i++)
		words[i] = ky_place_word(in, &place, i);
	extend(place.cls, words, n_words);
	return true;
}

/* ---- text ---------------------------------------------------------------------------------- */

static const char *get_get_bytes(const struct kymo_event *event, const struct kymo_field *field,
				 struct ky_place *place, size_t *len_bytes)
{
	*len_bytes = 0;
	return get_find(event, field, place) ? ky_place_bytes(event_in(event), place, len_bytes)
					     : NULL;
}

const char *kymo_event_get_text(const struct kymo_event *event, const struct kymo_field *field,
				size_t *len_bytes)
{
	struct ky_place place;
	const char *text;

	if (!len_bytes)
		return NULL;
	text = get_get_bytes(event, field, &place, len_bytes);
	if (text && place.cls->kind != KY_FIELD_BLOB &&
	    place.cls->text.encoding <= KY_ENCODING_ASCII)
		return text;
	*len_bytes = 0;
	return NULL;
}

size_t kymo_event_get_utf8(const struct kymo_event *event, const struct kymo_field *field,
			   char *buffer, size_t size_bytes)
{
	struct ky_place place;
	const char *text;
	size_t len;

	if (!buffer)
		size_bytes = 0;
	text = get_get_bytes(event, field, &place, &len);
	if (text && place.cls->kind != KY_FIELD_BLOB)
		return ky_api_utf8(place.cls->text.encoding, text, len, buffer, size_bytes);
	if (size_bytes)
		buffer[0] = '\0';
	return SIZE_MAX;
}

const void *kymo_event_get_bytes(const struct kymo_event *event, const struct kymo_field *field,
				 size_t *len_bytes)
{
	struct ky_place place;

	return len_bytes ? get_get_bytes(event, field, &place, len_bytes) : NULL;
}

/* ---- labels -------------------------------------------------------------------------------- */

size_t kymo_event_get_labels(const struct kymo_event *event, const struct kymo_field *field,
			     const char **labels, size_t max)
{
	const struct ky_event *in = event_in(event);
	uint64_t words[KY_API_LABEL_WORDS], length;
	struct ky_place place;
	size_t n_words;

	if (!get_find(event, field, &place) || place.cls->kind >= KY_FIELD_STRING)
		return 0;
	if (ky_place_number(in, &place, words))
		return ky_api_labels(place.cls, words, 1, labels, max);
	length = place.cls->num.length_bits;
	if (place.cls->kind != KY_FIELD_BITMAP || place.at_bits > in->end_bits ||
	    in->end_bits - place.at_bits < length)
		return 0;
	for (n_words = 0; n_words < KY_API_LABEL_WORDS && n_words * 64 < length; n_words++)
		words[n_words] = ky_place_word(in, &place, (unsigned int)n_words);
	return ky_api_labels(place.cls, words, n_words, labels, max);
}

const char *kymo_event_get_label(const struct kymo_event *event, const struct kymo_field *field)
{
	const char *label;

	return kymo_event_get_labels(event, field, &label, 1) ? label : NULL;
}

/* ---- what consists of others ---------------------------------------------------------------- */

bool kymo_event_get_length(const struct kymo_event *event, const struct kymo_field *field,
			   uint64_t *n_elements)
{
	struct ky_place place;

	if (!n_elements || !get_find(event, field, &place) || place.cls->kind != KY_FIELD_ARRAY)
		return false;
	*n_elements = place.length;
	return true;
}

bool kymo_event_get_option(const struct kymo_event *event, const struct kymo_field *field,
			   size_t *option)
{
	return option && get_fits(event, field) &&
	       field_class_in(field->field_class)->kind == KY_FIELD_VARIANT &&
	       ky_handle_option(event_in(event), handle_of(field), option);
}
