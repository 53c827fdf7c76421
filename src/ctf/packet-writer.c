/* SPDX-License-Identifier: MIT */
#include "ctf/packet-writer.h"

#include <stdlib.h>

/*
 * Where things lie in the prolog: what the header's comment says, and what
 * ky_lttng_packet_header() and _context() describe in the metadata.
 */
enum {
	AT_MAGIC = 0,
	AT_UUID = 4,
	AT_STREAM_CLASS_ID = 20,
	AT_STREAM_ID = 24,
	AT_BEGIN = 32,
	AT_END = 40,
	AT_CONTENT_BITS = 48,
	AT_PACKET_BITS = 56,
	AT_SEQUENCE = 64,
	AT_DISCARDED = 72,
	AT_CPU_ID = 80,
	PROLOG_END = 84,
};

_Static_assert(PROLOG_END == KY_PACKET_PROLOG_BYTES, "prolog layout");

int ky_packet_writer_init(struct ky_packet_writer *writer, uint32_t size_bytes,
			  const uint8_t uuid[16], uint32_t stream_class_id, uint64_t stream_id,
			  uint32_t cpu_id, bool compact_header)
{
	memset(writer, 0, sizeof(*writer));
	if (size_bytes % 8 || size_bytes < KY_PACKET_PROLOG_BYTES + KY_EVENT_HEADER_MAX_BYTES)
		return KYMO_E_INVALID;
	writer->data = calloc(1, size_bytes);
	if (!writer->data)
		return KYMO_E_MEMORY;
	writer->size_bytes = size_bytes;
	writer->compact_header = compact_header;
	writer->stream_class_id = stream_class_id;
	writer->stream_id = stream_id;
	writer->cpu_id = cpu_id;
	memcpy(writer->uuid, uuid, 16);
	/* The first begin() makes it 0. */
	writer->sequence = UINT64_MAX;
	return KYMO_OK;
}

void ky_packet_writer_fini(struct ky_packet_writer *writer)
{
	free(writer->data);
	memset(writer, 0, sizeof(*writer));
}

void ky_packet_writer_begin(struct ky_packet_writer *writer, uint64_t begin_cycles)
{
	writer->used_bytes = KY_PACKET_PROLOG_BYTES;
	writer->begin_cycles = begin_cycles;
	writer->last_cycles = begin_cycles;
	writer->sequence++;
	writer->events = 0;
	writer->open = true;
}

static void put32(uint8_t *data, size_t at, uint32_t value)
{
	memcpy(data + at, &value, sizeof(value));
}

static void put64(uint8_t *data, size_t at, uint64_t value)
{
	memcpy(data + at, &value, sizeof(value));
}

uint32_t ky_packet_writer_close(struct ky_packet_writer *writer, uint64_t end_cycles,
				uint64_t discarded, uint32_t align_bytes)
{
	uint8_t *data = writer->data;
	uint64_t size =
		((uint64_t)writer->used_bytes + align_bytes - 1) & ~((uint64_t)align_bytes - 1);

	/* An alignment that the capacity is no multiple of must not write past its end. */
	if (size > writer->size_bytes)
		size = writer->size_bytes;
	memset(data + writer->used_bytes, 0, size - writer->used_bytes);
	/* Readers refuse packets that end before their last event. */
	if (end_cycles < writer->last_cycles)
		end_cycles = writer->last_cycles;
	writer->last_cycles = end_cycles;
	put32(data, AT_MAGIC, KY_LTTNG_MAGIC);
	memcpy(data + AT_UUID, writer->uuid, 16);
	put32(data, AT_STREAM_CLASS_ID, writer->stream_class_id);
	put64(data, AT_STREAM_ID, writer->stream_id);
	put64(data, AT_BEGIN, writer->begin_cycles);
	put64(data, AT_END, end_cycles);
	put64(data, AT_CONTENT_BITS, (uint64_t)writer->used_bytes * 8);
	put64(data, AT_PACKET_BITS, size * 8);
	put64(data, AT_SEQUENCE, writer->sequence);
	put64(data, AT_DISCARDED, discarded);
	put32(data, AT_CPU_ID, writer->cpu_id);
	writer->open = false;
	return (uint32_t)size;
}
