/* SPDX-License-Identifier: MIT */
#include "flow/order.h"

#include <string.h>

/* Passes over 11 bits each: three for any key, two for what a few milliseconds have. */
#define DIGIT_BITS 11
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

static inline uint32_t digit(uint64_t entry, unsigned int pass)
{
	return (uint32_t)(entry >> (32 + pass * DIGIT_BITS)) & (DIGITS - 1);
}

uint64_t *ky_order(uint64_t *entries, uint64_t *scratch, size_t n, uint32_t max_key)
{
	unsigned int n_passes = max_key >> DIGIT_BITS ? max_key >> 2 * DIGIT_BITS ? 3 : 2 : 1;
	uint32_t counts[PASSES_MAX][DIGITS], sum;
	uint64_t *swap;

	if (n < FEW) {
		insertion_sort(entries, n);
		return entries;
	}
	memset(counts, 0, n_passes * sizeof(counts[0]));
	for (size_t i = 0; i < n; i++) {
		for (unsigned int pass = 0; pass < n_passes; pass++)
			counts[pass][digit(entries[i], pass)]++;
	}
	for (unsigned int pass = 0; pass < n_passes; pass++) {
		sum = 0;
		for (uint32_t i = 0; i < DIGITS; i++) {
			uint32_t count = counts[pass][i];

			counts[pass][i] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			scratch[counts[pass][digit(entries[i], pass)]++] = entries[i];
		swap = entries;
		entries = scratch;
		scratch = swap;
	}
	return entries;
}
