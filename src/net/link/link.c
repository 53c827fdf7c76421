/* SPDX-License-Identifier: MIT */
#include "net/link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"

/* What the kernel may send of a file before others get their turn. */
#define SEND_MAX (1u << 20)
/* Of a TLS record. */
#define RECORD_BYTES 16384
/* A peer that has gone without a word is noticed, however long it may be silent. */
#define KEEP_IDLE_S	60
#define KEEP_INTERVAL_S 10
#define KEEP_PROBES	6

struct ky_link {
	int in_fd, out_fd;
	bool is_socket;
	struct ky_tls_session *tls; /* NULL: none */
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

void ky_link_set_options(int fd)
{
	const int one = 1, idle = KEEP_IDLE_S, interval = KEEP_INTERVAL_S, probes = KEEP_PROBES;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

int ky_link_use_tls(struct ky_link *link, struct ky_tls *tls, struct kymo_error *err)
{
	link->tls = ky_tls_begin(tls, link->in_fd);
	return link->tls ? KYMO_OK : ky_error_nomem(err);
}

int ky_link_handshake(struct ky_link *link, int timeout_ms, struct kymo_error *err)
{
	struct pollfd wanted = {.fd = link->in_fd};
	int64_t end_ms = ky_os_now_ms() + timeout_ms, left_ms;
	int ret = link->tls ? 1 : 0;

	while (ret > 0) {
		ret = ky_tls_handshake(link->tls);
		left_ms = end_ms - ky_os_now_ms();
		wanted.events = ret == 2 ? POLLOUT : POLLIN;
		if (ret > 0 && (left_ms <= 0 || poll(&wanted, 1, (int)left_ms) == 0))
			ret = -ETIMEDOUT;
	}
	if (!ret)
		return KYMO_OK;
	if (ret == -EPERM)
		return ky_error_set(err, KYMO_E_IO,
				    "the relay has another certificate than its key says");
	ky_error_errno(err, -ret, "the relay does not answer with TLS");
	if (err)
		err->code = KYMO_E_IO;
	return ret == -ETIMEDOUT ? KYMO_E_AGAIN : KYMO_E_IO;
}

void ky_link_free(struct ky_link *link)
{
	if (!link)
		return;
	ky_tls_end(link->tls);
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

	if (link->tls)
		return ky_tls_receive(link->tls, data, bytes);
	do {
		got = read(link->in_fd, data, bytes);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Small parts become one record. A call that is repeated begins with the same bytes, as TLS wants it. */
static ssize_t send_tls(struct ky_link *link, const struct iovec *parts, int n)
{
	uint8_t record[RECORD_BYTES];
	size_t bytes = 0;

	for (int i = 0; i < n && bytes < sizeof(record); i++) {
		size_t part = parts[i].iov_len;

		if (part > sizeof(record) - bytes)
			part = sizeof(record) - bytes;
		memcpy(record + bytes, parts[i].iov_base, part);
		bytes += part;
	}
	return ky_tls_send(link->tls, record, bytes);
}

/* A peer that has gone must not end the process by a signal. */
static ssize_t send_parts(int fd, const struct iovec *parts, int n)
{
	const struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};

	return n == 1 ? send(fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL)
		      : sendmsg(fd, &message, MSG_NOSIGNAL);
}

ssize_t ky_link_send(struct ky_link *link, const struct iovec *parts, int n)
{
	ssize_t sent;

	if (link->tls)
		return send_tls(link, parts, n);
	do {
		sent = link->is_socket ? send_parts(link->out_fd, parts, n)
				       : writev(link->out_fd, parts, n);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

ssize_t ky_link_send_file(struct ky_link *link, int fd, uint64_t offset_bytes, uint64_t bytes,
			  uint8_t *scratch, size_t scratch_bytes)
{
	off_t at = (off_t)offset_bytes;
	struct iovec part = {scratch, 0};
	ssize_t sent;

	if (!link->tls && link->is_socket) {
		do {
			sent = sendfile(link->out_fd, fd, &at, bytes < SEND_MAX ? bytes : SEND_MAX);
		} while (sent < 0 && errno == EINTR);
		return sent < 0 ? -errno : sent;
	}
	sent = pread(fd, scratch, bytes < scratch_bytes ? bytes : scratch_bytes, at);
	if (sent <= 0)
		return sent < 0 ? -errno : 0;
	part.iov_len = (size_t)sent;
	return ky_link_send(link, &part, 1);
}
