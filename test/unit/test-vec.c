/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/vec.h"

static void test_push_keeps_order(void **state)
{
	KY_VEC(int) v = KY_VEC_INIT;
	int expected = 0;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(ky_vec_push(&v, i), KYMO_OK);
	assert_int_equal(v.len, 1000);
	assert_true(v.cap >= v.len);
	ky_vec_foreach(&v, at)
		assert_int_equal(*at, expected++);
	assert_int_equal(expected, 1000);
	assert_int_equal(*ky_vec_last(&v), 999);
	ky_vec_clear(&v);
	assert_int_equal(v.len, 0);
	ky_vec_fini(&v);
	assert_null(v.data);
}

static void test_foreach_over_nothing(void **state)
{
	KY_VEC(long) v = KY_VEC_INIT;

	ky_vec_foreach(&v, at)
		fail();
	ky_vec_fini(&v);
}

static void test_structs_with_commas(void **state)
{
	struct pair {
		int a, b;
	};
	KY_VEC(struct pair) v = KY_VEC_INIT;

	assert_int_equal(ky_vec_push(&v, (struct pair){1, 2}), KYMO_OK);
	assert_int_equal(v.data[0].b, 2);
	ky_vec_fini(&v);
}

static void test_reserve(void **state)
{
	KY_VEC(uint64_t) v = KY_VEC_INIT;

	assert_int_equal(ky_vec_reserve(&v, 100), KYMO_OK);
	assert_true(v.cap >= 100);
	assert_int_equal(v.len, 0);
	assert_int_equal(ky_vec_reserve(&v, SIZE_MAX / 2), KYMO_E_MEMORY);
	assert_int_equal(ky_vec_reserve(&v, SIZE_MAX / 4), KYMO_E_MEMORY);
	assert_true(v.cap >= 100);
	ky_vec_fini(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_keeps_order),
		cmocka_unit_test(test_foreach_over_nothing),
		cmocka_unit_test(test_structs_with_commas),
		cmocka_unit_test(test_reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
