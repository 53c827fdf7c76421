/* SPDX-License-Identifier: MIT */
/* The recorder's end: it listens, and serves its clients side by side. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"
#include "record/control/control-socket-internal.h"
#include "record/runtime/user-runtime.h"

/* Another recorder may remove the directory, empty as it is, as soon as it was made. */
#define MAKE_TRIES 8
/* Recorders with one process id: of several PID namespaces that share the directory. */
#define NAMES_MAX 64
/* The server drops a client after this time without a message. */
#define SILENCE_S 10
/* When the recorder has no descriptor, new clients wait for so long. */
#define PAUSE_NS UINT64_C(200000000)

static int control_socket_server_open_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool control_socket_server_is_dead(const char *path)
{
	int fd = control_socket_server_open_socket(),
	    ret = fd >= 0 ? ky_control_socket_connect(fd, path) : 0;

	if (fd >= 0)
		close(fd);
	return ret == -ECONNREFUSED;
}

/* Our process id, and "-2" and so on when another recorder has that name. 0 or -errno. */
static int control_socket_server_bind_name(struct ky_control_socket_server *server, int fd,
					   const char *directory)
{
	struct sockaddr_un to;
	int ret = -EADDRINUSE;

	for (int i = 1; i <= NAMES_MAX && ret == -EADDRINUSE; i++) {
		char number[16] = "";

		if (i > 1)
			snprintf(number, sizeof(number), "-%d", i);
		snprintf(server->path, sizeof(server->path), "%.80s/%d%s", directory, (int)getpid(),
			 number);
		if (control_socket_server_is_dead(server->path))
			(void)unlink(server->path);
		ret = ky_control_socket_address(&to, server->path);
		if (!ret && bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
			ret = -errno;
	}
	if (ret < 0)
		server->path[0] = 0;
	return ret;
}

/* What killed recorders left. */
static int control_socket_server_clean(void *data, const struct ky_control_socket_place *place)
{
	pid_t pid = (pid_t)strtol(ky_control_socket_name(place->path), NULL, 10);

	/* To ask wakes a recorder. Where its process lives, the socket is most likely in use. */
	if (pid > 0 && kill(pid, 0) == 0)
		return KYMO_OK;
	if (place->is_own && control_socket_server_is_dead(place->path))
		(void)unlink(place->path);
	return KYMO_OK;
}

/* ---- clients -------------------------------------------------------------------------- */

static int control_socket_server_watch(const struct ky_control_socket_server *server, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* The timer is for the oldest client, which is the first. */
static void control_socket_server_set_timer(const struct ky_control_socket_server *server)
{
	struct itimerspec spec = {0};

	if (server->n_clients)
		spec.it_value.tv_sec = server->clients[0].until_s;
	(void)timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Returns its descriptor, which is the caller's now. */
static int forget_client(struct ky_control_socket_server *server, unsigned int i)
{
	int fd = server->clients[i].fd;

	(void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	server->n_clients--;
	memmove(server->clients + i, server->clients + i + 1,
		(server->n_clients - i) * sizeof(server->clients[0]));
	control_socket_server_set_timer(server);
	return fd;
}

void ky_control_socket_add_client(struct ky_control_socket_server *server, int fd)
{
	/* The one that has been silent for the longest goes. */
	if (server->n_clients == KY_CONTROL_SOCKET_CLIENTS_MAX)
		close(forget_client(server, 0));
	if (!ky_control_socket_is_of(fd, geteuid()) ||
	    control_socket_server_watch(server, fd) < 0) {
		close(fd);
		return;
	}
	server->clients[server->n_clients++] =
		(struct ky_control_socket_client){.fd = fd, .until_s = ky_os_now_s() + SILENCE_S};
	control_socket_server_set_timer(server);
}

static void drop_silent(struct ky_control_socket_server *server)
{
	while (server->n_clients && server->clients[0].until_s <= ky_os_now_s())
		close(forget_client(server, 0));
	/* Makes the timer unreadable, too. */
	control_socket_server_set_timer(server);
}

/* Whether @fd, a client's, has sent a request. */
static bool hear(struct ky_control_socket_server *server, int fd,
		 struct ky_control_socket_message *request)
{
	unsigned int i = 0;
	int ret;

	while (i < server->n_clients && server->clients[i].fd != fd)
		i++;
	if (i == server->n_clients)
		return false;
	ret = ky_control_socket_receive(fd, request);
	if (ret < 0)
		close(forget_client(server, i));
	else if (ret > 0)
		server->client_fd = forget_client(server, i);
	return ret > 0;
}

/* ---- the server ----------------------------------------------------------------------- */

int ky_control_socket_init(struct ky_control_socket_server *server)
{
	*server = (struct ky_control_socket_server){
		.listener = KY_ACCEPT_SOCKET_CLOSED,
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.client_fd = -1,
	};
	if (server->epoll_fd < 0 || server->timer_fd < 0 ||
	    control_socket_server_watch(server, server->timer_fd) < 0)
		return -errno;
	return 0;
}

/* In a directory that it makes: 0 or -errno; *made: the error of that. */
static int control_socket_server_listen(struct ky_control_socket_server *server, int fd,
					char *directory, int *made, struct kymo_error *err)
{
	int ret = -ENOENT;
	mode_t mask;

	for (int i = 0; i < MAKE_TRIES && ret == -ENOENT; i++) {
		*made = ky_user_recordings_make(directory, err);
		if (*made < 0)
			return 0;
		mask = umask(0177);
		ret = control_socket_server_bind_name(server, fd, directory);
		umask(mask);
	}
	return !ret && listen(fd, KY_CONTROL_SOCKET_CLIENTS_MAX) < 0 ? -errno : ret;
}

static int control_socket_server_use(struct ky_control_socket_server *server, int fd,
				     struct kymo_error *err)
{
	int ret = ky_accept_socket_open(&server->listener, fd, PAUSE_NS, err);

	if (!ret && control_socket_server_watch(server, server->listener.fd) < 0)
		ret = ky_error_errno(err, errno, "cannot listen for requests");
	return ret;
}

int ky_control_socket_open(struct ky_control_socket_server *server, struct kymo_error *err)
{
	char directory[KY_SESSION_PATH_MAX + 1];
	int ret = ky_control_socket_init(server), fd = -1, made = KYMO_OK;

	if (!ret)
		fd = control_socket_server_open_socket();
	if (!ret && fd < 0)
		ret = -errno;
	if (ret < 0)
		return ky_error_errno(err, -ret, "cannot make a socket");
	(void)ky_control_socket_each(control_socket_server_clean, NULL);
	ret = control_socket_server_listen(server, fd, directory, &made, err);
	if (!ret && !made)
		return control_socket_server_use(server, fd, err);
	close(fd);
	if (made < 0)
		return made;
	ret = ky_error_errno(err, -ret, "cannot listen for requests");
	ky_error_path(err, directory);
	return ret;
}

int ky_control_socket_fd(const struct ky_control_socket_server *server)
{
	return server->epoll_fd;
}

bool ky_control_socket_take(struct ky_control_socket_server *server,
			    struct ky_control_socket_message *request)
{
	struct epoll_event events[KY_CONTROL_SOCKET_CLIENTS_MAX + 2];
	int n = epoll_wait(server->epoll_fd, events, KY_CONTROL_SOCKET_CLIENTS_MAX + 2, 0);
	bool found = false;

	for (int i = 0; i < n && !found; i++) {
		int fd = events[i].data.fd;

		if (fd == server->timer_fd) {
			drop_silent(server);
		} else if (fd == server->listener.fd) {
			fd = ky_accept_socket_take(&server->listener);
			if (fd >= 0)
				ky_control_socket_add_client(server, fd);
		} else {
			found = hear(server, fd, request);
		}
	}
	return found;
}

void ky_control_socket_answer_kept(int fd, const struct ky_control_socket_message *answer)
{
	/* A client that does not wait for it does not get it. */
	(void)send(fd, answer->text, answer->len, MSG_NOSIGNAL);
	close(fd);
}

int ky_control_socket_keep(struct ky_control_socket_server *server)
{
	int fd = server->client_fd;

	server->client_fd = -1;
	return fd;
}

void ky_control_socket_answer(struct ky_control_socket_server *server,
			      const struct ky_control_socket_message *answer)
{
	ky_control_socket_answer_kept(ky_control_socket_keep(server), answer);
}

static void control_socket_server_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void ky_control_socket_close(struct ky_control_socket_server *server)
{
	char *slash = strrchr(server->path, '/');

	if (server->path[0])
		(void)unlink(server->path);
	while (server->n_clients)
		close(forget_client(server, 0));
	control_socket_server_close_fd(&server->client_fd);
	ky_accept_socket_close(&server->listener);
	control_socket_server_close_fd(&server->timer_fd);
	control_socket_server_close_fd(&server->epoll_fd);
	/* The directory, when no other process of the user records. */
	if (slash) {
		*slash = 0;
		(void)rmdir(server->path);
	}
	server->path[0] = 0;
}
