/* SPDX-License-Identifier: MIT */
#include "ctf/model/unicode.h"

#include <string.h>

#include "base/bits.h"

#define REPLACEMENT 0xfffdu

/* Surrogates are no characters of their own. */
static uint32_t checked(uint32_t code)
{
	return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? REPLACEMENT : code;
}

static size_t next_utf8(const uint8_t *text, size_t len, uint32_t *code)
{
	size_t n = ky_utf8_length(text, len);

	if (n < 2) {
		*code = n ? text[0] : REPLACEMENT;
		return 1;
	}
	*code = ky_utf8_code(text, n);
	return n;
}

static size_t next_utf16(bool big, const uint8_t *text, size_t len, uint32_t *code)
{
	uint32_t high, low;

	if (len < 2)
		return 0;
	high = ky_load16(text, big);
	if (high >= 0xd800 && high < 0xdc00 && len >= 4) {
		low = ky_load16(text + 2, big);
		if (low >= 0xdc00 && low < 0xe000) {
			*code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
			return 4;
		}
	}
	*code = checked(high);
	return 2;
}

size_t ky_unicode_next(enum ky_encoding encoding, const uint8_t *text, size_t len, uint32_t *code)
{
	switch (encoding) {
	case KY_ENCODING_UTF16BE:
	case KY_ENCODING_UTF16LE:
		return next_utf16(encoding == KY_ENCODING_UTF16BE, text, len, code);
	case KY_ENCODING_UTF32BE:
	case KY_ENCODING_UTF32LE:
		if (len < 4)
			return 0;
		*code = checked(ky_load32(text, encoding == KY_ENCODING_UTF32BE));
		return 4;
	default:
		return next_utf8(text, len, code);
	}
}

void ky_utf8_from(struct ky_strbuf *out, enum ky_encoding encoding, const uint8_t *text,
		  size_t len_bytes)
{
	char utf8[4];
	uint32_t code;
	size_t n;

	for (; len_bytes && (n = ky_unicode_next(encoding, text, len_bytes, &code));
	     text += n, len_bytes -= n)
		ky_strbuf_add(out, utf8, ky_utf8_put(utf8, code));
}

void ky_utf8_repair(struct ky_strbuf *out, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	size_t left = strlen(text), n;
	char replaced[4];
	uint32_t code;

	for (; left; at += n, left -= n) {
		n = next_utf8(at, left, &code);
		if (code == REPLACEMENT)
			ky_strbuf_add(out, replaced, ky_utf8_put(replaced, code));
		else
			ky_strbuf_add(out, (const char *)at, n);
	}
}

int ky_utf8_compare(const char *a, const char *b)
{
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	size_t len_x = strlen(a), len_y = strlen(b), n;
	uint32_t code_x, code_y;

	while (len_x && len_y) {
		n = next_utf8(x, len_x, &code_x);
		x += n;
		len_x -= n;
		n = next_utf8(y, len_y, &code_y);
		y += n;
		len_y -= n;
		if (code_x != code_y)
			return code_x < code_y ? -1 : 1;
	}
	return (len_x > 0) - (len_y > 0);
}

bool ky_utf8_same(const char *a, const char *b)
{
	return ky_utf8_compare(a, b) == 0;
}
