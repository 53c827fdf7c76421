/* SPDX-License-Identifier: MIT */
/*
 * Lines of JSON that are one object of texts, numbers and words, as most logs write them: read where they are. Everything else, and
 * what makes no sense, is left to jansson, so that there is one judge of what JSON is.
 */
#include <stdlib.h>

#include "base/utf8.h"
#include "import/logs/log-format.h"

struct flat {
	const char *at, *end;
	struct ky_strbuf *texts;
	uint64_t seen; /* a bit for each kind of name */
};

static inline void log_json_flat_skip(struct flat *flat)
{
	while (flat->at < flat->end && (*flat->at == ' ' || *flat->at == '\t'))
		flat->at++;
}

static inline bool log_json_flat_take(struct flat *flat, char c)
{
	log_json_flat_skip(flat);
	if (flat->at == flat->end || *flat->at != c)
		return false;
	flat->at++;
	return true;
}

/* What stands behind a backslash. False: it is not so simple. */
static bool log_json_flat_escape(struct flat *flat, char *c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (flat->end - flat->at < 2)
		return false;
	found = memchr(from, flat->at[1], sizeof(from) - 1);
	if (!found)
		return false;
	*c = to[found - from];
	flat->at += 2;
	return true;
}

/* The rest of a text that has an escape at flat->at, and begins at @begin. The room is there. */
static bool log_json_flat_escaped(struct flat *flat, const char *begin, const char **text,
				  size_t *len)
{
	size_t from = flat->texts->len;

	ky_strbuf_add(flat->texts, begin, (size_t)(flat->at - begin));
	while (flat->at < flat->end && *flat->at != '"') {
		char c = *flat->at;
		size_t n = 1;

		if (c == '\\') {
			if (!log_json_flat_escape(flat, &c))
				return false;
			ky_strbuf_addc(flat->texts, c);
			continue;
		}
		if ((unsigned char)c < 0x20)
			return false;
		if (c & 0x80)
			n = ky_utf8_length((const uint8_t *)flat->at,
					   (size_t)(flat->end - flat->at));
		if (!n)
			return false;
		ky_strbuf_add(flat->texts, flat->at, n);
		flat->at += n;
	}
	if (flat->at == flat->end)
		return false;
	flat->at++;
	*text = ky_strbuf_text(flat->texts) + from;
	*len = flat->texts->len - from;
	return !ky_strbuf_failed(flat->texts);
}

/* The text behind a quote. */
static inline bool log_json_flat_text(struct flat *flat, const char **text, size_t *len)
{
	const char *begin = flat->at;

	while (flat->at < flat->end) {
		unsigned char c = (unsigned char)*flat->at;

		if (c == '"') {
			*text = begin;
			*len = (size_t)(flat->at++ - begin);
			return true;
		}
		if (c == '\\')
			return log_json_flat_escaped(flat, begin, text, len);
		if (c < 0x20)
			return false;
		if (c < 0x80) {
			flat->at++;
			continue;
		}
		*len = ky_utf8_length((const uint8_t *)flat->at, (size_t)(flat->end - flat->at));
		if (!*len)
			return false;
		flat->at += *len;
	}
	return false;
}

static bool log_json_flat_word(struct flat *flat, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(flat->end - flat->at) < len || memcmp(flat->at, word, len) != 0)
		return false;
	flat->at += len;
	return true;
}

/* Digits, a point, digits. Exponents are rare. */
static bool log_json_flat_real(struct flat *flat, const char *begin, struct ky_log_value *value)
{
	char text[48];
	size_t len;

	flat->at++;
	while (flat->at < flat->end && *flat->at >= '0' && *flat->at <= '9')
		flat->at++;
	len = (size_t)(flat->at - begin);
	if (flat->at[-1] == '.' || len >= sizeof(text) ||
	    (flat->at < flat->end && (*flat->at == 'e' || *flat->at == 'E')))
		return false;
	memcpy(text, begin, len);
	text[len] = '\0';
	value->kind = KY_MAKER_DOUBLE;
	value->real = strtod(text, NULL);
	value->text = begin;
	value->len = len;
	return true;
}

enum ky_maker_kind ky_log_json_integer(const char *text, size_t len, int64_t *number)
{
	bool is_negative = len && *text == '-';
	uint64_t value = 0;

	text += is_negative;
	len -= is_negative;
	if (!len || (len > 1 && *text == '0'))
		return KY_MAKER_TEXT;
	for (size_t i = 0; i < len; i++)
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return KY_MAKER_TEXT;
	if (is_negative && value > UINT64_C(1) << 63)
		return KY_MAKER_TEXT;
	*number = (int64_t)(is_negative ? -value : value);
	return is_negative || value <= INT64_MAX ? KY_MAKER_S64 : KY_MAKER_U64;
}

static bool log_json_flat_number(struct flat *flat, struct ky_log_value *value)
{
	const char *begin = flat->at;

	flat->at += *flat->at == '-';
	while (flat->at < flat->end && *flat->at >= '0' && *flat->at <= '9')
		flat->at++;
	value->kind = ky_log_json_integer(begin, (size_t)(flat->at - begin), &value->number);
	if (value->kind == KY_MAKER_TEXT || (*begin == '-' && !value->number))
		return false;
	value->text = begin;
	value->len = (size_t)(flat->at - begin);
	if (flat->at == flat->end || (*flat->at | 0x20) == 'e')
		return false;
	return *flat->at != '.' || log_json_flat_real(flat, begin, value);
}

/* 1: a field; 0: null; negative. */
static int log_json_flat_value(struct flat *flat, struct ky_log_value *value)
{
	log_json_flat_skip(flat);
	if (flat->at == flat->end)
		return -1;
	value->kind = KY_MAKER_S64;
	switch (*flat->at) {
	case '"':
		flat->at++;
		value->kind = KY_MAKER_TEXT;
		return log_json_flat_text(flat, &value->text, &value->len) ? 1 : -1;
	case 't':
		value->number = 1;
		return log_json_flat_word(flat, "true") ? 1 : -1;
	case 'f':
		value->number = 0;
		return log_json_flat_word(flat, "false") ? 1 : -1;
	case 'n':
		return log_json_flat_word(flat, "null") ? 0 : -1;
	default:
		return log_json_flat_number(flat, value) ? 1 : -1;
	}
}

/* Of two members with one name, the last one counts: not here. */
static bool log_json_flat_is_new(struct flat *flat, const struct ky_log_value *values, int n,
				 const struct ky_log_value *value)
{
	const unsigned char *name = (const unsigned char *)value->name;
	size_t len = value->name_len;
	unsigned int kind =
		len ? (unsigned int)len * 7 + name[0] + name[len - 1] * 3u + name[len / 2] * 5u : 0;
	uint64_t bit = UINT64_C(1) << kind % 64;

	if (flat->seen & bit)
		for (int i = 0; i < n; i++)
			if (values[i].name_len == len && memcmp(values[i].name, name, len) == 0)
				return false;
	flat->seen |= bit;
	return true;
}

int ky_log_json_flat(const char *line, size_t len, struct ky_strbuf *texts,
		     struct ky_log_value values[KY_LOG_FIELDS_MAX])
{
	struct flat flat = {.at = line, .end = line + len, .texts = texts};
	int n = 0, ret;

	/* Texts stay where they are: none is longer without its escapes. */
	ky_strbuf_clear(texts);
	if (!ky_strbuf_reserve(texts, len + 1) || !log_json_flat_take(&flat, '{'))
		return -1;
	do {
		struct ky_log_value *value = &values[n];

		value->is_escaped = false;
		value->text = NULL;
		if (n == KY_LOG_FIELDS_MAX - 1 || !log_json_flat_take(&flat, '"') ||
		    !log_json_flat_text(&flat, &value->name, &value->name_len) ||
		    !log_json_flat_take(&flat, ':'))
			return -1;
		ret = log_json_flat_value(&flat, value);
		if (ret < 0 || !log_json_flat_is_new(&flat, values, n, value))
			return -1;
		/* A null is no field. */
		n += ret;
	} while (log_json_flat_take(&flat, ','));
	if (!log_json_flat_take(&flat, '}'))
		return -1;
	log_json_flat_skip(&flat);
	return flat.at == flat.end ? n : -1;
}
