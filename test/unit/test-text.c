/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <kymo/error.h>

#include "base/text.h"

typedef int parse_fn(const char *text, uint64_t *value);

static void good(parse_fn *parse, const char *text, uint64_t expected)
{
	uint64_t value = 0;

	if (parse(text, &value) != KYMO_OK)
		fail_msg("'%s' was refused", text);
	if (value != expected)
		fail_msg("'%s' gave %llu", text, (unsigned long long)value);
}

static void bad(parse_fn *parse, const char *text)
{
	uint64_t value = 4711;

	if (parse(text, &value) != KYMO_E_INVALID)
		fail_msg("'%s' was taken as %llu", text, (unsigned long long)value);
	assert_int_equal(value, 4711);
}

static void test_numbers(void **state)
{
	good(ky_parse_u64, "0", 0);
	good(ky_parse_u64, "0x1f", 31);
	good(ky_parse_u64, "010", 10);
	good(ky_parse_u64, "18446744073709551615", UINT64_MAX);
	bad(ky_parse_u64, "18446744073709551616");
	bad(ky_parse_u64, "");
	bad(ky_parse_u64, " 1");
	bad(ky_parse_u64, "1 ");
	bad(ky_parse_u64, "-1");
	bad(ky_parse_u64, "+1");
	bad(ky_parse_u64, "0x");
	bad(ky_parse_u64, "1k");
}

static void test_sizes(void **state)
{
	good(ky_parse_size, "4096", 4096);
	good(ky_parse_size, "64k", 65536);
	good(ky_parse_size, "8M", 8u << 20);
	good(ky_parse_size, "8MiB", 8u << 20);
	good(ky_parse_size, "1.5G", UINT64_C(3) << 29);
	bad(ky_parse_size, "");
	bad(ky_parse_size, "M");
	bad(ky_parse_size, "-1k");
	bad(ky_parse_size, "5s");
	bad(ky_parse_size, "99999999999999G");
	bad(ky_parse_size, "1e999");
	bad(ky_parse_size, "inf");
}

static void test_durations(void **state)
{
	good(ky_parse_duration, "5", 5000000000);
	good(ky_parse_duration, "1.5s", 1500000000);
	good(ky_parse_duration, "100ms", 100000000);
	good(ky_parse_duration, "20us", 20000);
	good(ky_parse_duration, "7ns", 7);
	good(ky_parse_duration, "2min", 120000000000);
	good(ky_parse_duration, "1h", 3600000000000);
	bad(ky_parse_duration, "");
	bad(ky_parse_duration, "5 s");
	bad(ky_parse_duration, "5x");
	bad(ky_parse_duration, "-5s");
	bad(ky_parse_duration, "nan");
	bad(ky_parse_duration, "9999999h");
}

static void test_globs(void **state)
{
	assert_true(ky_glob_match("sched_*", "sched_switch"));
	assert_true(ky_glob_match("*", ""));
	assert_true(ky_glob_match("a?c", "abc"));
	assert_true(ky_glob_match("*a*b*", "xxaxxbxx"));
	assert_true(ky_glob_match("a\\*", "a*"));
	assert_true(ky_glob_match("**a", "a"));
	assert_false(ky_glob_match("a\\*", "ab"));
	assert_false(ky_glob_match("sched", "sched_switch"));
	assert_false(ky_glob_match("a?c", "ac"));
	assert_false(ky_glob_match("", "a"));
	assert_true(ky_glob_match("", ""));
}

/* A pattern of many stars must not take time exponential in them. */
static void test_glob_takes_no_exponential_time(void **state)
{
	char text[4001], pattern[2002];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < 2000; i += 2)
		memcpy(pattern + i, "*a", 2);
	memcpy(pattern + 2000, "b", 2);
	assert_false(ky_glob_match(pattern, text));
}

static void test_edit_distance(void **state)
{
	char longer[300];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(ky_edit_distance("", ""), 0);
	assert_int_equal(ky_edit_distance("", "abc"), 3);
	assert_int_equal(ky_edit_distance("kitten", "sitting"), 3);
	assert_int_equal(ky_edit_distance("print", "print"), 0);
	assert_true(ky_edit_distance("a", longer) > 100);
	assert_true(ky_edit_distance(longer, "a") > 100);
}

static void test_uuids(void **state)
{
	static const char text[] = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";
	char out[KY_UUID_TEXT_BYTES];
	uint8_t uuid[16];

	assert_true(ky_parse_uuid(text, uuid));
	assert_int_equal(uuid[0], 0x2a);
	assert_int_equal(uuid[15], 0x64);
	assert_string_equal(ky_format_uuid(out, uuid), text);
	assert_true(ky_parse_uuid("2A6422D0-6CEE-11E0-8C08-CB07D7B3A564", uuid));
	assert_string_equal(ky_format_uuid(out, uuid), text);
	assert_false(ky_parse_uuid("", uuid));
	assert_false(ky_parse_uuid("2a6422d0-6cee-11e0-8c08-cb07d7b3a5640", uuid));
	assert_false(ky_parse_uuid("2a6422d0-6cee-11e0-8c08-cb07d7b3a56", uuid));
	assert_false(ky_parse_uuid("2a6422d06cee--11e0-8c08-cb07d7b3a564", uuid));
	assert_false(ky_parse_uuid("2a6422d0-6cee-11e0-8c08-cb07d7b3a56g", uuid));
}

static void test_formats_for_people(void **state)
{
	char out[32];

	assert_string_equal(ky_format_bytes(out, 0), "0 B");
	assert_string_equal(ky_format_bytes(out, 1023), "1023 B");
	assert_string_equal(ky_format_bytes(out, 1536), "1.5 KiB");
	assert_string_equal(ky_format_bytes(out, UINT64_MAX), "16.0 EiB");
	assert_string_equal(ky_format_duration(out, 999), "999 ns");
	assert_string_equal(ky_format_duration(out, 1500), "1.500 us");
	assert_string_equal(ky_format_duration(out, 1250000), "1.250 ms");
	assert_string_equal(ky_format_duration(out, 3000000000), "3.000 s");
	assert_string_equal(ky_format_setting(out, 0), "0s");
	assert_string_equal(ky_format_setting(out, 300000000000), "5min");
	assert_string_equal(ky_format_setting(out, 90000000000), "90s");
	assert_string_equal(ky_format_setting(out, 1500000000), "1500ms");
	assert_string_equal(ky_format_setting(out, 172800000000000), "2d");
	assert_string_equal(ky_format_setting(out, 7), "7ns");
	assert_string_equal(ky_format_setting(out, UINT64_MAX), "18446744073709551615ns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_glob_takes_no_exponential_time),
		cmocka_unit_test(test_edit_distance),
		cmocka_unit_test(test_uuids),
		cmocka_unit_test(test_formats_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
