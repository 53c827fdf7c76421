/* SPDX-License-Identifier: MIT */
/* Buckets, percentiles, and a series over time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "latency/series/series.h"

/* Each bucket begins where the last one ends, and has what is within its bounds. */
static void test_buckets(void **state)
{
	(void)state;
	assert_int_equal(ky_bucket_begin_ns(0), 0);
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		uint64_t begin = ky_bucket_begin_ns(i), end = ky_bucket_end_ns(i);

		assert_true(begin < end);
		assert_int_equal(ky_latency_bucket(begin), i);
		assert_int_equal(ky_latency_bucket(end - 1), i);
		if (i >= KY_LATENCY_SUBS && end != UINT64_MAX)
			assert_true((end - begin) * KY_LATENCY_SUBS <= begin);
	}
	assert_int_equal(ky_latency_bucket(UINT64_MAX), KY_LATENCY_BUCKETS - 1);
	/* Powers of two are bounds, as in other tools' histograms. */
	for (uint32_t i = KY_LATENCY_FIRST_LOG2; i <= KY_LATENCY_LAST_LOG2; i++)
		assert_int_equal(ky_bucket_begin_ns(ky_latency_bucket(1ull << i)), 1ull << i);
}

static void test_percentiles(void **state)
{
	struct ky_histogram histogram = {0};
	uint64_t p50, p99;

	(void)state;
	assert_int_equal(ky_histogram_percentile_ns(&histogram, 0.5), 0);
	for (uint64_t ns = 1; ns <= 100000; ns++) {
		histogram.buckets[ky_latency_bucket(ns)]++;
		histogram.sum_ns += ns;
	}
	histogram.max_ns = 100000;
	ky_histogram_settle(&histogram);
	assert_int_equal(histogram.count, 100000);
	p50 = ky_histogram_percentile_ns(&histogram, 0.5);
	p99 = ky_histogram_percentile_ns(&histogram, 0.99);
	assert_in_range(p50, 50000 * 7 / 8, 50000 * 9 / 8);
	assert_in_range(p99, 99000 * 7 / 8, 100000);
	assert_int_equal(ky_histogram_percentile_ns(&histogram, 1), 100000);
}

/* The longest is never outside of the highest bucket that has something. */
static void test_settle(void **state)
{
	struct ky_histogram histogram = {0};

	(void)state;
	histogram.buckets[ky_latency_bucket(1000)] = 2;
	histogram.max_ns = 5;
	ky_histogram_settle(&histogram);
	assert_int_equal(ky_latency_bucket(histogram.max_ns), ky_latency_bucket(1000));
	histogram.max_ns = 1u << 30;
	ky_histogram_settle(&histogram);
	assert_int_equal(ky_latency_bucket(histogram.max_ns), ky_latency_bucket(1000));
}

static uint64_t count_in(const struct ky_series *series, enum ky_past past, uint64_t slot)
{
	struct ky_histogram histogram;

	ky_series_past(series, past, slot, &histogram);
	return histogram.count;
}

/* One more per slot of five seconds: each window has as many as it has slots. */
static void test_series(void **state)
{
	const struct ky_latency_key key = {.layer = KY_LATENCY_WAKEUP};
	struct ky_series *series = ky_series_new(&key);
	struct ky_latency_cell cell = {0};

	(void)state;
	assert_non_null(series);
	for (uint64_t slot = 0; slot < 400; slot++) {
		if (slot)
			assert_int_equal(ky_series_turn(series, slot), 0);
		cell.buckets[ky_latency_bucket(slot * 1000)]++;
		cell.sum_ns += slot * 1000;
		ky_series_take(series, &cell, slot * 1000, slot);
		assert_int_equal(series->now.count, 1);
		assert_int_equal(series->now.sum_ns, slot * 1000);
	}
	assert_int_equal(count_in(series, KY_PAST_NOW, 399), 1);
	assert_int_equal(count_in(series, KY_PAST_1_MIN, 399), 1 + 12);
	assert_int_equal(count_in(series, KY_PAST_5_MIN, 399), 1 + 60);
	assert_int_equal(count_in(series, KY_PAST_15_MIN, 399), 1 + KY_SERIES_SLOTS);
	assert_int_equal(series->total.count, 400);
	/* Nothing comes any more. */
	for (uint64_t slot = 400; slot < 800; slot++)
		assert_int_equal(ky_series_turn(series, slot), 0);
	assert_int_equal(series->slots.len, 0);
	ky_series_free(series);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
