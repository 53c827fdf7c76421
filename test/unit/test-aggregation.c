/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>

#include "analysis/reports/aggregation.h"

/* Which step @ns is counted in. */
static int step_of(uint64_t ns)
{
	struct ky_freq freq = {.n = 0};
	int step = 0;

	ky_freq_add(&freq, ns);
	assert_int_equal(freq.n, 1);
	while (!freq.counts[step])
		step++;
	assert_int_equal(freq.counts[step], 1);
	return step;
}

static void steps_begin_where_they_should(void **state)
{
	static const uint64_t parts[] = {1, 2, 5};
	uint64_t power = 1;

	assert_int_equal(step_of(0), 0);
	for (int i = 1; i < KY_FREQ_STEPS - 2; i++) {
		uint64_t begin = power * parts[(i - 1) % 3];

		assert_int_equal(step_of(begin - 1), i - 1);
		assert_int_equal(step_of(begin), i);
		if (i % 3 == 0)
			power *= 10;
	}
	assert_int_equal(step_of(UINT64_MAX), KY_FREQ_STEPS - 3);
}

#define N     1000
#define LIMIT 10

static int compare_down(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left > right ? -1 : left < right;
}

/* Keys with the number of the record below: of equal keys the earlier is better. */
static void the_longest_are_kept(void **state)
{
	struct ky_records records;
	uint64_t all[N], random = 7;

	ky_records_init(&records, sizeof(uint64_t), LIMIT, true);
	for (uint64_t i = 0; i < N; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		all[i] = (random >> 60) << 32 | (N - i);
		assert_int_equal(ky_records_add(&records, all[i] >> 32, &all[i]), 0);
	}
	ky_records_sort(&records);
	qsort(all, N, sizeof(all[0]), compare_down);
	assert_int_equal(records.seen, N);
	assert_int_equal(records.len, LIMIT);
	for (size_t i = 0; i < LIMIT; i++)
		assert_int_equal(*(const uint64_t *)ky_records_at(&records, i), all[i]);
	ky_records_fini(&records);
}

static void the_first_are_kept(void **state)
{
	struct ky_records records;

	ky_records_init(&records, sizeof(uint64_t), LIMIT, false);
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(ky_records_add(&records, i, &i), 0);
	ky_records_sort(&records);
	assert_int_equal(records.seen, N);
	assert_int_equal(records.len, LIMIT);
	for (size_t i = 0; i < LIMIT; i++)
		assert_int_equal(*(const uint64_t *)ky_records_at(&records, i), i);
	ky_records_fini(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_begin_where_they_should),
		cmocka_unit_test(the_longest_are_kept),
		cmocka_unit_test(the_first_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
