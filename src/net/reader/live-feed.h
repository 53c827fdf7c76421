/* SPDX-License-Identifier: MIT */
/*
 * Recordings at a relay (live-address.h), as traces of a feed (store/read/feed.h).
 *
 * Threads: one at a time per feed.
 */
#ifndef KY_NET_READER_LIVE_FEED_H
#define KY_NET_READER_LIVE_FEED_H

#include "net/reader/live-address.h"
#include "net/reader/live-client.h"
#include "store/read/feed.h"

struct ky_live_feed_options {
	bool is_live; /* they are brought while they are read; else the call brings what the relay has now, all of it */
	bool keeps; /* see struct ky_feed */
	uint64_t
		space_bytes; /* limit for what has come and was not dropped; 0: the default (feed.h) */
};

/*
 * The traces of the sessions that @address names, through @client, which is taken over, on failure, too.
 * KYMO_E_LIMIT: the relay sends too much; KYMO_E_NOT_FOUND: there is no such session; KYMO_E_INVALID: several machines have one; otherwise as requests
 * of a client.
 */
int ky_live_feed_open(struct ky_live_client *client, const struct ky_live_address *address,
		      const struct ky_live_feed_options *options, struct ky_feed **feed,
		      struct kymo_error *err);

#endif
