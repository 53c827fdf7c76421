/* SPDX-License-Identifier: MIT */
/*
 * Bit fields of 1 to 64 bits at any bit offset, in both byte orders, as CTF defines them:
 * little-endian fields grow from the least significant bit of a byte, big-endian fields from the
 * most significant bit. Offsets count bits from @data. The caller must have checked that the field
 * lies within the data.
 */
#ifndef KY_BASE_BITS_H
#define KY_BASE_BITS_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t ky_load16(const void *data, bool big)
{
	uint16_t value;

	memcpy(&value, data, sizeof(value));
	return big ? be16toh(value) : le16toh(value);
}

static inline uint32_t ky_load32(const void *data, bool big)
{
	uint32_t value;

	memcpy(&value, data, sizeof(value));
	return big ? be32toh(value) : le32toh(value);
}

static inline uint64_t ky_load64(const void *data, bool big)
{
	uint64_t value;

	memcpy(&value, data, sizeof(value));
	return big ? be64toh(value) : le64toh(value);
}

static inline uint64_t ky_mask_bits(unsigned int bits)
{
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static inline int64_t ky_sign_extend(uint64_t value, unsigned int bits)
{
	unsigned int shift = 64 - bits;

	return (int64_t)(value << shift) >> shift;
}

/* @align is a power of two; UINT64_MAX is never reached because packets are far smaller. */
static inline uint64_t ky_align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* A field at any bit offset; the slow, general form. */
static inline uint64_t ky_read_bits_slow(const uint8_t *data, uint64_t at_bits, unsigned int bits,
					 bool big)
{
	uint64_t value = 0;
	unsigned int done = 0;

	data += at_bits / 8;
	at_bits %= 8;
	while (done < bits) {
		unsigned int room = 8 - (unsigned int)at_bits;
		unsigned int take = bits - done < room ? bits - done : room;
		unsigned int part;

		if (big) {
			part = (unsigned int)(*data >> (room - take)) & ((1u << take) - 1);
			value = value << take | part;
		} else {
			part = (unsigned int)(*data >> at_bits) & ((1u << take) - 1);
			value |= (uint64_t)part << done;
		}
		done += take;
		at_bits = 0;
		data++;
	}
	return value;
}

/* The low @bits (1..64) bits of @value in the opposite order. */
static inline uint64_t ky_reverse_bits(uint64_t value, unsigned int bits)
{
	uint64_t out = 0;

	for (unsigned int i = 0; i < bits; i++)
		out |= (value >> i & 1) << (bits - 1 - i);
	return out;
}

/* Reads a field of @bits (1..64) bits at @at_bits. Whole aligned bytes take the fast path. */
static inline uint64_t ky_read_bits(const uint8_t *data, uint64_t at_bits, unsigned int bits,
				    bool big)
{
	if (!(at_bits & 7)) {
		const uint8_t *at = data + at_bits / 8;

		switch (bits) {
		case 8:
			return *at;
		case 16:
			return ky_load16(at, big);
		case 32:
			return ky_load32(at, big);
		case 64:
			return ky_load64(at, big);
		}
	}
	return ky_read_bits_slow(data, at_bits, bits, big);
}

/* The slow, general form of ky_write_bits(). */
static inline void ky_write_bits_slow(uint8_t *data, uint64_t at_bits, unsigned int bits,
				      uint64_t value, bool big)
{
	unsigned int left = bits;

	data += at_bits / 8;
	at_bits %= 8;
	while (left) {
		unsigned int room = 8 - (unsigned int)at_bits;
		unsigned int take = left < room ? left : room;
		unsigned int mask = (1u << take) - 1, shift, part;

		if (big) {
			shift = room - take;
			part = (unsigned int)(value >> (left - take)) & mask;
		} else {
			shift = (unsigned int)at_bits;
			part = (unsigned int)(value >> (bits - left)) & mask;
		}
		*data = (uint8_t)((*data & ~(mask << shift)) | part << shift);
		left -= take;
		at_bits = 0;
		data++;
	}
}

/* Stores whole aligned bytes. Returns false when the field does not consist of such bytes. */
static inline bool ky_store_bytes(uint8_t *at, unsigned int bits, uint64_t value, bool big)
{
	uint16_t half = big ? htobe16((uint16_t)value) : htole16((uint16_t)value);
	uint32_t word = big ? htobe32((uint32_t)value) : htole32((uint32_t)value);
	uint64_t twice = big ? htobe64(value) : htole64(value);

	switch (bits) {
	case 8:
		*at = (uint8_t)value;
		return true;
	case 16:
		memcpy(at, &half, sizeof(half));
		return true;
	case 32:
		memcpy(at, &word, sizeof(word));
		return true;
	case 64:
		memcpy(at, &twice, sizeof(twice));
		return true;
	default:
		return false;
	}
}

/* Write the low @bits (1..64) bits of @value at @at_bits. Other bits stay unchanged. */
static inline void ky_write_bits(uint8_t *data, uint64_t at_bits, unsigned int bits, uint64_t value,
				 bool big)
{
	if ((at_bits & 7) || !ky_store_bytes(data + at_bits / 8, bits, value, big))
		ky_write_bits_slow(data, at_bits, bits, value, big);
}

#endif
