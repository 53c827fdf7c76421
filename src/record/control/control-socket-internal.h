/* SPDX-License-Identifier: MIT */
/* What both ends of a recorder's socket share. */
#ifndef KY_RECORD_CONTROL_CONTROL_SOCKET_INTERNAL_H
#define KY_RECORD_CONTROL_CONTROL_SOCKET_INTERNAL_H

#include <sys/types.h>
#include <sys/un.h>

#include "record/control/control-socket.h"

/* 1: a message; 0: not yet; negative: the other end is gone. */
int ky_control_socket_receive(int fd, struct ky_control_socket_message *message);
/* Whether the process at the other end is root's, or runs as @uid. */
bool ky_control_socket_is_of(int fd, uid_t uid);
/* 0, or -ENAMETOOLONG. */
int ky_control_socket_address(struct sockaddr_un *to, const char *path);
/* 0: connected; else a negative errno: ECONNREFUSED, ENOENT: no process listens there. */
int ky_control_socket_connect(int fd, const char *path);

/* Make what waits for clients, without a socket that listens. 0 or -errno; ky_control_socket_close() is due. */
int ky_control_socket_init(struct ky_control_socket_server *server);
/* @fd, connected, is the server's from now on, and a client if it is a friend's. */
void ky_control_socket_add_client(struct ky_control_socket_server *server, int fd);

#endif
