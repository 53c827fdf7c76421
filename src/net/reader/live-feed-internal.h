/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of live-feed.h: the feed, and what it has (live-feed-traces.c).
 *
 * Threads: as there.
 */
#ifndef KY_NET_READER_LIVE_FEED_INTERNAL_H
#define KY_NET_READER_LIVE_FEED_INTERNAL_H

#include "net/reader/live-feed.h"

struct ky_live_feed_channel {
	uint64_t id;
	struct ky_feed_stream *stream;
	struct ky_live_feed_trace *trace;
	struct ky_live_index index; /* of a packet that must wait; has_index */
	bool has_index;
	unsigned int n_empty; /* packets without bytes since the last one with bytes */
	bool has_all;	      /* of a feed that is not live: the stream had nothing more */
};

struct ky_live_feed_trace {
	uint64_t id; /* the relay's */
	struct ky_feed_trace *feed;
	unsigned int renamed; /* streams whose name had to get a number */
	KY_VEC(uint64_t) metadata_ids;
	struct ky_strbuf metadata; /* what has come; the feed has the part that can be read */
	int64_t incomplete_ms;	   /* since when it cannot be read; 0: it can */
	bool wants_metadata;
};

struct ky_live_feed_session {
	uint64_t id;
	bool has_ended, wants_channels;
};

struct ky_live_feed {
	struct ky_feed base;
	struct ky_live_client *client;
	struct ky_live_address address;
	uint64_t space_bytes; /* limit for base.held_bytes */
	unsigned int renamed; /* traces whose name had to get a number */
	int64_t listed_ms;    /* when the relay listed its sessions */
	KY_VEC(struct ky_live_feed_session) sessions;
	KY_VEC(struct ky_live_feed_trace *) traces;
	KY_VEC(struct ky_live_feed_channel *) channels;
};

/*
 * Adds the streams and metadata of a session that the feed does not have: @attach: all that there are, else those that have
 * come. KYMO_E_LIMIT: there are too many; KYMO_E_MEMORY; and as requests of a client.
 */
int ky_live_feed_channels(struct ky_live_feed *feed, struct ky_live_feed_session *session,
			  bool attach, struct kymo_error *err);
/*
 * Gets what the relay has more of a trace's metadata; the feed has it as soon as it can be read. KYMO_E_FORMAT: it cannot for
 * ten seconds; KYMO_E_MEMORY; and as requests of a client.
 */
int ky_live_feed_metadata(struct ky_live_feed *feed, struct ky_live_feed_trace *trace,
			  struct kymo_error *err);

#endif
