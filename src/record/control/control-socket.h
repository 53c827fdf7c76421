/* SPDX-License-Identifier: MIT */
/*
 * What other processes of the same user, or of root, may ask a recorder: a socket per recording, in a directory
 * that is nobody else's (0700), and both ends look who the other one is. A request is a list of words;
 * so is the answer, of which the first is "ok" or "error".
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

#define KY_CONTROL_SOCKET_BYTES_MAX 65536
#define KY_CONTROL_SOCKET_WORDS_MAX 4096
#define KY_CONTROL_SOCKET_PATH_MAX  108 /* of a socket, with its NUL */

/* Words, each ending with NUL, one behind the other. */
struct ky_control_socket_message {
	size_t len;
	char text[KY_CONTROL_SOCKET_BYTES_MAX];
};

/* Add a word. One that does not fit is left out, and all that come after it. */
void ky_control_socket_add(struct ky_control_socket_message *message, const char *word);
/* The next word: start with *at = 0; NULL: there is none. */
const char *ky_control_socket_next(const struct ky_control_socket_message *message, size_t *at);

/* Clients that have not said anything yet; beyond these, the one that has been silent for the longest goes. */
#define KY_CONTROL_SOCKET_CLIENTS_MAX 32

struct ky_control_socket_client {
	int fd;
	int64_t until_s; /* by CLOCK_MONOTONIC: then it goes */
};

struct ky_control_socket_server {
	int epoll_fd, listen_fd, timer_fd;
	int client_fd; /* whose request is being answered; -1: none */
	unsigned int n_clients;
	struct ky_control_socket_client
		clients[KY_CONTROL_SOCKET_CLIENTS_MAX]; /* the oldest first */
	char path[KY_CONTROL_SOCKET_PATH_MAX];
};
#define KY_CONTROL_SOCKET_SERVER_INIT                                            \
	{                                                                        \
		.epoll_fd = -1, .listen_fd = -1, .timer_fd = -1, .client_fd = -1 \
	}

/* Where a recorder listens. */
struct ky_control_socket_place {
	char path[KY_CONTROL_SOCKET_PATH_MAX];
	uid_t uid;   /* whose recorder it is */
	bool is_own; /* this user's; else anything may be there */
};

/* Listen. KYMO_E_IO, KYMO_E_PERMISSION: the directory is somebody else's. close is due in any case. */
int ky_control_socket_open(struct ky_control_socket_server *server, struct kymo_error *err);
/* What to wait for; -1: nothing will come. */
int ky_control_socket_fd(const struct ky_control_socket_server *server);
/*
 * That is readable. True: there is a request, and an answer is due. Clients are served side by side: one that
 * says nothing holds up no other, and is dropped after a while.
 */
bool ky_control_socket_take(struct ky_control_socket_server *server,
			    struct ky_control_socket_message *request);
void ky_control_socket_answer(struct ky_control_socket_server *server,
			      const struct ky_control_socket_message *answer);
void ky_control_socket_close(struct ky_control_socket_server *server);
/* The part of the path that names the recording. */
const char *ky_control_socket_name(const char *path);

/*
 * Ask the recorder at @place. It has @timeout_s to take the request, and as long to answer; 0: for ever.
 * KYMO_E_NOT_FOUND: there is none (any more); KYMO_E_AGAIN: it does not answer; KYMO_E_STATE: it said no, and
 * why; KYMO_E_PERMISSION: the process that listens there is another user's.
 */
int ky_control_socket_ask(const struct ky_control_socket_place *place,
			  const struct ky_control_socket_message *request, unsigned int timeout_s,
			  struct ky_control_socket_message *answer, struct kymo_error *err);

/* What an answer says: 0, "ok"; KYMO_E_STATE: no, and why. */
int ky_control_socket_result(const struct ky_control_socket_message *answer,
			     struct kymo_error *err);

/*
 * Call @found for each socket of this user's recorders, and, for root, of other users' after them; it may be a
 * dead one's. @found returns 0; positive: nothing more of this directory; negative: it is returned at once.
 */
int ky_control_socket_each(int (*found)(void *data, const struct ky_control_socket_place *place),
			   void *data);

#endif
