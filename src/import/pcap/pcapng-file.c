/* SPDX-License-Identifier: MIT */
/*
 * Blocks of pcapng. libpcap ends at the second kind of link, at interfaces that cut packets differently, and at a section of the other byte
 * order: what `tshark -i any -i eth0` and joined files have.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "import/common/foreign-file.h"
#include "import/pcap/packet-file.h"

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define NS_PER_S	 1000000000
#define INTERFACES_MAX	 65536u /* of a section; each one takes memory */

/* Type and length; and the length again, at a block's end. */
enum { HEAD_BYTES = 8, TAIL_BYTES = 4 };

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET_OLD = 2,
	BLOCK_PACKET_SIMPLE = 3,
	BLOCK_PACKET = 6,
	BLOCK_SECTION = 0x0a0d0d0a,
};

enum {
	OPTION_END = 0,
	OPTION_RESOLUTION = 9,
	OPTION_OFFSET = 14,
};

struct pcapng_interface {
	int64_t offset_s;
	uint32_t snap_bytes; /* 0: no limit */
	uint16_t link_type;
	uint8_t resolution; /* ticks are of 10^-n seconds; with the highest bit, of 2^-n */
};

struct ky_pcapng {
	struct ky_foreign_file file;
	uint64_t at; /* of the next block */
	KY_VEC(struct pcapng_interface) interfaces;
	struct kymo_error *broken; /* of the caller, during a call */
};

/* A block's body, without what is behind the bytes of the longest packet. */
struct pcapng_block {
	uint64_t at;
	uint32_t type;
	uint32_t len; /* of the body in the file */
	const uint8_t *body;
	uint32_t body_bytes;
};

static void pcapng_bad(struct ky_pcapng *ng, uint64_t at, const char *what)
{
	if (!ng->broken->code)
		ky_foreign_bad(&ng->file, at, what, ng->broken);
}

static const uint8_t *pcapng_bytes(struct ky_pcapng *ng, uint64_t at, uint64_t len)
{
	struct kymo_error why = {0};
	const uint8_t *bytes = ky_foreign_bytes(&ng->file, at, len, "a block", &why);

	if (!bytes && !ng->broken->code)
		*ng->broken = why;
	return bytes;
}

static uint32_t pcapng_u32(const struct ky_pcapng *ng, const uint8_t *at)
{
	return ky_foreign_u32(at, ng->file.swap);
}

/* ---- interfaces ----------------------------------------------------------------------- */

static void pcapng_options(const struct ky_pcapng *ng, const uint8_t *at, const uint8_t *end,
			   struct pcapng_interface *interface)
{
	while (end - at >= 4) {
		uint16_t code = ky_foreign_u16(at, ng->file.swap);
		uint16_t len = ky_foreign_u16(at + 2, ng->file.swap);

		at += 4;
		if (code == OPTION_END || len > end - at)
			return;
		if (code == OPTION_RESOLUTION && len >= 1)
			interface->resolution = at[0];
		else if (code == OPTION_OFFSET && len >= 8)
			interface->offset_s = (int64_t)ky_foreign_u64(at, ng->file.swap);
		len = (uint16_t)((len + 3u) & ~3u);
		at += len < end - at ? len : end - at;
	}
}

/* One that makes no sense stays, without a link: the next ones keep their numbers. */
static bool pcapng_take_interface(struct ky_pcapng *ng, const struct pcapng_block *block)
{
	struct pcapng_interface interface = {.resolution = 6};

	if (block->body_bytes < 8) {
		pcapng_bad(ng, block->at, "the description of an interface is too short");
	} else {
		interface.link_type = ky_foreign_u16(block->body, ng->file.swap);
		interface.snap_bytes = pcapng_u32(ng, block->body + 4);
		pcapng_options(ng, block->body + 8, block->body + block->body_bytes, &interface);
	}
	if (ng->interfaces.len == INTERFACES_MAX) {
		pcapng_bad(ng, block->at, "a section has too many interfaces");
		return false;
	}
	if (ky_vec_push(&ng->interfaces, interface) == 0)
		return true;
	if (!ng->broken->code)
		ky_error_nomem(ng->broken);
	return false;
}

/* ---- packets -------------------------------------------------------------------------- */

static void pcapng_time(const struct pcapng_interface *interface, uint64_t ticks,
			struct ky_captured_packet *packet)
{
	__int128 ns = ticks;
	unsigned int digits = interface->resolution;

	if (digits & 0x80) {
		ns = ns * NS_PER_S >> (digits & 0x7f);
	} else {
		for (; digits < 9; digits++)
			ns *= 10;
		for (; digits > 9 && ns; digits--)
			ns /= 10;
	}
	ns += (__int128)interface->offset_s * NS_PER_S;
	packet->has_time = ns >= 0 && ns <= INT64_MAX;
	packet->ns = packet->has_time ? (uint64_t)ns : 0;
}

static bool pcapng_interface_of(struct ky_pcapng *ng, const struct pcapng_block *block,
				uint32_t number, struct pcapng_interface *interface)
{
	if (number < ng->interfaces.len) {
		*interface = ng->interfaces.data[number];
		return true;
	}
	pcapng_bad(ng, block->at, "a packet is of an interface that the file does not describe");
	return false;
}

/* The bytes at @at of the body. */
static bool pcapng_take_bytes(struct ky_pcapng *ng, const struct pcapng_block *block, uint32_t at,
			      struct ky_captured_packet *packet)
{
	if (packet->captured > block->len - at) {
		pcapng_bad(ng, block->at, "a packet is longer than its block");
		return false;
	}
	packet->bytes = block->body + at;
	packet->n_bytes = packet->captured < block->body_bytes - at ? packet->captured
								    : block->body_bytes - at;
	if (packet->n_bytes > KY_PACKET_BYTES_MAX)
		packet->n_bytes = KY_PACKET_BYTES_MAX;
	return true;
}

/* Of both kinds; the old one has a smaller number of the interface, and the packets that were lost before. */
static bool pcapng_take_packet(struct ky_pcapng *ng, const struct pcapng_block *block,
			       struct ky_captured_packet *packet)
{
	struct pcapng_interface interface;
	const uint8_t *at = block->body;
	uint32_t number;

	if (block->body_bytes < 20) {
		pcapng_bad(ng, block->at, "the block of a packet is too short");
		return false;
	}
	number = block->type == BLOCK_PACKET ? pcapng_u32(ng, at)
					     : ky_foreign_u16(at, ng->file.swap);
	if (!pcapng_interface_of(ng, block, number, &interface))
		return false;
	packet->link_type = interface.link_type;
	packet->captured = pcapng_u32(ng, at + 12);
	packet->length = pcapng_u32(ng, at + 16);
	pcapng_time(&interface, (uint64_t)pcapng_u32(ng, at + 4) << 32 | pcapng_u32(ng, at + 8),
		    packet);
	return pcapng_take_bytes(ng, block, 20, packet);
}

static bool pcapng_take_simple(struct ky_pcapng *ng, const struct pcapng_block *block,
			       struct ky_captured_packet *packet)
{
	struct pcapng_interface interface;

	if (block->body_bytes < 4) {
		pcapng_bad(ng, block->at, "the block of a packet is too short");
		return false;
	}
	if (!pcapng_interface_of(ng, block, 0, &interface))
		return false;
	packet->has_time = false;
	packet->link_type = interface.link_type;
	packet->length = pcapng_u32(ng, block->body);
	packet->captured = packet->length;
	if (interface.snap_bytes && packet->captured > interface.snap_bytes)
		packet->captured = interface.snap_bytes;
	return pcapng_take_bytes(ng, block, 4, packet);
}

/* ---- blocks --------------------------------------------------------------------------- */

/* A section has a byte order and interfaces of its own. */
static bool pcapng_section(struct ky_pcapng *ng, const uint8_t *magic)
{
	ng->file.swap = false;
	if (pcapng_u32(ng, magic) != BYTE_ORDER_MAGIC) {
		ng->file.swap = true;
		if (pcapng_u32(ng, magic) != BYTE_ORDER_MAGIC) {
			pcapng_bad(ng, ng->at, "a section has no byte order");
			return false;
		}
	}
	ky_vec_clear(&ng->interfaces);
	return true;
}

static bool pcapng_version(struct ky_pcapng *ng, const struct pcapng_block *block)
{
	if (block->body_bytes >= 16 && ky_foreign_u16(block->body + 4, ng->file.swap) == 1)
		return true;
	pcapng_bad(ng, block->at, "a section is of an unknown version");
	return false;
}

/* The next block, whose length its end confirms. False: the file ends, or is broken. */
static bool pcapng_block(struct ky_pcapng *ng, struct pcapng_block *block)
{
	const uint8_t *head = NULL, *tail;
	uint32_t len;

	if (ng->at < ng->file.size_bytes)
		head = pcapng_bytes(ng, ng->at, HEAD_BYTES + TAIL_BYTES);
	if (!head)
		return false;
	block->at = ng->at;
	block->type = pcapng_u32(ng, head);
	/* This type reads the same in both byte orders. */
	if (block->type == BLOCK_SECTION && !pcapng_section(ng, head + HEAD_BYTES))
		return false;
	len = pcapng_u32(ng, head + 4);
	if (len < HEAD_BYTES + TAIL_BYTES || len % 4) {
		pcapng_bad(ng, ng->at, "a block has an impossible length");
		return false;
	}
	if (len > ng->file.size_bytes - ng->at) {
		pcapng_bad(ng, ng->at, "a block is cut: the file ends before");
		return false;
	}
	tail = pcapng_bytes(ng, ng->at + len - TAIL_BYTES, TAIL_BYTES);
	if (!tail)
		return false;
	if (pcapng_u32(ng, tail) != len) {
		pcapng_bad(ng, ng->at, "a block has another length at its end than at its begin");
		return false;
	}
	block->len = len - HEAD_BYTES - TAIL_BYTES;
	block->body_bytes =
		block->len < 2 * KY_PACKET_BYTES_MAX ? block->len : 2 * KY_PACKET_BYTES_MAX;
	block->body = pcapng_bytes(ng, ng->at + HEAD_BYTES, block->body_bytes);
	ng->at += len;
	return block->body;
}

bool ky_pcapng_next(struct ky_pcapng *ng, struct ky_captured_packet *packet,
		    struct kymo_error *broken)
{
	struct pcapng_block block;

	ng->broken = broken;
	while (pcapng_block(ng, &block)) {
		switch (block.type) {
		case BLOCK_SECTION:
			if (!pcapng_version(ng, &block))
				return false;
			break;
		case BLOCK_INTERFACE:
			if (!pcapng_take_interface(ng, &block))
				return false;
			break;
		case BLOCK_PACKET:
		case BLOCK_PACKET_OLD:
			if (pcapng_take_packet(ng, &block, packet))
				return true;
			break;
		case BLOCK_PACKET_SIMPLE:
			if (pcapng_take_simple(ng, &block, packet))
				return true;
			break;
		default:
			break; /* names, statistics, secrets */
		}
	}
	return false;
}

int ky_pcapng_open(struct ky_pcapng **out, const char *path, int fd, struct kymo_error *err)
{
	struct ky_pcapng *ng = calloc(1, sizeof(*ng));
	int ret = ng ? ky_foreign_open(&ng->file, path, fd, err) : ky_error_nomem(err);

	if (ret < 0) {
		free(ng);
		ng = NULL;
	}
	*out = ng;
	return ret;
}

void ky_pcapng_close(struct ky_pcapng *ng)
{
	if (!ng)
		return;
	ky_foreign_close(&ng->file);
	ky_vec_fini(&ng->interfaces);
	free(ng);
}
