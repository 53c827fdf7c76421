/* SPDX-License-Identifier: MIT */
/*
 * Recordings at a relay, as traces of a feed (store/feed.h):
 *
 *	kymo://HOST[:PORT]/[MACHINE/]NAME		a relay of Kymo
 *	net://HOST[:PORT]/host/MACHINE/NAME		lttng-relayd, or Kymo's relay as LTTng's viewers see it
 *
 * Threads: one at a time per feed.
 */
#ifndef KY_NET_READER_LIVE_FEED_H
#define KY_NET_READER_LIVE_FEED_H

#include "net/reader/live-client.h"
#include "store/feed.h"

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

/*
 * The traces of the sessions that @address names, through @client, which is taken over, on failure, too.
 * @is_live: they are brought while they are read; else the call brings what the relay has now, all of it. @keeps: see
 * struct ky_feed.
 * KYMO_E_NOT_FOUND: there is no such session; KYMO_E_INVALID: several machines have one; otherwise as requests
 * of a client.
 */
int ky_live_feed_open(struct ky_live_client *client, const struct ky_live_address *address,
		      bool is_live, bool keeps, struct ky_feed **feed, struct kymo_error *err);

#endif
