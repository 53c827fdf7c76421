/* SPDX-License-Identifier: MIT */
/*
 * A trace of a directory store: metadata, one file for each stream with its index, and a file for live readers.
 *
 * Threads: see packet-store.h.
 */
#ifndef KY_STORE_DIRECTORY_TRACE_H
#define KY_STORE_DIRECTORY_TRACE_H

#include "store/packets/packet-store.h"

/* The call ->open of a directory store. */
int ky_directory_trace_new(struct ky_packet_store *store, const struct ky_store_place *place,
			   struct ky_store_trace **trace, struct kymo_error *err);
/* @store, which has no other trace, ends with @trace. */
void ky_directory_trace_own(struct ky_store_trace *trace, struct ky_packet_store *store);

#endif
