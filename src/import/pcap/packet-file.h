/* SPDX-License-Identifier: MIT */
/*
 * Files of captured packets. They are not trusted: what is good before a damage is read, and behind it as far as the file still makes sense.
 *
 *	ky_pcapng_open(&file, path, fd, err)
 *	while (ky_pcapng_next(file, &packet, &broken)) ...
 *	ky_pcapng_close(file)
 *
 * Threads: one at a time per file.
 */
#ifndef KY_IMPORT_PACKET_FILE_H
#define KY_IMPORT_PACKET_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

/* Bytes of one packet that a reader keeps; libpcap, too, takes no more of a network. */
#define KY_PACKET_BYTES_MAX 262144u

struct ky_captured_packet {
	uint64_t ns; /* since 1970 */
	bool has_time;
	uint32_t link_type;	   /* LINKTYPE_... */
	uint32_t length, captured; /* as the file says */
	const uint8_t *bytes;	   /* valid until the next call */
	uint32_t n_bytes;	   /* <= captured, <= KY_PACKET_BYTES_MAX */
};

/*
 * pcap, of all variants that libpcap reads; @path must outlive the file; @fd >= 0: its unpacked content. 0, KYMO_E_UNSUPPORTED: libpcap is
 * missing; KYMO_E_FORMAT, or the failure of reading.
 */
struct ky_pcap;
int ky_pcap_open(struct ky_pcap **pcap, const char *path, int fd, struct kymo_error *err);
/* Whether there is another packet. The first damage goes to @broken, if that has none yet. */
bool ky_pcap_next(struct ky_pcap *pcap, struct ky_captured_packet *packet,
		  struct kymo_error *broken);
/* NULL is allowed. */
void ky_pcap_close(struct ky_pcap *pcap);

/* pcapng, likewise, without libpcap. */
struct ky_pcapng;
int ky_pcapng_open(struct ky_pcapng **ng, const char *path, int fd, struct kymo_error *err);
bool ky_pcapng_next(struct ky_pcapng *ng, struct ky_captured_packet *packet,
		    struct kymo_error *broken);
void ky_pcapng_close(struct ky_pcapng *ng);

#endif
