/* SPDX-License-Identifier: MIT */
#include "api/float-encoding.h"

#include <string.h>

#include "base/bits.h"

#define FRACTION_BITS 52
#define BIAS	      1023

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* @value >> @shift, rounded to the nearest, ties to even. */
static uint64_t shift_rounded(uint64_t value, unsigned int shift)
{
	uint64_t rest, half;

	if (shift > 63)
		return 0;
	rest = value & ky_mask_bits(shift);
	half = UINT64_C(1) << (shift - 1);
	value >>= shift;
	return value + (rest > half || (rest == half && (value & 1)));
}

/* A carry out of the fraction is the next exponent, and at last infinity: as it should be. */
static uint64_t to_half(uint64_t bits)
{
	uint64_t sign = bits >> 63 << 15, fraction = bits & ky_mask_bits(FRACTION_BITS);
	int exponent = (int)(bits >> FRACTION_BITS & 0x7ff) - BIAS;

	if (exponent == BIAS + 1)
		return sign | 0x7c00 | (fraction ? 0x200 : 0);
	if (exponent > 15)
		return sign | 0x7c00;
	if (exponent >= -14)
		return sign | (((uint64_t)(exponent + 14) << 10) +
			       shift_rounded(fraction | UINT64_C(1) << FRACTION_BITS, 42));
	/* Subnormal: units of 2^-24. */
	if (exponent < -25)
		return sign;
	return sign | shift_rounded(fraction | UINT64_C(1) << FRACTION_BITS,
				    (unsigned int)(28 - exponent));
}

static void to_quad(uint64_t bits, uint64_t words[2])
{
	uint64_t fraction = bits & ky_mask_bits(FRACTION_BITS);
	uint64_t exponent = bits >> FRACTION_BITS & 0x7ff;

	if (exponent == 0x7ff) {
		exponent = 0x7fff;
	} else if (exponent) {
		exponent += 16383 - BIAS;
	} else if (fraction) {
		/* Subnormal doubles are normal here. */
		unsigned int up = (unsigned int)__builtin_clzll(fraction) - 11;

		fraction = fraction << up & ky_mask_bits(FRACTION_BITS);
		exponent = 16383 - BIAS + 1 - up;
	}
	words[0] = fraction << 60;
	words[1] = bits >> 63 << 63 | exponent << 48 | fraction >> 4;
}

void ky_float_encode(double value, unsigned int bits, uint64_t words[2])
{
	float narrow = (float)value;
	uint32_t narrow_bits;

	words[0] = bits_of(value);
	words[1] = 0;
	if (bits == 16) {
		words[0] = to_half(words[0]);
	} else if (bits == 32) {
		memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
		words[0] = narrow_bits;
	} else if (bits == 128) {
		to_quad(words[0], words);
	}
}
