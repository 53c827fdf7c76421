/* SPDX-License-Identifier: MIT */
/* The running clock of a packet: time stamps of a few bits replace its low bits. */
#ifndef KY_CTF_DECODE_RUNNING_CLOCK_H
#define KY_CTF_DECODE_RUNNING_CLOCK_H

#include "base/bits.h"
#include "ctf/decode/decode.h"

/* Replace the low bits of the running clock; it only moves forward. */
static inline void ky_clock_update(uint64_t *clock, uint64_t value, unsigned int bits)
{
	uint64_t mask = ky_mask_bits(bits);

	if (bits >= 64) {
		*clock = value;
		return;
	}
	value |= *clock & ~mask;
	if (value < *clock)
		value += mask + 1;
	*clock = value;
}

/* How many bits of the clock a timestamp carries. */
static inline unsigned int ky_clock_bits(const struct ky_value *v)
{
	if (v->cls->kind == KY_FIELD_VARUINT)
		return v->n_children < 64 ? v->n_children : 64;
	return v->cls->num.length_bits;
}

#endif
