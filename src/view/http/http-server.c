/* SPDX-License-Identifier: MIT */
#include "view/http/http-server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

#define MAX_REQUEST_BYTES  ((size_t)32 << 10) /* without the body */
#define IDLE_SECONDS	   300u
#define THREAD_STACK_BYTES ((size_t)2 << 20)
#define WAITING		   32 /* connections that nobody has accepted yet */

/* ---- the port ---------------------------------------------------------------------------- */

void ky_http_set_loopback(union ky_http_address *address, int family, uint16_t port)
{
	memset(address, 0, sizeof(*address));
	address->any.sa_family = (sa_family_t)family;
	if (family == AF_INET6) {
		address->in6.sin6_port = htons(port);
		address->in6.sin6_addr = in6addr_loopback;
	} else {
		address->in.sin_port = htons(port);
		address->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
}

static int http_server_bind(int fd, int family, uint16_t *port)
{
	union ky_http_address address;
	socklen_t len = family == AF_INET6 ? sizeof(address.in6) : sizeof(address.in);
	int one = 1;

	ky_http_set_loopback(&address, family, *port);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, &address.any, len) < 0 || listen(fd, WAITING) < 0 ||
	    getsockname(fd, &address.any, &len) < 0)
		return errno;
	*port = ntohs(family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
	return 0;
}

int ky_http_listen(int family, uint16_t *port, const char *hint, struct kymo_error *err)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), status, ret;

	if (fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	status = http_server_bind(fd, family, port);
	if (!status)
		return fd;
	close(fd);
	ret = ky_error_errno(err, status, "cannot listen on port %u of %s", (unsigned int)*port,
			     family == AF_INET6 ? "::1" : "127.0.0.1");
	if (status == EADDRINUSE)
		ky_error_hint(err, "%s", hint);
	return ret;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* The target as it is on the wire, before libmicrohttpd decodes it. */
static void *http_server_take_target(void *data, const char *target,
				     struct MHD_Connection *connection)
{
	const struct ky_http_server *server = data;
	struct ky_http_exchange *exchange = calloc(1, server->exchange_bytes);

	(void)connection;
	if (!exchange)
		return NULL;
	exchange->server = server->server;
	exchange->target = strdup(target);
	return exchange;
}

static void http_server_end_exchange(void *data, struct MHD_Connection *connection, void **own,
				     enum MHD_RequestTerminationCode why)
{
	struct ky_http_exchange *exchange = *own;

	const struct ky_http_server *server = data;

	(void)connection;
	(void)why;
	if (exchange && server->end)
		server->end(exchange);
	if (exchange) {
		free(exchange->target);
		ky_strbuf_fini(&exchange->body);
	}
	free(exchange);
	*own = NULL;
}

struct MHD_Daemon *ky_http_server_start(struct ky_http_server *server, int fd)
{
	struct MHD_Daemon *daemon = ky_http.MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
		server->accept, server->server, server->handle, server->server,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, http_server_take_target,
		server, MHD_OPTION_NOTIFY_COMPLETED, http_server_end_exchange, server,
		MHD_OPTION_CONNECTION_LIMIT, server->max_connections,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, MAX_REQUEST_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_THREAD_STACK_SIZE,
		THREAD_STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);

	if (!daemon)
		close(fd);
	return daemon;
}

const char *ky_http_header(struct MHD_Connection *connection, const char *name)
{
	return ky_http.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

bool ky_http_has_body(struct MHD_Connection *connection)
{
	const char *length = ky_http_header(connection, "Content-Length");

	return ky_http_header(connection, "Transfer-Encoding") ||
	       (length && strcmp(length, "0") != 0);
}

struct ky_http_client ky_http_client_of(struct MHD_Connection *connection,
					const atomic_bool *is_closing)
{
	const union MHD_ConnectionInfo *info =
		ky_http.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return (struct ky_http_client){is_closing, info ? info->connect_fd : -1};
}

bool ky_http_client_is_over(void *data)
{
	const struct ky_http_client *client = data;
	/* What the client has sent besides the request does not hide that it is gone. */
	struct pollfd poller = {.fd = client->fd, .events = POLLRDHUP};

	if (atomic_load_explicit(client->is_closing, memory_order_relaxed))
		return true;
	return client->fd < 0 || poll(&poller, 1, 0) > 0;
}

/* ---- answers ----------------------------------------------------------------------------- */

struct MHD_Response *ky_http_data(struct ky_strbuf *bytes, const char *type)
{
	size_t len = bytes->len;
	char *data = ky_strbuf_take(bytes);
	struct MHD_Response *response;

	if (!data)
		return NULL;
	response = ky_http.MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
	if (response)
		ky_http.MHD_add_response_header(response, "Content-Type", type);
	return response;
}

struct MHD_Response *ky_http_json(struct ky_strbuf *json)
{
	return ky_http_data(json, "application/json");
}

enum MHD_Result ky_http_send(struct MHD_Connection *connection, unsigned int status,
			     const struct ky_http_header *headers, size_t n,
			     struct MHD_Response *response)
{
	enum MHD_Result ret;

	if (!response)
		return MHD_NO; /* closes the connection */
	for (size_t i = 0; i < n; i++)
		ky_http.MHD_add_response_header(response, headers[i].name, headers[i].value);
	ret = ky_http.MHD_queue_response(connection, status, response);
	ky_http.MHD_destroy_response(response);
	return ret;
}
