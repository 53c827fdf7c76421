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

/* Of what is below 2^(LAST_LOG2 + 1) and not 0. BPF has no instruction for it; most durations are below 65 us. */
static inline __attribute__((always_inline)) uint32_t ky_latency_log2(uint64_t v)
{
#ifdef __bpf__
	uint32_t log2 = 0;

	if (v >> 16) {
		log2 = 16;
		v >>= 16;
		if (v >> 16) {
			log2 = 32;
			v >>= 16;
		}
	}
	if (v >> 8) {
		log2 += 8;
		v >>= 8;
	}
	if (v >> 4) {
		log2 += 4;
		v >>= 4;
	}
	if (v >> 2) {
		log2 += 2;
		v >>= 2;
	}
	return log2 + (uint32_t)(v >> 1);
#else
	return 63u - (uint32_t)__builtin_clzll(v);
#endif
}

/* The bucket of a duration. */
static inline __attribute__((always_inline)) uint32_t ky_latency_bucket(uint64_t ns)
{
	uint32_t log2;

	if (ns < (1u << KY_LATENCY_FIRST_LOG2))
		return (uint32_t)(ns >> (KY_LATENCY_FIRST_LOG2 - KY_LATENCY_SUB_BITS));
	if (ns >> (KY_LATENCY_LAST_LOG2 + 1))
		return KY_LATENCY_BUCKETS - 1;
	log2 = ky_latency_log2(ns);
	return (log2 - KY_LATENCY_FIRST_LOG2 + 1) * KY_LATENCY_SUBS +
	       ((uint32_t)(ns >> (log2 - KY_LATENCY_SUB_BITS)) & (KY_LATENCY_SUBS - 1));
}

#endif
