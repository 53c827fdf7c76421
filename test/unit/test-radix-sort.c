/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "flow/graph/radix-sort.h"

#define N_MAX 5000

static uint64_t random_state = 7;

static uint32_t dice(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 32);
}

/* Values count up, so that a stable order is an order of key and value. */
static void check(size_t n, uint32_t max_key)
{
	static uint64_t entries[N_MAX], scratch[N_MAX];
	uint64_t sum = 0, *sorted;

	for (size_t i = 0; i < n; i++) {
		uint32_t key = max_key == UINT32_MAX ? dice() : dice() % (max_key + 1);

		entries[i] = ky_radix_sort_entry(i == n / 2 ? max_key : key, (uint32_t)i);
		sum += entries[i];
	}
	sorted = ky_radix_sort(entries, scratch, n, max_key);
	for (size_t i = 0; i < n; i++) {
		sum -= sorted[i];
		if (i)
			assert_true(sorted[i - 1] < sorted[i]);
	}
	assert_int_equal(sum, 0);
}

static void sorted_and_stable(void **state)
{
	static const uint32_t max_keys[] = {
		0, 1, 2047, 2048, (1u << 22) - 1, 1u << 22, UINT32_MAX - 1, UINT32_MAX};
	static const size_t ns[] = {0, 1, 2, 47, 48, 49, 1000, N_MAX};

	for (size_t i = 0; i < sizeof(max_keys) / sizeof(max_keys[0]); i++) {
		for (size_t j = 0; j < sizeof(ns) / sizeof(ns[0]); j++)
			check(ns[j], max_keys[i]);
	}
}

/* Two runs of so many, with keys that grow by up to @step. */
static void check_two(size_t n_left, size_t n_right, uint32_t step)
{
	static uint64_t entries[N_MAX], scratch[N_MAX];
	size_t n = n_left + n_right;
	uint64_t sum = 0, *sorted;
	uint32_t key = 0;

	for (size_t i = 0; i < n; i++) {
		key = i == n_left ? 0 : key + dice() % (step + 1);
		entries[i] = ky_radix_sort_entry(key, (uint32_t)i);
		sum += entries[i];
	}
	sorted = ky_radix_sort_two(entries, scratch, n_left, n);
	for (size_t i = 0; i < n; i++) {
		sum -= sorted[i];
		if (i)
			assert_true(sorted[i - 1] < sorted[i]);
	}
	assert_int_equal(sum, 0);
}

static void two_runs_are_merged(void **state)
{
	static const size_t lens[] = {0, 1, 2, 700, 1000};
	static const uint32_t steps[] = {0, 1, 1000};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (size_t j = 0; j < sizeof(lens) / sizeof(lens[0]); j++) {
			for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
				check_two(lens[i], lens[j], steps[k]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_and_stable),
		cmocka_unit_test(two_runs_are_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
