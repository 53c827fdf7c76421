/* SPDX-License-Identifier: MIT */
/*
 * The viewer's HTTP server: the page and the answers of answer.h, on the loopback interface only.
 *
 * docs/security.md has the threat model. Memory is bounded: so many connections, so much for each
 * request, no bodies of requests but files that are dropped (drops.h), and a limit for each answer. A slow request costs its own
 * connection only.
 *
 * Threads: open and close in one thread; the server has its own threads.
 */
#ifndef KY_VIEW_SERVER_H
#define KY_VIEW_SERVER_H

#include "view/answers/answer.h"
#include "view/session/drops.h"
#include "view/session/live.h"
#include "view/session/notes.h"
#include "view/session/programs.h"

struct ky_view_server;

/* What a server shows. */
struct ky_view_served {
	struct ky_view *view; /* or: */
	struct ky_view_live *live;
	struct ky_view_notes *notes;
	struct ky_view *beside; /* other traces in the same window; NULL: none */
	struct ky_view_notes *beside_notes;
	struct ky_view_pair pair;			   /* of both */
	struct ky_view_drops *drops;			   /* traces that are dropped on the page */
	struct ky_view_programs programs, beside_programs; /* with reports; ->n 0: none */
};

/*
 * Listen on 127.0.0.1. All that @served has is borrowed. @port: 0: any free one. The caller must have blocked the
 * signals that it handles: the server's threads inherit this.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when the build has no server or no page; KYMO_E_IO when the port is
 * not free; KYMO_E_MEMORY.
 */
int ky_view_server_open(const struct ky_view_served *served, uint16_t port,
			struct ky_view_server **server, struct kymo_error *err);
/* The link of the page, with its secret token. */
const char *ky_view_server_link(const struct ky_view_server *server);
/* Ends answers in progress. NULL is allowed. */
void ky_view_server_close(struct ky_view_server *server);

#endif
