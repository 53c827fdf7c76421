/* SPDX-License-Identifier: MIT */
/* The shared part of both ends of a recorder's socket. */
#ifndef KY_RECORD_CONTROL_CONTROL_SOCKET_INTERNAL_H
#define KY_RECORD_CONTROL_CONTROL_SOCKET_INTERNAL_H

#include <sys/types.h>
#include <sys/un.h>

#include "record/control/control-socket.h"

/* Returns 1: a whole message; 0: not yet; negative: the peer has closed the connection. */
int ky_control_socket_receive(int fd, struct ky_control_socket_message *message);
/* Whether the peer process belongs to root or runs as @uid. */
bool ky_control_socket_is_of(int fd, uid_t uid);
/* Returns 0, or -ENAMETOOLONG. */
int ky_control_socket_address(struct sockaddr_un *to, const char *path);
/* Returns 0, or a negative errno; ECONNREFUSED, ENOENT: no process listens there. */
int ky_control_socket_connect(int fd, const char *path);

/*
 * Initialises the wait for clients, without a listening socket. Returns 0 or -errno. The caller
 * must call ky_control_socket_close() in any case.
 */
int ky_control_socket_init(struct ky_control_socket_server *server);
/*
 * Passes the connected @fd to the server, which serves it when the peer has permission, and closes
 * it otherwise.
 */
void ky_control_socket_add_client(struct ky_control_socket_server *server, int fd);

#endif
