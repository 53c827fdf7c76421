/* SPDX-License-Identifier: MIT */
/*
 * Memory for what recorders define: traces and streams, before they send a packet. All clients of a relay share a limit, and
 * what is left decides what one may have, so that a few cannot take all.
 *
 * Threads: one.
 */
#ifndef KY_NET_FILES_RELAY_MEMORY_H
#define KY_NET_FILES_RELAY_MEMORY_H

#include <stdint.h>

#include <kymo/error.h>

/* A client has always so much. */
#define KY_RELAY_MEMORY_OWN (UINT64_C(256) << 10)
/* All clients have so much beyond that; a client has at most as much as is left. */
#define KY_RELAY_MEMORY_ALL (UINT64_C(512) << 20)

/*
 * @bytes more for the client that has *own_bytes. KYMO_E_AGAIN: others have too much at present; KYMO_E_LIMIT: the client
 * has too much.
 */
int ky_relay_memory_take(uint64_t *own_bytes, uint64_t bytes, struct kymo_error *err);
void ky_relay_memory_give(uint64_t *own_bytes, uint64_t bytes);

#endif
