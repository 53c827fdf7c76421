/* SPDX-License-Identifier: MIT */
/*
 * Addresses of recordings at relays:
 *
 *	kymo://HOST[:PORT]/[MACHINE/]NAME		a relay of Kymo
 *	net://HOST[:PORT]/host/MACHINE/NAME		lttng-relayd, or Kymo's relay as LTTng's viewers see it
 *
 * Threads: any.
 */
#ifndef KY_NET_READER_LIVE_ADDRESS_H
#define KY_NET_READER_LIVE_ADDRESS_H

#include <stdbool.h>

#include <kymo/error.h>

#include "net/link/address.h"

struct ky_live_address {
	struct ky_net_address relay; /* host and port */
	char machine[256];	     /* "": any */
	char name[256];		     /* of the session; "": all are to be listed */
	bool is_kymo;
};

/* Whether @text begins as an address of recordings at a relay. */
bool ky_live_address_is(const char *text);
/* KYMO_E_INVALID. */
int ky_live_address_parse(const char *text, struct ky_live_address *address,
			  struct kymo_error *err);

#endif
