/* SPDX-License-Identifier: MIT */
/*
 * The packets of user-space tracing. Each sub-buffer of a program's ring begins with a struct
 * ky_packet_prolog. The program fills it when it opens and closes a sub-buffer. A consumer that
 * takes a sub-buffer in parts fills the prologs of the parts with the same functions.
 */
#ifndef KY_ABI_USER_PACKET_H
#define KY_ABI_USER_PACKET_H

#include <string.h>

#include <kymo/ring.h>

#include "abi/packet.h"

/* Fills the prolog of a new packet; @trace_uuid has 16 bytes. */
static inline void ky_user_packet_open(const uint8_t *trace_uuid,
				       const struct kymo_ring_packet *packet, void *header)
{
	struct ky_packet_prolog *prolog = (struct ky_packet_prolog *)header;

	prolog->magic = KY_CTF_MAGIC;
	memcpy(prolog->uuid, trace_uuid, sizeof(prolog->uuid));
	prolog->stream_class_id = 0;
	prolog->stream_id = packet->buffer;
	prolog->begin_cycles = packet->begin_stamp;
	prolog->end_cycles = packet->end_stamp;
	prolog->content_bits = 8 * packet->content_bytes;
	prolog->packet_bits = 8 * packet->subbuf_bytes;
	prolog->sequence = packet->sequence;
	prolog->discarded = packet->lost;
	prolog->cpu_id = packet->buffer;
}

/* Fills the members that are known only at the packet's end. */
static inline void ky_user_packet_close(const struct kymo_ring_packet *packet, void *header)
{
	struct ky_packet_prolog *prolog = (struct ky_packet_prolog *)header;

	prolog->end_cycles = packet->end_stamp;
	prolog->content_bits = 8 * packet->content_bytes;
	prolog->discarded = packet->lost;
}

#endif
