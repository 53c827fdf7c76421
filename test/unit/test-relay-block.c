/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "net/files/relay-block.h"

#define MOST (KY_RELAY_BLOCK_BYTES + 16384)

/* Where the file ends when @came_bytes of the connection have come, byte by byte. */
static uint64_t end_after(const struct ky_relay_place *place, uint64_t came_bytes)
{
	uint64_t end = place->offset_bytes, at = 0;

	for (uint64_t i = 0; i < came_bytes; i++) {
		end += at >= place->head_bytes;
		at = at + 1 == place->head_bytes + place->data_bytes ? 0 : at + 1;
	}
	return end;
}

/* The most bytes whose end is one of a block, or all when no block ends there. */
static size_t expected(const struct ky_relay_place *place, uint64_t came_bytes)
{
	uint64_t end = end_after(place, came_bytes), at = came_bytes;
	size_t best = 0;

	at %= place->head_bytes + place->data_bytes;
	for (size_t i = 1; i <= MOST; i++) {
		if (at >= place->head_bytes && ++end % KY_RELAY_BLOCK_BYTES == 0)
			best = i;
		at = at + 1 == place->head_bytes + place->data_bytes ? 0 : at + 1;
	}
	return best ? best : MOST;
}

static void test_blocks(void **state)
{
	static const uint64_t sizes[] = {1, 13, 4000, 4096, 131035, 131072, 262144, 1 << 20},
			      offsets[] = {0, 37, 131072, KY_RELAY_BLOCK_BYTES - 1,
					   (UINT64_C(1) << 40) + 5};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++)
			for (uint64_t came = 0; came < 120 + sizes[i]; came += 60 + sizes[i] / 3) {
				const struct ky_relay_place place = {offsets[k], 120, sizes[i]};

				assert_int_equal(ky_relay_block_bytes(&place, came, MOST),
						 expected(&place, came));
			}
}

/* Reads that follow each other end at each block. */
static void test_reads(void **state)
{
	const struct ky_relay_place place = {0, 120, 131035};
	uint64_t came = 0;

	(void)state;
	for (int i = 1; i <= 8; i++) {
		came += ky_relay_block_bytes(&place, came, MOST);
		assert_int_equal(end_after(&place, came), i * (uint64_t)KY_RELAY_BLOCK_BYTES);
	}
}

static void test_no_packet(void **state)
{
	const struct ky_relay_place place = {0};

	(void)state;
	assert_int_equal(ky_relay_block_bytes(&place, 0, MOST), MOST);
	assert_int_equal(ky_relay_block_bytes(&place, 24, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_no_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
