/* SPDX-License-Identifier: MIT */
/*
 * The control socket of a recording, through which other processes of the same user, or of root,
 * send requests. It lies in a directory that only this user can access (0700), and both ends check
 * the user of their peer. A request is a list of words. The answer is one, too; its first word is
 * "ok" or "error".
 *
 * Threads: one at a time per server.
 */
#ifndef KY_RECORD_CONTROL_CONTROL_SOCKET_H
#define KY_RECORD_CONTROL_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "os/accept-socket.h"

#define KY_CONTROL_SOCKET_BYTES_MAX 65536
#define KY_CONTROL_SOCKET_WORDS_MAX 4096
#define KY_CONTROL_SOCKET_PATH_MAX  108 /* of a socket, including its NUL */

/* Words, each with a NUL, one after another. */
struct ky_control_socket_message {
	size_t len;
	char text[KY_CONTROL_SOCKET_BYTES_MAX];
};

/* Appends a word. When a word does not fit, the message drops it and all later words. */
void ky_control_socket_add(struct ky_control_socket_message *message, const char *word);
/* The next word. The caller starts with *at = 0. NULL at the end. */
const char *ky_control_socket_next(const struct ky_control_socket_message *message, size_t *at);

/*
 * The number of clients that have not sent a request yet. When there are more, the server drops the
 * oldest.
 */
#define KY_CONTROL_SOCKET_CLIENTS_MAX 32

struct ky_control_socket_client {
	int fd;
	int64_t until_s; /* CLOCK_MONOTONIC time at which the server drops the client */
};

struct ky_control_socket_server {
	int epoll_fd, timer_fd;
	struct ky_accept_socket listener;
	int client_fd; /* the client whose request is in progress; -1: none */
	unsigned int n_clients;
	struct ky_control_socket_client clients[KY_CONTROL_SOCKET_CLIENTS_MAX]; /* oldest first */
	char path[KY_CONTROL_SOCKET_PATH_MAX];
};
#define KY_CONTROL_SOCKET_SERVER_INIT                                                \
	{                                                                            \
		.epoll_fd = -1, .timer_fd = -1, .listener = KY_ACCEPT_SOCKET_CLOSED, \
		.client_fd = -1                                                      \
	}

/* The socket of a recorder. */
struct ky_control_socket_place {
	char path[KY_CONTROL_SOCKET_PATH_MAX];
	uid_t uid;   /* the recorder's user */
	bool is_own; /* only this user or root can have made the socket */
};

/*
 * Listen. Returns 0, KYMO_E_IO, or KYMO_E_PERMISSION (the directory belongs to another user). The
 * caller must call ky_control_socket_close() in any case.
 */
int ky_control_socket_open(struct ky_control_socket_server *server, struct kymo_error *err);
/* The descriptor to wait for; -1: no request can come. */
int ky_control_socket_fd(const struct ky_control_socket_server *server);
/*
 * Handles a readable descriptor. True: a request has come, and the caller must answer it. The
 * server serves clients side by side: a silent client delays no other, and the server drops it
 * after a while.
 */
bool ky_control_socket_take(struct ky_control_socket_server *server,
			    struct ky_control_socket_message *request);
void ky_control_socket_answer(struct ky_control_socket_server *server,
			      const struct ky_control_socket_message *answer);
/* The alternative: the request gets its answer later. The caller owns the descriptor returned. */
int ky_control_socket_keep(struct ky_control_socket_server *server);
/* Answers a kept request, and closes @fd. */
void ky_control_socket_answer_kept(int fd, const struct ky_control_socket_message *answer);
void ky_control_socket_close(struct ky_control_socket_server *server);
/* The part of the path with the recording's name. */
const char *ky_control_socket_name(const char *path);

/*
 * Send a request to the recorder at @place and wait for the answer. The recorder has @timeout_s to
 * accept the request, and the same time to answer; 0: no limit. Returns 0; KYMO_E_NOT_FOUND: no
 * recorder listens; KYMO_E_AGAIN: no answer in time; KYMO_E_STATE: the recorder refused,
 * @err has its reason; KYMO_E_PERMISSION: the listening process belongs to another user.
 */
int ky_control_socket_ask(const struct ky_control_socket_place *place,
			  const struct ky_control_socket_message *request, unsigned int timeout_s,
			  struct ky_control_socket_message *answer, struct kymo_error *err);

/*
 * Send a request whose answers go on: the recorder accepts it, or refuses. Errors as above. The caller
 * owns *fd, from which ky_control_socket_wait() reads.
 */
int ky_control_socket_subscribe(const struct ky_control_socket_place *place,
				const struct ky_control_socket_message *request, int *fd,
				struct kymo_error *err);
/* Waits for the next message; false: the recorder has closed the connection. */
bool ky_control_socket_wait(int fd, struct ky_control_socket_message *message);

/* The result in an answer: 0 for "ok"; KYMO_E_STATE for a refusal, @err has the reason. */
int ky_control_socket_result(const struct ky_control_socket_message *answer,
			     struct kymo_error *err);

/*
 * Call @found for each socket of this user's recorders, and, for root, of other users' recorders
 * after them. The recorder of a socket may be dead. @found returns 0 to continue; a positive number
 * ends this directory; a negative one ends the search and is returned.
 */
int ky_control_socket_each(int (*found)(void *data, const struct ky_control_socket_place *place),
			   void *data);

#endif
