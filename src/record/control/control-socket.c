/* SPDX-License-Identifier: MIT */
#include "record/control/control-socket-internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "record/runtime/user-runtime.h"

/* Sockets of another user that root looks at: more are not the work of recorders. */
#define OTHERS_SOCKETS_MAX 256

/* ---- messages ------------------------------------------------------------------------- */

void ky_control_socket_add(struct ky_control_socket_message *message, const char *word)
{
	size_t bytes = strlen(word) + 1;

	if (bytes > sizeof(message->text) - message->len) {
		message->len = sizeof(message->text);
		return;
	}
	memcpy(message->text + message->len, word, bytes);
	message->len += bytes;
}

const char *ky_control_socket_next(const struct ky_control_socket_message *message, size_t *at)
{
	const char *word = message->text + *at;
	size_t left = message->len - *at;
	const char *end = left ? memchr(word, 0, left) : NULL;

	if (!end)
		return NULL;
	*at = (size_t)(end - message->text) + 1;
	return word;
}

int ky_control_socket_receive(int fd, struct ky_control_socket_message *message)
{
	ssize_t got = recv(fd, message->text, sizeof(message->text), MSG_TRUNC);

	message->len = 0;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0 || (size_t)got > sizeof(message->text))
		return KYMO_E_IO;
	message->len = (size_t)got;
	return 1;
}

bool ky_control_socket_is_of(int fd, uid_t uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == uid);
}

int ky_control_socket_address(struct sockaddr_un *to, const char *path)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(to->sun_path))
		return -ENAMETOOLONG;
	memcpy(to->sun_path, path, strlen(path) + 1);
	return 0;
}

int ky_control_socket_connect(int fd, const char *path)
{
	struct sockaddr_un to;
	int ret = ky_control_socket_address(&to, path);

	if (ret < 0)
		return ret;
	return connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* ---- the asking end ------------------------------------------------------------------------- */

const char *ky_control_socket_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The recorder has @timeout_s for each step; 0: for ever. */
static int control_socket_make_socket(unsigned int timeout_s)
{
	const struct timeval limit = {.tv_sec = timeout_s};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int is_silent(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_AGAIN, "the recorder does not answer");
	ky_error_hint(err, "it may be stopped (kill -CONT continues it) or wait for a disk");
	return KYMO_E_AGAIN;
}

static int control_socket_connect_to(const struct ky_control_socket_place *place,
				     unsigned int timeout_s, int *fd, struct kymo_error *err)
{
	int ret;

	*fd = control_socket_make_socket(timeout_s);
	if (*fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	ret = ky_control_socket_connect(*fd, place->path);
	if (!ret && ky_control_socket_is_of(*fd, place->uid))
		return KYMO_OK;
	close(*fd);
	/* In a directory of another user, a path may lead anywhere: there nothing is removed. */
	if (ret == -ECONNREFUSED && place->is_own)
		(void)unlink(place->path);
	if (!ret)
		return ky_error_set(err, KYMO_E_PERMISSION, "another user's recorder");
	if (ret == -EAGAIN)
		return is_silent(err);
	return ky_error_set(err, KYMO_E_NOT_FOUND, "the recorder is gone");
}

int ky_control_socket_result(const struct ky_control_socket_message *answer, struct kymo_error *err)
{
	size_t at = 0;
	const char *word = ky_control_socket_next(answer, &at);
	const char *path, *hint;

	if (word && strcmp(word, "ok") == 0)
		return KYMO_OK;
	word = word ? ky_control_socket_next(answer, &at) : NULL;
	path = ky_control_socket_next(answer, &at);
	hint = ky_control_socket_next(answer, &at);
	ky_error_set(err, KYMO_E_STATE, "%s", word ? word : "an answer without sense");
	if (path)
		ky_error_path(err, path);
	if (hint)
		ky_error_hint(err, "%s", hint);
	return KYMO_E_STATE;
}

/* 0, KYMO_E_AGAIN, KYMO_E_IO. */
static int wait_for_answer(int fd, struct ky_control_socket_message *answer, struct kymo_error *err)
{
	int ret;

	do {
		errno = 0;
		ret = ky_control_socket_receive(fd, answer);
	} while (ret == 0 && errno == EINTR);
	if (ret == 0)
		return is_silent(err);
	return ret > 0 ? KYMO_OK
		       : ky_error_set(err, KYMO_E_IO, "the recorder ended without an answer");
}

int ky_control_socket_ask(const struct ky_control_socket_place *place,
			  const struct ky_control_socket_message *request, unsigned int timeout_s,
			  struct ky_control_socket_message *answer, struct kymo_error *err)
{
	int fd, ret = control_socket_connect_to(place, timeout_s, &fd, err);

	if (ret < 0)
		return ret;
	if (send(fd, request->text, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
		ret = ky_error_errno(err, errno, "cannot ask the recorder");
	if (!ret)
		ret = wait_for_answer(fd, answer, err);
	close(fd);
	return ret < 0 ? ret : ky_control_socket_result(answer, err);
}

int ky_control_socket_subscribe(const struct ky_control_socket_place *place,
				const struct ky_control_socket_message *request, int *fd,
				struct kymo_error *err)
{
	struct ky_control_socket_message answer;
	int ret = control_socket_connect_to(place, 0, fd, err);

	if (ret < 0)
		return ret;
	if (send(*fd, request->text, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
		ret = ky_error_errno(err, errno, "cannot ask the recorder");
	if (!ret)
		ret = wait_for_answer(*fd, &answer, err);
	if (!ret)
		ret = ky_control_socket_result(&answer, err);
	if (ret < 0)
		close(*fd);
	return ret;
}

bool ky_control_socket_wait(int fd, struct ky_control_socket_message *message)
{
	int ret;

	do {
		errno = 0;
		ret = ky_control_socket_receive(fd, message);
	} while (ret == 0 && errno == EINTR);
	return ret > 0;
}

struct visit {
	int (*found)(void *data, const struct ky_control_socket_place *place);
	void *data;
};

/* All sockets of one directory. */
static int control_socket_visit(void *data, const struct ky_user_recordings *recordings)
{
	struct ky_control_socket_place place = {.uid = recordings->uid,
						.is_own = recordings->is_own};
	const struct visit *visit = data;
	DIR *dir = opendir(recordings->path);
	struct dirent *entry;
	unsigned int n = 0;
	int ret = KYMO_OK;

	while (dir && !ret && (place.is_own || n++ < OTHERS_SOCKETS_MAX) &&
	       (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' &&
		    snprintf(place.path, sizeof(place.path), "%.80s/%s", recordings->path,
			     entry->d_name) < (int)sizeof(place.path))
			ret = visit->found(visit->data, &place);
	}
	if (dir)
		closedir(dir);
	/* What one user's directory holds ends the visit there, and not elsewhere. */
	return ret < 0 ? ret : KYMO_OK;
}

int ky_control_socket_each(int (*found)(void *data, const struct ky_control_socket_place *place),
			   void *data)
{
	struct visit all = {.found = found, .data = data};

	return ky_user_recordings_each(control_socket_visit, &all);
}
