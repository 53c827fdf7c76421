/* SPDX-License-Identifier: MIT */
#include "ctf/json/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/text.h"
#include "ctf/model/unicode.h"

KY_DEEP1(struct ky_json *, read_value, struct ky_json_reader *)

static void *fail_at(struct ky_json_reader *r, const char *at, int code, const char *what)
{
	ky_error_set(r->err, code, "%s", what);
	ky_error_line(r->err, r->line, (uint32_t)(at - r->line_begin) + 1);
	return NULL;
}

static void *json_json_fail(struct ky_json_reader *r, const char *what)
{
	return fail_at(r, r->at, KYMO_E_FORMAT, what);
}

bool ky_json_more(struct ky_json_reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '\n') {
			r->line++;
			r->line_begin = r->at + 1;
		} else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
			return true;
		}
	}
	return false;
}

static struct ky_json *new_value(struct ky_json_reader *r, enum ky_json_kind kind)
{
	struct ky_json *value = ky_arena_new(r->arena, struct ky_json);

	if (!value)
		return fail_at(r, r->at, KYMO_E_MEMORY, "out of memory");
	value->kind = kind;
	value->line = r->line;
	value->column = (uint32_t)(r->at - r->line_begin) + 1;
	return value;
}

/* ---- strings ------------------------------------------------------------------------------- */

/* The four digits of \uXXXX; UINT32_MAX when they are none. */
static uint32_t hex4(struct ky_json_reader *r)
{
	uint32_t code = 0;

	if (r->end - r->at < 4)
		return UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		char c = r->at[i];
		uint32_t digit = c >= '0' && c <= '9'	? (uint32_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
				 : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
							: UINT32_MAX;

		if (digit == UINT32_MAX)
			return UINT32_MAX;
		code = code << 4 | digit;
	}
	r->at += 4;
	return code;
}

static char *read_unicode(struct ky_json_reader *r, char *out)
{
	uint32_t code = hex4(r), low;

	if (code == UINT32_MAX)
		return json_json_fail(r, "\\u wants four hexadecimal digits");
	if (code >= 0xd800 && code < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' &&
	    r->at[1] == 'u') {
		r->at += 2;
		low = hex4(r);
		if (low < 0xdc00 || low > 0xdfff)
			return json_json_fail(r, "a low surrogate must follow a high one");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	if (code >= 0xd800 && code < 0xe000)
		return json_json_fail(r, "a surrogate stands alone");
	return out + ky_utf8_put(out, code);
}

static char *json_json_read_escape(struct ky_json_reader *r, char *out)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *found;
	char c;

	if (++r->at >= r->end)
		return json_json_fail(r, "the string does not end");
	c = *r->at++;
	if (c == 'u')
		return read_unicode(r, out);
	found = c ? strchr(letters, c) : NULL;
	if (!found)
		return json_json_fail(r, "unknown escape sequence");
	*out++ = values[found - letters];
	return out;
}

/* The text between quotes; r->at stands on the first of them. */
static char *json_json_read_text(struct ky_json_reader *r, size_t *len)
{
	const char *begin = r->at, *quote = begin + 1;
	char *text, *out;
	size_t n;

	/* The decoded text is never longer than what is written. */
	while (quote < r->end && *quote != '"')
		quote += *quote == '\\' ? 2 : 1;
	if (quote >= r->end)
		return json_json_fail(r, "the string does not end");
	text = out = ky_arena_alloc(r->arena, (size_t)(quote - begin));
	if (!text)
		return fail_at(r, begin, KYMO_E_MEMORY, "out of memory");
	for (r->at++; r->at < quote;) {
		if ((unsigned char)*r->at < 0x20)
			return json_json_fail(r, "control character in a string");
		if (*r->at != '\\') {
			n = ky_utf8_length((const uint8_t *)r->at, (size_t)(quote - r->at));
			if (!n)
				return json_json_fail(r, "a string that is not UTF-8");
			memcpy(out, r->at, n);
			out += n;
			r->at += n;
			continue;
		}
		out = json_json_read_escape(r, out);
		if (!out)
			return NULL;
	}
	r->at = quote + 1;
	*out = '\0';
	*len = (size_t)(out - text);
	return text;
}

static struct ky_json *read_string(struct ky_json_reader *r)
{
	struct ky_json *value = new_value(r, KY_JSON_STRING);

	if (!value)
		return NULL;
	value->string.data = json_json_read_text(r, &value->string.len);
	return value->string.data ? value : NULL;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool json_json_is_digit(const struct ky_json_reader *r, const char *at)
{
	return at < r->end && *at >= '0' && *at <= '9';
}

/* Past the digits at @at; NULL when none exists. */
static const char *skip_digits(const struct ky_json_reader *r, const char *at)
{
	const char *begin = at;

	while (json_json_is_digit(r, at))
		at++;
	return at > begin ? at : NULL;
}

/* Past a fraction and an exponent at @at, as far as there are any; NULL when they are malformed. */
static const char *skip_fraction(const struct ky_json_reader *r, const char *at)
{
	if (at < r->end && *at == '.')
		at = skip_digits(r, at + 1);
	if (at && at < r->end && (*at == 'e' || *at == 'E')) {
		at++;
		if (at < r->end && (*at == '+' || *at == '-'))
			at++;
		at = skip_digits(r, at);
	}
	return at;
}

/* A number that stays as it is written, from r->at to @end. */
static struct ky_json *keep_number(struct ky_json_reader *r, enum ky_json_kind kind,
				   const char *end)
{
	struct ky_json *value = new_value(r, kind);
	size_t len = (size_t)(end - r->at);
	char *text;

	if (!value)
		return NULL;
	text = ky_arena_alloc(r->arena, len + 1);
	if (!text)
		return fail_at(r, r->at, KYMO_E_MEMORY, "out of memory");
	memcpy(text, r->at, len);
	text[len] = '\0';
	value->number = text;
	r->at = end;
	return value;
}

static struct ky_json *json_json_read_number(struct ky_json_reader *r)
{
	bool negative = *r->at == '-', overflow = false;
	const char *at = r->at + negative, *end;
	struct ky_json *value;
	uint64_t number = 0;

	if (!json_json_is_digit(r, at) || (*at == '0' && json_json_is_digit(r, at + 1)))
		return json_json_fail(r, "malformed number");
	for (; json_json_is_digit(r, at); at++) {
		overflow |= __builtin_mul_overflow(number, 10, &number);
		overflow |= __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number);
	}
	end = skip_fraction(r, at);
	if (!end)
		return json_json_fail(r, "malformed number");
	if (end > at)
		return keep_number(r, KY_JSON_REAL, end);
	if (overflow || (negative && number > UINT64_C(1) << 63))
		return keep_number(r, KY_JSON_BIG, end);
	value = new_value(r, KY_JSON_INTEGER);
	if (!value)
		return NULL;
	value->integer.negative = negative && number;
	value->integer.u = negative ? 0 - number : number;
	r->at = at;
	return value;
}

static bool is_negative(const struct ky_json *number)
{
	return number->kind == KY_JSON_BIG ? *number->number == '-' : number->integer.negative;
}

/* Is @a nearer to zero than @b, which is of the same sign? */
static bool is_nearer(const struct ky_json *a, const struct ky_json *b)
{
	size_t len_a, len_b;

	if (a->kind == KY_JSON_INTEGER && b->kind == KY_JSON_INTEGER)
		return a->integer.negative ? a->integer.u > b->integer.u
					   : a->integer.u < b->integer.u;
	if (a->kind != b->kind)
		return a->kind == KY_JSON_INTEGER;
	len_a = strlen(a->number);
	len_b = strlen(b->number);
	return len_a < len_b || (len_a == len_b && strcmp(a->number, b->number) < 0);
}

bool ky_json_less(const struct ky_json *a, const struct ky_json *b)
{
	if (is_negative(a) != is_negative(b))
		return is_negative(a);
	return is_negative(a) ? is_nearer(b, a) : is_nearer(a, b);
}

/* ---- what contains others ------------------------------------------------------------------- */

static struct ky_json *read_member(struct ky_json_reader *r)
{
	struct ky_json *value;
	const char *key;
	size_t len;

	if (!ky_json_more(r) || *r->at != '"')
		return json_json_fail(r, "a property's name in quotes is expected");
	key = json_json_read_text(r, &len);
	if (!key)
		return NULL;
	if (!ky_json_more(r) || *r->at != ':')
		return json_json_fail(r, "':' is expected after a property's name");
	r->at++;
	value = read_value_deep(NULL, r);
	if (value)
		value->key = key;
	return value;
}

static struct ky_json *json_json_read_list(struct ky_json_reader *r, enum ky_json_kind kind,
					   char close)
{
	struct ky_json *list = new_value(r, kind), *item, **tail;

	if (!list)
		return NULL;
	tail = &list->list.first;
	r->at++;
	for (;;) {
		/* Also behind a last comma, which producers do write. */
		if (ky_json_more(r) && *r->at == close) {
			r->at++;
			return list;
		}
		item = kind == KY_JSON_OBJECT ? read_member(r) : read_value_deep(NULL, r);
		if (!item)
			return NULL;
		*tail = item;
		tail = &item->next;
		list->list.len++;
		if (!ky_json_more(r) || (*r->at != ',' && *r->at != close))
			return json_json_fail(r, kind == KY_JSON_OBJECT ? "',' or '}' is expected"
									: "',' or ']' is expected");
		if (*r->at++ == close)
			return list;
	}
}

static struct ky_json *json_json_read_word(struct ky_json_reader *r, const char *word,
					   enum ky_json_kind kind, bool boolean)
{
	size_t len = strlen(word);
	struct ky_json *value;

	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return json_json_fail(r, "a JSON value is expected");
	value = new_value(r, kind);
	if (value && kind == KY_JSON_BOOL)
		value->boolean = boolean;
	r->at += len;
	return value;
}

static struct ky_json *read_value(struct ky_json_reader *r)
{
	struct ky_json *value;

	if (!ky_json_more(r))
		return json_json_fail(r, "a JSON value is expected");
	switch (*r->at) {
	case '{':
	case '[':
		if (!r->depth_left)
			return fail_at(r, r->at, KYMO_E_LIMIT, "JSON nested too deeply");
		r->depth_left--;
		value = *r->at == '{' ? json_json_read_list(r, KY_JSON_OBJECT, '}')
				      : json_json_read_list(r, KY_JSON_ARRAY, ']');
		r->depth_left++;
		return value;
	case '"':
		return read_string(r);
	case 't':
		return json_json_read_word(r, "true", KY_JSON_BOOL, true);
	case 'f':
		return json_json_read_word(r, "false", KY_JSON_BOOL, false);
	case 'n':
		return json_json_read_word(r, "null", KY_JSON_NULL, false);
	default:
		return json_json_read_number(r);
	}
}

struct ky_json *ky_json_read(struct ky_json_reader *r)
{
	struct ky_json *value = read_value(r);

	ky_json_more(r);
	return value;
}

struct ky_json *ky_json_get(const struct ky_json *object, const char *key)
{
	struct ky_json *item = object->kind == KY_JSON_OBJECT ? object->list.first : NULL;

	while (item && strcmp(item->key, key) != 0)
		item = item->next;
	return item;
}

const char *ky_json_kind_name(enum ky_json_kind kind)
{
	switch (kind) {
	case KY_JSON_NULL:
		return "null";
	case KY_JSON_BOOL:
		return "a boolean";
	case KY_JSON_INTEGER:
		return "an integer";
	case KY_JSON_BIG:
		return "an integer beyond 64 bits";
	case KY_JSON_REAL:
		return "a real number";
	case KY_JSON_STRING:
		return "a string";
	case KY_JSON_ARRAY:
		return "an array";
	default:
		return "an object";
	}
}

int ky_json_error(struct kymo_error *err, const struct ky_json *value, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ky_error_set(err, KYMO_E_FORMAT, "%s", text);
	ky_error_line(err, value->line, value->column);
	return KYMO_E_FORMAT;
}
