/* SPDX-License-Identifier: MIT */
/* Numbers as their classes mean them: of any size, in both byte and bit orders, floats, LEB128. */
#include "ctf/decode/plan-interpreter.h"

#include <math.h>

#include "base/bits.h"

/* binary16 and binary128 as the nearest double. */
static double half_to_double(uint64_t raw)
{
	int exponent = (int)(raw >> 10 & 31);
	double fraction = (double)(raw & 1023) / 1024, value;

	if (exponent == 31)
		value = raw & 1023 ? NAN : INFINITY;
	else
		value = exponent ? ldexp(1 + fraction, exponent - 15) : ldexp(fraction, -14);
	return raw >> 15 ? -value : value;
}

static double quad_to_double(uint64_t high, uint64_t low)
{
	int exponent = (int)(high >> 48 & 0x7fff);
	uint64_t top = high & ky_mask_bits(48);
	double fraction = ldexp((double)top, -48) + ldexp((double)low, -112), value;

	if (exponent == 0x7fff)
		value = top | low ? NAN : INFINITY;
	else
		value = exponent ? ldexp(1 + fraction, exponent - 16383) : 0;
	return high >> 63 ? -value : value;
}

static uint64_t read_raw(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits,
			 unsigned int bits)
{
	uint64_t raw = ky_read_bits(data, at_bits, bits, cls->num.big_endian);

	return cls->num.bits_reversed ? ky_reverse_bits(raw, bits) : raw;
}

/* Bits [@from, @from + @bits) of a number, counted from its least significant one. */
static uint64_t number_read_part(const struct ky_field_class *cls, const uint8_t *data,
				 uint64_t at_bits, uint32_t from, uint32_t bits)
{
	bool high_first = cls->num.big_endian != cls->num.bits_reversed;

	return read_raw(cls, data,
			at_bits + (high_first ? cls->num.length_bits - from - bits : from), bits);
}

static double read_float(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits)
{
	union {
		uint32_t u;
		float f;
	} single;
	union {
		uint64_t u;
		double f;
	} twice;

	switch (cls->num.length_bits) {
	case 16:
		return half_to_double(read_raw(cls, data, at_bits, 16));
	case 32:
		single.u = (uint32_t)read_raw(cls, data, at_bits, 32);
		return (double)single.f;
	case 64:
		twice.u = read_raw(cls, data, at_bits, 64);
		return twice.f;
	default:
		return quad_to_double(number_read_part(cls, data, at_bits, 64, 64),
				      number_read_part(cls, data, at_bits, 0, 64));
	}
}

/* A boolean may have any number of bits, and is true when one of them is set: 1 then. */
static bool read_bool(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits)
{
	uint32_t bits = cls->num.length_bits;

	for (uint32_t from = 0; from < bits; from += 64) {
		if (number_read_part(cls, data, at_bits, from, bits - from < 64 ? bits - from : 64))
			return true;
	}
	return false;
}

uint64_t ky_number_read(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits)
{
	union {
		uint64_t u;
		double f;
	} value;

	if (cls->kind == KY_FIELD_FLOAT) {
		value.f = read_float(cls, data, at_bits);
		return value.u;
	}
	if (cls->kind == KY_FIELD_BOOL && cls->num.length_bits > 64)
		return read_bool(cls, data, at_bits);
	value.u = read_raw(cls, data, at_bits, cls->num.length_bits);
	if (cls->kind == KY_FIELD_SINT)
		value.u = (uint64_t)ky_sign_extend(value.u, cls->num.length_bits);
	return value.u;
}

bool ky_value_is_big(const struct ky_value *value)
{
	return ky_is_big(value->cls);
}

uint64_t ky_number_word(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits,
			unsigned int word)
{
	uint64_t from = (uint64_t)word * 64, bits = cls->num.length_bits;

	if (from >= bits)
		return 0;
	return number_read_part(cls, data, at_bits, (uint32_t)from,
				(uint32_t)(bits - from < 64 ? bits - from : 64));
}

uint64_t ky_value_word(const struct ky_value *value, unsigned int word)
{
	if (value->cls->kind == KY_FIELD_BOOL)
		return word ? 0 : value->u;
	if (value->cls->kind == KY_FIELD_FLOAT && value->cls->num.length_bits == 128)
		return ky_number_word(value->cls, value->f_data, value->n_children, word);
	return ky_number_word(value->cls, value->big.data, value->big.at_bits, word);
}

int ky_leb128_read(const uint8_t **at, const uint8_t *end, bool is_signed, uint64_t *value,
		   unsigned int *n_bits)
{
	unsigned int shift = 0;
	uint8_t byte, fill = 0;
	uint64_t raw = 0;

	do {
		if (*at >= end)
			return KYMO_E_FORMAT;
		byte = *(*at)++;
		/* Behind 63 bits there is room for one more; the rest may only repeat the sign. */
		if (shift == 63)
			fill = is_signed && byte & 1 ? 0x7f : 0;
		if (shift >= 63 && (byte & 0x7e) != (fill & 0x7e))
			return KYMO_E_UNSUPPORTED;
		if (shift > 63 && (byte & 1) != (fill & 1))
			return KYMO_E_UNSUPPORTED;
		if (shift < 64)
			raw |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*n_bits = shift;
	*value = is_signed && shift < 64 ? (uint64_t)ky_sign_extend(raw, shift) : raw;
	return KYMO_OK;
}
