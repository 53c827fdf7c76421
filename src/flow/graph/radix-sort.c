/* SPDX-License-Identifier: MIT */
#include "flow/graph/radix-sort.h"

#include <string.h>

/* Passes over up to 12 bits each: three for any key, two for what 16 milliseconds have. */
#define DIGIT_BITS 12
#define DIGITS	   (1u << DIGIT_BITS)
#define PASSES_MAX 3
/* Clearing the counters costs more than sorting so few. */
#define FEW 48

static void insertion_sort(uint64_t *entries, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		uint64_t entry = entries[i];
		size_t at = i;

		for (; at && entries[at - 1] >> 32 > entry >> 32; at--)
			entries[at] = entries[at - 1];
		entries[at] = entry;
	}
}

static inline uint32_t radix_sort_digit(uint64_t entry, unsigned int pass, unsigned int bits)
{
	return (uint32_t)(entry >> (32 + pass * bits)) & ((1u << bits) - 1);
}

uint64_t *ky_radix_sort(uint64_t *entries, uint64_t *scratch, size_t n, uint32_t max_key)
{
	unsigned int key_bits = max_key ? 32 - (unsigned int)__builtin_clz(max_key) : 1;
	unsigned int n_passes = (key_bits + DIGIT_BITS - 1) / DIGIT_BITS;
	/* All passes have as many, and no more than it takes: there are fewer counters to clear and add up. */
	unsigned int bits = (key_bits + n_passes - 1) / n_passes;
	uint32_t counts[PASSES_MAX][DIGITS], sum;
	uint64_t *swap;

	if (n < FEW) {
		insertion_sort(entries, n);
		return entries;
	}
	for (unsigned int pass = 0; pass < n_passes; pass++)
		memset(counts[pass], 0, sizeof(counts[0][0]) << bits);
	for (size_t i = 0; i < n; i++) {
		for (unsigned int pass = 0; pass < n_passes; pass++)
			counts[pass][radix_sort_digit(entries[i], pass, bits)]++;
	}
	for (unsigned int pass = 0; pass < n_passes; pass++) {
		sum = 0;
		for (uint32_t i = 0; i < 1u << bits; i++) {
			uint32_t count = counts[pass][i];

			counts[pass][i] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			scratch[counts[pass][radix_sort_digit(entries[i], pass, bits)]++] =
				entries[i];
		swap = entries;
		entries = scratch;
		scratch = swap;
	}
	return entries;
}

uint64_t *ky_radix_sort_two(uint64_t *entries, uint64_t *scratch, size_t middle, size_t n)
{
	const uint64_t *left = entries, *left_end = entries + middle;
	const uint64_t *right = left_end, *right_end = entries + n;
	uint64_t *to = scratch;

	if (!middle || middle == n)
		return entries;
	/* What lies between two of one run is most often a burst of the other. */
	while (left < left_end && right < right_end) {
		while (left < left_end && *left < *right)
			*to++ = *left++;
		if (left < left_end) {
			while (right < right_end && *right <= *left)
				*to++ = *right++;
		}
	}
	memcpy(to, left, (size_t)(left_end - left) * sizeof(*to));
	memcpy(to + (left_end - left), right, (size_t)(right_end - right) * sizeof(*to));
	return scratch;
}
