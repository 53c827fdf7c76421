/* SPDX-License-Identifier: MIT */
/*
 * Addresses of relays: kymo://HOST[:PORT]/NAME, and HOST[:PORT] to listen on. HOST may be
 * [IPv6-address].
 *
 * Threads: any.
 */
#ifndef KY_NET_LINK_ADDRESS_H
#define KY_NET_LINK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

struct ky_net_address {
	char host[256];
	char port[8];
	char name[256]; /* of the session; "" when the address has none */
};

/* Whether @text begins as an address of a relay. */
bool ky_net_address_is(const char *text);
/* KYMO_E_INVALID: not kymo://HOST[:PORT]/NAME. */
int ky_net_address_parse(const char *text, struct ky_net_address *address, struct kymo_error *err);
/* HOST[:PORT], where HOST may be missing ("" or ":PORT"): loopback. KYMO_E_INVALID. */
int ky_net_address_parse_host(const char *text, struct ky_net_address *address,
			      struct kymo_error *err);

/*
 * Connects within @timeout_ms. Returns a descriptor, which the caller closes, in non-blocking mode;
 * or KYMO_E_IO. *is_loopback: the peer is on this machine. *errnum: why there is no connection; 0: the host is
 * unknown.
 */
int ky_net_connect(const struct ky_net_address *address, int timeout_ms, bool *is_loopback,
		   int *errnum, struct kymo_error *err);
/*
 * Listens at the first address of the host. Returns a descriptor in non-blocking mode. KYMO_E_IO:
 * the port is in use, or the host is not of this machine. *port: the number of the port (for port
 * "0").
 */
int ky_net_listen(const struct ky_net_address *address, uint16_t *port, bool *is_loopback,
		  struct kymo_error *err);
/* Is the other end of the connection @fd on this machine? False also if that is not known. */
bool ky_net_peer_is_local(int fd);

#endif
