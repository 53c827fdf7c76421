/* SPDX-License-Identifier: MIT */
#include "fleet/http-connection.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

#define CONNECT_MS 5000
#define IDLE_MS	   600000 /* a server that merges can be slow */

int ky_http_broke(const struct ky_http_url *url, int errnum, struct kymo_error *err)
{
	int ret = ky_error_errno(err, errnum, "the connection to the server broke");

	ky_error_path(err, url->address.host);
	return ret;
}

static int http_connection_wait(struct ky_http_connection *connection, short events, int timeout_ms,
				struct kymo_error *err)
{
	struct pollfd poll_fd = {connection->fd, events, 0};
	int n;

	do {
		n = poll(&poll_fd, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? KYMO_OK : ky_http_broke(connection->url, n ? errno : ETIMEDOUT, err);
}

/* ---- TLS ------------------------------------------------------------------------------ */

static int http_connection_refuse(struct ky_http_connection *connection, int status,
				  struct kymo_error *err)
{
	if (status == -EPERM) {
		ky_error_set(err, KYMO_E_IO, "the server's certificate is not trusted: %s",
			     ky_tls_refusal(connection->session));
		ky_error_hint(err, "name the authority that signed it: KYMO_FLEET_CA=FILE, or 'ca "
				   "FILE' in ~/.config/kymo/fleet-key");
	} else if (status == -EPROTO || status == -ECONNRESET || status == -EPIPE) {
		ky_error_set(err, KYMO_E_IO, "the server does not speak TLS 1.2 or later here");
		ky_error_hint(err, "is port %s the server's https_port?",
			      connection->url->address.port);
	} else {
		return ky_http_broke(connection->url, -status, err);
	}
	ky_error_path(err, connection->url->address.host);
	return KYMO_E_IO;
}

static int http_connection_begin_tls(struct ky_http_connection *connection, struct kymo_error *err)
{
	const char *authorities = connection->url->authorities;
	int status, ret = ky_tls_client(*authorities ? authorities : NULL, &connection->tls, err);

	if (ret < 0)
		return ret;
	connection->session =
		ky_tls_begin_with(connection->tls, connection->fd, connection->url->address.host);
	if (!connection->session)
		return ky_error_nomem(err);
	while ((status = ky_tls_handshake(connection->session)) > 0 && !ret)
		ret = http_connection_wait(connection, status == 1 ? POLLIN : POLLOUT, CONNECT_MS,
					   err);
	/* A server without TLS may wait for the end of a line. */
	if (ret == KYMO_E_IO) {
		ky_error_set(err, KYMO_E_IO, "the server does not answer in TLS");
		ky_error_hint(err, "is port %s the server's https_port?",
			      connection->url->address.port);
		ky_error_path(err, connection->url->address.host);
	}
	return ret || !status ? ret : http_connection_refuse(connection, status, err);
}

/* ---- connections ---------------------------------------------------------------------- */

int ky_http_connect(const struct ky_http_url *url, struct ky_http_connection *connection,
		    struct kymo_error *err)
{
	bool is_loopback;
	int errnum;

	*connection = (struct ky_http_connection){.url = url};
	connection->fd = ky_net_connect(&url->address, CONNECT_MS, &is_loopback, &errnum, err);
	if (connection->fd < 0) {
		ky_error_hint(err, "is the server running, and is its port for HTTP %s?",
			      url->address.port);
		return connection->fd;
	}
	return url->is_tls ? http_connection_begin_tls(connection, err) : KYMO_OK;
}

void ky_http_disconnect(struct ky_http_connection *connection)
{
	ky_tls_end(connection->session);
	ky_tls_free(connection->tls);
	if (connection->fd >= 0)
		close(connection->fd);
}

static ssize_t http_connection_send(struct ky_http_connection *connection, const char *data,
				    size_t bytes)
{
	ssize_t n;

	if (connection->session)
		return ky_tls_send(connection->session, data, bytes);
	n = send(connection->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static ssize_t http_connection_receive(struct ky_http_connection *connection, char *data,
				       size_t bytes)
{
	ssize_t n;

	if (connection->session)
		return ky_tls_receive(connection->session, data, bytes);
	n = recv(connection->fd, data, bytes, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

int ky_http_put(struct ky_http_connection *connection, const char *data, size_t bytes, bool *is_cut,
		struct kymo_error *err)
{
	int ret = KYMO_OK;

	while (bytes && !ret && !*is_cut) {
		ssize_t sent = http_connection_send(connection, data, bytes);

		if (sent > 0) {
			data += sent;
			bytes -= (size_t)sent;
		} else if (sent == -EPIPE || sent == -ECONNRESET) {
			*is_cut = true;
		} else if (sent == -EAGAIN || sent == -EINTR) {
			ret = http_connection_wait(connection, POLLOUT, IDLE_MS, err);
		} else {
			ret = ky_http_broke(connection->url, (int)-sent, err);
		}
	}
	return ret;
}

int ky_http_get(struct ky_http_connection *connection, char *data, size_t bytes, size_t *n,
		struct kymo_error *err)
{
	ssize_t got;
	int ret = KYMO_OK;

	*n = 0;
	while ((got = http_connection_receive(connection, data, bytes)) < 0 && !ret) {
		if (got != -EAGAIN && got != -EINTR)
			return ky_http_broke(connection->url, (int)-got, err);
		ret = http_connection_wait(connection, POLLIN, IDLE_MS, err);
	}
	*n = got > 0 ? (size_t)got : 0;
	return ret;
}
