/* SPDX-License-Identifier: MIT */
/*
 * Writing a packet index (see index.h): its head, and the record of one packet, as they are in the
 * file.
 */
#ifndef KY_STORE_INDEX_RECORD_H
#define KY_STORE_INDEX_RECORD_H

#include <endian.h>
#include <stdint.h>

#include "store/read/index.h"
#include "store/packets/packet-store.h"

/* Big-endian, both. */
struct ky_index_head {
	uint32_t magic, major, minor, record_bytes;
};

/* Offset in bytes, sizes in bits. */
struct ky_index_record {
	uint64_t offset_bytes, packet_bits, content_bits;
	uint64_t begin_cycles, end_cycles, discarded;
	uint64_t stream_class_id, stream_id, sequence;
};

static inline struct ky_index_head ky_index_head(void)
{
	return (struct ky_index_head){htobe32(KY_INDEX_MAGIC), htobe32(1), htobe32(1),
				      htobe32(KY_INDEX_ENTRY_1_1)};
}

/* @offset_bytes: where the packet is in the stream's file. */
static inline struct ky_index_record ky_index_record(const struct ky_packet_out *packet,
						     uint64_t offset_bytes)
{
	return (struct ky_index_record){
		.offset_bytes = htobe64(offset_bytes),
		.packet_bits = htobe64((uint64_t)packet->size_bytes * 8),
		.content_bits = htobe64(packet->content_bits),
		.begin_cycles = htobe64(packet->begin_cycles),
		.end_cycles = htobe64(packet->end_cycles),
		.discarded = htobe64(packet->discarded),
		.stream_class_id = htobe64(packet->stream_class_id),
		.stream_id = htobe64(packet->stream_id),
		.sequence = htobe64(packet->sequence),
	};
}

#endif
