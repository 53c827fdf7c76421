/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"

static void test_adding(void **state)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;

	assert_string_equal(ky_strbuf_text(&buf), "");
	ky_strbuf_adds(&buf, "a");
	ky_strbuf_addc(&buf, 'b');
	ky_strbuf_addu(&buf, UINT64_MAX);
	ky_strbuf_addc(&buf, ' ');
	ky_strbuf_addi(&buf, INT64_MIN);
	ky_strbuf_addf(&buf, " %s-%d", "x", 7);
	assert_string_equal(ky_strbuf_text(&buf),
			    "ab18446744073709551615 -9223372036854775808 x-7");
	assert_int_equal(buf.len, strlen(buf.data));
	ky_strbuf_clear(&buf);
	assert_string_equal(ky_strbuf_text(&buf), "");
	ky_strbuf_fini(&buf);
}

static void test_growing_keeps_the_text(void **state)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;

	for (int i = 0; i < 10000; i++)
		ky_strbuf_addf(&buf, "%04d", i);
	assert_int_equal(buf.len, 40000);
	assert_memory_equal(buf.data + 4 * 1234, "1234", 4);
	assert_int_equal(buf.data[buf.len], '\0');
	ky_strbuf_fini(&buf);
}

static void test_failure_is_sticky(void **state)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;

	ky_strbuf_adds(&buf, "kept");
	assert_false(ky_strbuf_reserve(&buf, SIZE_MAX / 2));
	assert_true(ky_strbuf_failed(&buf));
	assert_string_equal(ky_strbuf_text(&buf), "kept");
	assert_null(ky_strbuf_take(&buf));
	assert_false(ky_strbuf_failed(&buf));
}

static void test_take(void **state)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;
	char *text = ky_strbuf_take(&buf);

	assert_string_equal(text, "");
	free(text);
	ky_strbuf_adds(&buf, "mine");
	text = ky_strbuf_take(&buf);
	assert_string_equal(text, "mine");
	assert_null(buf.data);
	free(text);
}

/* Every number of digits, against printf. */
static void test_numbers_against_printf(void **state)
{
	char got[32], expected[32];

	for (uint64_t value = 0, step = 1; step; value = step + step / 3, step *= 2) {
		*ky_put_u64(got, value) = '\0';
		snprintf(expected, sizeof(expected), "%" PRIu64, value);
		assert_string_equal(got, expected);
		*ky_put_i64(got, -(int64_t)(value / 2)) = '\0';
		snprintf(expected, sizeof(expected), "%" PRId64, -(int64_t)(value / 2));
		assert_string_equal(got, expected);
		*ky_put_hex(got, value, false) = '\0';
		snprintf(expected, sizeof(expected), "%" PRIx64, value);
		assert_string_equal(got, expected);
		*ky_put_hex(got, value, true) = '\0';
		snprintf(expected, sizeof(expected), "%" PRIX64, value);
		assert_string_equal(got, expected);
	}
	*ky_put_hex(got, UINT64_MAX, false) = '\0';
	assert_string_equal(got, "ffffffffffffffff");
	*ky_put_digits(got, 42, 9) = '\0';
	assert_string_equal(got, "000000042");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adding),
		cmocka_unit_test(test_growing_keeps_the_text),
		cmocka_unit_test(test_failure_is_sticky),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_numbers_against_printf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
