/* SPDX-License-Identifier: MIT */
/*
 * A reader's connection to a relay, Kymo's or lttng-relayd: requests of the viewer protocol (viewer-protocol.h), one at a time.
 * A request waits for its answer, within a time limit.
 *
 * The relay is untrusted: every number is checked, and memory is bounded. After an error the connection is of no use.
 *
 * Threads: one at a time per client.
 */
#ifndef KY_NET_READER_LIVE_CLIENT_H
#define KY_NET_READER_LIVE_CLIENT_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "net/link/address.h"
#include "net/link/tls.h"
#include "net/protocol/viewer-protocol.h"

struct ky_live_client;

struct ky_live_client_options {
	struct ky_net_address address; /* host and port */
	bool is_kymo;		       /* a relay of Kymo, which wants a greeting first */
	struct ky_tls *tls;	       /* NULL: no TLS; must outlive the client */
	const char *token;	       /* NULL: none */
	uint32_t delay_ms; /* how soon a relay of Kymo is to have events; 0: the usual delay */
	bool (*stop)(
		void); /* whether the user wants no more; then the next request fails. May be NULL */
};

struct ky_live_session {
	uint64_t id;
	uint32_t timer_us; /* 0: not live */
	uint32_t clients, streams;
	char *host, *name;
};

KY_VEC_TYPE(ky_live_sessions, struct ky_live_session);

/* A stream that the relay has told of. */
struct ky_live_channel {
	uint64_t id, trace; /* the relay's numbers */
	bool is_metadata;
	char path[KY_VIEWER_PATH_BYTES], name[KY_VIEWER_NAME_BYTES + 1]; /* as the relay says */
};

KY_VEC_TYPE(ky_live_channels, struct ky_live_channel);

/* In the byte order of this machine. */
struct ky_live_index {
	uint64_t offset_bytes, packet_bytes;
	uint64_t end_cycles;
	enum ky_viewer_index_status status;
	bool has_metadata, has_streams; /* there is something new */
	bool is_gone;			/* the relay does not have the packet any more */
};

/*
 * Connects, and agrees on the version. KYMO_E_IO: nobody answers, or the relay refuses; KYMO_E_FORMAT: it does not speak the
 * protocol.
 */
int ky_live_client_open(const struct ky_live_client_options *options,
			struct ky_live_client **client, struct kymo_error *err);
/* The same with a connected socket, which is taken over on failure, too. */
int ky_live_client_begin(int fd, const struct ky_live_client_options *options,
			 struct ky_live_client **client, struct kymo_error *err);
void ky_live_client_close(struct ky_live_client *client); /* NULL is allowed */

/* The sessions of the relay; the caller frees the list. Errors of requests: KYMO_E_IO, KYMO_E_FORMAT, KYMO_E_MEMORY. */
int ky_live_client_sessions(struct ky_live_client *client, struct ky_live_sessions *sessions,
			    struct kymo_error *err);
void ky_live_sessions_fini(struct ky_live_sessions *sessions);

/* Before the first ky_live_client_attach(). */
int ky_live_client_begin_session(struct ky_live_client *client, struct kymo_error *err);
/*
 * Adds the streams of session @id to @channels; they are read from their begin. KYMO_E_UNSUPPORTED: the session is not live.
 */
int ky_live_client_attach(struct ky_live_client *client, uint64_t id,
			  struct ky_live_channels *channels, struct kymo_error *err);
/* Adds new streams of session @id. *has_ended: it gets no more. */
int ky_live_client_new_channels(struct ky_live_client *client, uint64_t id,
				struct ky_live_channels *channels, bool *has_ended,
				struct kymo_error *err);
/* The next packet of stream @id, which is its next one in every call. */
int ky_live_client_index(struct ky_live_client *client, uint64_t id, struct ky_live_index *index,
			 struct kymo_error *err);
/*
 * Appends the packet of stream @id that @index tells of to the file @fd at byte @at. Returns 1; 0: not now, and
 * index->has_metadata and has_streams say what must come first, or index->is_gone that it never comes.
 */
int ky_live_client_packet(struct ky_live_client *client, uint64_t id, struct ky_live_index *index,
			  int fd, uint64_t at, struct kymo_error *err);
/* Appends what is new of the metadata stream @id. Returns 1; 0: nothing is. */
int ky_live_client_metadata(struct ky_live_client *client, uint64_t id, struct ky_strbuf *text,
			    struct kymo_error *err);

#endif
