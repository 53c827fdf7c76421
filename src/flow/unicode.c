/* SPDX-License-Identifier: MIT */
#include "flow/unicode.h"

#include "base/bits.h"
#include "base/text.h"

#define REPLACEMENT 0xfffdu

size_t ky_utf8_length(const uint8_t *text, size_t len)
{
	uint32_t code, least;
	size_t n;

	if (!len)
		return 0;
	if (text[0] < 0x80)
		return 1;
	if (text[0] >= 0xc2 && text[0] < 0xe0) {
		n = 2;
		code = text[0] & 0x1f;
		least = 0x80;
	} else if (text[0] >= 0xe0 && text[0] < 0xf0) {
		n = 3;
		code = text[0] & 0x0f;
		least = 0x800;
	} else if (text[0] >= 0xf0 && text[0] < 0xf5) {
		n = 4;
		code = text[0] & 0x07;
		least = 0x10000;
	} else {
		return 0;
	}
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static void add_code(struct ky_strbuf *out, uint32_t code)
{
	char utf8[4];

	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		code = REPLACEMENT;
	ky_strbuf_add(out, utf8, ky_utf8_put(utf8, code));
}

static void from_utf16(struct ky_strbuf *out, bool big, const uint8_t *text, size_t len)
{
	for (size_t at = 0; at + 2 <= len; at += 2) {
		uint32_t code = ky_load16(text + at, big), low;

		if (code >= 0xd800 && code < 0xdc00 && at + 4 <= len) {
			low = ky_load16(text + at + 2, big);
			if (low >= 0xdc00 && low < 0xe000) {
				code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
				at += 2;
			}
		}
		add_code(out, code);
	}
}

void ky_utf8_from(struct ky_strbuf *out, enum ky_encoding encoding, const uint8_t *text,
		  size_t len_bytes)
{
	bool big = encoding == KY_ENCODING_UTF16BE || encoding == KY_ENCODING_UTF32BE;

	if (encoding == KY_ENCODING_UTF16BE || encoding == KY_ENCODING_UTF16LE) {
		from_utf16(out, big, text, len_bytes);
		return;
	}
	for (size_t at = 0; at + 4 <= len_bytes; at += 4)
		add_code(out, ky_load32(text + at, big));
}
