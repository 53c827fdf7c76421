/* SPDX-License-Identifier: MIT */
/* The text sink: single values, and scopes written from their list of values. */
#include "flow/sinks/text-internal.h"
#include "ctf/model/unicode.h"

#include <stdio.h>

#include "base/bits.h"
#include "base/deep.h"
#include "base/error.h"
#include "base/foreign.h"
#include "flow/sinks/address-names.h"
#include "flow/sinks/buffer.h"

const char ky_text_pairs[200] = "0001020304050607080910111213141516171819"
				"2021222324252627282930313233343536373839"
				"4041424344454647484950515253545556575859"
				"6061626364656667686970717273747576777879"
				"8081828384858687888990919293949596979899";

/* ---- numbers ----------------------------------------------------------------------------- */

static char *put_binary(char *at, uint64_t value, unsigned int bits)
{
	*at++ = '0';
	*at++ = 'b';
	while (bits-- > 0)
		*at++ = (char)('0' + (value >> bits & 1));
	return at;
}

static char *put_octal(char *at, uint64_t value)
{
	char digits[24], *d = digits + sizeof(digits);

	*at++ = '0';
	do
		*--d = (char)('0' + (value & 7));
	while (value >>= 3);
	return ky_text_put(at, d, (size_t)(digits + sizeof(digits) - d));
}

/* @bits of a negative number are shown up to a whole digit of @digit_bits. */
static uint64_t cut_to_digits(uint64_t value, unsigned int bits, unsigned int digit_bits)
{
	return value & ky_mask_bits((bits + digit_bits - 1) / digit_bits * digit_bits);
}

static char *text_value_put_integer(char *at, const struct ky_field_class *cls, uint64_t value)
{
	unsigned int bits = cls->num.length_bits ? cls->num.length_bits : 64;

	switch (cls->num.base) {
	case 2:
		return put_binary(at, value, bits);
	case 8:
		return put_octal(at, cut_to_digits(value, bits, 3));
	case 16:
		*at++ = '0';
		*at++ = 'x';
		return ky_put_hex(at, cut_to_digits(value, bits, 4), true);
	default:
		if (cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT)
			return ky_text_put_i64(at, (int64_t)value);
		return ky_text_put_u64(at, value);
	}
}

/* An enumeration without its labels: words, the number, codes. */
#define ENUM_BYTES (TEXT_NUMBER_BYTES + 40 + 5 * TEXT_CODE_BYTES)

static bool text_value_covers(const struct ky_mapping *mapping, uint64_t value, bool is_signed)
{
	for (size_t i = 0; i < mapping->n_ranges; i++) {
		const struct ky_range *r = &mapping->ranges[i];

		if (is_signed ? (int64_t)value >= r->begin.s && (int64_t)value <= r->end.s
			      : value >= r->begin.u && value <= r->end.u)
			return true;
	}
	return false;
}

/* Has room for every code. */
static char *put_code(const struct ky_text *text, char *at, enum text_colour colour)
{
	const char *code;

	if (__builtin_expect(!text->style.codes, 1))
		return at;
	code = text->style.codes[colour];
	return ky_text_put(at, code, strlen(code));
}

static char *put_unknown(const struct ky_text *text, char *at)
{
	at = put_code(text, at, TEXT_COLOUR_UNKNOWN);
	at = ky_text_put(at, "<unknown>", 9);
	return put_code(text, at, TEXT_COLOUR_NONE);
}

/* ( "A", "B" : container = 3 ) */
static char *put_enum(struct ky_text *text, char *at, const struct ky_field_class *cls,
		      uint64_t value, struct kymo_error *err)
{
	bool is_signed = cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
	bool known = false;

	at = ky_text_put(at, "( ", 2);
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		const char *label = cls->num.mappings[i].label;

		if (!text_value_covers(&cls->num.mappings[i], value, is_signed))
			continue;
		if (known)
			at = ky_text_put(at, ", ", 2);
		known = true;
		at = put_code(text, at, TEXT_COLOUR_VALUE);
		at = ky_text_quoted(text, at, label, strlen(label), err);
		if (at)
			at = ky_text_room(text, at, ENUM_BYTES, err);
		if (!at)
			return NULL;
		at = put_code(text, at, TEXT_COLOUR_NONE);
	}
	if (!known)
		at = put_unknown(text, at);
	at = ky_text_put(at, " : container = ", 15);
	at = put_code(text, at, TEXT_COLOUR_VALUE);
	at = text_value_put_integer(at, cls, value);
	at = put_code(text, at, TEXT_COLOUR_NONE);
	return ky_text_put(at, " )", 2);
}

static char *text_value_put_float(char *at, uint64_t value)
{
	double number;

	memcpy(&number, &value, sizeof(number));
	return at + snprintf(at, 32, "%g", number);
}

char *ky_text_number(struct ky_text *text, char *at, const struct ky_field_class *cls,
		     uint64_t value, struct kymo_error *err)
{
	at = ky_text_room(text, at, ENUM_BYTES, err);
	if (!at)
		return NULL;
	if (cls->num.is_enum)
		return put_enum(text, at, cls, value, err);
	if (cls->kind == KY_FIELD_FLOAT)
		return text_value_put_float(at, value);
	return text_value_put_integer(at, cls, value);
}

/* Bytes in memory order: 0x0123. */
static char *text_value_put_blob(struct ky_text *text, char *at, const struct ky_value *v,
				 struct kymo_error *err)
{
	static const char digits[] = "0123456789ABCDEF";

	at = ky_text_room(text, at, 4, err);
	if (!at)
		return NULL;
	at = ky_text_put(at, "0x", 2);
	for (size_t i = 0; i < v->str.len_bytes; i++) {
		unsigned char byte = (unsigned char)v->str.data[i];

		at = ky_text_room(text, at, 4, err);
		if (!at)
			return NULL;
		*at++ = digits[byte >> 4];
		*at++ = digits[byte & 15];
	}
	return at;
}

/* Numbers of more than 64 bits: in hexadecimal. */
static char *text_value_put_big(struct ky_text *text, char *at, const struct ky_value *v,
				struct kymo_error *err)
{
	unsigned int words = (v->cls->num.length_bits + 63) / 64;
	bool leading = true;

	at = ky_text_room(text, at, 4, err);
	if (!at)
		return NULL;
	at = ky_text_put(at, "0x", 2);
	while (words-- > 0) {
		uint64_t word = ky_value_word(v, words);

		if (leading && !word && words)
			continue;
		at = ky_text_room(text, at, 32, err);
		if (!at)
			return NULL;
		if (!leading) {
			unsigned int used =
				word ? (67 - (unsigned int)__builtin_clzll(word)) / 4 : 1;

			memset(at, '0', 16 - used);
			at += 16 - used;
		}
		at = ky_put_hex(at, word, true);
		leading = false;
	}
	return at;
}

static char *text_value_put_bytes(struct ky_text *text, char *at, const char *s, size_t len,
				  struct kymo_error *err)
{
	at = ky_text_room(text, at, len, err);
	return at ? ky_text_put(at, s, len) : NULL;
}

/* "text", or 01 61 62 |.ab|. */
static char *text_value_put_buffer(struct ky_text *text, char *at, const struct ky_value *v,
				   struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT, hex = KY_STRBUF_INIT;
	bool is_text = ky_buffer_bytes(&bytes, v);

	if (!is_text)
		ky_buffer_hex(&hex, ky_strbuf_text(&bytes), bytes.len);
	if (ky_strbuf_failed(&bytes) || ky_strbuf_failed(&hex)) {
		ky_error_nomem(err);
		at = NULL;
	} else if (is_text) {
		at = ky_text_quoted(text, at, ky_strbuf_text(&bytes), bytes.len, err);
	} else {
		at = text_value_put_bytes(text, at, hex.data, hex.len, err);
	}
	ky_strbuf_fini(&bytes);
	ky_strbuf_fini(&hex);
	return at;
}

/* ---- values ------------------------------------------------------------------------------ */

KY_DEEP4(char *, text_value_put_value, struct ky_text *, char *, const struct ky_value *,
	 struct kymo_error *)

/* The same, however deep @v lies. */
static char *put_deep(struct ky_text *text, char *at, const struct ky_value *v,
		      struct kymo_error *err)
{
	/* NULL came without a word when there was no memory for a stack. */
	if (err)
		err->code = KYMO_OK;
	at = text_value_put_value_deep(NULL, text, at, v, err);
	if (!at && err && err->code == KYMO_OK)
		ky_error_nomem(err);
	return at;
}

static char *text_value_put_literal(struct ky_text *text, char *at, const char *s,
				    struct kymo_error *err)
{
	size_t len = strlen(s);

	at = ky_text_room(text, at, len, err);
	return at ? ky_text_put(at, s, len) : NULL;
}

/* Does the value as a whole have a colour? Enumerations have them inside. */
static bool has_colour(const struct ky_text *text, const struct ky_value *v)
{
	switch (v->cls->kind) {
	case KY_FIELD_ARRAY:
		return text->has_buffers && ky_buffer_is(v);
	case KY_FIELD_STRUCT:
	case KY_FIELD_VARIANT:
	case KY_FIELD_OPTIONAL:
		return false;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return true;
	default:
		return !v->cls->num.is_enum || ky_value_is_big(v);
	}
}

static char *put_coloured(struct ky_text *text, char *at, const struct ky_value *v,
			  struct kymo_error *err)
{
	at = text_value_put_literal(text, at, ky_text_code(&text->style, TEXT_COLOUR_VALUE), err);
	if (at)
		at = put_deep(text, at, v, err);
	if (at)
		at = text_value_put_literal(text, at, ky_text_code(&text->style, TEXT_COLOUR_NONE),
					    err);
	return at;
}

static inline char *put_nested(struct ky_text *text, char *at, const struct ky_value *v,
			       struct kymo_error *err)
{
	if (__builtin_expect(text->style.codes && has_colour(text, v), 0))
		return put_coloured(text, at, v, err);
	return put_deep(text, at, v, err);
}

/* A name, as people may see it. */
static char *text_value_put_name(struct ky_text *text, char *at, const char *name,
				 struct kymo_error *err)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t len = strlen(name), n;

	for (; at && len; name += n, len -= n) {
		n = ky_foreign_plain(name, len);
		at = ky_text_room(text, at, n + sizeof(escape), err);
		if (at && n) {
			at = ky_text_put(at, name, n);
		} else if (at) {
			n = ky_foreign_next(name, len, escape);
			at = ky_text_put(at, escape, strlen(escape));
		}
	}
	return at;
}

/* "name = " */
static char *put_member_name(struct ky_text *text, char *at, const char *name,
			     struct kymo_error *err)
{
	if (__builtin_expect(text->style.codes != NULL, 0))
		at = text_value_put_literal(text, at, text->style.codes[TEXT_COLOUR_FIELD_NAME],
					    err);
	if (at)
		at = text_value_put_name(text, at, name, err);
	if (__builtin_expect(at && text->style.codes != NULL, 0))
		at = text_value_put_literal(text, at, text->style.codes[TEXT_COLOUR_NONE], err);
	return at ? text_value_put_literal(text, at, " = ", err) : NULL;
}

static char *put_element_name(struct ky_text *text, char *at, const struct ky_value *parent,
			      const struct ky_value *child, uint32_t number, struct kymo_error *err)
{
	at = ky_text_room(text, at, 32, err);
	if (!at)
		return NULL;
	if (number)
		*at++ = ',';
	*at++ = ' ';
	if (!text->field_names)
		return at;
	if (parent->cls->kind == KY_FIELD_ARRAY) {
		*at++ = '[';
		at = ky_text_put_u64(at, number);
		return ky_text_put(at, "] = ", 4);
	}
	if (!child->name)
		return at;
	return put_member_name(text, at, child->name, err);
}

/* { a = 1, b = 2 }   [ [0] = 1, [1] = 2 ]   { chosen } */
static char *put_children(struct ky_text *text, char *at, const struct ky_value *v, bool skip_roles,
			  struct kymo_error *err)
{
	const struct ky_value *child = v + 1, *end = v + 1 + v->n_below;
	bool is_array = v->cls->kind == KY_FIELD_ARRAY;
	uint32_t number = 0;

	at = text_value_put_literal(text, at, is_array ? "[" : "{", err);
	for (; at && child < end; child += 1 + child->n_below) {
		if (skip_roles && ky_text_is_packet_role(child->cls))
			continue;
		at = put_element_name(text, at, v, child, number++, err);
		if (at)
			at = put_nested(text, at, child, err);
		if (__builtin_expect(at && text->address_event != NULL, 0))
			at = ky_text_put_address(text, at, v, child, number - 1, err);
	}
	return at ? text_value_put_literal(text, at, is_array ? " ]" : " }", err) : NULL;
}

/* UTF-16 and UTF-32 are shown as UTF-8. */
bool ky_text_is_wide(const struct ky_field_class *cls)
{
	return (cls->kind == KY_FIELD_STRING || cls->kind == KY_FIELD_TEXT) &&
	       cls->text.encoding > KY_ENCODING_ASCII;
}

static char *text_value_put_wide(struct ky_text *text, char *at, const struct ky_value *v,
				 struct kymo_error *err)
{
	struct ky_strbuf utf8 = KY_STRBUF_INIT;

	ky_utf8_from(&utf8, v->cls->text.encoding, (const uint8_t *)v->str.data, v->str.len_bytes);
	if (ky_strbuf_failed(&utf8)) {
		ky_error_nomem(err);
		at = NULL;
	} else {
		at = ky_text_quoted(text, at, ky_strbuf_text(&utf8), utf8.len, err);
	}
	ky_strbuf_fini(&utf8);
	return at;
}

static char *text_value_put_value(struct ky_text *text, char *at, const struct ky_value *v,
				  struct kymo_error *err)
{
	switch (v->cls->kind) {
	case KY_FIELD_ARRAY:
		if (text->has_buffers && ky_buffer_is(v))
			return text_value_put_buffer(text, at, v, err);
		return put_children(text, at, v, false, err);
	case KY_FIELD_STRUCT:
	case KY_FIELD_VARIANT:
		return put_children(text, at, v, false, err);
	case KY_FIELD_OPTIONAL:
		return v->n_below ? put_nested(text, at, v + 1, err)
				  : text_value_put_literal(text, at, "<none>", err);
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		if (ky_text_is_wide(v->cls))
			return text_value_put_wide(text, at, v, err);
		return ky_text_quoted(text, at, v->str.data, v->str.len_bytes, err);
	case KY_FIELD_BLOB:
		return text_value_put_blob(text, at, v, err);
	default:
		if (ky_value_is_big(v))
			return text_value_put_big(text, at, v, err);
		return ky_text_number(text, at, v->cls, v->u, err);
	}
}

bool ky_text_is_packet_role(const struct ky_field_class *cls)
{
	return cls->role != KY_ROLE_NONE && cls->role != KY_ROLE_CPU_ID;
}

char *ky_text_scope(struct ky_text *text, char *at, const struct ky_event *event,
		    enum ky_scope scope, bool skip_roles, struct kymo_error *err)
{
	int n = ky_values_decode(&text->values, event, scope, err);

	if (n <= 0)
		return n < 0 ? NULL : at;
	text->field_names = ky_text_names_fields(&text->style, scope);
	text->has_buffers = ky_buffer_scope(text->values.list.data);
	text->address_event =
		text->style.has_addresses && ky_address_in_scope(event->cls, scope) ? event : NULL;
	text->address_scope = scope;
	return put_children(text, at, text->values.list.data, skip_roles, err);
}
