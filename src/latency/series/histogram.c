/* SPDX-License-Identifier: MIT */
#include "latency/series/histogram.h"

uint64_t ky_bucket_begin_ns(uint32_t bucket)
{
	uint32_t octave = bucket / KY_LATENCY_SUBS, sub = bucket % KY_LATENCY_SUBS;

	if (octave == 0)
		return (uint64_t)sub << (KY_LATENCY_FIRST_LOG2 - KY_LATENCY_SUB_BITS);
	return (uint64_t)(KY_LATENCY_SUBS + sub)
	       << (KY_LATENCY_FIRST_LOG2 - KY_LATENCY_SUB_BITS + octave - 1);
}

uint64_t ky_bucket_end_ns(uint32_t bucket)
{
	return bucket + 1 < KY_LATENCY_BUCKETS ? ky_bucket_begin_ns(bucket + 1) : UINT64_MAX;
}

void ky_histogram_add(struct ky_histogram *to, const struct ky_histogram *from)
{
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

void ky_histogram_settle(struct ky_histogram *histogram)
{
	uint32_t last = 0;

	histogram->count = 0;
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		histogram->count += histogram->buckets[i];
		last = histogram->buckets[i] ? i : last;
	}
	if (!histogram->count)
		histogram->max_ns = 0;
	else if (histogram->max_ns < ky_bucket_begin_ns(last))
		histogram->max_ns = ky_bucket_begin_ns(last);
	else if (histogram->max_ns >= ky_bucket_end_ns(last))
		histogram->max_ns = ky_bucket_end_ns(last) - 1;
}

/* @rank of the @count in a bucket, which lie in it evenly. */
static uint64_t histogram_interpolate(uint32_t bucket, uint64_t rank, uint64_t count,
				      uint64_t max_ns)
{
	uint64_t begin = ky_bucket_begin_ns(bucket), end = ky_bucket_end_ns(bucket);

	if (end > max_ns)
		end = max_ns;
	return begin + (uint64_t)((double)(end - begin) * (double)rank / (double)count);
}

uint64_t ky_histogram_percentile_ns(const struct ky_histogram *histogram, double part)
{
	double wanted = part * (double)histogram->count;
	uint64_t rank = (uint64_t)wanted, before = 0;

	if (!histogram->count)
		return 0;
	if ((double)rank < wanted)
		rank++;
	rank = rank < 1 ? 1 : rank > histogram->count ? histogram->count : rank;
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		uint64_t here = histogram->buckets[i];

		if (before + here >= rank)
			return histogram_interpolate(i, rank - before, here, histogram->max_ns);
		before += here;
	}
	return histogram->max_ns;
}
