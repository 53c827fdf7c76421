/* SPDX-License-Identifier: MIT */
#include "os/accept-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"

#define SECOND_NS UINT64_C(1000000000)

/* An epoll descriptor is readable when one of these is: the socket or the timer. */
static int accept_socket_watch(const struct ky_accept_socket *port, int operation, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(port->fd, operation, fd, &event);
}

int ky_accept_socket_open(struct ky_accept_socket *port, int socket_fd, uint64_t pause_ns,
			  struct kymo_error *err)
{
	int ret;

	*port = (struct ky_accept_socket){.socket_fd = socket_fd, .pause_ns = pause_ns};
	port->fd = epoll_create1(EPOLL_CLOEXEC);
	port->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (port->fd >= 0 && port->timer_fd >= 0 &&
	    accept_socket_watch(port, EPOLL_CTL_ADD, port->timer_fd) == 0 &&
	    accept_socket_watch(port, EPOLL_CTL_ADD, socket_fd) == 0)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot wait for connections");
	ky_accept_socket_close(port);
	return ret;
}

void ky_accept_socket_close(struct ky_accept_socket *port)
{
	const int fds[] = {port->fd, port->socket_fd, port->timer_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*port = (struct ky_accept_socket)KY_ACCEPT_SOCKET_CLOSED;
}

bool ky_accept_socket_is_shortage(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM;
}

static bool has_descriptors(const struct ky_accept_socket *port)
{
	struct rlimit limit = {0};
	/* The kernel gives the lowest one that is free. */
	int lowest = fcntl(port->socket_fd, F_DUPFD_CLOEXEC, 0);

	if (lowest < 0)
		return false;
	close(lowest);
	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	       (rlim_t)lowest < limit.rlim_cur - limit.rlim_cur / 4;
}

static void accept_socket_set_timer(const struct ky_accept_socket *port)
{
	const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(port->pause_ns / SECOND_NS),
						   .tv_nsec = (long)(port->pause_ns % SECOND_NS)}};

	(void)timerfd_settime(port->timer_fd, 0, &at, NULL);
}

static void accept_socket_pause(struct ky_accept_socket *port)
{
	if (accept_socket_watch(port, EPOLL_CTL_DEL, port->socket_fd) < 0)
		return;
	port->pauses = true;
	accept_socket_set_timer(port);
}

/* False: the pause goes on. */
static bool accept_socket_end_pause(struct ky_accept_socket *port)
{
	uint64_t expired;

	if (read(port->timer_fd, &expired, sizeof(expired)) != sizeof(expired))
		return false;
	/* The kernel needs memory for this. */
	port->pauses = accept_socket_watch(port, EPOLL_CTL_ADD, port->socket_fd) < 0;
	if (port->pauses)
		accept_socket_set_timer(port);
	return !port->pauses;
}

int ky_accept_socket_take(struct ky_accept_socket *port)
{
	int fd = -1;

	if (port->pauses && !accept_socket_end_pause(port))
		return -EAGAIN;
	errno = EMFILE;
	if (!port->keeps_some || has_descriptors(port))
		fd = accept4(port->socket_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (ky_accept_socket_is_shortage(-fd))
		accept_socket_pause(port);
	return fd;
}
