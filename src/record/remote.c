/* SPDX-License-Identifier: MIT */
#include "record/remote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user-runtime.h"

/* Another recorder may remove the directory, empty as it is, as soon as it was made. */
#define MAKE_TRIES 8
/* Recorders with one process id: of several PID namespaces that share the directory. */
#define NAMES_MAX 64

/* ---- messages ------------------------------------------------------------------------- */

void ky_remote_add(struct ky_remote_message *message, const char *word)
{
	size_t bytes = strlen(word) + 1;

	if (bytes > sizeof(message->text) - message->len) {
		message->len = sizeof(message->text);
		return;
	}
	memcpy(message->text + message->len, word, bytes);
	message->len += bytes;
}

const char *ky_remote_next(const struct ky_remote_message *message, size_t *at)
{
	const char *word = message->text + *at;
	size_t left = message->len - *at;
	const char *end = left ? memchr(word, 0, left) : NULL;

	if (!end)
		return NULL;
	*at = (size_t)(end - message->text) + 1;
	return word;
}

/* 1: a message; 0: not yet; negative: the other end is gone. */
static int receive(int fd, struct ky_remote_message *message, int flags)
{
	ssize_t got = recv(fd, message->text, sizeof(message->text), flags | MSG_TRUNC);

	message->len = 0;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0 || (size_t)got > sizeof(message->text))
		return KYMO_E_IO;
	message->len = (size_t)got;
	return 1;
}

/* Only root, and who we are. */
static bool is_friend(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* ---- the recorder --------------------------------------------------------------------- */

static int address(struct sockaddr_un *to, const char *path)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(to->sun_path))
		return -ENAMETOOLONG;
	memcpy(to->sun_path, path, strlen(path) + 1);
	return 0;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* 0: connected; else a negative errno: ECONNREFUSED, ENOENT: nobody listens there. */
static int try_connect(int fd, const char *path)
{
	struct sockaddr_un to;
	int ret = address(&to, path);

	if (ret < 0)
		return ret;
	return connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

static bool is_dead(const char *path)
{
	int fd = open_socket(), ret = fd >= 0 ? try_connect(fd, path) : 0;

	if (fd >= 0)
		close(fd);
	return ret == -ECONNREFUSED;
}

/* Our process id, and "-2" and so on when another recorder has that name. 0 or -errno. */
static int bind_name(struct ky_remote_server *server, const char *directory)
{
	struct sockaddr_un to;
	int ret = -EADDRINUSE;

	for (int i = 1; i <= NAMES_MAX && ret == -EADDRINUSE; i++) {
		char number[16] = "";

		if (i > 1)
			snprintf(number, sizeof(number), "-%d", i);
		snprintf(server->path, sizeof(server->path), "%.80s/%d%s", directory, (int)getpid(),
			 number);
		if (is_dead(server->path))
			(void)unlink(server->path);
		ret = address(&to, server->path);
		if (!ret && bind(server->listen_fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
			ret = -errno;
	}
	if (ret < 0)
		server->path[0] = 0;
	return ret;
}

/* What killed recorders left. */
static int clean(void *data, const char *path)
{
	if (is_dead(path))
		(void)unlink(path);
	return KYMO_OK;
}

int ky_remote_open(struct ky_remote_server *server, struct kymo_error *err)
{
	char directory[KY_SESSION_PATH_MAX + 1];
	mode_t mask;
	int ret = -ENOENT;

	*server = (struct ky_remote_server){.listen_fd = open_socket(), .client_fd = -1};
	if (server->listen_fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	(void)ky_remote_each(clean, NULL);
	for (int i = 0; i < MAKE_TRIES && ret == -ENOENT; i++) {
		int made = ky_user_recordings_make(directory, err);

		if (made < 0)
			return made;
		mask = umask(0177);
		ret = bind_name(server, directory);
		umask(mask);
	}
	if (!ret && listen(server->listen_fd, 8) < 0)
		ret = -errno;
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot listen for requests");
		ky_error_path(err, directory);
		return ret;
	}
	return KYMO_OK;
}

int ky_remote_fd(const struct ky_remote_server *server)
{
	return server->client_fd >= 0 ? server->client_fd : server->listen_fd;
}

bool ky_remote_take(struct ky_remote_server *server, struct ky_remote_message *request)
{
	int ret;

	if (server->client_fd < 0) {
		server->client_fd =
			accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (server->client_fd >= 0 && !is_friend(server->client_fd)) {
			close(server->client_fd);
			server->client_fd = -1;
		}
	}
	if (server->client_fd < 0)
		return false;
	ret = receive(server->client_fd, request, 0);
	if (ret < 0) {
		close(server->client_fd);
		server->client_fd = -1;
	}
	return ret > 0;
}

void ky_remote_answer(struct ky_remote_server *server, const struct ky_remote_message *answer)
{
	/* Who does not wait for it does not get it. */
	(void)send(server->client_fd, answer->text, answer->len, MSG_NOSIGNAL);
	close(server->client_fd);
	server->client_fd = -1;
}

void ky_remote_close(struct ky_remote_server *server)
{
	char *slash = strrchr(server->path, '/');

	if (server->path[0])
		(void)unlink(server->path);
	if (server->client_fd >= 0)
		close(server->client_fd);
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	server->listen_fd = server->client_fd = -1;
	/* The directory, when nobody else records. */
	if (slash) {
		*slash = 0;
		(void)rmdir(server->path);
	}
	server->path[0] = 0;
}

/* ---- who asks ------------------------------------------------------------------------- */

const char *ky_remote_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int connect_to(const char *path, int *fd, struct kymo_error *err)
{
	int ret;

	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	ret = try_connect(*fd, path);
	if (!ret && is_friend(*fd))
		return KYMO_OK;
	close(*fd);
	if (ret == -ECONNREFUSED)
		(void)unlink(path);
	if (!ret)
		return ky_error_set(err, KYMO_E_PERMISSION, "another user's recorder");
	return ky_error_set(err, KYMO_E_NOT_FOUND, "the recorder is gone");
}

int ky_remote_result(const struct ky_remote_message *answer, struct kymo_error *err)
{
	size_t at = 0;
	const char *word = ky_remote_next(answer, &at);
	const char *path, *hint;

	if (word && strcmp(word, "ok") == 0)
		return KYMO_OK;
	word = word ? ky_remote_next(answer, &at) : NULL;
	path = ky_remote_next(answer, &at);
	hint = ky_remote_next(answer, &at);
	ky_error_set(err, KYMO_E_STATE, "%s", word ? word : "an answer without sense");
	if (path)
		ky_error_path(err, path);
	if (hint)
		ky_error_hint(err, "%s", hint);
	return KYMO_E_STATE;
}

int ky_remote_ask(const char *path, const struct ky_remote_message *request,
		  struct ky_remote_message *answer, struct kymo_error *err)
{
	int fd, ret = connect_to(path, &fd, err);

	if (ret < 0)
		return ret;
	if (send(fd, request->text, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
		ret = ky_error_errno(err, errno, "cannot ask the recorder");
	while (!ret && (ret = receive(fd, answer, 0)) == 0)
		;
	close(fd);
	if (ret < 0)
		return ky_error_set(err, KYMO_E_IO, "the recorder ended without an answer");
	return ky_remote_result(answer, err);
}

/* All sockets of one directory. */
static int each_in(const char *directory, int (*found)(void *data, const char *path), void *data)
{
	char path[KY_REMOTE_PATH_MAX];
	DIR *dir = opendir(directory);
	struct dirent *entry;
	int ret = KYMO_OK;

	while (dir && !ret && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && snprintf(path, sizeof(path), "%.80s/%s", directory,
							entry->d_name) < (int)sizeof(path))
			ret = found(data, path);
	}
	if (dir)
		closedir(dir);
	return ret;
}

int ky_remote_each(int (*found)(void *data, const char *path), void *data)
{
	char directory[KY_SESSION_PATH_MAX + 1];
	int ret = KYMO_OK;

	for (unsigned int n = 0; !ret && ky_user_recordings_find(n, directory); n++)
		ret = each_in(directory, found, data);
	return ret;
}
