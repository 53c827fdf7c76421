/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: all fields of an event. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/error.h"

struct kymo_values {
	struct ky_values values;
};

struct kymo_values *kymo_values_new(void)
{
	struct kymo_values *values = malloc(sizeof(*values));

	if (values)
		ky_values_init(&values->values);
	return values;
}

void kymo_values_free(struct kymo_values *values)
{
	if (!values)
		return;
	ky_values_fini(&values->values);
	free(values);
}

int kymo_event_values(const struct kymo_event *event, enum kymo_scope scope,
		      struct kymo_values *values, const struct kymo_value **root,
		      struct kymo_error *err)
{
	int ret;

	if (root)
		*root = NULL;
	if (!event || !values || !root || (unsigned int)scope >= KYMO_SCOPE_COUNT)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_event_values() wants an event, a scope, values and a "
				    "root");
	ret = ky_values_decode(&values->values, event_in(event), (enum ky_scope)scope, err);
	if (ret <= 0)
		return ret;
	*root = value_out(values->values.list.data);
	return 1;
}

int kymo_event_value(const struct kymo_event *event, const struct kymo_field *field,
		     struct kymo_values *values, const struct kymo_value **value,
		     struct kymo_error *err)
{
	int ret;

	if (value)
		*value = NULL;
	if (!event || !field || !values || !value)
		return ky_error_set(err, KYMO_E_INVALID,
				    "kymo_event_value() wants an event, a field, values and a "
				    "place for the value");
	if (!field->event_class || field->event_class != event->event_class)
		return 0;
	ret = ky_handle_decode(&values->values, event_in(event), handle_of(field), err);
	if (ret <= 0)
		return ret;
	*value = value_out(values->values.list.data);
	return 1;
}

const struct kymo_field_class *kymo_value_class(const struct kymo_value *value)
{
	return field_class_out(value_in(value)->cls);
}

enum kymo_field_kind kymo_value_kind(const struct kymo_value *value)
{
	return (enum kymo_field_kind)value_in(value)->cls->kind;
}

const char *kymo_value_name(const struct kymo_value *value)
{
	return value_in(value)->name;
}

size_t kymo_value_n_children(const struct kymo_value *value)
{
	/* Of a number of variable size that member says something else. */
	return value_in(value)->cls->kind >= KY_FIELD_ARRAY ? value_in(value)->n_children : 0;
}

const struct kymo_value *kymo_value_first(const struct kymo_value *value)
{
	return value_out(value_in(value) + 1);
}

const struct kymo_value *kymo_value_next(const struct kymo_value *value)
{
	return value_out(value_in(value) + 1 + value_in(value)->n_below);
}

const struct kymo_value *kymo_value_child(const struct kymo_value *value, size_t i)
{
	const struct ky_value *in = value_in(value), *child = in + 1;

	if (i >= kymo_value_n_children(value))
		return NULL;
	while (i--)
		child += 1 + child->n_below;
	return value_out(child);
}

const struct kymo_value *kymo_value_member(const struct kymo_value *value, const char *name)
{
	const struct ky_value *in = value_in(value), *child = in + 1;

	if (in->cls->kind != KY_FIELD_STRUCT)
		return NULL;
	for (size_t i = 0; i < in->n_children; i++) {
		if (strcmp(child->name, name) == 0)
			return value_out(child);
		child += 1 + child->n_below;
	}
	return NULL;
}

const char *kymo_value_option(const struct kymo_value *value)
{
	const struct ky_value *in = value_in(value);

	return in->cls->kind == KY_FIELD_VARIANT && in->option ? in->option->display : NULL;
}

uint64_t kymo_value_u64(const struct kymo_value *value)
{
	const struct ky_value *in = value_in(value);

	if (in->cls->kind > KY_FIELD_VARSINT || in->cls->kind == KY_FIELD_FLOAT)
		return 0;
	return ky_value_is_big(in) ? ky_value_word(in, 0) : in->u;
}

int64_t kymo_value_i64(const struct kymo_value *value)
{
	return (int64_t)kymo_value_u64(value);
}

double kymo_value_f64(const struct kymo_value *value)
{
	const struct ky_value *in = value_in(value);

	return in->cls->kind == KY_FIELD_FLOAT && !ky_value_is_big(in) ? in->f : 0;
}

/* Copies of the sign, or zeros: what lies above bit 64 * @word of a number of @bits. */
static uint64_t sign_above(const struct ky_value *in, uint32_t bits)
{
	bool is_signed = in->cls->kind == KY_FIELD_SINT || in->cls->kind == KY_FIELD_VARSINT;

	return is_signed && ky_value_word(in, (bits - 1) / 64) >> (bits - 1) % 64 & 1 ? UINT64_MAX
										      : 0;
}

static uint64_t big_word(const struct ky_value *in, unsigned int word)
{
	uint32_t bits = in->cls->num.length_bits;
	uint64_t first = (uint64_t)word * 64;

	if (first >= bits)
		return sign_above(in, bits);
	if (bits - first >= 64)
		return ky_value_word(in, word);
	return ky_value_word(in, word) | sign_above(in, bits) << (bits - first);
}

uint64_t kymo_value_word(const struct kymo_value *value, unsigned int word)
{
	const struct ky_value *in = value_in(value);
	bool is_signed = in->cls->kind == KY_FIELD_SINT || in->cls->kind == KY_FIELD_VARSINT;

	if (in->cls->kind > KY_FIELD_VARSINT)
		return 0;
	if (ky_value_is_big(in) ||
	    (in->cls->kind == KY_FIELD_FLOAT && in->cls->num.length_bits == 128))
		return big_word(in, word);
	if (word)
		return is_signed && in->s < 0 ? UINT64_MAX : 0;
	return in->cls->kind == KY_FIELD_FLOAT ? in->f_bits : in->u;
}

size_t kymo_value_labels(const struct kymo_value *value, const char **labels, size_t max)
{
	const struct ky_value *in = value_in(value);
	uint64_t words[KY_API_LABEL_WORDS];
	size_t n_words;

	if (in->cls->kind > KY_FIELD_VARSINT)
		return 0;
	if (!ky_value_is_big(in))
		return ky_api_labels(in->cls, &in->u, 1, labels, max);
	for (n_words = 0; n_words < KY_API_LABEL_WORDS && n_words * 64 < in->cls->num.length_bits;
	     n_words++)
		words[n_words] = ky_value_word(in, (unsigned int)n_words);
	return ky_api_labels(in->cls, words, n_words, labels, max);
}

const char *kymo_value_label(const struct kymo_value *value)
{
	const char *label;

	return kymo_value_labels(value, &label, 1) ? label : NULL;
}

const char *kymo_value_bytes(const struct kymo_value *value, size_t *len_bytes)
{
	const struct ky_value *in = value_in(value);
	bool is_text = in->cls->kind >= KY_FIELD_STRING && in->cls->kind <= KY_FIELD_BLOB;

	*len_bytes = is_text ? in->str.len_bytes : 0;
	return is_text ? in->str.data : NULL;
}

size_t kymo_value_utf8(const struct kymo_value *value, char *buffer, size_t size_bytes)
{
	const struct ky_value *in = value_in(value);

	if (!buffer)
		size_bytes = 0;
	if (in->cls->kind == KY_FIELD_STRING || in->cls->kind == KY_FIELD_TEXT)
		return ky_api_utf8(in->cls->text.encoding, in->str.data, in->str.len_bytes, buffer,
				   size_bytes);
	if (size_bytes)
		buffer[0] = '\0';
	return SIZE_MAX;
}
