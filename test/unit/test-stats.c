/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/tables/stats.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static double mean(const struct ky_stats *stats)
{
	const struct ky_moments moments = ky_stats_moments(stats);

	return ky_moments_mean(&moments);
}

static double stdev(const struct ky_stats *stats)
{
	const struct ky_moments moments = ky_stats_moments(stats);

	return ky_moments_stdev(&moments);
}

static void test_empty(void **state)
{
	struct ky_stats stats;

	ky_stats_init(&stats);
	assert_int_equal(stats.count, 0);
	assert_true(mean(&stats) == 0);
	assert_true(stdev(&stats) == 0);
	assert_int_equal(ky_stats_percentile(&stats, 50), 0);
	ky_stats_fini(&stats);
}

static void test_known(void **state)
{
	static const uint64_t values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct ky_stats stats;

	ky_stats_init(&stats);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(ky_stats_add(&stats, values[i]), 0);
	assert_int_equal(ky_stats_moments(&stats).min, 2);
	assert_int_equal(ky_stats_moments(&stats).max, 9);
	assert_true(mean(&stats) == 5);
	assert_true(fabs(stdev(&stats) - sqrt(32.0 / 7)) < 1e-15);
	assert_int_equal(ky_stats_percentile(&stats, 50), 4);
	assert_int_equal(ky_stats_percentile(&stats, 51), 5);
	assert_int_equal(ky_stats_percentile(&stats, 75), 5);
	assert_int_equal(ky_stats_percentile(&stats, 90), 9);
	assert_int_equal(ky_stats_percentile(&stats, 100), 9);
	assert_int_equal(ky_stats_percentile(&stats, 0.1), 2);
	ky_stats_fini(&stats);
}

/* A small spread far from zero: what naive sums of squares lose. */
static void test_stdev_does_not_cancel(void **state)
{
	struct ky_stats stats;

	ky_stats_init(&stats);
	for (uint64_t i = 0; i < 1000; i++)
		ky_stats_add(&stats, UINT64_C(1000000000000000000) + i % 2);
	assert_true(fabs(stdev(&stats) - 0.5 * sqrt(1000.0 / 999)) < 1e-12);
	ky_stats_fini(&stats);
}

/* Against the sorted samples, over twelve orders of magnitude. */
static void test_percentiles(void **state)
{
	static const double percents[] = {1, 10, 50, 90, 99, 99.9};
	enum { N = 20000 };
	uint64_t *values = malloc(N * sizeof(*values));
	struct ky_stats stats;

	ky_stats_init(&stats);
	for (size_t i = 0; i < N; i++) {
		values[i] = random_u64() >> (24 + random_u64() % 40);
		assert_int_equal(ky_stats_add(&stats, values[i]), 0);
	}
	qsort(values, N, sizeof(*values), compare);
	for (size_t i = 0; i < 6; i++) {
		uint64_t want = values[(size_t)ceil(percents[i] * N / 100 - 1e-9) - 1];
		uint64_t got = ky_stats_percentile(&stats, percents[i]);

		assert_true(fabs((double)got - (double)want) <= (double)want / 128);
	}
	assert_int_equal(ky_stats_percentile(&stats, 100), values[N - 1]);
	free(values);
	ky_stats_fini(&stats);
}

static void test_extremes(void **state)
{
	struct ky_stats stats;

	ky_stats_init(&stats);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ky_stats_add(&stats, UINT64_MAX), 0);
		assert_int_equal(ky_stats_add(&stats, 0), 0);
	}
	assert_int_equal(ky_stats_moments(&stats).max, UINT64_MAX);
	assert_int_equal(ky_stats_percentile(&stats, 50), 0);
	assert_true(ky_stats_percentile(&stats, 90) > UINT64_MAX - (UINT64_MAX >> 6));
	assert_true(fabs(mean(&stats) / 9223372036854775807.5 - 1) < 1e-15);
	ky_stats_fini(&stats);
}

static void merge_case(size_t n_a, size_t n_b)
{
	struct ky_stats a, b, both;

	ky_stats_init(&a);
	ky_stats_init(&b);
	ky_stats_init(&both);
	for (size_t i = 0; i < n_a + n_b; i++) {
		uint64_t value = random_u64() % 1000000;

		assert_int_equal(ky_stats_add(i < n_a ? &a : &b, value), 0);
		assert_int_equal(ky_stats_add(&both, value), 0);
	}
	assert_int_equal(ky_stats_merge(&a, &b), 0);
	for (size_t i = 0; i < 100; i++) { /* and goes on */
		uint64_t value = random_u64() % 1000000;

		assert_int_equal(ky_stats_add(&a, value), 0);
		assert_int_equal(ky_stats_add(&both, value), 0);
	}
	assert_int_equal(a.count, both.count);
	assert_int_equal(ky_stats_moments(&a).min, ky_stats_moments(&both).min);
	assert_int_equal(ky_stats_moments(&a).max, ky_stats_moments(&both).max);
	assert_true(mean(&a) == mean(&both));
	assert_true(fabs(stdev(&a) - stdev(&both)) < 1e-6);
	for (int p = 5; p <= 100; p += 5) {
		double want = (double)ky_stats_percentile(&both, p);

		assert_true(fabs((double)ky_stats_percentile(&a, p) - want) <= want / 64);
	}
	ky_stats_fini(&a);
	ky_stats_fini(&b);
	ky_stats_fini(&both);
}

static void test_merge(void **state)
{
	merge_case(0, 5);
	merge_case(5, 0);
	merge_case(5, 7);
	merge_case(20, 20);
	merge_case(0, 1000);
	merge_case(3, 1000);
	merge_case(1000, 3);
	merge_case(1000, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),	    cmocka_unit_test(test_known),
		cmocka_unit_test(test_percentiles), cmocka_unit_test(test_stdev_does_not_cancel),
		cmocka_unit_test(test_extremes),    cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
