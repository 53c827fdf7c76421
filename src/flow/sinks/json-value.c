/* SPDX-License-Identifier: MIT */
#include "flow/sinks/json-value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/deep.h"
#include "base/foreign.h"
#include "ctf/model/unicode.h"

#define LABELS_MAX 64

static void json_value_put(struct ky_strbuf *out, const char *text)
{
	ky_strbuf_adds(out, text);
}

/* A character that is not ASCII, or an invalid byte. Returns the bytes that it takes. */
static size_t json_value_put_wide(struct ky_strbuf *out, const char *data, size_t len)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t n = ky_foreign_next(data, len, escape);

	if (!escape[0])
		ky_strbuf_add(out, data, n);
	else
		/* \u is JSON's escape, too; but JSON has none for bytes. */
		ky_strbuf_adds(out, n > 1 ? escape : "\xef\xbf\xbd");
	return n;
}

void ky_json_text(struct ky_strbuf *out, const char *data, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0;

	/* The worst case is six characters for one. */
	if (len > SIZE_MAX / 8 || !ky_strbuf_reserve(out, len * 6 + 2)) {
		out->failed = true;
		return;
	}
	ky_strbuf_addc(out, '"');
	while (at < len) {
		unsigned char c = (unsigned char)data[at];

		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
			out->data[out->len++] = (char)c;
			at++;
		} else if (c < 0x80) {
			char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

			if (c == '"' || c == '\\') {
				escape[1] = (char)c;
				ky_strbuf_add(out, escape, 2);
			} else {
				ky_strbuf_add(out, escape, 6);
			}
			at++;
		} else {
			at += json_value_put_wide(out, data + at, len - at);
		}
	}
	ky_strbuf_addc(out, '"');
}

static void json_value_put_string(struct ky_strbuf *out, const struct ky_value *v)
{
	struct ky_strbuf utf8 = KY_STRBUF_INIT;
	enum ky_encoding encoding = v->cls->text.encoding;

	if (encoding <= KY_ENCODING_ASCII) {
		ky_json_text(out, v->str.data, v->str.len_bytes);
		return;
	}
	ky_utf8_from(&utf8, encoding, (const uint8_t *)v->str.data, v->str.len_bytes);
	ky_json_text(out, ky_strbuf_text(&utf8), utf8.len);
	out->failed |= utf8.failed;
	ky_strbuf_fini(&utf8);
}

static void json_value_put_blob(struct ky_strbuf *out, const struct ky_value *v)
{
	static const char hex[] = "0123456789abcdef";

	ky_strbuf_addc(out, '"');
	for (size_t i = 0; i < v->str.len_bytes; i++) {
		uint8_t byte = (uint8_t)v->str.data[i];
		char pair[2] = {hex[byte >> 4], hex[byte & 15]};

		ky_strbuf_add(out, pair, 2);
	}
	ky_strbuf_addc(out, '"');
}

static void json_value_put_big(struct ky_strbuf *out, const struct ky_value *v)
{
	unsigned int words = (v->cls->num.length_bits + 63) / 64;

	json_value_put(out, "\"0x");
	for (unsigned int i = words; i-- > 0;)
		ky_strbuf_addf(out, "%016llx", (unsigned long long)ky_value_word(v, i));
	json_value_put(out, "\"");
}

/* The shortest of %.15g and %.17g that reads back equal. */
static void json_value_put_float(struct ky_strbuf *out, double value)
{
	char text[40];

	if (!isfinite(value)) {
		json_value_put(out, isnan(value) ? "\"NaN\""
				    : value > 0	 ? "\"Infinity\""
						 : "\"-Infinity\"");
		return;
	}
	snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) < value || strtod(text, NULL) > value)
		snprintf(text, sizeof(text), "%.17g", value);
	json_value_put(out, text);
	if (!strpbrk(text, ".e"))
		json_value_put(out, ".0");
}

static void json_value_put_integer(struct ky_strbuf *out, const struct ky_value *v)
{
	if (v->cls->kind == KY_FIELD_SINT || v->cls->kind == KY_FIELD_VARSINT)
		ky_strbuf_addi(out, v->s);
	else
		ky_strbuf_addu(out, v->u);
}

static void json_value_put_labels(struct ky_strbuf *out, const char *const *labels, size_t n)
{
	json_value_put(out, ", \"labels\": [");
	for (size_t i = 0; i < n; i++) {
		json_value_put(out, i ? ", " : "");
		ky_json_text(out, labels[i], strlen(labels[i]));
	}
	json_value_put(out, "]}");
}

static void json_value_put_number(struct ky_strbuf *out, const struct ky_value *v)
{
	const char *labels[LABELS_MAX];
	size_t n;

	if (ky_value_is_big(v)) {
		json_value_put_big(out, v);
	} else if (v->cls->kind == KY_FIELD_FLOAT) {
		json_value_put_float(out, v->f);
	} else if (v->cls->kind == KY_FIELD_BOOL) {
		json_value_put(out, v->u ? "true" : "false");
	} else if (v->cls->num.is_enum || v->cls->kind == KY_FIELD_BITMAP) {
		if (v->cls->kind == KY_FIELD_BITMAP)
			n = ky_flag_labels(v->cls, &v->u, 1, labels, LABELS_MAX);
		else
			n = ky_enum_labels(v->cls, v->u, labels, LABELS_MAX);
		json_value_put(out, "{\"value\": ");
		json_value_put_integer(out, v);
		json_value_put_labels(out, labels, n < LABELS_MAX ? n : LABELS_MAX);
	} else {
		json_value_put_integer(out, v);
	}
}

KY_DEEP2(const struct ky_value *, json_value_put_value, struct ky_strbuf *, const struct ky_value *)

/* Write value @v and return the one behind it. */
static const struct ky_value *json_value_put_value(struct ky_strbuf *out, const struct ky_value *v)
{
	const struct ky_value *end = v + 1 + v->n_below, *child = v + 1;
	bool is_struct = v->cls->kind == KY_FIELD_STRUCT;

	switch (v->cls->kind) {
	case KY_FIELD_STRUCT:
	case KY_FIELD_ARRAY:
		ky_strbuf_addc(out, is_struct ? '{' : '[');
		while (child < end) {
			if (is_struct) {
				ky_json_text(out, child->name, strlen(child->name));
				json_value_put(out, ": ");
			}
			child = json_value_put_value_deep(NULL, out, child);
			if (!child)
				goto nomem;
			if (child < end)
				json_value_put(out, ", ");
		}
		ky_strbuf_addc(out, is_struct ? '}' : ']');
		break;
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		if (!v->n_below)
			json_value_put(out, "null");
		else if (!json_value_put_value_deep(NULL, out, child))
			goto nomem;
		break;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		json_value_put_string(out, v);
		break;
	case KY_FIELD_BLOB:
		json_value_put_blob(out, v);
		break;
	default:
		json_value_put_number(out, v);
	}
	return end;
nomem:
	out->failed = true;
	return NULL;
}

const struct ky_value *ky_json_value(struct ky_strbuf *out, const struct ky_value *v)
{
	return json_value_put_value(out, v);
}
