/* SPDX-License-Identifier: MIT */
/*
 * Index files of any bytes. The first byte chooses the size of the stream's file, the second whether
 * it has a clock; the rest is the index. What is accepted must tile the file.
 */
#include <stdint.h>
#include <stdlib.h>

#include "store/read/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ky_packet_list *packets, uint64_t file_bytes)
{
	uint64_t at = 0;

	ky_vec_foreach(packets, entry) {
		if (entry->offset_bytes != at || !entry->packet_bits || entry->packet_bits % 8 ||
		    entry->content_bits > entry->packet_bits ||
		    entry->packet_bits / 8 > file_bytes - at)
			abort();
		at += entry->packet_bits / 8;
	}
	if (at != file_bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_clock_class clock = {.name = "c", .frequency_hz = 2999999999};
	struct ky_stream_class cls = {.id = 0};
	struct ky_stream stream = {.cls = &cls};
	struct ky_packet_list packets = KY_VEC_INIT;
	struct kymo_error err;

	if (size < 2 || ky_clock_finish(&clock, &err) < 0)
		return 0;
	stream.file.size_bytes = (uint64_t)data[0] * 64;
	cls.clock = data[1] & 1 ? &clock : NULL;
	cls.has_id = data[1] & 2;
	if (ky_index_read(data + 2, size - 2, &stream, &packets, &err) == KYMO_OK)
		check(&packets, stream.file.size_bytes);
	ky_vec_fini(&packets);
	return 0;
}
