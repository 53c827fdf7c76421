/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

#include "base/hash.h"

static void *number(uintptr_t value)
{
	return (void *)value;
}

static void test_map_holds_what_was_set(void **state)
{
	struct ky_map map;

	ky_map_init(&map);
	assert_null(ky_map_get(&map, 0));
	for (uint64_t key = 0; key < 10000; key++)
		assert_int_equal(ky_map_set(&map, key * 4096, number(key + 1)), KYMO_OK);
	assert_int_equal(map.len, 10000);
	for (uint64_t key = 0; key < 10000; key++)
		assert_ptr_equal(ky_map_get(&map, key * 4096), number(key + 1));
	assert_null(ky_map_get(&map, 1));
	assert_int_equal(ky_map_set(&map, 4096, number(77)), KYMO_OK);
	assert_int_equal(map.len, 10000);
	assert_ptr_equal(ky_map_get(&map, 4096), number(77));
	ky_map_fini(&map);
}

/* Against a plain array, with keys that collide often. */
static void test_map_against_an_array(void **state)
{
	uintptr_t mirror[64] = {0};
	struct ky_map map;
	unsigned int seed = 1;

	ky_map_init(&map);
	for (int i = 0; i < 100000; i++) {
		unsigned int key = (seed = seed * 1103515245 + 12345) >> 16 & 63;

		if (seed >> 24 & 1) {
			assert_int_equal(ky_map_set(&map, key, number((uintptr_t)i + 1)), 0);
			mirror[key] = (uintptr_t)i + 1;
		} else {
			assert_ptr_equal(ky_map_del(&map, key), number(mirror[key]));
			mirror[key] = 0;
		}
		for (unsigned int k = 0; i % 100 == 0 && k < 64; k++)
			assert_ptr_equal(ky_map_get(&map, k), number(mirror[k]));
	}
	ky_map_fini(&map);
}

static void test_map_iterates_once_over_each(void **state)
{
	struct ky_map map;
	bool seen[100] = {false};
	size_t pos = 0, count = 0;
	uint64_t key;
	void *value;

	ky_map_init(&map);
	assert_false(ky_map_next(&map, &pos, &key, &value));
	for (uint64_t k = 0; k < 100; k++)
		ky_map_set(&map, k, number(k + 1));
	for (pos = 0; ky_map_next(&map, &pos, &key, &value); count++) {
		assert_ptr_equal(value, number(key + 1));
		assert_false(seen[key]);
		seen[key] = true;
	}
	assert_int_equal(count, 100);
	ky_map_fini(&map);
}

static void test_names(void **state)
{
	static char keys[1000][16];
	struct ky_names names;
	size_t pos = 0, count = 0;
	const char *key;
	void *value;

	ky_names_init(&names);
	assert_null(ky_names_get(&names, "nothing"));
	for (uintptr_t i = 0; i < 1000; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key%zu", (size_t)i);
		assert_int_equal(ky_names_set(&names, keys[i], number(i + 1)), KYMO_OK);
	}
	assert_ptr_equal(ky_names_get(&names, "key999"), number(1000));
	assert_ptr_equal(ky_names_getn(&names, "key99xxx", 5), number(100));
	assert_null(ky_names_getn(&names, "key99xxx", 6));
	assert_int_equal(ky_names_set(&names, "key0", number(5)), KYMO_OK);
	assert_ptr_equal(ky_names_get(&names, "key0"), number(5));
	while (ky_names_next(&names, &pos, &key, &value))
		count++;
	assert_int_equal(count, 1000);
	assert_int_equal(ky_names_set(&names, "", number(9)), KYMO_OK);
	assert_ptr_equal(ky_names_get(&names, ""), number(9));
	ky_names_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_holds_what_was_set),
		cmocka_unit_test(test_map_against_an_array),
		cmocka_unit_test(test_map_iterates_once_over_each),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
