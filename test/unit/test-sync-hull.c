/* SPDX-License-Identifier: MIT */
/* Lines between two hulls: against all points, one by one. */
#include "unit.h"

#include <stdlib.h>

#include "analysis/sync/sync-hull.h"
#include "store/read/sync-file.h"

#define DRIFT_MAX (INT64_C(100) * 1000000000000)

static uint64_t dice = 88172645463325252u;

static int64_t roll(int64_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (int64_t)(dice % (uint64_t)n);
}

/* What A's clock reads more than B's at B's time @x. */
static int64_t truth(int64_t x, int64_t offset, int64_t drift)
{
	return offset + (int64_t)((__int128)x * drift / KY_SYNC_DRIFT_ONE);
}

/* @n messages each way: their way takes at least @way ns. */
static void make(struct ky_hull *least, struct ky_hull *most, int n, int64_t base, int64_t offset,
		 int64_t drift, int64_t way)
{
	for (int i = 0; i < n; i++) {
		int64_t x = (int64_t)i * 1000000, delay = way + roll(50000);

		assert_int_equal(ky_hull_add(least, base + x, truth(x, offset, drift) - delay), 0);
		delay = way + roll(50000);
		assert_int_equal(
			ky_hull_add(most, base + x + 500, truth(x + 500, offset, drift) + delay),
			0);
	}
}

static void check_line(const struct ky_hull_line *line, int64_t base, int64_t end, int64_t offset,
		       int64_t drift)
{
	const struct ky_sync sync = {.begin_ns = line->begin,
				     .end_ns = line->end,
				     .begin_bound_ns = line->begin_bound,
				     .end_bound_ns = line->end_bound,
				     .drift_bound = line->drift_bound};

	/* Also far before and behind all points. */
	for (int64_t x = -end; x <= 3 * end; x += end / 7 + 1) {
		__int128 at = (__int128)line->drift * (base + x - line->at);
		int64_t found = line->offset + (int64_t)(at / KY_SYNC_DRIFT_ONE);
		int64_t off = found - truth(x, offset, drift);

		assert_true((uint64_t)llabs(off) <= ky_sync_bound(&sync, base + x) + 2);
	}
	assert_true(llabs(line->drift - drift) <= (int64_t)line->drift_bound + 2);
}

static void test_truth_is_within_the_bounds(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct ky_hull least = {0}, most = {0};
		struct ky_hull_line line;
		int64_t offset = roll(INT64_C(20000000000000)) - INT64_C(10000000000000);
		int64_t drift = roll(2 * DRIFT_MAX) - DRIFT_MAX, base = roll(INT64_MAX / 5);
		int n = (int)roll(3000) + 1;

		make(&least, &most, n, base, offset, drift, roll(2) ? 0 : roll(20000));
		assert_int_equal(ky_hull_solve(&least, &most, DRIFT_MAX, &line), 0);
		assert_true(line.is_possible);
		check_line(&line, base, (int64_t)n * 1000000, offset, drift);
		if (n > 2500 && llabs(drift) < DRIFT_MAX / 2)
			assert_true(line.is_drift_seen && line.begin_bound < 1000000);
		ky_hull_fini(&least);
		ky_hull_fini(&most);
	}
}

/* More points than are kept: the corners stay. */
static void test_many_points_need_little_memory(void **state)
{
	struct ky_hull least = {0}, most = {0};
	struct ky_hull_line line;

	(void)state;
	make(&least, &most, 300000, INT64_C(1795000000000000000), 77, 12345678901, 1000);
	assert_int_equal(least.n, 300000);
	assert_true(least.points.len < 20000 && most.points.len < 20000);
	assert_int_equal(ky_hull_solve(&least, &most, DRIFT_MAX, &line), 0);
	assert_true(line.is_drift_seen);
	check_line(&line, INT64_C(1795000000000000000), INT64_C(300000000000), 77, 12345678901);
	assert_true(line.end_bound < 20000);
	ky_hull_fini(&least);
	ky_hull_fini(&most);
}

static void test_what_contradicts_is_not_possible(void **state)
{
	struct ky_hull least = {0}, most = {0};
	struct ky_hull_line line;

	(void)state;
	/* Received before it was sent. */
	assert_int_equal(ky_hull_add(&least, 0, 100), 0);
	assert_int_equal(ky_hull_add(&most, 0, 50), 0);
	assert_int_equal(ky_hull_solve(&least, &most, DRIFT_MAX, &line), 0);
	assert_false(line.is_possible);
	assert_false(line.is_drift_seen);
	/* A clock is set in the middle. */
	for (int64_t x = 1000; x < 2000000; x += 1000) {
		int64_t offset = x < 1000000 ? 0 : 5000000;

		assert_int_equal(ky_hull_add(&least, x, offset - 200), 0);
		assert_int_equal(ky_hull_add(&most, x, offset + 200), 0);
	}
	assert_int_equal(ky_hull_solve(&least, &most, DRIFT_MAX, &line), 0);
	assert_false(line.is_possible);
	ky_hull_fini(&least);
	ky_hull_fini(&most);
}

/* One exchange tells the offset; the drift is what is assumed. */
static void test_one_exchange(void **state)
{
	struct ky_hull least = {0}, most = {0};
	struct ky_hull_line line;

	(void)state;
	assert_int_equal(ky_hull_add(&least, 1000, 5000), 0);
	assert_int_equal(ky_hull_add(&most, 2000, 7000), 0);
	/* Ignored: too far away. */
	assert_int_equal(ky_hull_add(&most, INT64_MAX, 7000), 0);
	assert_int_equal(ky_hull_add(&most, 0, INT64_MIN), 0);
	assert_int_equal(most.n, 1);
	assert_int_equal(ky_hull_solve(&least, &most, DRIFT_MAX, &line), 0);
	assert_true(line.is_possible);
	assert_false(line.is_drift_seen);
	assert_in_range(line.offset, 5990, 6010);
	assert_in_range(line.begin_bound, 1000, 1010);
	assert_true(line.drift_bound >= (uint64_t)DRIFT_MAX);
	assert_in_range(line.drift + 10, 0, 20);
	check_line(&line, 0, INT64_C(1000000000000), 6000, DRIFT_MAX);
	check_line(&line, 0, INT64_C(1000000000000), 6000, -DRIFT_MAX);
	ky_hull_fini(&least);
	ky_hull_fini(&most);
}

/* Points at the limits: no overflow. */
static void test_limits(void **state)
{
	const int64_t far = KY_HULL_FAR - 1;
	struct ky_hull least = {0}, most = {0};
	struct ky_hull_line line;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(ky_hull_add(&least, roll(2) ? far - roll(3) : -far + roll(3),
					     roll(2) ? far : -far),
				 0);
		assert_int_equal(ky_hull_add(&most, roll(2) ? far - roll(3) : -far + roll(3),
					     roll(2) ? far : -far),
				 0);
	}
	assert_int_equal(ky_hull_solve(&least, &most, KY_SYNC_DRIFT_MAX, &line), 0);
	ky_hull_fini(&least);
	ky_hull_fini(&most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth_is_within_the_bounds),
		cmocka_unit_test(test_many_points_need_little_memory),
		cmocka_unit_test(test_what_contradicts_is_not_possible),
		cmocka_unit_test(test_one_exchange),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
