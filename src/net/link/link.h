/* SPDX-License-Identifier: MIT */
/*
 * A connection: a stream of bytes in both directions, with TLS or without. All calls return at once.
 *
 * Threads: one at a time per link.
 */
#ifndef KY_NET_LINK_LINK_H
#define KY_NET_LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <kymo/error.h>

#include "net/link/tls.h"

struct ky_link;

/*
 * Takes over two descriptors, which may be the same: one to read, one to write; on failure, too.
 * Both get the non-blocking mode. KYMO_E_MEMORY.
 */
int ky_link_new(int in_fd, int out_fd, struct ky_link **link, struct kymo_error *err);
/* From now on everything goes through TLS. The context must outlive the link. KYMO_E_MEMORY. */
int ky_link_use_tls(struct ky_link *link, struct ky_tls *tls, struct kymo_error *err);
/*
 * The recorder's side of the handshake, within @timeout_ms. KYMO_E_AGAIN: it takes longer, and another call
 * continues it; KYMO_E_IO: it failed, or the relay has another certificate. Without TLS: no effect.
 */
int ky_link_handshake(struct ky_link *link, int timeout_ms, struct kymo_error *err);
/* For a connection at the socket @fd: small answers go at once, and a peer that vanishes is noticed within two minutes. */
void ky_link_set_options(int fd);
/* NULL is allowed. */
void ky_link_free(struct ky_link *link);

int ky_link_in_fd(const struct ky_link *link);
int ky_link_out_fd(const struct ky_link *link);

/*
 * Reads at most @bytes. Returns their number; 0: the peer has closed the connection; -EAGAIN: no
 * data yet; another negative errno.
 */
ssize_t ky_link_receive(struct ky_link *link, void *data, size_t bytes);
/* Writes. Returns the number of bytes; -EAGAIN: the peer is slow; another negative errno. */
ssize_t ky_link_send(struct ky_link *link, const struct iovec *parts, int n);
/*
 * Writes bytes of the file @fd, inside the kernel where there is no TLS. @scratch is for the copy that TLS needs.
 * Returns as ky_link_send(); 0: the file has no more bytes there.
 */
ssize_t ky_link_send_file(struct ky_link *link, int fd, uint64_t offset_bytes, uint64_t bytes,
			  uint8_t *scratch, size_t scratch_bytes);

#endif
