/* SPDX-License-Identifier: MIT */
/* A recording whose traces go to a relay: kymo record -o kymo://HOST/NAME. */
#ifndef KY_CLI_RECORDING_RECORD_NETWORK_H
#define KY_CLI_RECORDING_RECORD_NETWORK_H

#include <stdbool.h>

#include <kymo/error.h>

#include "store/packets/packet-store.h"

/* Whether the output @text is at a relay. */
bool ky_record_is_network(const char *text);
struct ky_tls;

/* The options of a recording at a relay, and what it needs. */
struct ky_record_network {
	const char *key_path;	       /* NULL: the user's, if there is one */
	bool insecure;		       /* without a key also beyond this machine */
	uint64_t spill_bytes;	       /* limit of the spill file; 0: no spill file */
	const char *spill_dir;	       /* NULL: the default */
	uint64_t wait_ms;	       /* for the relay, at the start; 0: the default */
	struct ky_tls *tls;	       /* NULL: none */
	struct ky_packet_store *store; /* the one that sends */
};

/*
 * Connects. @name: of the session, for an output that has none. KYMO_E_INVALID: not an address, or
 * a key is missing; KYMO_E_IO: the relay does not answer, or refuses. The caller frees network->tls
 * after the store.
 */
int ky_record_open_network(struct ky_record_network *network, const char *output, const char *name,
			   struct ky_packet_store **store, struct kymo_error *err);
/* From "SIZE" or "SIZE:DIR". False: it is neither. */
bool ky_record_parse_spill(const char *text, struct ky_record_network *network);
/* After the recording: waits until the relay has everything, and says what had to wait in the spill file. KYMO_E_IO. */
int ky_record_finish_network(struct ky_packet_store *store, struct kymo_error *err);
/* To stderr: the commands that read the recording at @output. @name: as above; @has_kernel: it has kernel events. */
void ky_record_say_next_there(const struct ky_record_network *network, const char *output,
			      const char *name, bool has_kernel);

#endif
