/* SPDX-License-Identifier: MIT */
/*
 * pcap and pcapng: packets become events with addresses, ports, lengths and TCP's numbers. Bytes of packets are kept only on request: they
 * hold what programs say to each other.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "import/common/foreign-file.h"
#include "import/common/import-internal.h"
#include "import/common/import.h"
#include "import/common/trace-maker.h"
#include "import/pcap/packet-decode.h"
#include "import/pcap/packet-file.h"

static const uint8_t ng_magic[] = {0x0a, 0x0d, 0x0d, 0x0a};

struct pcap_import {
	const char *path;
	struct ky_pcap *pcap; /* or ->ng */
	struct ky_pcapng *ng;
	struct ky_maker *maker;
	int events[KY_PACKET_KINDS];
	bool is_ng, keeps_data;
	uint64_t ns; /* of the packet before */
	uint64_t n_untimed, n_moved;
};

/* ---- events --------------------------------------------------------------------------- */

#define LENGTHS                                          \
	{.name = "length", .kind = KY_MAKER_U32},        \
	{                                                \
		.name = "captured", .kind = KY_MAKER_U32 \
	}
#define HOSTS                                        \
	{.name = "src", .kind = KY_MAKER_TEXT},      \
	{                                            \
		.name = "dst", .kind = KY_MAKER_TEXT \
	}
#define PORTS                                         \
	{.name = "sport", .kind = KY_MAKER_U16},      \
	{                                             \
		.name = "dport", .kind = KY_MAKER_U16 \
	}

static const struct ky_maker_field tcp_fields[] = {
	LENGTHS,
	HOSTS,
	PORTS,
	{.name = "flags", .kind = KY_MAKER_TEXT},
	{.name = "seq", .kind = KY_MAKER_U32},
	{.name = "ack", .kind = KY_MAKER_U32},
	{.name = "window", .kind = KY_MAKER_U16},
	{.name = "payload", .kind = KY_MAKER_U32},
};
static const struct ky_maker_field udp_fields[] = {
	LENGTHS, HOSTS, PORTS, {.name = "payload", .kind = KY_MAKER_U32}};
static const struct ky_maker_field icmp_fields[] = {
	LENGTHS,
	HOSTS,
	{.name = "type", .kind = KY_MAKER_U8},
	{.name = "code", .kind = KY_MAKER_U8},
};
static const struct ky_maker_field ip_fields[] = {LENGTHS,
						  HOSTS,
						  {.name = "protocol", .kind = KY_MAKER_U8},
						  {.name = "fragment", .kind = KY_MAKER_U8}};
static const struct ky_maker_field arp_fields[] = {
	LENGTHS,
	{.name = "operation", .kind = KY_MAKER_U16},
	{.name = "sender", .kind = KY_MAKER_TEXT},
	{.name = "target", .kind = KY_MAKER_TEXT},
};
static const struct ky_maker_field frame_fields[] = {
	LENGTHS,
	{.name = "link_type", .kind = KY_MAKER_U32},
	{.name = "ether_type", .kind = KY_MAKER_HEX},
};

/* Behind the others, on request. */
static const struct ky_maker_field data_fields[] = {
	{.name = "data_link", .kind = KY_MAKER_U32},
	{.name = "data", .kind = KY_MAKER_BYTES},
};

#define N_DATA_FIELDS (sizeof(data_fields) / sizeof(data_fields[0]))
#define N_FIELDS_MAX  16

#define FIELDS(list) list, sizeof(list) / sizeof((list)[0])

static const struct {
	const char *name;
	const struct ky_maker_field *fields;
	size_t n;
} kinds[KY_PACKET_KINDS] = {
	[KY_PACKET_TCP] = {"tcp", FIELDS(tcp_fields)},
	[KY_PACKET_UDP] = {"udp", FIELDS(udp_fields)},
	[KY_PACKET_ICMP] = {"icmp", FIELDS(icmp_fields)},
	[KY_PACKET_ICMP6] = {"icmp6", FIELDS(icmp_fields)},
	[KY_PACKET_IP] = {"ip", FIELDS(ip_fields)},
	[KY_PACKET_ARP] = {"arp", FIELDS(arp_fields)},
	[KY_PACKET_FRAME] = {"frame", FIELDS(frame_fields)},
};

static void import_pcap_address(struct ky_maker *maker, const uint8_t *address, bool is_6)
{
	char text[INET6_ADDRSTRLEN];

	if (is_6) {
		inet_ntop(AF_INET6, address, text, sizeof(text));
		ky_maker_text(maker, text, strlen(text));
	} else {
		size_t len = ky_packet_put_ipv4(address, text);

		ky_maker_text(maker, text, len);
	}
}

static void import_pcap_facts(struct ky_maker *maker, const struct ky_packet_facts *facts,
			      uint32_t link_type)
{
	char flags[KY_PACKET_FLAGS_BYTES];

	if (facts->kind == KY_PACKET_FRAME) {
		ky_maker_number(maker, link_type);
		ky_maker_number(maker, facts->ether_type);
		return;
	}
	if (facts->kind == KY_PACKET_ARP)
		ky_maker_number(maker, facts->type);
	import_pcap_address(maker, facts->src, facts->is_6);
	import_pcap_address(maker, facts->dst, facts->is_6);
	if (facts->kind == KY_PACKET_TCP || facts->kind == KY_PACKET_UDP) {
		ky_maker_number(maker, facts->sport);
		ky_maker_number(maker, facts->dport);
	}
	if (facts->kind == KY_PACKET_TCP) {
		ky_maker_text(maker, flags, ky_packet_put_flags(facts->flags, flags));
		ky_maker_number(maker, facts->seq);
		ky_maker_number(maker, facts->ack);
		ky_maker_number(maker, facts->window);
	}
	if (facts->kind == KY_PACKET_TCP || facts->kind == KY_PACKET_UDP) {
		ky_maker_number(maker, facts->payload);
	} else if (facts->kind != KY_PACKET_ARP) {
		ky_maker_number(maker, facts->type);
		ky_maker_number(maker, facts->code);
	}
}

/* A packet without a time stays behind the one before it. */
static int import_pcap_packet(struct pcap_import *import, const struct ky_captured_packet *packet,
			      struct kymo_error *err)
{
	struct ky_maker *maker = import->maker;
	struct ky_packet_facts facts;

	if (packet->has_time)
		import->ns = packet->ns;
	else
		import->n_untimed++;
	ky_packet_decode(packet, &facts);
	ky_maker_begin(maker, 0, import->events[facts.kind], import->ns);
	ky_maker_number(maker, packet->length);
	ky_maker_number(maker, packet->captured);
	import_pcap_facts(maker, &facts, packet->link_type);
	if (import->keeps_data) {
		ky_maker_number(maker, packet->link_type);
		ky_maker_bytes(maker, packet->bytes, packet->n_bytes);
	}
	return ky_maker_commit(maker, err);
}

/* ---- the file ------------------------------------------------------------------------- */

static int import_pcap_kind(struct pcap_import *import, size_t kind, struct kymo_error *err)
{
	struct ky_maker_field fields[N_FIELDS_MAX + N_DATA_FIELDS];
	size_t n = kinds[kind].n;

	memcpy(fields, kinds[kind].fields, n * sizeof(*fields));
	memcpy(fields + n, data_fields, sizeof(data_fields));
	return ky_maker_event(import->maker, kinds[kind].name, fields,
			      import->keeps_data ? n + N_DATA_FIELDS : n, err);
}

static int import_pcap_begin(struct pcap_import *import, struct ky_packet_store *store,
			     struct kymo_error *err)
{
	const struct ky_maker_about about = {
		.path = "network",
		.name = import->path,
		.domain = "network",
		.tracer = "pcap",
		.clock = "wall",
		.description = "wall time of the machine that captured the packets",
		.reorders = true,
	};
	int ret = ky_maker_open(&import->maker, store, &about, err);

	for (size_t i = 0; i < KY_PACKET_KINDS && ret >= 0; i++)
		ret = import->events[i] = import_pcap_kind(import, i, err);
	return ret < 0 ? ret : KYMO_OK;
}

static bool import_pcap_next(struct pcap_import *import, struct ky_captured_packet *packet,
			     struct kymo_error *broken)
{
	return import->is_ng ? ky_pcapng_next(import->ng, packet, broken)
			     : ky_pcap_next(import->pcap, packet, broken);
}

static int import_pcap_run(struct pcap_import *import, struct kymo_error *broken,
			   struct kymo_error *err)
{
	struct ky_maker *maker;
	struct ky_captured_packet packet;
	int ret = KYMO_OK;

	while (!ret && import_pcap_next(import, &packet, broken))
		ret = import_pcap_packet(import, &packet, err);
	maker = import->maker;
	import->maker = NULL;
	import->n_moved = ky_maker_moved(maker);
	return ret ? (ky_maker_close(maker, NULL), ret) : ky_maker_close(maker, err);
}

static int import_pcap_convert(struct pcap_import *import, int fd, struct ky_packet_store *store,
			       struct kymo_error *broken, struct kymo_error *err)
{
	int ret = import->is_ng ? ky_pcapng_open(&import->ng, import->path, fd, err)
				: ky_pcap_open(&import->pcap, import->path, fd, err);

	if (!ret)
		ret = import_pcap_begin(import, store, err);
	if (!ret)
		ret = import_pcap_run(import, broken, err);
	(void)ky_maker_close(import->maker, NULL);
	ky_pcapng_close(import->ng);
	ky_pcap_close(import->pcap);
	return ret;
}

static void import_pcap_tell(const struct pcap_import *import, const struct ky_log *log)
{
	if (import->n_untimed)
		ky_log_warning(log,
			       "%s: %" PRIu64 " packets have no time, or one before 1970 or after "
			       "2262; they have the time of the packet before",
			       import->path, import->n_untimed);
	if (import->n_moved)
		ky_log_warning(log,
			       "%s: %" PRIu64 " packets have a later time than in the file, whose "
			       "times go back too often",
			       import->path, import->n_moved);
}

static int import_pcap_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			    struct kymo_error *err)
{
	struct ky_scratch_trace *scratch = ky_import_new_trace(imports);
	struct pcap_import import = {
		.path = path,
		.keeps_data = imports->options && imports->options->packet_data,
	};
	struct kymo_error broken = {0};
	struct ky_packet_store *store;
	char content[32];
	int ret;

	if (!scratch)
		return ky_error_nomem(err);
	import.is_ng = ky_foreign_begins(ky_import_content(imports, path, content), 0, ng_magic,
					 sizeof(ng_magic));
	ret = ky_scratch_store_open(scratch, &store, err);
	if (ret < 0)
		return ret;
	ret = import_pcap_convert(&import, imports->unpacked_fd, store, &broken, err);
	ky_store_free(store);
	if (!ret)
		import_pcap_tell(&import, log);
	if (!ret)
		ret = ky_import_add_place(imports, path, "network", scratch, err);
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	return ret;
}

static bool import_pcap_is(const char *path)
{
	static const uint8_t magics[][4] = {
		{0xa1, 0xb2, 0xc3, 0xd4}, {0xd4, 0xc3, 0xb2, 0xa1}, /* us */
		{0xa1, 0xb2, 0x3c, 0x4d}, {0x4d, 0x3c, 0xb2, 0xa1}, /* ns */
		{0xa1, 0xb2, 0xcd, 0x34}, {0x34, 0xcd, 0xb2, 0xa1}, /* longer heads, of old Linux */
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (ky_foreign_begins(path, 0, magics[i], sizeof(magics[i])))
			return true;
	return ky_foreign_begins(path, 0, ng_magic, sizeof(ng_magic));
}

const struct ky_import_format ky_import_pcap = {
	.name = "pcap",
	.probe = import_pcap_is,
	.open = import_pcap_open,
};
