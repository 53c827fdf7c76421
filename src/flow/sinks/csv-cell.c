/* SPDX-License-Identifier: MIT */
#include "base/csv.h"
#include "base/strbuf.h"
#include "flow/sinks/csv.h"
#include "flow/sinks/json-value.h"
#include "ctf/model/unicode.h"

static void csv_cell_put_string(struct ky_strbuf *out, const struct ky_value *v, bool raw,
				struct ky_strbuf *scratch)
{
	if (v->cls->text.encoding <= KY_ENCODING_ASCII) {
		ky_csv_text(out, v->str.data, v->str.len_bytes, raw);
		return;
	}
	ky_strbuf_clear(scratch);
	ky_utf8_from(scratch, v->cls->text.encoding, (const uint8_t *)v->str.data,
		     v->str.len_bytes);
	ky_csv_text(out, ky_strbuf_text(scratch), scratch->len, raw);
}

static bool is_label(const struct ky_value *v)
{
	return (v->cls->kind == KY_FIELD_UINT || v->cls->kind == KY_FIELD_SINT ||
		v->cls->kind == KY_FIELD_VARUINT || v->cls->kind == KY_FIELD_VARSINT) &&
	       v->cls->num.is_enum && !ky_value_is_big(v) && ky_enum_label(v->cls, v->u);
}

/* As JSON, without the quotes that JSON puts around what it has no word for. */
static void csv_cell_put_json(struct ky_strbuf *out, const struct ky_value *v,
			      struct ky_strbuf *scratch)
{
	const char *text;
	size_t len;

	ky_strbuf_clear(scratch);
	ky_json_value(scratch, v);
	text = ky_strbuf_text(scratch);
	len = scratch->len;
	if (len >= 2 && text[0] == '"') {
		text++;
		len -= 2;
	}
	/* A number, or what begins with a bracket or a digit: no formula. */
	ky_csv_text(out, text, len, true);
}

void ky_csv_value(struct ky_strbuf *out, const struct ky_value *v, bool raw,
		  struct ky_strbuf *scratch)
{
	const char *label;

	while ((v->cls->kind == KY_FIELD_VARIANT || v->cls->kind == KY_FIELD_OPTIONAL) &&
	       v->n_below)
		v++;
	switch (v->cls->kind) {
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return; /* none exists */
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		csv_cell_put_string(out, v, raw, scratch);
		return;
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		if (is_label(v)) {
			label = ky_enum_label(v->cls, v->u);
			ky_csv_text(out, label, strlen(label), raw);
		} else if (ky_value_is_big(v)) {
			csv_cell_put_json(out, v, scratch);
		} else if (v->cls->kind == KY_FIELD_SINT || v->cls->kind == KY_FIELD_VARSINT) {
			ky_strbuf_addi(out, v->s);
		} else {
			ky_strbuf_addu(out, v->u);
		}
		return;
	case KY_FIELD_BITMAP:
		if (!ky_value_is_big(v)) {
			ky_strbuf_addu(out, v->u);
			return;
		}
		break;
	default:
		break;
	}
	csv_cell_put_json(out, v, scratch);
}
