/* SPDX-License-Identifier: MIT */
/*
 * The head of every packet of Kymo: LTTng's packet header and context. All producers of packets
 * (the kernel recorder, and traced programs in shared memory) write this layout, and the metadata
 * of ctf/resolve/lttng-layout.c describes it.
 *
 * Native byte order; no padding: every field is aligned to one byte.
 */
#ifndef KY_ABI_PACKET_H
#define KY_ABI_PACKET_H

#include <stdint.h>

/* First four bytes of a packet that has a magic number, in the trace's byte order. */
#define KY_CTF_MAGIC 0xC1FC1FC1u

struct __attribute__((packed)) ky_packet_prolog {
	uint32_t magic;
	uint8_t uuid[16]; /* the trace's */
	uint32_t stream_class_id;
	uint64_t stream_id; /* instance */
	uint64_t begin_cycles;
	uint64_t end_cycles;   /* never before the last event */
	uint64_t content_bits; /* of header, context and events */
	uint64_t packet_bits;  /* padding included */
	uint64_t sequence;     /* counts the stream's packets from 0 */
	uint64_t discarded;    /* events lost on this stream so far */
	uint32_t cpu_id;
};

#define KY_PACKET_PROLOG_BYTES ((uint32_t)sizeof(struct ky_packet_prolog))

/* The longest event header: u16 0xffff, u32 id, u64 timestamp. */
#define KY_EVENT_HEADER_MAX_BYTES 14

#endif
