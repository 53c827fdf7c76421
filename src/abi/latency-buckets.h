/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The buckets of histograms of durations, as BPF programs, traced programs and readers count them. They are log2-linear:
 * eight of equal width up to 64 ns, and eight in every octave from there on, so that a bucket is at most an eighth wide
 * of what is in it. The last one has no end.
 */
#ifndef KY_ABI_LATENCY_BUCKETS_H
#define KY_ABI_LATENCY_BUCKETS_H

#include <stdint.h>

#define KY_LATENCY_SUB_BITS   3u
#define KY_LATENCY_SUBS	      (1u << KY_LATENCY_SUB_BITS)
#define KY_LATENCY_FIRST_LOG2 6u  /* the first octave begins at 64 ns */
#define KY_LATENCY_LAST_LOG2  39u /* the last one: 9 to 18 minutes, and all that is longer */
#define KY_LATENCY_BUCKETS    ((KY_LATENCY_LAST_LOG2 - KY_LATENCY_FIRST_LOG2 + 2) * KY_LATENCY_SUBS)

/* The bucket of a duration. */
static inline __attribute__((always_inline)) uint32_t ky_latency_bucket(uint64_t ns)
{
	uint64_t v = ns;
	uint32_t log2 = 0, step;

	if (ns < (1u << KY_LATENCY_FIRST_LOG2))
		return (uint32_t)(ns >> (KY_LATENCY_FIRST_LOG2 - KY_LATENCY_SUB_BITS));
	if (ns >> (KY_LATENCY_LAST_LOG2 + 1))
		return KY_LATENCY_BUCKETS - 1;
	step = (uint32_t)(v > 0xffffffff) << 5;
	v >>= step;
	log2 |= step;
	step = (uint32_t)(v > 0xffff) << 4;
	v >>= step;
	log2 |= step;
	step = (uint32_t)(v > 0xff) << 3;
	v >>= step;
	log2 |= step;
	step = (uint32_t)(v > 0xf) << 2;
	v >>= step;
	log2 |= step;
	step = (uint32_t)(v > 0x3) << 1;
	v >>= step;
	log2 |= step;
	log2 |= (uint32_t)(v >> 1);
	return (log2 - KY_LATENCY_FIRST_LOG2 + 1) * KY_LATENCY_SUBS +
	       ((uint32_t)(ns >> (log2 - KY_LATENCY_SUB_BITS)) & (KY_LATENCY_SUBS - 1));
}

#endif
