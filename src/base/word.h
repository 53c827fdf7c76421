/* SPDX-License-Identifier: MIT */
/* Texts of a few dozen bytes, eight bytes at a time: for what is done with each event. */
#ifndef KY_BASE_WORD_H
#define KY_BASE_WORD_H

#include <string.h>

#include "base/bits.h"

#define KY_WORD_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define KY_WORD_TOPS	   KY_WORD_EACH(0x80)

/* The opposite of ky_load64(at, false), and of ky_load32(). */
static inline void ky_word_store(void *at, uint64_t word)
{
	word = htole64(word);
	memcpy(at, &word, sizeof(word));
}

static inline void ky_word_store_half(void *at, uint32_t half)
{
	half = htole32(half);
	memcpy(at, &half, sizeof(half));
}

/* As memchr(text, 0, len), for texts whose end is near. */
static inline const void *ky_word_find_nul(const void *text, uint64_t len)
{
	const uint8_t *at = (const uint8_t *)text;

	for (int i = 0; i < 3 && len >= 8; i++, at += 8, len -= 8) {
		uint64_t word = ky_load64(at, false);
		uint64_t zeros = (word - KY_WORD_EACH(1)) & ~word & KY_WORD_TOPS;

		if (zeros)
			return at + __builtin_ctzll(zeros) / 8;
	}
	return memchr(at, 0, len);
}

/* Whether a byte of @word is no printable character of ASCII, or one of " ' ? and the backslash. */
static inline bool ky_word_is_special(uint64_t word)
{
	/* In bytes from 0x20 to 0x7f, the top bit is 0; that of what is subtracted from 0 becomes 1. */
	uint64_t tops = word | (word - KY_WORD_EACH(0x20)) | (word + KY_WORD_EACH(1)) |
			((word ^ KY_WORD_EACH('"')) - KY_WORD_EACH(1)) |
			((word ^ KY_WORD_EACH('\'')) - KY_WORD_EACH(1)) |
			((word ^ KY_WORD_EACH('?')) - KY_WORD_EACH(1)) |
			((word ^ KY_WORD_EACH('\\')) - KY_WORD_EACH(1));

	return tops & KY_WORD_TOPS;
}

/* Eight hexadecimal digits, for ky_word_store(). */
static inline uint64_t ky_word_hex(uint32_t value, bool upper)
{
	uint64_t word = __builtin_bswap32(value), letters;

	word = (word | word << 16) & UINT64_C(0x0000ffff0000ffff);
	word = (word | word << 8) & UINT64_C(0x00ff00ff00ff00ff);
	word = (word >> 4 | word << 8) & KY_WORD_EACH(0x0f);
	letters = (word + KY_WORD_EACH(6)) >> 4 & KY_WORD_EACH(1);
	return word + KY_WORD_EACH('0') + letters * (upper ? 'A' - '9' - 1 : 'a' - '9' - 1);
}

/* How many digits @value has. */
static inline unsigned int ky_word_hex_digits(uint64_t value)
{
	return value ? (67 - (unsigned int)__builtin_clzll(value)) / 4 : 1;
}

/* The last @digits hexadecimal digits, 1 to 16, with leading zeros; the end of them. */
static inline char *ky_word_put_hex(char *out, uint64_t value, unsigned int digits, bool upper)
{
	uint64_t last = ky_word_hex((uint32_t)value, upper), first;

	if (digits >= 8) {
		/* The first eight and the last eight, some of which may be the same. */
		first = ky_word_hex((uint32_t)(value >> (digits - 8) * 4), upper);
		ky_word_store(out, first);
		ky_word_store(out + digits - 8, last);
	} else if (digits >= 4) {
		first = ky_word_hex((uint32_t)(value >> (digits - 4) * 4), upper);
		ky_word_store_half(out, (uint32_t)(first >> 32));
		ky_word_store_half(out + digits - 4, (uint32_t)(last >> 32));
	} else {
		for (unsigned int i = 0; i < digits; i++)
			out[i] = (char)(last >> (8 - digits + i) * 8);
	}
	return out + digits;
}

#endif
