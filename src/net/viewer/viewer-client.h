/* SPDX-License-Identifier: MIT */
/*
 * A viewer at a relay: its requests, and the answers to them (viewer-protocol.h).
 *
 * A viewer that merges streams by itself must never get an event that is older than what it has
 * shown. So to a strict viewer (each one that comes through LTTng's port)
 *
 * - a packet goes only when it is before the bound up to which its trace has all events, and the
 *   bound is held back for a moment, in which traces of programs that have just begun can appear;
 * - new streams come before anything that is later than their begin;
 * - a packet begins after the stream's last time that the viewer has: the relay changes the head of a
 *   packet with an earlier begin.
 *
 * Kymo's own readers know the bounds themselves, and get packets at once.
 *
 * Threads: one at a time for all clients of a hub.
 */
#ifndef KY_NET_VIEWER_VIEWER_CLIENT_H
#define KY_NET_VIEWER_VIEWER_CLIENT_H

#include "base/log.h"
#include "net/viewer/viewer-list.h"
#include "net/viewer/viewer-reply.h"

struct ky_viewer_client;

/*
 * Each stream that a viewer follows takes memory. A viewer may always have so many, and beyond that as many as all viewers
 * leave of these.
 */
#define KY_VIEWER_CURSORS_OWN 1000u
#define KY_VIEWER_CURSORS_ALL 4000000u

/* What all viewers of a relay share. */
struct ky_viewer_hub {
	struct ky_viewer_list list;
	KY_VEC(struct ky_viewer_recording *) recordings; /* that viewers are attached to */
	KY_VEC(struct ky_viewer_client *) clients;
	uint32_t serial;  /* of the last recording */
	uint64_t viewer;  /* number of the last viewer */
	size_t n_cursors; /* streams that viewers follow, of all viewers */
	const struct ky_log *log;
	uint8_t scratch[KY_VIEWER_SCRATCH_BYTES];
	/* The relay's knowledge of recorders; may be NULL. */
	void (*update)(void *data, struct ky_viewer_recording *recording);
	ky_viewer_is_connected is_connected;
	void *data;
};

void ky_viewer_hub_fini(struct ky_viewer_hub *hub);

/*
 * Takes over @link of a viewer that wants events within @delay_ms. *client is in the hub's list until it is freed. KYMO_E_MEMORY; the link is freed
 * then, too.
 */
int ky_viewer_client_new(struct ky_viewer_hub *hub, struct ky_link *link, bool is_strict,
			 uint32_t delay_ms, struct ky_viewer_client **client,
			 struct kymo_error *err);
void ky_viewer_client_free(struct ky_viewer_client *client);

enum ky_viewer_wants {
	KY_VIEWER_WANTS_INPUT,
	KY_VIEWER_WANTS_OUTPUT, /* to be called when the link takes data again */
	KY_VIEWER_WANTS_TURN,	/* to be called again, after the others */
	KY_VIEWER_WANTS_TIME,	/* to be called again in a moment; no input until then */
};
/*
 * Reads and answers requests. Returns what the client waits for, or a negative errno: it has gone,
 * or speaks another protocol (-EPROTO).
 */
int ky_viewer_client_step(struct ky_viewer_client *client, int64_t now_ns);

struct ky_link *ky_viewer_client_link(const struct ky_viewer_client *client);
/* What a viewer does, or does not. */
enum ky_viewer_idle {
	KY_VIEWER_GREETS,	   /* it has not said its version */
	KY_VIEWER_WATCHES_NOTHING, /* it has sent no request since then, and watches no recording */
	KY_VIEWER_IS_STUCK,	   /* it has not read an answer */
};
/* Since when it is idle, in ns of CLOCK_MONOTONIC; 0: it is not. */
int64_t ky_viewer_client_idle_since_ns(const struct ky_viewer_client *client,
				       enum ky_viewer_idle *idle);

#endif
