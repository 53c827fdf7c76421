/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"

static void test_an_empty_file_is_an_empty_text(void **state)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	(void)state;
	/* What the memory has from before is no text of the file's. */
	assert_true(ky_strbuf_reserve(&text, 100));
	memset(text.data, '7', text.cap);
	text.len = 50;
	assert_int_equal(ky_read_file(AT_FDCWD, "/dev/null", 100, &text), 0);
	assert_int_equal(text.len, 0);
	assert_string_equal(ky_strbuf_text(&text), "");
	ky_strbuf_fini(&text);

	/* Fresh memory has anything. */
	text.data = malloc(64);
	assert_non_null(text.data);
	memset(text.data, '7', 64);
	text.cap = 64;
	assert_int_equal(ky_read_file(AT_FDCWD, "/dev/null", 100, &text), 0);
	assert_string_equal(ky_strbuf_text(&text), "");
	ky_strbuf_fini(&text);
}

static void test_no_more_than_is_wanted(void **state)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	(void)state;
	assert_int_equal(ky_read_file(AT_FDCWD, "/dev/zero", 10000, &text), -EFBIG);
	assert_int_equal(text.len, 10000);
	assert_int_equal(ky_read_file(AT_FDCWD, "/no/such", 100, &text), -ENOENT);
	assert_int_equal(text.len, 0);
	ky_strbuf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_file_is_an_empty_text),
		cmocka_unit_test(test_no_more_than_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
