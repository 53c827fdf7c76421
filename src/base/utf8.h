/* SPDX-License-Identifier: MIT */
/* Single characters of UTF-8. */
#ifndef KY_BASE_UTF8_H
#define KY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed UTF-8 sequence at @text (1 to 4), or 0 when none exists. */
size_t ky_utf8_length(const uint8_t *text, size_t len);

/* The code point of the well-formed sequence at @text; @n is its length from ky_utf8_length(). */
uint32_t ky_utf8_code(const uint8_t *text, size_t n);

/* Are the two bytes at @text one of the control characters U+0080 to U+009F, which terminals obey? */
static inline bool ky_utf8_is_control(const char *text)
{
	return (uint8_t)text[0] == 0xc2 && (uint8_t)text[1] >= 0x80 && (uint8_t)text[1] < 0xa0;
}

/* Write code point @code as UTF-8 at @out (room for 4 bytes); returns the number of bytes. */
size_t ky_utf8_put(char *out, uint32_t code);

#endif
