/* SPDX-License-Identifier: MIT */
/*
 * A packet store at a relay (store/packets/packet-store.h): packets go through a sender (net/sender/sender.h).
 *
 * The calls never wait for the network. While the relay is slow or away, packets wait in the sender's
 * queue, and ky_store_is_full() asks the recording to leave further events in its buffers.
 */
#ifndef KY_NET_SENDER_NETWORK_STORE_H
#define KY_NET_SENDER_NETWORK_STORE_H

#include "net/sender/sender.h"
#include "store/packets/packet-store.h"

/*
 * Connects to a relay. @name: what messages call the store, kymo://HOST/NAME. Errors: those of
 * ky_sender_open().
 */
int ky_network_store_open(const char *name, const struct ky_sender_options *options,
			  struct ky_packet_store **store, struct kymo_error *err);
/*
 * After the close of all traces: waits until the relay has everything. See ky_sender_finish(). The
 * caller then frees the store.
 */
int ky_network_store_finish(struct ky_packet_store *store, int patience_ms, bool (*gives_up)(void),
			    struct kymo_error *err);

#endif
