/* SPDX-License-Identifier: MIT */
/* What the first bytes of a captured packet say. They are not trusted. Threads: any. */
#ifndef KY_IMPORT_PACKET_DECODE_H
#define KY_IMPORT_PACKET_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/pcap/packet-file.h"

enum ky_packet_kind {
	KY_PACKET_TCP,
	KY_PACKET_UDP,
	KY_PACKET_ICMP,
	KY_PACKET_ICMP6,
	KY_PACKET_IP, /* another protocol, or a later fragment */
	KY_PACKET_ARP,
	KY_PACKET_FRAME, /* not IP, or cut */
	KY_PACKET_KINDS,
};

struct ky_packet_facts {
	enum ky_packet_kind kind;
	bool is_6;
	uint8_t src[16], dst[16]; /* 4 bytes of IPv4; of ARP, the sender and the target */
	uint16_t ether_type, sport, dport, window;
	/* ICMP: type and code; IP: protocol, and whether it is a fragment; ARP: the operation in type. */
	uint16_t type, code;
	uint8_t flags; /* of TCP */
	uint32_t seq, ack, payload;
};

void ky_packet_decode(const struct ky_captured_packet *packet, struct ky_packet_facts *facts);

#define KY_PACKET_FLAGS_BYTES 10
/* TCP's flags as tcpdump writes them, "S.", at @text. Returns the length. */
size_t ky_packet_put_flags(uint8_t flags, char text[KY_PACKET_FLAGS_BYTES]);
/* "10.0.0.1", at least 16 bytes at @text, with a NUL. Returns the length. */
size_t ky_packet_put_ipv4(const uint8_t address[4], char *text);

#endif
