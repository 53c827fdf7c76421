/* SPDX-License-Identifier: MIT */
/*
 * Histograms of durations, with the buckets of latency-layout.h. Sums are of exact values, percentiles are interpolated
 * within a bucket, so they are right to an eighth.
 * Threads: one at a time per histogram.
 */
#ifndef KY_LATENCY_HISTOGRAM_H
#define KY_LATENCY_HISTOGRAM_H

#include <stdint.h>

#include "latency/bpf/latency-layout.h"

struct ky_histogram {
	uint64_t count, sum_ns, max_ns;
	uint64_t buckets[KY_LATENCY_BUCKETS];
};

/* The first duration that is in @bucket, and the first one that no longer is (of the last bucket UINT64_MAX). */
uint64_t ky_bucket_begin_ns(uint32_t bucket);
uint64_t ky_bucket_end_ns(uint32_t bucket);

void ky_histogram_add(struct ky_histogram *to, const struct ky_histogram *from);
/* Count what the buckets have, and bring max_ns into the highest bucket that has something. */
void ky_histogram_settle(struct ky_histogram *histogram);
/* The duration that @part (0.5, 0.99) of all do not exceed; 0 of none. */
uint64_t ky_histogram_percentile_ns(const struct ky_histogram *histogram, double part);

#endif
