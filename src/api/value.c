/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: all fields of an event. */
#include <stdlib.h>

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

uint64_t kymo_value_word(const struct kymo_value *value, unsigned int word)
{
	const struct ky_value *in = value_in(value);
	bool is_signed = in->cls->kind == KY_FIELD_SINT || in->cls->kind == KY_FIELD_VARSINT;

	if (in->cls->kind > KY_FIELD_VARSINT)
		return 0;
	if (ky_value_is_big(in))
		return ky_value_word(in, word);
	if (in->cls->kind == KY_FIELD_FLOAT)
		return 0;
	if (!word)
		return in->u;
	return is_signed && in->s < 0 ? UINT64_MAX : 0;
}

const char *kymo_value_label(const struct kymo_value *value)
{
	const struct ky_value *in = value_in(value);

	if (in->cls->kind > KY_FIELD_VARSINT || ky_value_is_big(in))
		return NULL;
	return ky_enum_label(in->cls, in->u);
}

const char *kymo_value_bytes(const struct kymo_value *value, size_t *len_bytes)
{
	const struct ky_value *in = value_in(value);
	bool is_text = in->cls->kind >= KY_FIELD_STRING && in->cls->kind <= KY_FIELD_BLOB;

	*len_bytes = is_text ? in->str.len_bytes : 0;
	return is_text ? in->str.data : NULL;
}
