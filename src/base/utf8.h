/* SPDX-License-Identifier: MIT */
/* Single characters of UTF-8. */
#ifndef KY_BASE_UTF8_H
#define KY_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed UTF-8 sequence at @text (1 to 4), or 0 when none exists. */
size_t ky_utf8_length(const uint8_t *text, size_t len);

/* The code point of the well-formed sequence at @text; @n is its length from ky_utf8_length(). */
uint32_t ky_utf8_code(const uint8_t *text, size_t n);

/* Write code point @code as UTF-8 at @out (room for 4 bytes); returns the number of bytes. */
size_t ky_utf8_put(char *out, uint32_t code);

#endif
