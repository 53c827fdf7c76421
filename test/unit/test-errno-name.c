/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>

#include "analysis/state/errno-name.h"

static void test_names(void **state)
{
	assert_string_equal(ky_errno_name(ENOENT), "ENOENT");
	assert_string_equal(ky_errno_name(EAGAIN), "EAGAIN");
	assert_string_equal(ky_errno_name(512), "ERESTARTSYS");
	assert_null(ky_errno_name(0));
	assert_null(ky_errno_name(-2));
	assert_null(ky_errno_name(4000));
}

static void test_what_is_an_error(void **state)
{
	assert_true(ky_is_error(-1));
	assert_true(ky_is_error(-4095));
	assert_false(ky_is_error(-4096)); /* an address */
	assert_false(ky_is_error(0));
	assert_false(ky_is_error(INT64_MIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_what_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
