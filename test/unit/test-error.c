/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void test_set_replaces_everything(void **state)
{
	struct kymo_error err;

	ky_error_set(&err, KYMO_E_IO, "first");
	ky_error_path(&err, "some/path");
	ky_error_line(&err, 3, 4);
	ky_error_offset(&err, 99);
	ky_error_hint(&err, "try %s", "this");
	assert_string_equal(err.path, "some/path");
	assert_string_equal(err.hint, "try this");
	assert_int_equal(ky_error_set(&err, KYMO_E_FORMAT, "second %d", 2), KYMO_E_FORMAT);
	assert_int_equal(err.code, KYMO_E_FORMAT);
	assert_string_equal(err.message, "second 2");
	assert_string_equal(err.path, "");
	assert_string_equal(err.hint, "");
	assert_int_equal(err.line, 0);
	assert_true(err.offset == KYMO_NO_OFFSET);
}

static void test_null_is_accepted(void **state)
{
	ky_error_clear(NULL);
	assert_int_equal(ky_error_set(NULL, KYMO_E_LIMIT, "x"), KYMO_E_LIMIT);
	assert_int_equal(ky_error_errno(NULL, ENOENT, "x"), KYMO_E_NOT_FOUND);
	assert_int_equal(ky_error_nomem(NULL), KYMO_E_MEMORY);
	ky_error_path(NULL, "x");
	ky_error_hint(NULL, "x");
	ky_error_offset(NULL, 1);
	ky_error_line(NULL, 1, 1);
}

static void test_errno_gives_code_and_text(void **state)
{
	struct kymo_error err;

	assert_int_equal(ky_error_errno(&err, EACCES, "open %s", "it"), KYMO_E_PERMISSION);
	assert_string_equal(err.message, "open it: Permission denied");
	assert_int_equal(ky_error_errno(&err, EIO, "read"), KYMO_E_IO);
}

static void test_long_text_is_cut(void **state)
{
	struct kymo_error err;
	char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ky_error_set(&err, KYMO_E_IO, "%s", text);
	ky_error_path(&err, text);
	ky_error_hint(&err, "%s", text);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	assert_int_equal(strlen(err.path), sizeof(err.path) - 1);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	ky_error_errno(&err, EIO, "%s", text);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

static void test_every_status_has_a_text(void **state)
{
	assert_string_equal(kymo_status_text(KYMO_OK), "success");
	for (int status = -11; status < 0; status++)
		assert_string_not_equal(kymo_status_text(status), "unknown status");
	assert_string_equal(kymo_status_text(-1000), "unknown status");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_replaces_everything),
		cmocka_unit_test(test_null_is_accepted),
		cmocka_unit_test(test_errno_gives_code_and_text),
		cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_every_status_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
