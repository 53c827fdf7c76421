/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server of kymo latency --listen: GET /metrics on the loopback interface, one request per connection. Requests are
 * untrusted: they are short, and end within some seconds. A page in a browser cannot read the answer by a name of its own
 * that leads here: the Host header must name the loopback interface.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/latency/latency-metrics.h"
#include "os/now.h"

#define REQUEST_MAX 8192
#define CLIENT_NS   10000000000

struct client {
	int fd;
	int64_t until_ns; /* CLOCK_MONOTONIC */
	size_t in_len;
	char in[REQUEST_MAX];
	struct ky_strbuf out;
	size_t out_at; /* how much of it is sent; out.len 0: there is no answer yet */
};

struct ky_metrics_server {
	int fd;
	char url[64];
	struct client *clients[KY_METRICS_CLIENTS_MAX];
	size_t n;
};

/* ---- opening -------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* "127.0.0.1:9435", "localhost:9435", "[::1]:9435", ":9435" */
static bool latency_listen_parse(const char *text, union address *address, socklen_t *len)
{
	const char *colon = strrchr(text, ':');
	size_t host = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	if (!colon || ky_parse_u64(colon + 1, &port) < 0 || port > 65535)
		return false;
	memset(address, 0, sizeof(*address));
	if (host == 5 && strncmp(text, "[::1]", 5) == 0) {
		address->in6.sin6_family = AF_INET6;
		address->in6.sin6_addr = in6addr_loopback;
		address->in6.sin6_port = htons((uint16_t)port);
		*len = sizeof(address->in6);
		return true;
	}
	if (host && !(host == 9 && strncmp(text, "127.0.0.1", 9) == 0) &&
	    !(host == 9 && strncmp(text, "localhost", 9) == 0))
		return false;
	address->in.sin_family = AF_INET;
	address->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address->in.sin_port = htons((uint16_t)port);
	*len = sizeof(address->in);
	return true;
}

static int latency_listen_open(struct ky_metrics_server *server, const union address *address,
			       socklen_t len)
{
	union address bound;
	socklen_t bound_len = sizeof(bound);
	int on = 1;

	server->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->fd < 0)
		return -errno;
	setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(server->fd, &address->any, len) < 0 || listen(server->fd, 16) < 0 ||
	    getsockname(server->fd, &bound.any, &bound_len) < 0)
		return -errno;
	snprintf(server->url, sizeof(server->url), "http://%s:%u/metrics",
		 address->any.sa_family == AF_INET6 ? "[::1]" : "127.0.0.1",
		 ntohs(bound.in.sin_port));
	return 0;
}

int ky_metrics_listen(const char *text, struct ky_metrics_server **result, struct kymo_error *err)
{
	struct ky_metrics_server *server;
	union address address;
	socklen_t len;
	int ret;

	*result = NULL;
	if (!latency_listen_parse(text, &address, &len)) {
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "--listen needs 127.0.0.1:PORT or [::1]:PORT, not '%s'", text);
		ky_error_hint(err, "there is no password: put a server with one before it");
		return ret;
	}
	server = calloc(1, sizeof(*server));
	if (!server)
		return ky_error_nomem(err);
	ret = latency_listen_open(server, &address, len);
	if (ret < 0) {
		ky_metrics_close(server);
		return ky_error_errno(err, -ret, "cannot listen at %s", text);
	}
	*result = server;
	return KYMO_OK;
}

static void close_client(struct client *client)
{
	close(client->fd);
	ky_strbuf_fini(&client->out);
	free(client);
}

void ky_metrics_close(struct ky_metrics_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < server->n; i++)
		close_client(server->clients[i]);
	if (server->fd >= 0)
		close(server->fd);
	free(server);
}

const char *ky_metrics_url(const struct ky_metrics_server *server)
{
	return server->url;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The value of header @name in @head, which ends with an empty line; NULL: none. *@len without blanks around. */
static const char *find_header(const char *head, const char *name, size_t *len)
{
	size_t name_len = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
			continue;
		line += name_len + 1;
		line += strspn(line, " \t");
		*len = strcspn(line, "\r");
		return line;
	}
	return NULL;
}

static bool is_loopback_host(const char *head)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
	size_t len;
	const char *host = find_header(head, "Host", &len);

	for (size_t i = 0; host && i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t n = strlen(hosts[i]);

		if (len >= n && strncasecmp(host, hosts[i], n) == 0 && (len == n || host[n] == ':'))
			return true;
	}
	return false;
}

static const struct {
	const char *asked_by, *type;
} formats[] = {
	[KY_METRICS_TEXT] = {NULL, "text/plain; version=0.0.4; charset=utf-8"},
	[KY_METRICS_OPEN] = {"application/openmetrics-text",
			     "application/openmetrics-text; version=1.0.0; charset=utf-8"},
	[KY_METRICS_PROTOBUF] = {"proto=io.prometheus.client.MetricFamily",
				 "application/vnd.google.protobuf; "
				 "proto=io.prometheus.client.MetricFamily; encoding=delimited"},
};

/* Who can read messages asks for them only where it wants native histograms, and names other formats, too. */
static enum ky_metrics_format asked_format(const char *head)
{
	size_t len;
	const char *accept = find_header(head, "Accept", &len);

	for (int i = KY_METRICS_PROTOBUF; accept && i > KY_METRICS_TEXT; i--)
		if (memmem(accept, len, formats[i].asked_by, strlen(formats[i].asked_by)))
			return (enum ky_metrics_format)i;
	return KY_METRICS_TEXT;
}

static void answer(struct client *client, const char *status, const char *type,
		   const struct ky_strbuf *body)
{
	ky_strbuf_addf(&client->out,
		       "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		       "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
		       "Connection: close\r\n\r\n",
		       status, type, body->len);
	ky_strbuf_add(&client->out, ky_strbuf_text(body), body->len);
}

static void answer_plain(struct client *client, const char *status)
{
	struct ky_strbuf body = KY_STRBUF_INIT;

	ky_strbuf_addf(&body, "%s\n", status);
	answer(client, status, "text/plain; charset=utf-8", &body);
	ky_strbuf_fini(&body);
}

static bool latency_listen_is_target(const char *head, const char *target)
{
	size_t len = strlen(target);

	return strncmp(head, "GET ", 4) == 0 && strncmp(head + 4, target, len) == 0 &&
	       (head[4 + len] == ' ' || head[4 + len] == '?');
}

static void latency_listen_answer(struct client *client, struct ky_latency *latency)
{
	struct ky_strbuf body = KY_STRBUF_INIT;
	const char *head = client->in;
	enum ky_metrics_format format = asked_format(head);

	if (!is_loopback_host(head)) {
		answer_plain(client, "403 Forbidden");
	} else if (strncmp(head, "GET ", 4) != 0) {
		answer_plain(client, "405 Method Not Allowed");
	} else if (!latency_listen_is_target(head, "/metrics")) {
		answer_plain(client, "404 Not Found");
	} else {
		ky_metrics_put(&body, latency, format);
		if (ky_strbuf_failed(&body))
			answer_plain(client, "503 Service Unavailable");
		else
			answer(client, "200 OK", formats[format].type, &body);
		ky_strbuf_fini(&body);
	}
}

/* ---- clients -------------------------------------------------------------------------------- */

/* Returns false at the end. */
static bool latency_listen_take(struct client *client, struct ky_latency *latency)
{
	ssize_t n = recv(client->fd, client->in + client->in_len,
			 sizeof(client->in) - 1 - client->in_len, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	client->in_len += (size_t)n;
	client->in[client->in_len] = '\0';
	if (memchr(client->in, '\0', client->in_len))
		answer_plain(client, "400 Bad Request");
	else if (strstr(client->in, "\r\n\r\n"))
		latency_listen_answer(client, latency);
	else if (client->in_len == sizeof(client->in) - 1)
		answer_plain(client, "431 Request Header Fields Too Large");
	return !ky_strbuf_failed(&client->out);
}

static bool latency_listen_send(struct client *client)
{
	ssize_t n = send(client->fd, client->out.data + client->out_at,
			 client->out.len - client->out_at, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->out_at += (size_t)n;
	if (client->out_at < client->out.len)
		return true;
	shutdown(client->fd, SHUT_WR);
	return false;
}

static bool latency_listen_client(struct client *client, struct ky_latency *latency)
{
	if (ky_os_time_ns(CLOCK_MONOTONIC) > client->until_ns)
		return false;
	if (!client->out.len && !latency_listen_take(client, latency))
		return false;
	return !client->out.len || latency_listen_send(client);
}

static void latency_listen_accept(struct ky_metrics_server *server)
{
	while (server->n < KY_METRICS_CLIENTS_MAX) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct client *client = fd < 0 ? NULL : calloc(1, sizeof(*client));

		if (fd < 0)
			return;
		if (!client) {
			close(fd);
			return;
		}
		client->fd = fd;
		client->until_ns = ky_os_time_ns(CLOCK_MONOTONIC) + CLIENT_NS;
		server->clients[server->n++] = client;
	}
}

size_t ky_metrics_wait_for(const struct ky_metrics_server *server, struct pollfd *fds)
{
	size_t n = 0;

	for (size_t i = 0; i < server->n; i++)
		fds[n++] =
			(struct pollfd){.fd = server->clients[i]->fd,
					.events = server->clients[i]->out.len ? POLLOUT : POLLIN};
	/* When all places are taken, others wait in the kernel. */
	if (server->n < KY_METRICS_CLIENTS_MAX)
		fds[n++] = (struct pollfd){.fd = server->fd, .events = POLLIN};
	return n;
}

void ky_metrics_step(struct ky_metrics_server *server, struct ky_latency *latency)
{
	latency_listen_accept(server);
	for (size_t i = server->n; i-- > 0;) {
		if (latency_listen_client(server->clients[i], latency))
			continue;
		close_client(server->clients[i]);
		server->clients[i] = server->clients[--server->n];
	}
}
