/* SPDX-License-Identifier: MIT */
/* A recording whose traces go to a relay: kymo record -o kymo://HOST/NAME. */
#ifndef KY_CLI_RECORDING_RECORD_NETWORK_H
#define KY_CLI_RECORDING_RECORD_NETWORK_H

#include <stdbool.h>

#include <kymo/error.h>

#include "store/packet-store.h"

/* Whether the output @text is at a relay. */
bool ky_record_is_network(const char *text);
/* Connects. KYMO_E_INVALID: not an address; KYMO_E_IO: the relay does not answer, or refuses. */
int ky_record_open_network(const char *output, const char *name, struct ky_packet_store **store,
			   struct kymo_error *err);
/* After the recording: waits until the relay has everything. KYMO_E_IO. */
int ky_record_finish_network(struct ky_packet_store *store, struct kymo_error *err);

#endif
