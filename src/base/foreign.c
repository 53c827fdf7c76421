/* SPDX-License-Identifier: MIT */
#include "base/foreign.h"

#include "base/bits.h"
#include "base/utf8.h"

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Are all of eight bytes from 0x20 to 0x7e? */
static bool is_printable(uint64_t word)
{
	uint64_t control = word - 0x20 * EACH_BYTE; /* a byte below 0x20 borrows */
	uint64_t del = word + EACH_BYTE;	    /* 0x7f becomes 0x80 */

	return !((word | control | del) & 0x80 * EACH_BYTE);
}

static bool is_obeyed(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

static void put_hex(char *at, uint32_t value, unsigned int digits)
{
	static const char hex[] = "0123456789abcdef";

	at[digits] = '\0';
	while (digits--) {
		at[digits] = hex[value & 15];
		value >>= 4;
	}
}

size_t ky_foreign_next(const char *text, size_t len, char escape[KY_FOREIGN_ESCAPE_BYTES])
{
	const uint8_t *at = (const uint8_t *)text;
	size_t n = ky_utf8_length(at, len);
	uint32_t code = n ? ky_utf8_code(at, n) : *at;

	escape[0] = '\0';
	if (n && !is_obeyed(code))
		return n;
	escape[0] = '\\';
	escape[1] = n < 2 ? 'x' : 'u';
	put_hex(escape + 2, code, n < 2 ? 2 : 4);
	return n ? n : 1;
}

size_t ky_foreign_plain(const char *text, size_t len)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t at = 0, n;

	while (at < len) {
		if (len - at >= 8 && is_printable(ky_load64((const uint8_t *)text + at, false))) {
			at += 8;
			continue;
		}
		n = ky_foreign_next(text + at, len - at, escape);
		if (escape[0])
			break;
		at += n;
	}
	return at;
}

void ky_foreign_add(struct ky_strbuf *out, const char *text, size_t len)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t n;

	while (len) {
		n = ky_foreign_plain(text, len);
		ky_strbuf_add(out, text, n);
		text += n;
		len -= n;
		if (!len)
			break;
		n = ky_foreign_next(text, len, escape);
		ky_strbuf_adds(out, escape);
		text += n;
		len -= n;
	}
}

void ky_foreign_adds(struct ky_strbuf *out, const char *text)
{
	ky_foreign_add(out, text, strlen(text));
}
