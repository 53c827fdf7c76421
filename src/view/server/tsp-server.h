/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server of the Trace Server Protocol, on the loopback interface only.
 *
 * Clients know no token. So a request counts only from a process of this user or root, with the server's
 * own address as Host, and, when it has an Origin, with that of a client. docs/security.md has the
 * threat model. Memory is bounded: so many connections, so much for each body and each answer.
 *
 * Threads: open and close in one thread; the server has its own threads.
 */
#ifndef KY_VIEW_TSP_SERVER_H
#define KY_VIEW_TSP_SERVER_H

#include "view/tsp/tsp.h"

#define KY_TSP_PORT 8080

struct ky_tsp_server;

/*
 * Listen on 127.0.0.1 and ::1 (where IPv6 is there). @port: 0: any free one. @origins: other origins of
 * clients. @log gets the first refusal of another user. The server borrows these and @tsp. The caller must have blocked
 * the signals that it handles.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when the build has no server; KYMO_E_IO when the port is not free, or the
 * kernel does not tell whose connections are; KYMO_E_MEMORY.
 */
int ky_tsp_server_open(struct ky_tsp *tsp, uint16_t port, const char *const *origins,
		       size_t n_origins, const struct ky_log *log, struct ky_tsp_server **server,
		       struct kymo_error *err);
/* The base of the protocol: "http://127.0.0.1:8080/tsp/api". */
const char *ky_tsp_server_link(const struct ky_tsp_server *server);
/* Ends answers in progress. NULL is allowed. */
void ky_tsp_server_close(struct ky_tsp_server *server);

#endif
