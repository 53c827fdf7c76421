/* SPDX-License-Identifier: MIT */
/* pcap: libpcap reads it, in all its variants. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "import/common/foreign-file.h"
#include "import/pcap/packet-file.h"
#include "os/file.h"
#include "os/library.h"

#ifdef KYMO_HAVE_PCAP

#include <pcap/pcap.h>

#define PCAP_FUNCTIONS(X)                           \
	X(pcap_fopen_offline_with_tstamp_precision) \
	X(pcap_next_ex)                             \
	X(pcap_geterr)                              \
	X(pcap_close)

PCAP_FUNCTIONS(KY_LIBRARY_TYPE)

static struct {
	PCAP_FUNCTIONS(KY_LIBRARY_MEMBER)
} pcap_library;

#define SYMBOL(name) {#name, offsetof(__typeof__(pcap_library), name)},
static const struct ky_library_symbol symbols[] = {PCAP_FUNCTIONS(SYMBOL){0}};

static int pcap_file_load(struct kymo_error *err)
{
	if (pcap_library.pcap_close)
		return KYMO_OK;
	return ky_library_load("libpcap.so.0.8", "libpcap0.8", symbols, &pcap_library, err);
}

/* So many heads of zeros, 64 KiB, are a hole in the file. */
#define ZEROS_MAX 4096u

struct ky_pcap {
	const char *path;
	FILE *file;
	pcap_t *pcap;
	uint32_t link_type;
	uint64_t at;	      /* of the packet */
	uint64_t zeros_at;    /* of the first packet of zeros alone that waits */
	unsigned int n_zeros; /* that have been read, and are given before .held */
	bool has_held;
	struct ky_captured_packet held;
};

/* The kind of link as the file has it: libpcap's numbers of some kinds differ between systems. */
static uint32_t pcap_file_link(int fd)
{
	uint8_t head[24];
	uint32_t link;

	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return 0;
	link = head[0] == 0xa1 ? (uint32_t)head[20] << 24 | (uint32_t)head[21] << 16 |
					 (uint32_t)head[22] << 8 | head[23]
			       : (uint32_t)head[23] << 24 | (uint32_t)head[22] << 16 |
					 (uint32_t)head[21] << 8 | head[20];
	return link & 0x03ffffff; /* the other bits tell of checksums at the frames' ends */
}

/* The seconds of the file have 32 bits without a sign; libpcap gives some of them one. */
static void pcap_file_take(const struct ky_pcap *pcap, const struct pcap_pkthdr *head,
			   const uint8_t *bytes, struct ky_captured_packet *packet)
{
	int64_t ns = (int64_t)(uint32_t)head->ts.tv_sec * 1000000000 + (int64_t)head->ts.tv_usec;

	packet->has_time = ns >= 0;
	packet->ns = packet->has_time ? (uint64_t)ns : 0;
	packet->link_type = pcap->link_type;
	packet->length = head->len;
	packet->captured = head->caplen;
	packet->bytes = bytes;
	packet->n_bytes = head->caplen < KY_PACKET_BYTES_MAX ? head->caplen : KY_PACKET_BYTES_MAX;
}

static bool pcap_file_read(struct ky_pcap *pcap, struct ky_captured_packet *packet,
			   struct kymo_error *broken)
{
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	int ret;

	pcap->at = (uint64_t)ftello(pcap->file);
	ret = pcap_library.pcap_next_ex(pcap->pcap, &head, &bytes);
	if (ret == 1)
		pcap_file_take(pcap, head, bytes, packet);
	if (ret != PCAP_ERROR || broken->code)
		return ret == 1;
	ky_error_set(broken, KYMO_E_FORMAT, "%s", pcap_library.pcap_geterr(pcap->pcap));
	ky_error_path(broken, pcap->path);
	ky_error_offset(broken, pcap->at);
	return false;
}

static bool pcap_file_is_zero(const struct ky_captured_packet *packet)
{
	return !packet->length && !packet->captured && packet->has_time && !packet->ns;
}

/* Zeros wait: they may be the hole at the end of a file that was not written to its end. */
static bool pcap_file_pass_zeros(struct ky_pcap *pcap, struct kymo_error *broken)
{
	pcap->n_zeros = 0;
	while ((pcap->has_held = pcap_file_read(pcap, &pcap->held, broken))) {
		if (!pcap_file_is_zero(&pcap->held))
			return true;
		if (!pcap->n_zeros)
			pcap->zeros_at = pcap->at;
		if (++pcap->n_zeros == ZEROS_MAX)
			break;
	}
	pcap->has_held = false;
	if (pcap->n_zeros) {
		ky_error_set(broken, KYMO_E_FORMAT, "the file goes on with zeros");
		ky_error_path(broken, pcap->path);
		ky_error_offset(broken, pcap->zeros_at);
	}
	pcap->n_zeros = 0;
	return false;
}

bool ky_pcap_next(struct ky_pcap *pcap, struct ky_captured_packet *packet,
		  struct kymo_error *broken)
{
	if (!pcap->has_held && !pcap_file_pass_zeros(pcap, broken))
		return false;
	*packet = pcap->held;
	if (pcap->n_zeros) {
		pcap->n_zeros--;
		packet->length = packet->captured = packet->n_bytes = 0;
		packet->ns = 0;
		packet->has_time = true;
	} else {
		pcap->has_held = false;
	}
	return true;
}

static int pcap_file_open(struct ky_pcap *pcap, int unpacked_fd, struct kymo_error *err)
{
	char why[PCAP_ERRBUF_SIZE];
	int fd = ky_foreign_open_content(pcap->path, unpacked_fd);

	if (fd < 0)
		return ky_error_errno(err, -fd, "cannot read");
	pcap->link_type = pcap_file_link(fd);
	pcap->file = fdopen(fd, "r");
	if (!pcap->file) {
		close(fd);
		return ky_error_nomem(err);
	}
	setvbuf(pcap->file, NULL, _IOFBF, 1 << 18);
	/* From here on, the C library knows the offset, and ftello() asks the kernel no more. */
	(void)fseeko(pcap->file, 0, SEEK_SET);
	pcap->pcap = pcap_library.pcap_fopen_offline_with_tstamp_precision(
		pcap->file, PCAP_TSTAMP_PRECISION_NANO, why);
	if (pcap->pcap)
		return KYMO_OK;
	fclose(pcap->file);
	ky_error_set(err, KYMO_E_FORMAT, "%s", why);
	ky_error_offset(err, 0);
	return KYMO_E_FORMAT;
}

int ky_pcap_open(struct ky_pcap **out, const char *path, int fd, struct kymo_error *err)
{
	struct ky_pcap *pcap = calloc(1, sizeof(*pcap));
	int ret = pcap ? pcap_file_load(err) : ky_error_nomem(err);

	if (!ret) {
		pcap->path = path;
		ret = pcap_file_open(pcap, fd, err);
		if (ret < 0)
			ky_error_path(err, path);
	}
	if (ret < 0) {
		free(pcap);
		pcap = NULL;
	}
	*out = pcap;
	return ret;
}

void ky_pcap_close(struct ky_pcap *pcap)
{
	if (!pcap)
		return;
	pcap_library.pcap_close(pcap->pcap); /* closes the file, too */
	free(pcap);
}

#else

int ky_pcap_open(struct ky_pcap **pcap, const char *path, int fd, struct kymo_error *err)
{
	int ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
			       "cannot read packets: this build of Kymo has no libpcap");

	(void)fd;
	*pcap = NULL;
	ky_error_path(err, path);
	ky_error_hint(err, "install libpcap-dev, and build Kymo again");
	return ret;
}

bool ky_pcap_next(struct ky_pcap *pcap, struct ky_captured_packet *packet,
		  struct kymo_error *broken)
{
	(void)pcap;
	(void)packet;
	(void)broken;
	return false;
}

void ky_pcap_close(struct ky_pcap *pcap)
{
	(void)pcap;
}

#endif
