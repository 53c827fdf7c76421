/* SPDX-License-Identifier: MIT */
/* Eight bytes at a time, against the same a byte at a time. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/word.h"

/* Every place of the NUL in texts of every length, which end where the memory does; and none. */
static void test_ends(void **state)
{
	for (size_t len = 0; len <= 40; len++) {
		char *text = malloc(len + 1);

		assert_non_null(text);
		for (size_t nul = 0; nul <= len; nul++) {
			memset(text, 0x80, len);
			if (nul < len)
				text[nul] = '\0';
			if (nul + 3 < len)
				text[nul + 3] = '\0'; /* a later one */
			if (nul + 1 < len)
				text[nul + 1] = 1; /* looks like one, after a subtraction */
			assert_ptr_equal(ky_word_find_nul(text, len), memchr(text, 0, len));
		}
		free(text);
	}
}

static bool is_special(uint8_t c)
{
	return c < 0x20 || c >= 0x7f || c == '"' || c == '\'' || c == '?' || c == '\\';
}

/* Every byte at every place, between two others. */
static void test_special_bytes(void **state)
{
	static const uint8_t others[] = {' ', '!', '#', '@', ']', '[', '~'};

	for (unsigned int c = 0; c < 256; c++)
		for (unsigned int place = 0; place < 8; place++)
			for (size_t i = 0; i < sizeof(others); i++) {
				uint8_t bytes[8];

				memset(bytes, others[i], sizeof(bytes));
				bytes[place] = (uint8_t)c;
				assert_int_equal(ky_word_is_special(ky_load64(bytes, false)),
						 is_special((uint8_t)c));
			}
}

/* Every number of digits, against printf; nothing is written behind them. */
static void test_digits(void **state)
{
	char got[32], expected[32];

	for (uint64_t value = UINT64_C(0xfedcba9876543210), n = 0; n < 64; n++) {
		value = value << 1 | value >> 63;
		for (unsigned int digits = 1; digits <= 16; digits++) {
			memset(got, '.', sizeof(got));
			assert_ptr_equal(ky_word_put_hex(got, value, digits, false), got + digits);
			assert_int_equal(got[digits], '.');
			got[digits] = '\0';
			snprintf(expected, sizeof(expected), "%016" PRIx64, value);
			assert_string_equal(got, expected + 16 - digits);
			*ky_word_put_hex(got, value, digits, true) = '\0';
			snprintf(expected, sizeof(expected), "%016" PRIX64, value);
			assert_string_equal(got, expected + 16 - digits);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_special_bytes),
		cmocka_unit_test(test_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
