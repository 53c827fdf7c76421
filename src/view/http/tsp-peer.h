/* SPDX-License-Identifier: MIT */
/* The user who owns the other end of a connection of the loopback interface. Threads: any. */
#ifndef KY_VIEW_TSP_PEER_H
#define KY_VIEW_TSP_PEER_H

#include <sys/socket.h>
#include <sys/types.h>

#include <kymo/error.h>

/*
 * The user of the process that connects from @peer to @own, TCP addresses of this machine's loopback interface.
 * Returns 0; KYMO_E_NOT_FOUND: no process of this network namespace has such a connection; KYMO_E_IO: the
 * kernel does not tell.
 */
int ky_tsp_peer_user(const struct sockaddr *peer, const struct sockaddr *own, uid_t *user,
		     struct kymo_error *err);

#endif
