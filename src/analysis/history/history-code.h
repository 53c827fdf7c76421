/* SPDX-License-Identifier: MIT */
/* Prefix codes and streams of bits, for the intervals of leaves: docs/design/history.md describes them bit by bit. */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_CODE_H
#define KY_ANALYSIS_HISTORY_HISTORY_CODE_H

#include <string.h>

#include "analysis/history/history-format.h"

#define KY_CODE_BITS	10u  /* of a symbol, at most */
#define KY_CODE_SYMBOLS 512u /* of a code, at most */

/* Bits of each symbol; 0: it does not occur. A code of one symbol has no bits at all. */
struct ky_code {
	uint32_t n, n_used;
	uint8_t bits[KY_CODE_SYMBOLS];
};

/* A code that is short for symbols that occur often. @n is at most KY_CODE_SYMBOLS. */
void ky_code_make(struct ky_code *code, const uint32_t *counts, uint32_t n);
/* All @n symbols have the same number of bits, the smallest possible. */
void ky_code_make_flat(struct ky_code *code, uint32_t n);
/* What the symbols cost, in bits. */
uint64_t ky_code_cost(const struct ky_code *code, const uint32_t *counts);
/* The bits of each symbol, the first one lowest. False: so short codes are not possible. */
bool ky_code_words(const struct ky_code *code, uint16_t *words);

/* To find the symbol that the next bits are. */
struct ky_code_table {
	uint16_t mask;
	uint16_t entries[1u << KY_CODE_BITS]; /* symbol << 4 | its bits */
};

#define KY_CODE_NONE (0xfffu << 4 | 1u) /* no symbol has such bits */

/* False: no such code is possible. */
bool ky_code_table(struct ky_code_table *table, const struct ky_code *code);

/* The code's bits of each symbol, 4 bits for each. False: malformed. @n: of symbols, at most KY_CODE_SYMBOLS. */
void ky_code_put(struct ky_strbuf *out, const struct ky_code *code);
bool ky_code_get(struct ky_bytes *bytes, uint32_t n, struct ky_code *code);

/* ---- states -------------------------------------------------------------------------------- */

/*
 * @n different states, at most KY_CODE_SYMBOLS, in the order of their kinds and values. @order: their new places, by the old ones.
 */
void ky_states_put(struct ky_strbuf *out, uint32_t n, const uint64_t *states, uint16_t *order);
/* At most @max. False: malformed. */
bool ky_states_get(struct ky_bytes *bytes, uint32_t max, uint64_t *states, uint32_t *n);

/* ---- bits ---------------------------------------------------------------------------------- */

/* The number of bits of @value. */
static inline uint32_t ky_bits_class(uint64_t value)
{
	return value ? 64 - (uint32_t)__builtin_clzll(value) : 0;
}

/* Bits go out from the lowest. @at must have room for 8 bytes more than all bits take. */
struct ky_bits_out {
	uint8_t *at;
	uint64_t held;
	uint32_t n_held; /* below 8 */
};

/* @n is at most 32. */
static inline void ky_bits_put(struct ky_bits_out *out, uint64_t value, uint32_t n)
{
	out->held |= value << out->n_held;
	out->n_held += n;
	memcpy(out->at, &out->held, sizeof(out->held));
	out->at += out->n_held / 8;
	out->held >>= out->n_held & ~7u;
	out->n_held &= 7;
}

/* Up to 63 bits. */
static inline void ky_bits_put_long(struct ky_bits_out *out, uint64_t value, uint32_t n)
{
	if (n > 32) {
		ky_bits_put(out, value & UINT32_MAX, 32);
		value >>= 32;
		n -= 32;
	}
	ky_bits_put(out, value, n);
}

/* The end of the bytes. */
static inline uint8_t *ky_bits_end(const struct ky_bits_out *out)
{
	return out->at + (out->n_held != 0);
}

/* Bits behind the end are 0, and @over counts the bytes that were not there. */
struct ky_bits_in {
	const uint8_t *at, *end;
	uint64_t held;
	uint32_t n_held, over;
};

void ky_bits_refill_end(struct ky_bits_in *in);

/* At least 56 bits are held afterwards. */
static inline void ky_bits_refill(struct ky_bits_in *in)
{
	uint64_t word;

	if (__builtin_expect(in->end - in->at < 8, 0)) {
		struct ky_bits_in copy = *in; /* so that @in can be in registers */

		ky_bits_refill_end(&copy);
		*in = copy;
		return;
	}
	memcpy(&word, in->at, sizeof(word));
	in->held |= word << in->n_held;
	in->at += (63 - in->n_held) >> 3;
	in->n_held |= 56;
}

static inline void ky_bits_skip(struct ky_bits_in *in, uint32_t n)
{
	in->held >>= n;
	in->n_held -= n;
}

static inline uint32_t ky_bits_symbol(struct ky_bits_in *in, const struct ky_code_table *table)
{
	uint16_t entry = table->entries[in->held & table->mask];

	ky_bits_skip(in, entry & 15u);
	return entry >> 4;
}

/* The next @n bits, which are held; @n is below 64. */
static inline uint64_t ky_bits_get(struct ky_bits_in *in, uint32_t n)
{
	uint64_t value = in->held & ((UINT64_C(1) << n) - 1);

	ky_bits_skip(in, n);
	return value;
}

/* Have all bytes been used, and no more? */
bool ky_bits_are_over(const struct ky_bits_in *in);

#endif
