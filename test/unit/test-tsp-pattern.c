/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "view/tsp/tsp-pattern.h"

static bool finds(const char *pattern, const char *text)
{
	struct ky_tsp_pattern *made;
	bool is_found;

	assert_int_equal(ky_tsp_pattern_new(pattern, &made, NULL), KYMO_OK);
	is_found = ky_tsp_pattern_finds(made, text, strlen(text));
	/* A pattern has no memory of texts before. */
	assert_int_equal(ky_tsp_pattern_finds(made, text, strlen(text)), is_found);
	ky_tsp_pattern_free(made);
	return is_found;
}

static void test_matches(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool is_found;
	} cases[] = {
		{"", "", true},
		{"", "x", true},
		{"switch", "sched_switch", true},
		{"switch", "sched_swit", false},
		{"^sched", "sched_switch", true},
		{"^switch", "sched_switch", false},
		{"switch$", "sched_switch", true},
		{"sched$", "sched_switch", false},
		{"^$", "", true},
		{"^$", "x", false},
		{"a.c", "xabcx", true},
		{"a.c", "ac", false},
		{"ab*c", "ac", true},
		{"ab*c", "abbbc", true},
		{"ab+c", "ac", false},
		{"ab+c", "abbc", true},
		{"^ab?c$", "abbc", false},
		{"^ab?c$", "abc", true},
		{"^a*?$", "aaa", true},
		{"^(ab)+$", "ababab", true},
		{"^(ab)+$", "ababa", false},
		{"^(?:ab|cd)*$", "abcdab", true},
		{"^(?:ab|cd)*$", "abcdb", false},
		{"^a|b$", "axx", true},
		{"^a|b$", "xxb", true},
		{"^a|b$", "xax", false},
		{"^(a|b|c|)x$", "cx", true},
		{"^(a|b|c|)x$", "x", true},
		{"^(a|b|c|)x$", "dx", false},
		{"[a-c]", "xbx", true},
		{"[^a-c]", "abc", false},
		{"[]x]", "]", true},
		{"[a-]", "-", true},
		{"[\\d_]+$", "x_1", true},
		{"\\d\\d", "a1b22", true},
		{"\\d\\d", "a1b2", false},
		{"^\\w+\\s\\w+$", "one two", true},
		{"\\S", " \t\n", false},
		{"\\D", "123", false},
		{"\\.", "abc", false},
		{"\\(x\\)", "f(x)", true},
		{"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
		{"(a|a)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", true},
		{"(x*)*$", "y", true},
		{"\xc3\xa4+", "\xc3\xa4", true},
		{"((((((a))))))", "a", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (finds(cases[i].pattern, cases[i].text) != cases[i].is_found)
			fail_msg("'%s' in '%s'", cases[i].pattern, cases[i].text);
	}
}

static void test_malformed(void **state)
{
	static const char *const wrong[] = {"(",     ")",   "(a",    "a)",   "[",   "[a",
					    "[b-a]", "*",   "+a",    "a{2}", "\\",  "\\q",
					    "\\1",   "[\\", "(?=a)", "a|*",  "(*)", "(?<n>a)"};
	struct ky_tsp_pattern *pattern;
	struct kymo_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		if (ky_tsp_pattern_new(wrong[i], &pattern, &err) != KYMO_E_INVALID)
			fail_msg("'%s' is taken", wrong[i]);
	}
}

/* Longer than the automaton, and deeper than the parser. */
static void test_limits(void **state)
{
	char text[4096];
	struct ky_tsp_pattern *pattern;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[1000] = '\0';
	assert_int_equal(ky_tsp_pattern_new(text, &pattern, NULL), KYMO_OK);
	assert_true(ky_tsp_pattern_finds(pattern, text, 1000));
	assert_false(ky_tsp_pattern_finds(pattern, text, 999));
	ky_tsp_pattern_free(pattern);
	text[1000] = 'a';
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(ky_tsp_pattern_new(text, &pattern, NULL), KYMO_E_INVALID);
	memset(text, '(', 2000);
	memset(text + 2000, ')', 2000);
	text[4000] = '\0';
	assert_int_equal(ky_tsp_pattern_new(text, &pattern, NULL), KYMO_E_INVALID);
	for (size_t i = 0; i < 200; i++)
		memcpy(text + 3 * i, "[x]", 3);
	text[600] = '\0';
	assert_int_equal(ky_tsp_pattern_new(text, &pattern, NULL), KYMO_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
