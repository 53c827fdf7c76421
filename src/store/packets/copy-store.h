/* SPDX-License-Identifier: MIT */
/*
 * A packet store that gives everything to one store, and a copy of it to a second one: for what has to read traces that are
 * not on this machine. Errors are those of the first store. The copy ends, without an error, when it has so many bytes of
 * packets as it may, or when it fails.
 *
 * Traces of the first store must support none of copy, list and use_blocks. Those of the second one are of a directory.
 */
#ifndef KY_STORE_PACKETS_COPY_STORE_H
#define KY_STORE_PACKETS_COPY_STORE_H

#include "store/packets/packet-store.h"

/*
 * Takes over @store and @copy; on failure, it does not. KYMO_E_MEMORY.
 */
int ky_copy_store_open(struct ky_packet_store *store, struct ky_packet_store *copy,
		       uint64_t most_bytes, struct ky_packet_store **out, struct kymo_error *err);
/* Whether the copy of what was written so far is whole. Threads: any. */
bool ky_copy_store_is_whole(const struct ky_packet_store *store);

#endif
