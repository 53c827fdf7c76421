/* SPDX-License-Identifier: MIT */
/* The table of open pairs that a tracker has told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "latency/tracker/tracker-told.h"

static struct ky_tracker_key told_key(uint64_t i)
{
	return (struct ky_tracker_key){{i % 1000, i / 1000}};
}

/* So many that a table that searches them in turn would take minutes. */
static void test_many(void **state)
{
	const uint64_t n = 300000;
	struct ky_told_table table = {0};
	struct ky_tracker_key key;

	(void)state;
	for (int look = 0; look < 3; look++) {
		ky_told_begin(&table);
		for (uint64_t i = 0; i < n; i++) {
			key = told_key(i);
			assert_int_equal(ky_told_see(&table, &key, i), look > 0);
		}
		ky_told_sweep(&table);
		assert_int_equal(table.all.len, n);
	}
	for (uint64_t i = 0; i < n; i += 2) {
		key = told_key(i);
		assert_false(ky_told_end(&table, &key, i + 1)); /* another begin of the same key */
		assert_true(ky_told_end(&table, &key, i));
		assert_false(ky_told_end(&table, &key, i));
	}
	assert_int_equal(table.all.len, n / 2);
	ky_told_fini(&table);
}

static void test_sweep(void **state)
{
	struct ky_told_table table = {0};
	struct ky_tracker_key key;

	(void)state;
	ky_told_begin(&table);
	for (uint64_t i = 0; i < 1000; i++) {
		key = told_key(i);
		assert_int_equal(ky_told_see(&table, &key, 7), 0);
	}
	ky_told_begin(&table);
	for (uint64_t i = 0; i < 1000; i += 3) {
		key = told_key(i);
		assert_int_equal(ky_told_see(&table, &key, 7), 1);
	}
	ky_told_sweep(&table);
	assert_int_equal(table.all.len, 334);
	for (uint64_t i = 0; i < 1000; i++) {
		key = told_key(i);
		assert_int_equal(ky_told_end(&table, &key, 7), i % 3 == 0);
	}
	assert_int_equal(table.all.len, 0);
	ky_told_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
