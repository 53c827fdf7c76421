/* SPDX-License-Identifier: MIT */
#include "import/pcap/packet-decode.h"

#include <string.h>

enum {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_LOOP = 108,
	LINK_LINUX = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_LINUX_2 = 276,
};

enum {
	ETHER_IPV4 = 0x0800,
	ETHER_ARP = 0x0806,
	ETHER_VLAN = 0x8100,
	ETHER_IPV6 = 0x86dd,
	ETHER_QINQ_OLD = 0x9100,
	ETHER_QINQ = 0x88a8,
};

enum {
	IP_ICMP = 1,
	IP_TCP = 6,
	IP_UDP = 17,
	IP_HOP_BY_HOP = 0,
	IP_ROUTING = 43,
	IP_FRAGMENT = 44,
	IP_ICMP6 = 58,
	IP_DESTINATION = 60,
};

static uint16_t be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t be32(const uint8_t *at)
{
	return (uint32_t)be16(at) << 16 | be16(at + 2);
}

/* As tcpdump: the length that UDP has itself counts where it is possible. */
static uint32_t packet_decode_udp_bytes(const uint8_t *bytes, uint32_t total)
{
	uint32_t own = be16(bytes + 4);

	if (own >= 8 && own < total)
		total = own;
	return total > 8 ? total - 8 : 0;
}

/* The segment of @total bytes, of which @len are there. */
static void packet_decode_transport(const uint8_t *bytes, uint32_t len, uint32_t total,
				    uint8_t protocol, struct ky_packet_facts *facts)
{
	uint32_t head;

	facts->kind = KY_PACKET_IP;
	facts->type = protocol;
	if (protocol == IP_TCP && len >= 20) {
		head = (bytes[12] >> 4) * 4u;
		facts->kind = KY_PACKET_TCP;
		facts->seq = be32(bytes + 4);
		facts->ack = be32(bytes + 8);
		facts->flags = bytes[13];
		facts->window = be16(bytes + 14);
		facts->payload = head >= 20 && total > head ? total - head : 0;
	} else if (protocol == IP_UDP && len >= 8) {
		facts->kind = KY_PACKET_UDP;
		facts->payload = packet_decode_udp_bytes(bytes, total);
	} else if ((protocol == IP_ICMP || protocol == IP_ICMP6) && len >= 2) {
		facts->kind = protocol == IP_ICMP ? KY_PACKET_ICMP : KY_PACKET_ICMP6;
		facts->type = bytes[0];
		facts->code = bytes[1];
		return;
	} else {
		return;
	}
	facts->sport = be16(bytes);
	facts->dport = be16(bytes + 2);
}

/* Of @wire bytes on the link, @len are there. */
static void packet_decode_ipv4(const uint8_t *bytes, uint32_t len, uint32_t wire,
			       struct ky_packet_facts *facts)
{
	uint32_t head, total;

	if (len < 20 || bytes[0] >> 4 != 4)
		return;
	head = (bytes[0] & 15) * 4u;
	total = be16(bytes + 2);
	/* What the network card cuts into segments, or is longer than 64 KiB, has no length. */
	total = total ? total : wire;
	memcpy(facts->src, bytes + 12, 4);
	memcpy(facts->dst, bytes + 16, 4);
	facts->kind = KY_PACKET_IP;
	facts->type = bytes[9];
	if (be16(bytes + 6) & 0x1fff) {
		facts->code = 1;
		return;
	}
	if (head < 20 || head > len || head > total)
		return;
	packet_decode_transport(bytes + head, len - head, total - head, bytes[9], facts);
}

static void packet_decode_ipv6(const uint8_t *bytes, uint32_t len, uint32_t wire,
			       struct ky_packet_facts *facts)
{
	uint32_t at = 40, total;
	uint8_t next;

	if (len < 40 || bytes[0] >> 4 != 6)
		return;
	facts->is_6 = true;
	facts->kind = KY_PACKET_IP;
	memcpy(facts->src, bytes + 8, 16);
	memcpy(facts->dst, bytes + 24, 16);
	next = bytes[6];
	total = 40u + be16(bytes + 4);
	total = total > 40 ? total : wire;
	for (unsigned int i = 0; i < 8; i++) {
		if (next == IP_FRAGMENT && len - at >= 8) {
			facts->code = (be16(bytes + at + 2) & 0xfff8) != 0;
			next = bytes[at];
			at += 8;
			if (facts->code) {
				facts->type = next;
				return;
			}
		} else if ((next == IP_HOP_BY_HOP || next == IP_ROUTING ||
			    next == IP_DESTINATION) &&
			   len - at >= 8) {
			uint32_t extra = (bytes[at + 1] + 1u) * 8;

			if (extra > len - at)
				break;
			next = bytes[at];
			at += extra;
		} else {
			break;
		}
	}
	packet_decode_transport(bytes + at, len - at, total > at ? total - at : 0, next, facts);
}

static void packet_decode_arp(const uint8_t *bytes, uint32_t len, struct ky_packet_facts *facts)
{
	if (len < 28 || bytes[4] != 6 || bytes[5] != 4)
		return;
	facts->kind = KY_PACKET_ARP;
	facts->type = be16(bytes + 6);
	memcpy(facts->src, bytes + 14, 4);
	memcpy(facts->dst, bytes + 24, 4);
}

static bool is_vlan(uint16_t type)
{
	return type == ETHER_VLAN || type == ETHER_QINQ || type == ETHER_QINQ_OLD;
}

static void packet_decode_network(const uint8_t *bytes, uint32_t len, uint32_t wire, uint16_t type,
				  struct ky_packet_facts *facts)
{
	for (unsigned int i = 0; i < 4 && is_vlan(type) && len >= 4; i++) {
		type = be16(bytes + 2);
		bytes += 4;
		len -= 4;
		wire -= 4;
	}
	facts->ether_type = type;
	if (type == ETHER_IPV4)
		packet_decode_ipv4(bytes, len, wire, facts);
	else if (type == ETHER_IPV6)
		packet_decode_ipv6(bytes, len, wire, facts);
	else if (type == ETHER_ARP)
		packet_decode_arp(bytes, len, facts);
}

/* A link without a type carries nothing but IP. */
static bool packet_decode_bare(const struct ky_captured_packet *packet, uint32_t len,
			       uint32_t *head, uint16_t *type)
{
	*head = len;
	if (packet->n_bytes <= len)
		return false;
	*type = packet->bytes[len] >> 4 == 6 ? ETHER_IPV6 : ETHER_IPV4;
	return true;
}

/* The bytes of the link's head, and the type of what follows. False: Kymo does not know the link, or the head is cut. */
static bool packet_decode_link(const struct ky_captured_packet *packet, uint32_t *head,
			       uint16_t *type)
{
	uint32_t at = 0;

	switch (packet->link_type) {
	case LINK_ETHERNET:
		*head = 14;
		at = 12;
		break;
	case LINK_LINUX:
		*head = 16;
		at = 14;
		break;
	case LINK_LINUX_2:
		*head = 20;
		break;
	case LINK_NULL:
	case LINK_LOOP:
		return packet_decode_bare(packet, 4, head, type);
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_RAW:
	case LINK_IPV4:
	case LINK_IPV6:
		return packet_decode_bare(packet, 0, head, type);
	default:
		return false;
	}
	if (packet->n_bytes < *head)
		return false;
	*type = be16(packet->bytes + at);
	return true;
}

void ky_packet_decode(const struct ky_captured_packet *packet, struct ky_packet_facts *facts)
{
	uint32_t head, wire;
	uint16_t type;

	memset(facts, 0, sizeof(*facts));
	facts->kind = KY_PACKET_FRAME;
	if (!packet_decode_link(packet, &head, &type))
		return;
	wire = packet->length > packet->n_bytes ? packet->length : packet->n_bytes;
	packet_decode_network(packet->bytes + head, packet->n_bytes - head, wire - head, type,
			      facts);
}

size_t ky_packet_put_flags(uint8_t flags, char text[KY_PACKET_FLAGS_BYTES])
{
	static const struct {
		uint8_t bit;
		char letter;
	} letters[] = {{0x01, 'F'}, {0x02, 'S'}, {0x04, 'R'}, {0x08, 'P'},
		       {0x20, 'U'}, {0x40, 'E'}, {0x80, 'W'}, {0x10, '.'}};
	size_t len = 0;

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (flags & letters[i].bit)
			text[len++] = letters[i].letter;
	text[len] = '\0';
	return len;
}

size_t ky_packet_put_ipv4(const uint8_t address[4], char *text)
{
	char *at = text;

	for (int i = 0; i < 4; i++) {
		if (address[i] >= 100)
			*at++ = (char)('0' + address[i] / 100);
		if (address[i] >= 10)
			*at++ = (char)('0' + address[i] / 10 % 10);
		*at++ = (char)('0' + address[i] % 10);
		*at++ = i < 3 ? '.' : '\0';
	}
	return (size_t)(at - text) - 1;
}
