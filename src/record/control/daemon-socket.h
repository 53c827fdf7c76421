/* SPDX-License-Identifier: MIT */
/*
 * The socket of kymo daemon, where every user of the machine may ask: /run/kymo/daemon, mode 0666. Messages are those of
 * recorders' sockets; an answer may carry an open file. The kernel names the user of the other end and its groups
 * (SO_PEERCRED, SO_PEERGROUPS), as they were at the connection.
 *
 * Threads: any.
 */
#ifndef KY_RECORD_CONTROL_DAEMON_SOCKET_H
#define KY_RECORD_CONTROL_DAEMON_SOCKET_H

#include "record/control/control-socket.h"

#define KY_DAEMON_SOCKET "/run/kymo/daemon"

/*
 * Listen at @path; its directory is made when it does not exist (0755). A socket there that no process serves is removed. Returns a
 * descriptor, which does not block; KYMO_E_INVALID: another daemon listens, or the path is too long; KYMO_E_IO.
 */
int ky_daemon_socket_listen(const char *path, struct kymo_error *err);
/* The user of the peer. False: the kernel does not say. */
bool ky_daemon_socket_user(int fd, uid_t *uid);
/* Whether the peer had group @gid when it connected: its effective group, or one of its supplementary groups. */
bool ky_daemon_socket_has_group(int fd, gid_t gid);

/*
 * Connect to the daemon at @path. Returns a descriptor, whose calls block; KYMO_E_NOT_FOUND: no daemon listens;
 * KYMO_E_PERMISSION: who listens is neither root nor this user.
 */
int ky_daemon_socket_connect(const char *path, struct kymo_error *err);
/* The same without waiting, to a recorder of this user; a negative errno on failure. */
int ky_daemon_socket_connect_recorder(pid_t pid);

/* Send a message, with @file (or -1). Returns 0 or -errno; -EAGAIN: the peer does not take it. */
int ky_daemon_socket_send(int fd, const struct ky_control_socket_message *message, int file);
/*
 * Receive a message. *file: the open file that came with it, which the caller closes; -1: none. @file NULL: the kernel
 * closes whatever comes. Returns 1; 0: not yet (or a signal has come); negative: the peer has gone, or speaks nonsense.
 */
int ky_daemon_socket_receive(int fd, struct ky_control_socket_message *message, int *file);

#endif
