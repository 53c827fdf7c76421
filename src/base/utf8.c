/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

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

uint32_t ky_utf8_code(const uint8_t *text, size_t n)
{
	uint32_t code = n == 1 ? text[0] : text[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (text[i] & 0x3f);
	return code;
}

size_t ky_utf8_put(char *out, uint32_t code)
{
	size_t n = 0;

	if (code < 0x80) {
		out[n++] = (char)code;
		return n;
	}
	if (code < 0x800) {
		out[n++] = (char)(0xc0 | code >> 6);
	} else if (code < 0x10000) {
		out[n++] = (char)(0xe0 | code >> 12);
		out[n++] = (char)(0x80 | (code >> 6 & 0x3f));
	} else {
		out[n++] = (char)(0xf0 | code >> 18);
		out[n++] = (char)(0x80 | (code >> 12 & 0x3f));
		out[n++] = (char)(0x80 | (code >> 6 & 0x3f));
	}
	out[n++] = (char)(0x80 | (code & 0x3f));
	return n;
}
