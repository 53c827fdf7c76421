/* SPDX-License-Identifier: MIT */
#include "ctf/encode/packet-writer.h"

#include <stddef.h>
#include <stdlib.h>

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
	writer->prolog_bytes = KY_PACKET_PROLOG_BYTES;
	memcpy(writer->uuid, uuid, 16);
	/* The first begin() makes it 0. */
	writer->sequence = UINT64_MAX;
	return KYMO_OK;
}

void ky_packet_writer_without_cpu(struct ky_packet_writer *writer)
{
	/* It is the last member. */
	writer->prolog_bytes = (uint32_t)offsetof(struct ky_packet_prolog, cpu_id);
}

void ky_packet_writer_lend(struct ky_packet_writer *writer, uint8_t *data)
{
	if (!writer->is_lent)
		free(writer->data);
	writer->data = data;
	writer->is_lent = true;
}

void ky_packet_writer_fini(struct ky_packet_writer *writer)
{
	if (!writer->is_lent)
		free(writer->data);
	memset(writer, 0, sizeof(*writer));
}

void ky_packet_writer_begin(struct ky_packet_writer *writer, uint64_t begin_cycles)
{
	writer->used_bytes = writer->prolog_bytes;
	writer->begin_cycles = begin_cycles;
	writer->last_cycles = begin_cycles;
	writer->sequence++;
	writer->events = 0;
	writer->pad_bits = 0;
	writer->open = true;
}

uint32_t ky_packet_writer_close(struct ky_packet_writer *writer, uint64_t end_cycles,
				uint64_t discarded, uint32_t align_bytes)
{
	struct ky_packet_prolog prolog;
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
	prolog = (struct ky_packet_prolog){
		.magic = KY_CTF_MAGIC,
		.stream_class_id = writer->stream_class_id,
		.stream_id = writer->stream_id,
		.begin_cycles = writer->begin_cycles,
		.end_cycles = end_cycles,
		.content_bits = (uint64_t)writer->used_bytes * 8 - writer->pad_bits,
		.packet_bits = size * 8,
		.sequence = writer->sequence,
		.discarded = discarded,
		.cpu_id = writer->cpu_id,
	};
	memcpy(prolog.uuid, writer->uuid, sizeof(prolog.uuid));
	memcpy(data, &prolog, writer->prolog_bytes);
	writer->open = false;
	return (uint32_t)size;
}
