/* SPDX-License-Identifier: MIT */
/*
 * pcap and pcapng: packets become events with addresses, ports, lengths and TCP's numbers. libpcap reads the files. Bytes of packets are
 * kept only on request: they hold what programs say to each other.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "import/common/foreign-file.h"
#include "import/common/import-internal.h"
#include "import/common/import.h"
#include "import/pcap/packet-decode.h"
#include "import/common/trace-maker.h"
#include "os/file.h"
#include "os/library.h"

#ifdef KYMO_HAVE_PCAP

#include <pcap/pcap.h>

#define PCAP_FUNCTIONS(X)                           \
	X(pcap_fopen_offline_with_tstamp_precision) \
	X(pcap_next_ex)                             \
	X(pcap_datalink)                            \
	X(pcap_geterr)                              \
	X(pcap_close)

PCAP_FUNCTIONS(KY_LIBRARY_TYPE)

static struct {
	PCAP_FUNCTIONS(KY_LIBRARY_MEMBER)
} pcap_library;

#define SYMBOL(name) {#name, offsetof(__typeof__(pcap_library), name)},
static const struct ky_library_symbol symbols[] = {PCAP_FUNCTIONS(SYMBOL){0}};

static int import_pcap_load(struct kymo_error *err)
{
	if (pcap_library.pcap_close)
		return KYMO_OK;
	return ky_library_load("libpcap.so.0.8", "libpcap0.8", symbols, &pcap_library, err);
}

/* The head of a packet; so many of zeros, 64 KiB, are a hole in the file. */
#define HEAD_BYTES 16u
#define ZEROS_MAX  4096u

struct pcap_import {
	const char *path;
	int fd; /* of its unpacked content; -1: path has it */
	FILE *file;
	pcap_t *pcap;
	struct ky_maker *maker;
	int events[KY_PACKET_KINDS];
	bool keeps_data;
	bool is_ng;
	uint64_t n_zeros, zeros_at; /* packets of zeros alone, which are not written yet */
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
			      int link_type)
{
	char flags[KY_PACKET_FLAGS_BYTES];

	if (facts->kind == KY_PACKET_FRAME) {
		ky_maker_number(maker, (uint64_t)link_type);
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

static int import_pcap_packet(struct pcap_import *import, const struct pcap_pkthdr *head,
			      const uint8_t *bytes, int link_type, struct kymo_error *err)
{
	uint64_t ns = (uint64_t)head->ts.tv_sec * 1000000000 + (uint64_t)head->ts.tv_usec;
	struct ky_maker *maker = import->maker;
	struct ky_packet_facts facts;

	ky_packet_decode(bytes, head->caplen, link_type, &facts);
	ky_maker_begin(maker, 0, import->events[facts.kind], ns);
	ky_maker_number(maker, head->len);
	ky_maker_number(maker, head->caplen);
	import_pcap_facts(maker, &facts, link_type);
	if (import->keeps_data) {
		ky_maker_number(maker, (uint64_t)link_type);
		ky_maker_bytes(maker, bytes, head->caplen);
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

/* A header of a packet that is all zeros; a block of pcapng is never. */
static bool import_pcap_is_zero(const struct pcap_import *import, const struct pcap_pkthdr *head)
{
	return !import->is_ng && !head->len && !head->caplen && !head->ts.tv_sec &&
	       !head->ts.tv_usec;
}

/* Zeros wait: they may be the hole at the end of a file that was not written to its end. */
static int import_pcap_take(struct pcap_import *import, const struct pcap_pkthdr *head,
			    const uint8_t *bytes, int link_type, struct kymo_error *err)
{
	const struct pcap_pkthdr zero = {0};
	int ret = KYMO_OK;

	if (import_pcap_is_zero(import, head)) {
		if (!import->n_zeros++)
			import->zeros_at = (uint64_t)ftello(import->file) - HEAD_BYTES;
		return KYMO_OK;
	}
	for (; import->n_zeros && !ret; import->n_zeros--)
		ret = import_pcap_packet(import, &zero, bytes, link_type, err);
	return ret ? ret : import_pcap_packet(import, head, bytes, link_type, err);
}

static void import_pcap_tell_zeros(const struct pcap_import *import, struct kymo_error *broken)
{
	ky_error_set(broken, KYMO_E_FORMAT, "the file goes on with zeros");
	ky_error_path(broken, import->path);
	ky_error_offset(broken, import->zeros_at);
}

static int import_pcap_run(struct pcap_import *import, struct kymo_error *broken,
			   struct kymo_error *err)
{
	int link_type = pcap_library.pcap_datalink(import->pcap), ret = KYMO_OK, next = 0;
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	struct ky_maker *maker;

	while (!ret && import->n_zeros < ZEROS_MAX &&
	       (next = pcap_library.pcap_next_ex(import->pcap, &head, &bytes)) == 1)
		ret = import_pcap_take(import, head, bytes, link_type, err);
	if (!ret && import->n_zeros) {
		import_pcap_tell_zeros(import, broken);
	} else if (!ret && next == PCAP_ERROR) {
		ky_error_set(broken, KYMO_E_FORMAT, "%s", pcap_library.pcap_geterr(import->pcap));
		ky_error_path(broken, import->path);
		ky_error_offset(broken, (uint64_t)ftello(import->file));
	}
	maker = import->maker;
	import->maker = NULL;
	return ret ? (ky_maker_close(maker, NULL), ret) : ky_maker_close(maker, err);
}

static int import_pcap_open_file(struct pcap_import *import, struct kymo_error *err)
{
	char why[PCAP_ERRBUF_SIZE];
	uint8_t first;
	int fd = import->fd >= 0 ? fcntl(import->fd, F_DUPFD_CLOEXEC, 0)
				 : ky_file_open_regular(AT_FDCWD, import->path, O_RDONLY);
	int ret;

	if (fd < 0) {
		ret = ky_error_errno(err, -fd, "cannot read");
		ky_error_path(err, import->path);
		return ret;
	}
	import->is_ng = pread(fd, &first, 1, 0) == 1 && first == 0x0a;
	(void)lseek(fd, 0, SEEK_SET);
	import->file = fdopen(fd, "r");
	if (!import->file) {
		close(fd);
		return ky_error_nomem(err);
	}
	setvbuf(import->file, NULL, _IOFBF, 1 << 18);
	import->pcap = pcap_library.pcap_fopen_offline_with_tstamp_precision(
		import->file, PCAP_TSTAMP_PRECISION_NANO, why);
	if (import->pcap)
		return KYMO_OK;
	fclose(import->file);
	ret = ky_error_set(err, KYMO_E_FORMAT, "%s", why);
	ky_error_path(err, import->path);
	ky_error_offset(err, 0);
	return ret;
}

static int import_pcap_convert(const char *path, struct ky_packet_store *store,
			       struct pcap_import *import, struct kymo_error *broken,
			       struct kymo_error *err)
{
	int ret = import_pcap_load(err);

	import->path = path;
	if (!ret)
		ret = import_pcap_open_file(import, err);
	if (ret < 0)
		return ret;
	ret = import_pcap_begin(import, store, err);
	if (!ret)
		ret = import_pcap_run(import, broken, err);
	(void)ky_maker_close(import->maker, NULL);
	pcap_library.pcap_close(import->pcap); /* closes the file, too */
	return ret;
}

static int import_pcap_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			    struct kymo_error *err)
{
	struct ky_scratch_trace *scratch = ky_import_new_trace(imports);
	struct pcap_import import = {
		.fd = imports->unpacked_fd,
		.keeps_data = imports->options && imports->options->packet_data,
	};
	struct kymo_error broken = {0};
	struct ky_packet_store *store;
	int ret;

	(void)log;
	if (!scratch)
		return ky_error_nomem(err);
	ret = ky_scratch_store_open(scratch, &store, err);
	if (ret < 0)
		return ret;
	ret = import_pcap_convert(path, store, &import, &broken, err);
	ky_store_free(store);
	if (!ret)
		ret = ky_import_add_place(imports, path, "network", scratch, err);
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	return ret;
}

#else

static int import_pcap_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			    struct kymo_error *err)
{
	int ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
			       "cannot read packets: this build of Kymo has no libpcap");

	(void)imports;
	(void)log;
	ky_error_path(err, path);
	ky_error_hint(err, "install libpcap-dev, and build Kymo again");
	return ret;
}

#endif

static bool import_pcap_is(const char *path)
{
	static const uint8_t magics[][4] = {
		{0xa1, 0xb2, 0xc3, 0xd4}, {0xd4, 0xc3, 0xb2, 0xa1}, /* us */
		{0xa1, 0xb2, 0x3c, 0x4d}, {0x4d, 0x3c, 0xb2, 0xa1}, /* ns */
		{0x0a, 0x0d, 0x0d, 0x0a},			    /* pcapng */
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (ky_foreign_begins(path, 0, magics[i], sizeof(magics[i])))
			return true;
	return false;
}

const struct ky_import_format ky_import_pcap = {
	.name = "pcap",
	.probe = import_pcap_is,
	.open = import_pcap_open,
};
