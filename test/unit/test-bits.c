/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/bits.h"

static const uint8_t bytes[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x0f, 0x1e};

static void test_whole_bytes(void **state)
{
	assert_int_equal(ky_read_bits(bytes, 0, 8, false), 0x12);
	assert_int_equal(ky_read_bits(bytes, 8, 16, false), 0x5634);
	assert_int_equal(ky_read_bits(bytes, 8, 16, true), 0x3456);
	assert_int_equal(ky_read_bits(bytes, 0, 32, true), 0x12345678);
	assert_true(ky_read_bits(bytes, 0, 64, true) == UINT64_C(0x123456789abcdef0));
	assert_true(ky_read_bits(bytes, 0, 64, false) == UINT64_C(0xf0debc9a78563412));
}

static void test_fields_across_bytes(void **state)
{
	/* Little-endian: bits count from the least significant; big-endian: from the most. */
	assert_int_equal(ky_read_bits(bytes, 4, 8, false), 0x41);
	assert_int_equal(ky_read_bits(bytes, 4, 8, true), 0x23);
	assert_int_equal(ky_read_bits(bytes, 0, 4, false), 0x2);
	assert_int_equal(ky_read_bits(bytes, 0, 4, true), 0x1);
	assert_true(ky_read_bits(bytes, 4, 64, true) == UINT64_C(0x23456789abcdef00));
}

static void test_fast_and_slow_ways_agree(void **state)
{
	for (uint64_t at = 0; at < 16; at += 8) {
		for (unsigned int bits = 8; bits <= 64; bits *= 2) {
			for (int big = 0; big < 2; big++)
				assert_true(ky_read_bits(bytes, at, bits, big) ==
					    ky_read_bits_slow(bytes, at, bits, big));
		}
	}
}

/* What is written is read back, and the bits around it are as they were. */
static void test_write_then_read(void **state)
{
	const uint64_t value = UINT64_C(0xa5c3f00f96695a3c);

	for (unsigned int at = 0; at < 16; at++) {
		for (unsigned int bits = 1; bits <= 64; bits++) {
			for (int i = 0; i < 4; i++) {
				uint8_t data[12], fill = i & 2 ? 0xff : 0;
				bool big = i & 1;

				memset(data, fill, sizeof(data));
				ky_write_bits(data, at, bits, value, big);
				assert_true(ky_read_bits(data, at, bits, big) ==
					    (value & ky_mask_bits(bits)));
				ky_write_bits(data, at, bits, fill ? UINT64_MAX : 0, big);
				for (size_t k = 0; k < sizeof(data); k++)
					assert_int_equal(data[k], fill);
			}
		}
	}
}

static void test_helpers(void **state)
{
	assert_true(ky_mask_bits(64) == UINT64_MAX);
	assert_true(ky_mask_bits(1) == 1);
	assert_true(ky_sign_extend(0xf, 4) == -1);
	assert_true(ky_sign_extend(0x7, 4) == 7);
	assert_true(ky_sign_extend(UINT64_MAX, 64) == -1);
	assert_true(ky_align_up(13, 8) == 16);
	assert_true(ky_align_up(16, 8) == 16);
	assert_true(ky_align_up(13, 1) == 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_bytes),
		cmocka_unit_test(test_fields_across_bytes),
		cmocka_unit_test(test_fast_and_slow_ways_agree),
		cmocka_unit_test(test_write_then_read),
		cmocka_unit_test(test_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
