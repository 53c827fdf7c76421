/* SPDX-License-Identifier: MIT */
/* The state history: records of its file. */
#include "analysis/history/history-format.h"

#include <string.h>

/* ---- checksums ------------------------------------------------------------------------------- */

#define PRIME_1 UINT64_C(0x9e3779b97f4a7c15)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)

static inline uint64_t history_format_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t history_format_word(const uint8_t *at, size_t len)
{
	uint64_t value = 0;

	memcpy(&value, at, len);
	return value;
}

uint64_t ky_history_checksum(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *at = data;
	uint64_t a = seed ^ PRIME_1, b = seed ^ PRIME_2, n = len;

	for (; len >= 16; at += 16, len -= 16) {
		a = history_format_fold(a ^ history_format_word(at, 8), PRIME_2);
		b = history_format_fold(b ^ history_format_word(at + 8, 8), PRIME_1);
	}
	if (len >= 8) {
		a = history_format_fold(a ^ history_format_word(at, 8), PRIME_2);
		at += 8;
		len -= 8;
	}
	b = history_format_fold(b ^ history_format_word(at, len), PRIME_1);
	return history_format_fold(a ^ n, b ^ PRIME_2) ^ history_format_fold(b, PRIME_2);
}

uint64_t ky_record_checksum(const struct ky_record_head *head, uint64_t offset, const void *payload)
{
	uint64_t seed =
		ky_history_checksum(offset, head, offsetof(struct ky_record_head, checksum));

	return ky_history_checksum(seed, payload, head->bytes);
}

/* ---- numbers --------------------------------------------------------------------------------- */

uint64_t ky_bytes_long(struct ky_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
		uint64_t byte = *bytes->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	bytes->bad = true;
	bytes->at = bytes->end;
	return 0;
}

int64_t ky_bytes_signed(struct ky_bytes *bytes)
{
	uint64_t value = ky_bytes_varint(bytes);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

#define VARINT_MAX 10

static char *history_format_put_varint(char *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*out++ = (char)(value | 0x80);
	*out++ = (char)value;
	return out;
}

void ky_put_varint(struct ky_strbuf *out, uint64_t value)
{
	if (ky_strbuf_reserve(out, VARINT_MAX))
		out->len = (size_t)(history_format_put_varint(out->data + out->len, value) -
				    out->data);
}

void ky_put_signed(struct ky_strbuf *out, int64_t value)
{
	ky_put_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}
