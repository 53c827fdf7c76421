/* SPDX-License-Identifier: MIT */
/*
 * The part of a relay that takes in what LTTng's consumer daemons send (`lttng create --set-url=net://...`).
 *
 * Daemons are untrusted as Kymo's recorders are (relay.h): a fixed amount of memory for each connection and stream, files
 * below the host's directory only, and an error costs only the daemon's connections.
 *
 * Threads: one.
 */
#ifndef KY_NET_LTTNG_LTTNG_RELAY_H
#define KY_NET_LTTNG_LTTNG_RELAY_H

#include <kymo/error.h>

#include "base/hash.h"
#include "net/link/clients.h"
#include "net/lttng/lttng-session.h"
#include "net/lttng/lttng-trace.h"
#include "net/files/relay-hosts.h"

struct ky_lttng_consumer;

struct ky_lttng_relay_options {
	const char *dir; /* the relay's directory; all must outlive the relay */
	int dir_fd;
	uint64_t quota_bytes;
	struct ky_clients *clients;
	struct ky_relay_hosts *hosts;
	ky_lttng_note note; /* as in struct ky_lttng_sessions */
	void *note_data;
};

struct ky_lttng_relay {
	struct ky_lttng_relay_options options;
	struct ky_lttng_sessions sessions;
	struct ky_lttng_traces traces;
	struct ky_map streams;		   /* handle -> struct ky_lttng_stream */
	struct ky_loop_source *timer;	   /* for consumers whose connections have ended */
	struct ky_loop_source *data_timer; /* for packets whose index has come */
	bool data_is_due;		   /* it is set */
	KY_VEC(struct ky_lttng_consumer *) consumers;
};

/* KYMO_E_IO, KYMO_E_MEMORY. */
int ky_lttng_relay_new(const struct ky_lttng_relay_options *options, struct ky_lttng_relay **relay,
		       struct kymo_error *err);
/* After all clients have gone. NULL is allowed. */
void ky_lttng_relay_free(struct ky_lttng_relay *relay);

/* How the two ports serve their clients; the owner is the struct ky_lttng_relay. */
extern const struct ky_client_calls ky_lttng_control_calls, ky_lttng_data_calls;

#endif
