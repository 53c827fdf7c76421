/* SPDX-License-Identifier: MIT */
#include "net/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

struct ky_link {
	int in_fd, out_fd;
	bool is_socket;
};

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int ky_link_new(int in_fd, int out_fd, struct ky_link **out, struct kymo_error *err)
{
	struct ky_link *link = calloc(1, sizeof(*link));
	socklen_t len = sizeof(int);
	int type;

	*out = link;
	if (!link || set_nonblocking(in_fd) < 0 || set_nonblocking(out_fd) < 0) {
		int ret = link ? ky_error_errno(err, errno, "cannot use the connection")
			       : ky_error_nomem(err);

		free(link);
		*out = NULL;
		close(in_fd);
		if (out_fd != in_fd)
			close(out_fd);
		return ret;
	}
	link->in_fd = in_fd;
	link->out_fd = out_fd;
	link->is_socket = getsockopt(out_fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
	return KYMO_OK;
}

void ky_link_free(struct ky_link *link)
{
	if (!link)
		return;
	close(link->in_fd);
	if (link->out_fd != link->in_fd)
		close(link->out_fd);
	free(link);
}

int ky_link_in_fd(const struct ky_link *link)
{
	return link->in_fd;
}

int ky_link_out_fd(const struct ky_link *link)
{
	return link->out_fd;
}

ssize_t ky_link_receive(struct ky_link *link, void *data, size_t bytes)
{
	ssize_t got;

	do {
		got = read(link->in_fd, data, bytes);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

ssize_t ky_link_send(struct ky_link *link, const struct iovec *parts, int n)
{
	const struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
	ssize_t sent;

	/* A peer that has gone must not end the process by a signal. */
	do {
		sent = link->is_socket ? sendmsg(link->out_fd, &message, MSG_NOSIGNAL)
				       : writev(link->out_fd, parts, n);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}
