/* SPDX-License-Identifier: MIT */
#include "base/strbuf.h"
#include "flow/csv.h"
#include "flow/json-value.h"
#include "ctf/unicode.h"

static bool needs_quotes(const char *text, size_t len)
{
	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r')
			return true;
	}
	return text[0] == ' ' || text[len - 1] == ' ';
}

void ky_csv_text(struct ky_strbuf *out, const char *text, size_t len)
{
	bool quotes = needs_quotes(text, len);
	size_t at = 0, n;

	if (quotes)
		ky_strbuf_addc(out, '"');
	while (at < len) {
		n = ky_utf8_length((const uint8_t *)text + at, len - at);
		if (text[at] == '"')
			ky_strbuf_addc(out, '"');
		ky_strbuf_add(out, n ? text + at : "\xef\xbf\xbd", n ? n : 3);
		at += n ? n : 1;
	}
	if (quotes)
		ky_strbuf_addc(out, '"');
}

static void put_string(struct ky_strbuf *out, const struct ky_value *v, struct ky_strbuf *scratch)
{
	if (v->cls->text.encoding <= KY_ENCODING_ASCII) {
		ky_csv_text(out, v->str.data, v->str.len_bytes);
		return;
	}
	ky_strbuf_clear(scratch);
	ky_utf8_from(scratch, v->cls->text.encoding, (const uint8_t *)v->str.data,
		     v->str.len_bytes);
	ky_csv_text(out, ky_strbuf_text(scratch), scratch->len);
}

static bool is_label(const struct ky_value *v)
{
	return (v->cls->kind == KY_FIELD_UINT || v->cls->kind == KY_FIELD_SINT ||
		v->cls->kind == KY_FIELD_VARUINT || v->cls->kind == KY_FIELD_VARSINT) &&
	       v->cls->num.is_enum && !ky_value_is_big(v) && ky_enum_label(v->cls, v->u);
}

/* As JSON, without the quotes that JSON puts around what it has no word for. */
static void put_json(struct ky_strbuf *out, const struct ky_value *v, struct ky_strbuf *scratch)
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
	ky_csv_text(out, text, len);
}

void ky_csv_value(struct ky_strbuf *out, const struct ky_value *v, struct ky_strbuf *scratch)
{
	const char *label;

	while ((v->cls->kind == KY_FIELD_VARIANT || v->cls->kind == KY_FIELD_OPTIONAL) &&
	       v->n_below)
		v++;
	switch (v->cls->kind) {
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return; /* there is none */
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		put_string(out, v, scratch);
		return;
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		if (is_label(v)) {
			label = ky_enum_label(v->cls, v->u);
			ky_csv_text(out, label, strlen(label));
		} else if (ky_value_is_big(v)) {
			put_json(out, v, scratch);
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
	put_json(out, v, scratch);
}
