/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "ctf/model/walk.h"

/* ---- tokens ------------------------------------------------------------------------------ */

int ky_tsdl_fail(struct ky_tsdl_parser *p, const struct ky_token *token, const char *fmt, ...)
{
	char text[sizeof(p->err->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ky_error_set(p->err, KYMO_E_FORMAT, "%s", text);
	ky_error_line(p->err, token->line, token->column);
	return KYMO_E_FORMAT;
}

int ky_tsdl_unsupported(struct ky_tsdl_parser *p, const struct ky_token *token, const char *what)
{
	ky_error_set(p->err, KYMO_E_UNSUPPORTED, "%s", what);
	ky_error_line(p->err, token->line, token->column);
	return KYMO_E_UNSUPPORTED;
}

static void tsdl_attr_describe(const struct ky_token *token, char *out, size_t size)
{
	switch (token->kind) {
	case KY_TOKEN_END:
		snprintf(out, size, "the end of the text");
		break;
	case KY_TOKEN_WORD:
		snprintf(out, size, "%s\"%.64s\"", token->keyword ? "keyword " : "", token->text);
		break;
	case KY_TOKEN_NUMBER:
		snprintf(out, size, "number %llu", (unsigned long long)token->value);
		break;
	case KY_TOKEN_TEXT:
		snprintf(out, size, "a string");
		break;
	default:
		if (token->punct < 128)
			snprintf(out, size, "'%c'", token->punct);
		else
			snprintf(out, size, "'%s'",
				 token->punct == KY_PUNCT_ASSIGN_TYPE ? ":="
				 : token->punct == KY_PUNCT_ELLIPSIS  ? "..."
								      : "->");
	}
}

int ky_tsdl_expected(struct ky_tsdl_parser *p, const char *what)
{
	char found[96];

	tsdl_attr_describe(p->at, found, sizeof(found));
	return ky_tsdl_fail(p, p->at, "expected %s, found %s", what, found);
}

int ky_tsdl_expect(struct ky_tsdl_parser *p, uint8_t punct, const char *what)
{
	return ky_tsdl_accept(p, punct) ? KYMO_OK : ky_tsdl_expected(p, what);
}

/* ---- values ------------------------------------------------------------------------------ */

int ky_tsdl_path(struct ky_tsdl_parser *p, const char **path)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	if (p->at->kind != KY_TOKEN_WORD)
		return ky_tsdl_expected(p, "a name");
	*path = (p->at++)->text;
	if (!ky_tsdl_is(p, '.') && !ky_tsdl_is(p, KY_PUNCT_ARROW))
		return KYMO_OK;
	ky_strbuf_adds(&buf, *path);
	while (ky_tsdl_accept(p, '.') || ky_tsdl_accept(p, KY_PUNCT_ARROW)) {
		if (p->at->kind != KY_TOKEN_WORD) {
			ret = ky_tsdl_expected(p, "a name");
			break;
		}
		ky_strbuf_addc(&buf, '.');
		ky_strbuf_adds(&buf, (p->at++)->text);
	}
	if (ret == KYMO_OK) {
		*path = ky_strbuf_failed(&buf) ? NULL
					       : ky_arena_strdup(&p->arena, ky_strbuf_text(&buf));
		if (!*path)
			ret = ky_error_nomem(p->err);
	}
	ky_strbuf_fini(&buf);
	return ret;
}

/* Signs and opening parentheses before a value; the number of the latter. */
static int value_prefix(struct ky_tsdl_parser *p, bool *has_sign, bool *negative)
{
	int parentheses = 0;

	*has_sign = *negative = false;
	for (;;) {
		if (ky_tsdl_accept(p, '(')) {
			parentheses++;
		} else if (ky_tsdl_is(p, '+') || ky_tsdl_is(p, '-')) {
			*has_sign = true;
			*negative ^= (p->at++)->punct == '-';
		} else {
			return parentheses;
		}
	}
}

int ky_tsdl_value(struct ky_tsdl_parser *p, struct ky_tsdl_attr *attr)
{
	bool has_sign;
	int parentheses, ret = KYMO_OK;

	attr->value_at = p->at;
	parentheses = value_prefix(p, &has_sign, &attr->negative);
	if (p->at->kind == KY_TOKEN_NUMBER) {
		attr->kind = KY_ATTR_NUMBER;
		attr->number = (p->at++)->value;
	} else if (has_sign) {
		return ky_tsdl_expected(p, "a number after the sign");
	} else if (p->at->kind == KY_TOKEN_TEXT) {
		attr->kind = KY_ATTR_TEXT;
		attr->text = (p->at++)->text;
	} else if (p->at->kind == KY_TOKEN_WORD) {
		attr->kind = KY_ATTR_WORD;
		ret = ky_tsdl_path(p, &attr->text);
	} else {
		return ky_tsdl_expected(p, "a value");
	}
	while (ret == KYMO_OK && parentheses--)
		ret = ky_tsdl_expect(p, ')', "')'");
	return ret;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static int attribute(struct ky_tsdl_parser *p, bool types, ky_tsdl_attr_fn handle, void *data)
{
	struct ky_tsdl_attr attr = {.name_at = p->at};
	int ret = ky_tsdl_path(p, &attr.name);

	if (ret < 0)
		return ret;
	attr.value_at = p->at + 1;
	if (ky_tsdl_accept(p, '=')) {
		ret = ky_tsdl_value(p, &attr);
	} else if (types && ky_tsdl_accept(p, KY_PUNCT_ASSIGN_TYPE)) {
		attr.kind = KY_ATTR_TYPE;
		ret = ky_tsdl_type_name(p, &attr.type);
	} else {
		return ky_tsdl_expected(p, types ? "'=' or ':='" : "'='");
	}
	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, ';', "';'");
	return ret < 0 ? ret : handle(p, data, &attr);
}

static int block_body(struct ky_tsdl_parser *p, bool types, ky_tsdl_attr_fn handle, void *data)
{
	int ret = KYMO_OK;

	while (ret == KYMO_OK && !ky_tsdl_accept(p, '}')) {
		if (ky_tsdl_accept(p, ';'))
			continue;
		if (types && ky_tsdl_is_declaration(p))
			ret = ky_tsdl_declaration(p);
		else if (p->at->kind == KY_TOKEN_WORD)
			ret = attribute(p, types, handle, data);
		else
			ret = ky_tsdl_expected(p, "an attribute or '}'");
	}
	return ret;
}

int ky_tsdl_block(struct ky_tsdl_parser *p, bool types, ky_tsdl_attr_fn handle, void *data)
{
	int ret = ky_tsdl_expect(p, '{', "'{'");

	if (ret < 0)
		return ret;
	if (!types)
		return block_body(p, types, handle, data);
	ret = ky_tsdl_scope_push(p);
	if (ret < 0)
		return ret;
	ret = block_body(p, types, handle, data);
	ky_tsdl_scope_pop(p);
	return ret;
}

/* ---- values of a kind ---------------------------------------------------------------------- */

int ky_tsdl_attr_u64(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, uint64_t *value)
{
	if (attr->kind != KY_ATTR_NUMBER || (attr->negative && attr->number))
		return ky_tsdl_fail(p, attr->value_at, "%s must be a number and not negative",
				    attr->name);
	*value = attr->number;
	return KYMO_OK;
}

int ky_tsdl_attr_i64(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, int64_t *value)
{
	if (attr->kind != KY_ATTR_NUMBER)
		return ky_tsdl_fail(p, attr->value_at, "%s must be a number", attr->name);
	if (attr->number > (uint64_t)INT64_MAX + attr->negative)
		return ky_tsdl_fail(p, attr->value_at, "%s does not fit in 64 bits", attr->name);
	*value = (int64_t)(attr->negative ? -attr->number : attr->number);
	return KYMO_OK;
}

bool ky_tsdl_attr_says(const struct ky_tsdl_attr *attr, const char *word)
{
	return attr->kind == KY_ATTR_WORD && !strcmp(attr->text, word);
}

int ky_tsdl_attr_bool(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, bool *value)
{
	if (attr->kind == KY_ATTR_NUMBER) {
		*value = attr->number != 0;
		return KYMO_OK;
	}
	if (ky_tsdl_attr_says(attr, "true") || ky_tsdl_attr_says(attr, "TRUE")) {
		*value = true;
		return KYMO_OK;
	}
	if (ky_tsdl_attr_says(attr, "false") || ky_tsdl_attr_says(attr, "FALSE")) {
		*value = false;
		return KYMO_OK;
	}
	return ky_tsdl_fail(p, attr->value_at, "%s must be true or false", attr->name);
}

int ky_tsdl_attr_text(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, const char **text)
{
	if (attr->kind != KY_ATTR_TEXT && attr->kind != KY_ATTR_WORD)
		return ky_tsdl_fail(p, attr->value_at, "%s must be a string", attr->name);
	*text = ky_arena_strdup(&p->trace->arena, attr->text);
	return *text ? KYMO_OK : ky_error_nomem(p->err);
}

int ky_tsdl_attr_uuid(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, uint8_t uuid[16])
{
	if (attr->kind != KY_ATTR_TEXT || !ky_parse_uuid(attr->text, uuid))
		return ky_tsdl_fail(p, attr->value_at,
				    "%s must be a string like "
				    "\"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"",
				    attr->name);
	return KYMO_OK;
}

int ky_tsdl_attr_struct(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
			struct ky_field_class **cls)
{
	if (attr->kind != KY_ATTR_TYPE || attr->type->kind != KY_FIELD_STRUCT)
		return ky_tsdl_fail(p, attr->value_at, "%s must be a struct, assigned by ':='",
				    attr->name);
	*cls = attr->type;
	return KYMO_OK;
}

int ky_tsdl_attr_byte_order(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
			    bool *big_endian)
{
	*big_endian = p->trace->big_endian;
	if (ky_tsdl_attr_says(attr, "native"))
		return KYMO_OK;
	*big_endian = ky_tsdl_attr_says(attr, "be") || ky_tsdl_attr_says(attr, "network");
	if (*big_endian || ky_tsdl_attr_says(attr, "le"))
		return KYMO_OK;
	return ky_tsdl_fail(p, attr->value_at, "%s must be le, be, network or native", attr->name);
}

int ky_tsdl_attr_align(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
		       uint32_t *align_bits)
{
	if (attr->kind != KY_ATTR_NUMBER || attr->negative || !attr->number ||
	    (attr->number & (attr->number - 1)))
		return ky_tsdl_fail(p, attr->value_at, "%s must be a power of two", attr->name);
	if (attr->number > UINT32_C(1) << 31)
		return ky_tsdl_fail(p, attr->value_at, "%s is too large", attr->name);
	*align_bits = (uint32_t)attr->number;
	return KYMO_OK;
}
