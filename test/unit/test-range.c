/* SPDX-License-Identifier: MIT */
/* Times as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "flow/graph/range.h"

#define S INT64_C(1000000000)

/* 2026-11-21 05:30:38.865245630 UTC */
#define BEGIN INT64_C(1795239038865245630)

static void times(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{"1795239038.865245630", BEGIN},
		{"0", 0},
		{"-1.5", -1500000000},
		{"12.000000001", 12 * S + 1},
		{"2026-11-21 05:30:38.865245630", BEGIN},
		{"2026-11-21T05:30:38", BEGIN - 865245630},
		{"2026-11-21 05:30", INT64_C(1795239000) * S},
		{"2026-11-21", INT64_C(1795219200) * S},
		{"1970-01-01", 0},
		{"05:30:38.865245630", BEGIN},
		{"05:30", INT64_C(1795239000) * S},
		{"+2s", BEGIN + 2 * S},
		{"+1.5ms", BEGIN + 1500000},
		{"-500ms", BEGIN + 10 * S - S / 2},
		{"0%", BEGIN},
		{"50%", BEGIN + 5 * S},
		{"100%", BEGIN + 10 * S},
	};
	int64_t ns;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (ky_parse_time(cases[i].text, BEGIN, BEGIN + 10 * S, true, &ns) < 0)
			fail_msg("%s is refused", cases[i].text);
		if (ns != cases[i].ns)
			fail_msg("%s is %lld", cases[i].text, (long long)ns);
	}
}

static void local(void **state)
{
	int64_t ns;

	setenv("TZ", "UTC-2", 1);
	tzset();
	assert_int_equal(ky_parse_time("2026-11-21 07:30:38", BEGIN, BEGIN, false, &ns), 0);
	assert_int_equal(ns, BEGIN - 865245630);
	assert_int_equal(ky_parse_time("07:30:38", BEGIN, BEGIN, false, &ns), 0);
	assert_int_equal(ns, BEGIN - 865245630);
}

static void refused(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		"1.",
		"1.1234567890",
		"12a",
		"25:00",
		"10:61",
		"2026-13-01",
		"2026-11-21x",
		"101%",
		"-1%",
		"+",
		"+5parsec",
		"+-5s",
		"1e5",
		"99999999999999999999",
		"2026-11-21 5:30",
	};
	int64_t ns;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (ky_parse_time(texts[i], BEGIN, BEGIN + S, true, &ns) == 0)
			fail_msg("'%s' is %lld", texts[i], (long long)ns);
	}
	/* Nothing to be relative to. */
	assert_true(ky_parse_time("+1s", INT64_MIN, INT64_MIN, true, &ns) < 0);
	/* Longer than a signed number can say. */
	assert_int_equal(ky_parse_time("100%", INT64_MIN + 1, INT64_MAX, true, &ns), 0);
	assert_int_equal(ns, INT64_MAX);
	assert_int_equal(ky_parse_time("50%", -9000000000000000000, 9000000000000000000, true, &ns),
			 0);
	assert_int_equal(ns, 0);
	assert_true(ky_parse_time("50%", INT64_MIN, INT64_MIN, true, &ns) < 0);
	assert_true(ky_parse_time("10:00", INT64_MIN, INT64_MIN, true, &ns) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(local),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
