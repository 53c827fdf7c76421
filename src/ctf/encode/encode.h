/* SPDX-License-Identifier: MIT */
/*
 * Values into bits: the way back from ky_values_decode(), for every field class. What is
 * encoded reads back as the same values; where the bits are that a value was decoded from,
 * they are the same bits too, except for what a text hides behind its NUL and for padding,
 * which become zero.
 * Threads: one at a time per encoder.
 */
#ifndef KY_CTF_ENCODE_ENCODE_H
#define KY_CTF_ENCODE_ENCODE_H

#include "ctf/decode/decode.h"

/* Longest LEB128 number of 64 bits. */
#define KY_LEB128_MAX_BYTES 10

struct ky_encoder {
	uint8_t *data; /* the packet's first byte: alignment counts from here */
	uint64_t at_bits;
	uint64_t size_bits; /* of the buffer */
	uint64_t *slots;    /* of the trace's ky_trace_class.n_slots; scopes before fill it */
	bool big_endian;    /* of the number written last, for the rule about shared bytes */
};

/*
 * Write one scope: the list that ky_values_decode() fills, or one made alike. Lengths and
 * selectors are what their fields' values say, also those in scopes that were encoded before.
 *
 * Returns 0; 1 when the buffer has no room for it (the encoder stands where it stood); or
 * KYMO_E_INVALID when the values do not fit their classes: a number of elements that differs
 * from the length field's value, a text longer than its field, a number in a byte that began in
 * another byte order.
 */
int ky_encode_scope(struct ky_encoder *encoder, const struct ky_value *values, size_t n_values,
		    struct kymo_error *err);

/* Move to a multiple of @align_bits, writing zeros. False when there is no room. */
bool ky_encode_align(struct ky_encoder *encoder, uint64_t align_bits);

/*
 * The strictest alignment of anything in @cls, whatever options are selected: two places that
 * are congruent modulo this take the same bits. At least 1.
 */
uint64_t ky_encode_max_align(const struct ky_field_class *cls);

/*
 * Write @value as a LEB128 number of at least @min_bytes at @at, which has room for
 * KY_LEB128_MAX_BYTES. Returns the number of bytes.
 */
unsigned int ky_leb128_write(uint8_t *at, uint64_t value, bool is_signed, unsigned int min_bytes);

#endif
