/* SPDX-License-Identifier: MIT */
/* JSON values as text: one line each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "ctf/json/json.h"

static void json_write_char(struct ky_strbuf *out, const char *text, size_t i)
{
	unsigned char c = (unsigned char)text[i];

	if (c == '"' || c == '\\')
		ky_strbuf_addf(out, "\\%c", c);
	else if (c < 0x20 || c == 0x7f)
		ky_strbuf_addf(out, "\\u%04x", c);
	else
		ky_strbuf_addc(out, (char)c);
}

void ky_json_put_text(struct ky_strbuf *out, const char *text, size_t len)
{
	ky_strbuf_addc(out, '"');
	for (size_t i = 0; i < len; i++)
		json_write_char(out, text, i);
	ky_strbuf_addc(out, '"');
}

KY_DEEP2(int, json_write_put_json, struct ky_strbuf *, const struct ky_json *)

static int json_write_put_json(struct ky_strbuf *out, const struct ky_json *value)
{
	switch (value->kind) {
	case KY_JSON_NULL:
		ky_strbuf_adds(out, "null");
		break;
	case KY_JSON_BOOL:
		ky_strbuf_adds(out, value->boolean ? "true" : "false");
		break;
	case KY_JSON_INTEGER:
		if (value->integer.negative)
			ky_strbuf_addi(out, (int64_t)value->integer.u);
		else
			ky_strbuf_addu(out, value->integer.u);
		break;
	case KY_JSON_BIG:
	case KY_JSON_REAL:
		ky_strbuf_adds(out, value->number);
		break;
	case KY_JSON_STRING:
		ky_json_put_text(out, value->string.data, value->string.len);
		break;
	case KY_JSON_ARRAY:
	case KY_JSON_OBJECT:
		ky_strbuf_addc(out, value->kind == KY_JSON_ARRAY ? '[' : '{');
		for (const struct ky_json *item = value->list.first; item; item = item->next) {
			if (item->key) {
				ky_json_put_text(out, item->key, strlen(item->key));
				ky_strbuf_adds(out, ": ");
			}
			if (json_write_put_json_deep(KYMO_E_MEMORY, out, item) < 0)
				return KYMO_E_MEMORY;
			ky_strbuf_adds(out, item->next ? ", " : "");
		}
		ky_strbuf_addc(out, value->kind == KY_JSON_ARRAY ? ']' : '}');
		break;
	}
	return KYMO_OK;
}

int ky_json_put(struct ky_strbuf *out, const struct ky_json *value)
{
	return json_write_put_json(out, value);
}
