/* SPDX-License-Identifier: MIT */
/*
 * A packet store for tests: it hands everything on to another store, but one call fails when the test says so.
 *
 * Threads: any, as far as the other store allows it.
 */
#ifndef TEST_SUPPORT_FAILING_STORE_H
#define TEST_SUPPORT_FAILING_STORE_H

#include "store/packets/packet-store.h"

#define FAILING_STORE_MESSAGE "the store fails as the test told it to"

/*
 * @to: the other store, which becomes this one's. @fail_at: the number of the call that fails with KYMO_E_IO, and of all
 * that follow, from 0; UINT64_MAX: none. Calls that end a trace are not counted and never fail.
 * @plain: the store has none of the optional abilities.
 */
struct ky_packet_store *failing_store_new(struct ky_packet_store *to, uint64_t fail_at, bool plain);
/* How many calls there were until now. */
uint64_t failing_store_calls(const struct ky_packet_store *store);

/*
 * Everything below directory @path can be read to its end: metadata, and all packets. Returns the number of packets. There
 * may be no trace at all.
 */
uint64_t readable_packets(const char *path);

#endif
