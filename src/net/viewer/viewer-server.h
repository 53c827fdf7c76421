/* SPDX-License-Identifier: MIT */
/*
 * Serves the recordings below a directory to viewers, in LTTng's live protocol, with a thread of its
 * own: writers of the recordings never wait for a viewer.
 *
 * Viewers are untrusted. Each has a small fixed amount of memory, and a few words for each stream of
 * the recordings that it watches; an error costs only its connection.
 *
 * Threads: any, for all functions.
 */
#ifndef KY_NET_VIEWER_VIEWER_SERVER_H
#define KY_NET_VIEWER_VIEWER_SERVER_H

#include <kymo/error.h>

#include "base/log.h"
#include "net/link/link.h"

struct ky_viewer_server;

struct ky_viewer_server_options {
	const char *dir;	  /* must outlive the server */
	unsigned int clients_max; /* 0: 1000 */
	const struct ky_log *log; /* may be NULL; the server's thread calls it */
};

/* Starts the thread. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_viewer_server_start(const struct ky_viewer_server_options *options,
			   struct ky_viewer_server **server, struct kymo_error *err);
/* Closes all connections. NULL is allowed. */
void ky_viewer_server_stop(struct ky_viewer_server *server);

/*
 * Takes LTTng's viewers from the socket @fd, which listens; the server takes it over, on failure
 * too. Once per server.
 */
int ky_viewer_server_listen(struct ky_viewer_server *server, int fd, struct kymo_error *err);
/* A reader of Kymo that has greeted, and wants events within @delay_ms; the server takes the link over. */
void ky_viewer_server_take(struct ky_viewer_server *server, struct ky_link *link,
			   uint32_t delay_ms);

enum ky_viewer_recorder {
	KY_VIEWER_RECORDER_GONE, /* the recording is complete, or nobody continues it */
	KY_VIEWER_RECORDER_HERE,
	KY_VIEWER_RECORDER_AWAY, /* the connection broke; the recorder may come back */
};
/* What the relay knows of the recorder of the recording at @below the directory. */
void ky_viewer_server_note(struct ky_viewer_server *server, const char *below,
			   enum ky_viewer_recorder recorder);

#endif
