/* SPDX-License-Identifier: MIT */
/* Packets, byte by byte as LTTng lays them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/bits.h"
#include "ctf/encode/packet-writer.h"

#define BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void begin(struct ky_packet_writer *writer, bool compact, uint64_t cycles)
{
	assert_int_equal(ky_packet_writer_init(writer, 256, uuid, 3, 77, 5, compact), 0);
	ky_packet_writer_begin(writer, cycles);
}

static void prolog(void **state)
{
	struct ky_packet_writer writer;
	uint8_t *body;

	begin(&writer, false, 1000);
	body = ky_packet_writer_event(&writer, 9, 1010, 3);
	memcpy(body, "abc", 3);
	assert_int_equal(ky_packet_writer_close(&writer, 1020, 12, 64), 128);
	assert_int_equal(ky_load32(writer.data, BIG), 0xC1FC1FC1);
	assert_memory_equal(writer.data + 4, uuid, 16);
	assert_int_equal(ky_load32(writer.data + 20, BIG), 3);
	assert_int_equal(ky_load64(writer.data + 24, BIG), 77);
	assert_int_equal(ky_load64(writer.data + 32, BIG), 1000);
	assert_int_equal(ky_load64(writer.data + 40, BIG), 1020);
	assert_int_equal(ky_load64(writer.data + 48, BIG), (84 + 6 + 3) * 8);
	assert_int_equal(ky_load64(writer.data + 56, BIG), 128 * 8);
	assert_int_equal(ky_load64(writer.data + 64, BIG), 0);
	assert_int_equal(ky_load64(writer.data + 72, BIG), 12);
	assert_int_equal(ky_load32(writer.data + 80, BIG), 5);
	assert_int_equal(ky_load16(writer.data + 84, BIG), 9);
	assert_int_equal(ky_load32(writer.data + 86, BIG), 1010);
	assert_memory_equal(writer.data + 90, "abc", 3);
	for (int i = 93; i < 128; i++)
		assert_int_equal(writer.data[i], 0);
	ky_packet_writer_fini(&writer);
}

/* A time that the short header cannot carry takes the long one. */
static void large_header(void **state)
{
	struct ky_packet_writer writer;
	uint8_t *at;

	begin(&writer, false, 0);
	at = ky_packet_writer_event(&writer, 1, (UINT64_C(1) << 32) - 1, 0);
	assert_ptr_equal(at, writer.data + 84 + 6);
	at = ky_packet_writer_event(&writer, 2, UINT64_C(1) << 33, 0);
	assert_ptr_equal(at, writer.data + 90 + 14);
	assert_int_equal(ky_load16(writer.data + 90, BIG), 0xffff);
	assert_int_equal(ky_load32(writer.data + 92, BIG), 2);
	assert_int_equal(ky_load64(writer.data + 96, BIG), UINT64_C(1) << 33);
	/* Ids that the short header keeps for itself, and time that goes back. */
	at = ky_packet_writer_event(&writer, 0xffff, (UINT64_C(1) << 33) + 1, 0);
	assert_ptr_equal(at, writer.data + 104 + 14);
	at = ky_packet_writer_event(&writer, 3, UINT64_C(1) << 33, 0);
	assert_ptr_equal(at, writer.data + 118 + 14);
	assert_int_equal(writer.events, 4);
	ky_packet_writer_fini(&writer);
}

static void compact_header(void **state)
{
	struct ky_packet_writer writer;
	uint8_t *at;

	begin(&writer, true, 100);
	at = ky_packet_writer_event(&writer, 30, 101, 0);
	assert_ptr_equal(at, writer.data + 84 + 4);
	assert_int_equal(ky_read_bits(writer.data, 84 * 8, 5, BIG), 30);
	assert_int_equal(ky_read_bits(writer.data, 84 * 8 + 5, 27, BIG), 101);
	at = ky_packet_writer_event(&writer, 31, 102, 0);
	assert_ptr_equal(at, writer.data + 88 + 13);
	assert_int_equal(writer.data[88] & 31, 31);
	assert_int_equal(ky_load32(writer.data + 89, BIG), 31);
	assert_int_equal(ky_load64(writer.data + 93, BIG), 102);
	at = ky_packet_writer_event(&writer, 1, 102 + (UINT64_C(1) << 27), 0);
	assert_ptr_equal(at, writer.data + 101 + 13);
	ky_packet_writer_fini(&writer);
}

static void room(void **state)
{
	struct ky_packet_writer writer;

	begin(&writer, false, 0);
	assert_null(ky_packet_writer_event(&writer, 1, 1, 256 - 84 - 14 + 1));
	assert_null(ky_packet_writer_event(&writer, 1, 1, UINT32_MAX));
	assert_non_null(ky_packet_writer_event(&writer, 1, 1, 256 - 84 - 14));
	assert_null(ky_packet_writer_event(&writer, 1, 1, 0));
	assert_int_equal(ky_packet_writer_close(&writer, 1, 0, 4096), 256);
	ky_packet_writer_fini(&writer);
}

static void sequence(void **state)
{
	struct ky_packet_writer writer;

	begin(&writer, false, 10);
	assert_non_null(ky_packet_writer_event(&writer, 1, 50, 0));
	/* The end never lies before the last event. */
	ky_packet_writer_close(&writer, 40, 0, 8);
	assert_int_equal(ky_load64(writer.data + 40, BIG), 50);
	assert_int_equal(writer.sequence, 0);
	ky_packet_writer_begin(&writer, 60);
	assert_int_equal(ky_packet_writer_close(&writer, 60, 0, 8), 88);
	assert_int_equal(ky_load64(writer.data + 64, BIG), 1);
	assert_int_equal(ky_load64(writer.data + 48, BIG), 84 * 8);
	ky_packet_writer_fini(&writer);
}

static void refused_sizes(void **state)
{
	struct ky_packet_writer writer;

	assert_int_equal(ky_packet_writer_init(&writer, 4097, uuid, 0, 0, 0, false),
			 KYMO_E_INVALID);
	assert_int_equal(ky_packet_writer_init(&writer, 64, uuid, 0, 0, 0, false), KYMO_E_INVALID);
	ky_packet_writer_fini(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prolog),   cmocka_unit_test(large_header),
		cmocka_unit_test(room),	    cmocka_unit_test(compact_header),
		cmocka_unit_test(sequence), cmocka_unit_test(refused_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
