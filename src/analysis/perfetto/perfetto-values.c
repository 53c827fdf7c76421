/* SPDX-License-Identifier: MIT */
/* Fields of events, as Perfetto's debug annotations and as fields of its ftrace events. */
#include <stdio.h>

#include "analysis/perfetto/perfetto-internal.h"
#include "ctf/model/unicode.h"

/* A trace is to be looked at: what is longer is cut. */
#define TEXT_BYTES    4096
#define ELEMENTS      256
#define FLAT_ELEMENTS 64
#define NAME_BYTES    256
#define DEPTH	      32

/* Text as UTF-8, bytes and big numbers in hexadecimal: in pf->scratch. False: it is a number. */
static bool as_text(struct ky_pf *pf, const struct ky_value *v)
{
	static const char hex[] = "0123456789abcdef";
	struct ky_strbuf *out = &pf->scratch;

	ky_strbuf_clear(out);
	if (v->cls->kind == KY_FIELD_STRING || v->cls->kind == KY_FIELD_TEXT) {
		if (v->cls->text.encoding <= KY_ENCODING_ASCII)
			ky_strbuf_add(out, v->str.data, v->str.len_bytes);
		else
			ky_utf8_from(out, v->cls->text.encoding, (const uint8_t *)v->str.data,
				     v->str.len_bytes);
	} else if (v->cls->kind == KY_FIELD_BLOB) {
		for (size_t i = 0; i < v->str.len_bytes && i < TEXT_BYTES / 2; i++) {
			ky_strbuf_addc(out, hex[(uint8_t)v->str.data[i] >> 4]);
			ky_strbuf_addc(out, hex[(uint8_t)v->str.data[i] & 15]);
		}
	} else if (ky_value_is_big(v)) {
		ky_strbuf_adds(out, "0x");
		for (uint32_t i = (v->cls->num.length_bits + 63) / 64; i-- > 0;)
			ky_strbuf_addf(out, "%016llx", (unsigned long long)ky_value_word(v, i));
	} else {
		return false;
	}
	return true;
}

/* An enumeration's label; NULL for plain numbers, and for values that have none. */
static const char *perfetto_values_label_of(const struct ky_value *v)
{
	switch (v->cls->kind) {
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return v->cls->num.is_enum ? ky_enum_label(v->cls, v->u) : NULL;
	default:
		return NULL;
	}
}

static bool perfetto_values_is_signed(const struct ky_value *v)
{
	return v->cls->kind == KY_FIELD_SINT || v->cls->kind == KY_FIELD_VARSINT;
}

/* What stands in for an optional or a variant; NULL: nothing is there. */
static const struct ky_value *inner(const struct ky_value *v)
{
	while (v->cls->kind == KY_FIELD_OPTIONAL || v->cls->kind == KY_FIELD_VARIANT) {
		if (!v->n_below)
			return NULL;
		v++;
	}
	return v;
}

/* ---- annotations -------------------------------------------------------------------------- */

static void put_scalar(struct ky_pf *pf, const struct ky_value *v)
{
	const char *label;

	if (as_text(pf, v))
		ky_pb_text(&pf->out, KY_PF_ANNOTATION_TEXT, ky_strbuf_text(&pf->scratch),
			   pf->scratch.len, TEXT_BYTES);
	else if ((label = perfetto_values_label_of(v)))
		ky_pb_text(&pf->out, KY_PF_ANNOTATION_TEXT, label, strlen(label), TEXT_BYTES);
	else if (v->cls->kind == KY_FIELD_FLOAT)
		ky_pb_double(&pf->out, KY_PF_ANNOTATION_DOUBLE, v->f);
	else if (v->cls->kind == KY_FIELD_BOOL)
		ky_pb_uint(&pf->out, KY_PF_ANNOTATION_BOOL, v->u != 0);
	else if (perfetto_values_is_signed(v))
		ky_pb_int(&pf->out, KY_PF_ANNOTATION_INT, v->s);
	else
		ky_pb_uint(&pf->out,
			   v->cls->num.base == 16 ? KY_PF_ANNOTATION_POINTER
						  : KY_PF_ANNOTATION_UINT,
			   v->u);
}

static void put_annotation(struct ky_pf *pf, struct ky_pf_machine *machine, uint32_t field,
			   const struct ky_value *v, const char *name, int depth)
{
	const struct ky_value *value = inner(v), *child, *end;
	uint32_t elements = 0;
	bool is_array;
	size_t begun;

	if (!value || depth > DEPTH)
		return;
	begun = ky_pb_begin(&pf->out, field);
	if (name)
		ky_pb_uint(&pf->out, KY_PF_ANNOTATION_NAME_IID,
			   ky_pf_intern(pf, machine, KY_PF_ANNOTATION_NAMES, name));
	is_array = value->cls->kind == KY_FIELD_ARRAY;
	if (!is_array && value->cls->kind != KY_FIELD_STRUCT) {
		put_scalar(pf, value);
	} else {
		end = value + 1 + value->n_below;
		for (child = value + 1; child < end && elements++ < ELEMENTS;
		     child += 1 + child->n_below)
			put_annotation(pf, machine,
				       is_array ? KY_PF_ANNOTATION_ARRAY : KY_PF_ANNOTATION_DICT,
				       child, child->name, depth + 1);
	}
	ky_pb_end(&pf->out, begun);
}

int ky_pf_annotate(struct ky_pf *pf, const struct ky_pf_at *at)
{
	int n = ky_values_decode(&pf->values, at->event, KY_SCOPE_PAYLOAD, at->err);
	const struct ky_value *v, *end;

	if (n <= 0)
		return n;
	v = pf->values.list.data;
	end = v + 1 + v->n_below;
	for (v++; v < end; v += 1 + v->n_below)
		put_annotation(pf, at->machine, KY_PF_EVENT_ANNOTATION, v, v->name, 0);
	return 0;
}

void ky_pf_annotate_text(struct ky_pf *pf, struct ky_pf_machine *machine, const char *name,
			 const char *text)
{
	size_t begun = ky_pb_begin(&pf->out, KY_PF_EVENT_ANNOTATION);

	ky_pb_uint(&pf->out, KY_PF_ANNOTATION_NAME_IID,
		   ky_pf_intern(pf, machine, KY_PF_ANNOTATION_NAMES, name));
	ky_pb_text(&pf->out, KY_PF_ANNOTATION_TEXT, text, strlen(text), TEXT_BYTES);
	ky_pb_end(&pf->out, begun);
}

/* ---- fields of ftrace events -------------------------------------------------------------- */

static void perfetto_values_put_field(struct ky_pf *pf, struct ky_strbuf *out,
				      const struct ky_value *v, const char *name)
{
	const char *label;
	char number[40];
	size_t begun = ky_pb_begin(out, KY_PF_GENERIC_FIELD);

	ky_pb_text(out, KY_PF_GENERIC_FIELD_NAME, name, strlen(name), NAME_BYTES);
	if (as_text(pf, v)) {
		ky_pb_text(out, KY_PF_GENERIC_FIELD_TEXT, ky_strbuf_text(&pf->scratch),
			   pf->scratch.len, TEXT_BYTES);
	} else if ((label = perfetto_values_label_of(v))) {
		ky_pb_text(out, KY_PF_GENERIC_FIELD_TEXT, label, strlen(label), TEXT_BYTES);
	} else if (v->cls->kind == KY_FIELD_FLOAT) {
		snprintf(number, sizeof(number), "%.17g", v->f);
		ky_pb_bytes(out, KY_PF_GENERIC_FIELD_TEXT, number, strlen(number));
	} else if (perfetto_values_is_signed(v)) {
		ky_pb_int(out, KY_PF_GENERIC_FIELD_INT, v->s);
	} else {
		ky_pb_uint(out, KY_PF_GENERIC_FIELD_UINT, v->u);
	}
	ky_pb_end(out, begun);
}

/* Structs and arrays become "a.b" and "a[1]"; @name has @len bytes and room up to NAME_BYTES. */
static void perfetto_values_put_flat(struct ky_pf *pf, struct ky_strbuf *out,
				     const struct ky_value *v, char *name, size_t len, int depth)
{
	const struct ky_value *value = inner(v), *child, *end;
	uint32_t at = 0;

	if (!value || depth > DEPTH)
		return;
	if (value->cls->kind != KY_FIELD_STRUCT && value->cls->kind != KY_FIELD_ARRAY) {
		perfetto_values_put_field(pf, out, value, name);
		return;
	}
	end = value + 1 + value->n_below;
	for (child = value + 1; child < end && at < FLAT_ELEMENTS; child += 1 + child->n_below) {
		int n = value->cls->kind == KY_FIELD_STRUCT
				? snprintf(name + len, NAME_BYTES - len, ".%s", child->name)
				: snprintf(name + len, NAME_BYTES - len, "[%u]", at);

		at++;
		if (n > 0 && (size_t)n < NAME_BYTES - len)
			perfetto_values_put_flat(pf, out, child, name, len + (size_t)n, depth + 1);
		name[len] = '\0';
	}
}

int ky_pf_generic_fields(struct ky_pf *pf, struct ky_strbuf *out, const struct ky_pf_at *at)
{
	int n = ky_values_decode(&pf->values, at->event, KY_SCOPE_PAYLOAD, at->err);
	const struct ky_value *v, *end;
	char name[NAME_BYTES];

	if (n <= 0)
		return n;
	v = pf->values.list.data;
	end = v + 1 + v->n_below;
	for (v++; v < end; v += 1 + v->n_below) {
		int len = snprintf(name, sizeof(name), "%s", v->name);

		if (len > 0 && (size_t)len < sizeof(name))
			perfetto_values_put_flat(pf, out, v, name, (size_t)len, 0);
	}
	return 0;
}
