/* SPDX-License-Identifier: MIT */
/*
 * A socket that listens. When the process has no descriptor for a connection, the connection waits in the socket, which stays
 * readable; a server that waits for this would be awake all the time. So it pauses then, and the server gets no
 * event from it until the pause ends.
 *
 *	ky_accept_socket_open(&port, socket_fd, pause_ns, err);
 *	... when port.fd is readable:
 *	fd = ky_accept_socket_take(&port);
 *	ky_accept_socket_close(&port);
 *
 * Threads: one at a time per port.
 */
#ifndef KY_OS_ACCEPT_SOCKET_H
#define KY_OS_ACCEPT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

struct ky_accept_socket {
	int fd; /* to wait for; -1: closed */
	int socket_fd, timer_fd;
	uint64_t pause_ns;
	bool pauses;
	bool keeps_some; /* the caller sets it: a quarter of the process's descriptors is not for connections */
};

/* clang-format off */
#define KY_ACCEPT_SOCKET_CLOSED {.fd = -1, .socket_fd = -1, .timer_fd = -1}
/* clang-format on */

/* Takes @socket_fd over, on failure, too; it must not block. KYMO_E_IO. */
int ky_accept_socket_open(struct ky_accept_socket *port, int socket_fd, uint64_t pause_ns,
			  struct kymo_error *err);
/* A closed port is allowed. */
void ky_accept_socket_close(struct ky_accept_socket *port);

/*
 * The descriptor of a new connection, which does not block, or -errno. -EAGAIN: no connection waits. After an error that
 * ky_accept_socket_is_shortage() knows, the socket pauses.
 */
int ky_accept_socket_take(struct ky_accept_socket *port);
/* Whether descriptors or memory are short. */
bool ky_accept_socket_is_shortage(int errnum);

#endif
