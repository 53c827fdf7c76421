/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <string.h>

#include "base/foreign.h"

static void shows_bytes(const char *text, size_t len, const char *expected)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_foreign_add(&out, text, len);
	assert_string_equal(ky_strbuf_text(&out), expected);
	ky_strbuf_fini(&out);
}

static void shows(const char *text, const char *expected)
{
	shows_bytes(text, strlen(text), expected);
}

static void same(const char *text)
{
	shows(text, text);
	assert_int_equal(ky_foreign_plain(text, strlen(text)), strlen(text));
}

static void test_what_stays(void **state)
{
	same("");
	same("sched_switch");
	same("a path/with blanks, \\ and ~ and \"quotes\" of more than eight bytes");
	same("\u00e9t\u00e9, \u20ac, \U0001f40c: valid UTF-8 of two to four bytes");
	same("\u00a0\u2027\u202f\u2065\u206a: right beside what is escaped");
}

static void test_what_is_escaped(void **state)
{
	shows("\033[31mred", "\\x1b[31mred");
	shows("a\nb\tc\177", "a\\x0ab\\x09c\\x7f");
	shows("\xc2\x80\xc2\x9b"
	      "31m\xc2\x9f",
	      "\\u0080\\u009b31m\\u009f");
	shows("\u202a\u202e\u2066\u2069", "\\u202a\\u202e\\u2066\\u2069");
	shows("\u2028\u2029", "\\u2028\\u2029");
	shows_bytes("a\0b", 3, "a\\x00b");
}

static void test_what_is_no_utf8(void **state)
{
	shows("\xff", "\\xff");
	shows("\x9b"
	      "31m",
	      "\\x9b31m");
	shows("caf\xe9", "caf\\xe9");
	shows("\xc3(", "\\xc3(");
	/* Overlong, a surrogate, and beyond the last character. */
	shows("\xc0\x9b", "\\xc0\\x9b");
	shows("\xed\xa0\x80", "\\xed\\xa0\\x80");
	shows("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	/* A character that is cut. */
	shows_bytes("ab\xe2\x82\xac", 4, "ab\\xe2\\x82");
}

/* Words of eight bytes are looked at as one: each byte, at each place of one. */
static void test_each_byte_at_each_place(void **state)
{
	for (unsigned int byte = 1; byte < 256; byte++) {
		for (size_t place = 0; place < 24; place++) {
			bool plain = byte >= 0x20 && byte < 0x7f;
			char text[25], escape[KY_FOREIGN_ESCAPE_BYTES];

			memset(text, 'x', 24);
			text[24] = '\0';
			text[place] = (char)byte;
			assert_int_equal(ky_foreign_plain(text, 24), plain ? 24 : place);
			assert_int_equal(ky_foreign_next(text + place, 24 - place, escape), 1);
			assert_int_equal(escape[0], plain ? '\0' : '\\');
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_stays),
		cmocka_unit_test(test_what_is_escaped),
		cmocka_unit_test(test_what_is_no_utf8),
		cmocka_unit_test(test_each_byte_at_each_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
