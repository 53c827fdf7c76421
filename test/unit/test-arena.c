/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

static void test_memory_is_zeroed_and_aligned(void **state)
{
	struct ky_arena arena;

	ky_arena_init(&arena);
	for (size_t size = 0; size < 200; size++) {
		unsigned char *data = ky_arena_alloc(&arena, size);

		assert_non_null(data);
		assert_int_equal((uintptr_t)data % 16, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(data[i], 0);
		memset(data, 0xff, size);
	}
	ky_arena_fini(&arena);
}

static void test_addresses_stay(void **state)
{
	struct ky_arena arena;
	char *texts[5000];

	ky_arena_init(&arena);
	for (int i = 0; i < 5000; i++)
		texts[i] = ky_arena_printf(&arena, "text %d", i);
	for (int i = 0; i < 5000; i++) {
		char expected[32];

		snprintf(expected, sizeof(expected), "text %d", i);
		assert_string_equal(texts[i], expected);
	}
	ky_arena_fini(&arena);
}

static void test_large_and_small_mix(void **state)
{
	struct ky_arena arena;
	char *small, *large;

	ky_arena_init(&arena);
	small = ky_arena_alloc(&arena, 8);
	large = ky_arena_alloc(&arena, 1 << 20);
	memset(large, 1, 1 << 20);
	assert_int_equal(small[0], 0);
	small = ky_arena_alloc(&arena, 8);
	assert_non_null(small);
	assert_int_equal(small[0], 0);
	ky_arena_fini(&arena);
}

static void test_impossible_sizes(void **state)
{
	struct ky_arena arena;

	ky_arena_init(&arena);
	assert_null(ky_arena_alloc(&arena, SIZE_MAX));
	assert_null(ky_arena_alloc(&arena, SIZE_MAX - 8));
	assert_null(ky_arena_array(&arena, SIZE_MAX / 4, 8));
	assert_non_null(ky_arena_array(&arena, 0, 8));
	assert_non_null(ky_arena_array(&arena, 8, 0));
	ky_arena_fini(&arena);
	ky_arena_fini(&arena);
}

static void test_copies(void **state)
{
	struct ky_arena arena;
	char source[] = "abcdef";
	char *copy;

	ky_arena_init(&arena);
	copy = ky_arena_strndup(&arena, source, 3);
	assert_string_equal(copy, "abc");
	copy = ky_arena_strdup(&arena, source);
	source[0] = 'x';
	assert_string_equal(copy, "abcdef");
	assert_memory_equal(ky_arena_memdup(&arena, source, 7), "xbcdef", 7);
	ky_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_zeroed_and_aligned),
		cmocka_unit_test(test_addresses_stay),
		cmocka_unit_test(test_large_and_small_mix),
		cmocka_unit_test(test_impossible_sizes),
		cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
