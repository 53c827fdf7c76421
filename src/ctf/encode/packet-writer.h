/* SPDX-License-Identifier: MIT */
/*
 * Builds the packets of one data stream in LTTng's layout:
 * header {magic, uuid, stream_id, stream_instance_id}, context {timestamp_begin, timestamp_end,
 * content_size, packet_size, packet_seq_num, events_discarded, cpu_id}, and events whose header
 * is `struct event_header_large` (u16 id + u32 timestamp; 0xffff + u32 id + u64 timestamp) or
 * `struct event_header_compact` (5-bit id + 27-bit timestamp; 31 + u32 id + u64 timestamp).
 * Native byte order, everything aligned to 8 bits.
 *
 * Use: reserve, store the record, commit; when reserve says there is no room, close the
 * packet, send it, begin the next one.
 * Threads: one at a time per writer.
 */
#ifndef KY_CTF_ENCODE_PACKET_WRITER_H
#define KY_CTF_ENCODE_PACKET_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <kymo/error.h>

#include "abi/packet.h"

struct ky_packet_writer {
	uint8_t *data;
	uint32_t size_bytes; /* capacity */
	uint32_t used_bytes;
	bool compact_header;
	bool open;
	bool is_lent;	  /* the buffer is somebody else's */
	uint8_t pad_bits; /* of the last byte that are no content; set by those who write bits */
	uint64_t begin_cycles, last_cycles;
	uint64_t sequence; /* of the packet being built */
	uint64_t events;   /* in this packet */
	uint32_t stream_class_id, cpu_id;
	uint32_t prolog_bytes;
	uint64_t stream_id;
	uint8_t uuid[16];
};

/* @size_bytes: of a packet, a multiple of 8. Allocates the buffer. */
int ky_packet_writer_init(struct ky_packet_writer *writer, uint32_t size_bytes,
			  const uint8_t uuid[16], uint32_t stream_class_id, uint64_t stream_id,
			  uint32_t cpu_id, bool compact_header);
void ky_packet_writer_fini(struct ky_packet_writer *writer);
/* The packets have no cpu_id: ky_lttng_layout_without_cpu(). Before the first packet. */
void ky_packet_writer_without_cpu(struct ky_packet_writer *writer);
/* The next packets are built in @data, of size_bytes, which stays the caller's; between close and begin. */
void ky_packet_writer_lend(struct ky_packet_writer *writer, uint8_t *data);

void ky_packet_writer_begin(struct ky_packet_writer *writer, uint64_t begin_cycles);

/*
 * Write an event's header and make room for @body_bytes behind it.
 * Returns where the body goes, or NULL when the packet has no room for it.
 */
static inline uint8_t *ky_packet_writer_event(struct ky_packet_writer *writer, uint32_t id,
					      uint64_t cycles, uint32_t body_bytes)
{
	uint8_t *at = writer->data + writer->used_bytes;
	uint32_t room = writer->size_bytes - writer->used_bytes;
	uint64_t delta = cycles - writer->last_cycles;

	if (room < KY_EVENT_HEADER_MAX_BYTES || room - KY_EVENT_HEADER_MAX_BYTES < body_bytes)
		return NULL;
	if (writer->compact_header) {
		if (id < 31 && delta < (UINT64_C(1) << 27)) {
			uint32_t word = id | (uint32_t)cycles << 5;

			memcpy(at, &word, 4);
			at += 4;
		} else {
			*at++ = 31;
			memcpy(at, &id, 4);
			memcpy(at + 4, &cycles, 8);
			at += 12;
		}
	} else if (id < 0xffff && delta < (UINT64_C(1) << 32)) {
		uint16_t id16 = (uint16_t)id;
		uint32_t low = (uint32_t)cycles;

		memcpy(at, &id16, 2);
		memcpy(at + 2, &low, 4);
		at += 6;
	} else {
		memset(at, 0xff, 2);
		memcpy(at + 2, &id, 4);
		memcpy(at + 6, &cycles, 8);
		at += 14;
	}
	writer->last_cycles = cycles;
	writer->used_bytes = (uint32_t)(at - writer->data) + body_bytes;
	writer->events++;
	return at;
}

/*
 * Finish the packet: fills header and context, clears the padding up to a multiple of
 * @align_bytes (a power of two <= capacity).
 * Returns the packet's size in bytes; content_bits is used_bytes * 8.
 */
uint32_t ky_packet_writer_close(struct ky_packet_writer *writer, uint64_t end_cycles,
				uint64_t discarded, uint32_t align_bytes);

#endif
