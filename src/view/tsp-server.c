/* SPDX-License-Identifier: MIT */
/* The server, by libmicrohttpd: one thread for each connection. */
#include "view/tsp-server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "view/http-library.h"
#include "view/tsp-peer.h"

#define MAX_CONNECTIONS	   32u
#define MAX_REQUEST_BYTES  ((size_t)32 << 10) /* without the body */
#define IDLE_SECONDS	   300u
#define THREAD_STACK_BYTES ((size_t)2 << 20)
#define LINK_BYTES	   48

struct ky_tsp_server {
	struct ky_tsp *tsp;
	struct MHD_Daemon *daemons[2]; /* 127.0.0.1 and ::1 */
	uint16_t port;
	const char *const *origins;
	size_t n_origins;
	const struct ky_log *log;
	char link[LINK_BYTES];
	atomic_bool is_closing; /* relaxed: answers end soon after it */
	atomic_flag has_refused;
};

/* One request, from its first line to its answer. */
struct exchange {
	struct ky_tsp_server *server;
	char *target; /* as it was on the wire; NULL: memory was out */
	bool is_begun, is_refused;
	struct ky_strbuf body;
};

/* Whether the client still waits. */
struct waiting {
	struct ky_tsp_server *server;
	int fd;
};

/* ---- answers ----------------------------------------------------------------------------- */

static const char *tsp_server_header(struct MHD_Connection *connection, const char *name)
{
	return ky_http.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A web view may read the answer, if it is a client's. */
static void add_headers(const struct ky_tsp_server *server, struct MHD_Connection *connection,
			struct MHD_Response *response)
{
	static const char *const headers[][2] = {
		{"X-Content-Type-Options", "nosniff"},
		{"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
		{"Cache-Control", "no-store"},
		{"Vary", "Origin"},
	};
	const char *origin = tsp_server_header(connection, "Origin");

	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		ky_http.MHD_add_response_header(response, headers[i][0], headers[i][1]);
	if (ky_tsp_is_origin(origin, server->origins, server->n_origins))
		ky_http.MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
}

/* Takes the text of @json. */
static enum MHD_Result tsp_server_send_json(const struct ky_tsp_server *server,
					    struct MHD_Connection *connection, unsigned int status,
					    struct ky_strbuf *json)
{
	size_t len = json->len;
	char *data = ky_strbuf_take(json);
	struct MHD_Response *response;
	enum MHD_Result ret;

	if (!data)
		return MHD_NO; /* closes the connection */
	response = ky_http.MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		return MHD_NO;
	ky_http.MHD_add_response_header(response, "Content-Type", "application/json");
	add_headers(server, connection, response);
	ret = ky_http.MHD_queue_response(connection, status, response);
	ky_http.MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result tsp_server_refuse(struct exchange *exchange,
					 struct MHD_Connection *connection, unsigned int status,
					 const char *why)
{
	struct ky_strbuf json = KY_STRBUF_INIT;
	struct kymo_error err;

	exchange->is_refused = true;
	ky_error_set(&err, status == 403 ? KYMO_E_PERMISSION : KYMO_E_INVALID, "%s", why);
	ky_tsp_put_error(&json, &err);
	return tsp_server_send_json(exchange->server, connection, status, &json);
}

/* May a web view send a request with a body of JSON? Its browser asks before. */
static enum MHD_Result send_permission(const struct ky_tsp_server *server,
				       struct MHD_Connection *connection)
{
	struct MHD_Response *response =
		ky_http.MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	add_headers(server, connection, response);
	ky_http.MHD_add_response_header(response, "Access-Control-Allow-Methods",
					"GET, POST, PUT, DELETE");
	ky_http.MHD_add_response_header(response, "Access-Control-Allow-Headers",
					"Accept, Content-Type");
	if (tsp_server_header(connection, "Access-Control-Request-Private-Network"))
		ky_http.MHD_add_response_header(response, "Access-Control-Allow-Private-Network",
						"true");
	ret = ky_http.MHD_queue_response(connection, 204, response);
	ky_http.MHD_destroy_response(response);
	return ret;
}

static bool tsp_server_is_over(void *data)
{
	const struct waiting *waiting = data;
	char byte;
	ssize_t n;

	if (atomic_load_explicit(&waiting->server->is_closing, memory_order_relaxed))
		return true;
	n = recv(waiting->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static enum MHD_Result tsp_server_answer(struct exchange *exchange,
					 struct MHD_Connection *connection, const char *method)
{
	const union MHD_ConnectionInfo *info =
		ky_http.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct waiting waiting = {exchange->server, info ? info->connect_fd : -1};
	const struct ky_view_stop stop = {tsp_server_is_over, &waiting};
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_tsp_request request;
	enum MHD_Result result;
	struct ky_arena arena;
	struct kymo_error err;
	unsigned int status;

	ky_error_clear(&err);
	ky_arena_init(&arena);
	if (ky_tsp_request_parse(method, exchange->target, ky_strbuf_text(&exchange->body),
				 exchange->body.len, &arena, &request, &err) < 0)
		status = ky_tsp_put_error(&out, &err);
	else
		status = ky_tsp_answer(exchange->server->tsp, &request, &stop, &out);
	result = tsp_server_send_json(exchange->server, connection, status, &out);
	ky_strbuf_fini(&out);
	ky_arena_fini(&arena);
	return result;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Is it from a client? NULL, or why not. */
static const char *tsp_server_foreign(const struct ky_tsp_server *server,
				      struct MHD_Connection *connection)
{
	const char *origin = tsp_server_header(connection, "Origin"), *site;

	if (!ky_tsp_is_host(tsp_server_header(connection, "Host"), server->port))
		return "wrong Host";
	if (origin && !ky_tsp_is_origin(origin, server->origins, server->n_origins))
		return "wrong Origin; kymo view --tsp --origin allows others";
	/* A browser sends some requests of pages without an Origin. */
	site = tsp_server_header(connection, "Sec-Fetch-Site");
	if (site && !origin && strcmp(site, "none") != 0)
		return "a request of a page has no Origin";
	return NULL;
}

/* Browsers send bodies of other types without asking. */
static bool is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t len = sizeof(json) - 1;

	return type && strncasecmp(type, json, len) == 0 && (!type[len] || strchr("; ", type[len]));
}

/* Check a request whose headers are there. */
static enum MHD_Result tsp_server_begin(struct exchange *exchange,
					struct MHD_Connection *connection, const char *method)
{
	const char *length = tsp_server_header(connection, "Content-Length"),
		   *why = tsp_server_foreign(exchange->server, connection);
	bool has_body = tsp_server_header(connection, "Transfer-Encoding") ||
			(length && strcmp(length, "0") != 0);
	uint64_t n_bytes = 0;

	if (why)
		return tsp_server_refuse(exchange, connection, 403, why);
	if (!ky_tsp_request_has_body(method, exchange->target))
		return has_body ? tsp_server_refuse(exchange, connection, 400,
						    "the request has no body")
				: MHD_YES;
	if (!is_json(tsp_server_header(connection, "Content-Type")))
		return tsp_server_refuse(exchange, connection, 415,
					 "the body must be application/json");
	if (!length || ky_parse_u64(length, &n_bytes) < 0)
		return tsp_server_refuse(exchange, connection, 411, "the request has no length");
	if (n_bytes > KY_TSP_BODY_BYTES)
		return tsp_server_refuse(exchange, connection, 413, "the body is too long");
	return MHD_YES;
}

/* libmicrohttpd calls it with the headers, then for each part of the body, then without one. */
static enum MHD_Result tsp_server_handle(void *data, struct MHD_Connection *connection,
					 const char *url, const char *method, const char *version,
					 const char *upload, size_t *n_upload, void **own)
{
	struct exchange *exchange = *own;

	(void)data;
	(void)url;
	(void)version;
	if (!exchange || !exchange->target)
		return MHD_NO;
	if (!exchange->is_begun) {
		exchange->is_begun = true;
		return tsp_server_begin(exchange, connection, method);
	}
	if (*n_upload) {
		if (exchange->is_refused || exchange->body.len + *n_upload > KY_TSP_BODY_BYTES)
			return MHD_NO;
		ky_strbuf_add(&exchange->body, upload, *n_upload);
		*n_upload = 0;
		return ky_strbuf_failed(&exchange->body) ? MHD_NO : MHD_YES;
	}
	if (strcmp(method, "OPTIONS") == 0)
		return send_permission(exchange->server, connection);
	return tsp_server_answer(exchange, connection, method);
}

/* The target as it is on the wire, before libmicrohttpd decodes it. */
static void *tsp_server_take_target(void *data, const char *target,
				    struct MHD_Connection *connection)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	(void)connection;
	if (!exchange)
		return NULL;
	exchange->server = data;
	exchange->target = strdup(target);
	return exchange;
}

static void tsp_server_end_exchange(void *data, struct MHD_Connection *connection, void **own,
				    enum MHD_RequestTerminationCode why)
{
	struct exchange *exchange = *own;

	(void)data;
	(void)connection;
	(void)why;
	if (exchange) {
		free(exchange->target);
		ky_strbuf_fini(&exchange->body);
	}
	free(exchange);
	*own = NULL;
}

/* ---- opening ----------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static void set_loopback(union address *address, int family, uint16_t port)
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

/* Connections of this user and of root only. */
static enum MHD_Result accept_peer(void *data, const struct sockaddr *peer, socklen_t len)
{
	struct ky_tsp_server *server = data;
	union address own;
	uid_t user;

	(void)len;
	set_loopback(&own, peer->sa_family, server->port);
	if (ky_tsp_peer_user(peer, &own.any, &user, NULL) < 0)
		return MHD_NO;
	if (user == geteuid() || user == 0)
		return MHD_YES;
	if (!atomic_flag_test_and_set(&server->has_refused))
		ky_log_warning(server->log,
			       "a program of user %lu gets no answers: the server is for user %lu; "
			       "run it as the user of the client",
			       (unsigned long)user, (unsigned long)geteuid());
	return MHD_NO;
}

static int tsp_server_listen_on(int family, uint16_t *port, struct kymo_error *err)
{
	union address address;
	socklen_t len = family == AF_INET6 ? sizeof(address.in6) : sizeof(address.in);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, status = 0;

	if (fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	set_loopback(&address, family, *port);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, &address.any, len) < 0 || listen(fd, 32) < 0 ||
	    getsockname(fd, &address.any, &len) < 0)
		status = errno;
	if (!status) {
		*port = ntohs(family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
		return fd;
	}
	close(fd);
	ky_error_errno(err, status, "cannot listen on port %u", (unsigned int)*port);
	if (status == EADDRINUSE)
		ky_error_hint(err, "another program has this port; choose another one, and set it "
				   "in the client, too");
	return KYMO_E_IO;
}

static struct MHD_Daemon *tsp_server_start(struct ky_tsp_server *server, int fd)
{
	struct MHD_Daemon *daemon = ky_http.MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
		accept_peer, server, tsp_server_handle, server, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_URI_LOG_CALLBACK, tsp_server_take_target, server,
		MHD_OPTION_NOTIFY_COMPLETED, tsp_server_end_exchange, server,
		MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		MAX_REQUEST_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
		MHD_OPTION_THREAD_STACK_SIZE, THREAD_STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_END);

	if (!daemon)
		close(fd);
	return daemon;
}

/*
 * Asks which user owns a connection of this process. The kernel gives the same error if a module is missing, and if there is no
 * connection.
 */
static int ask_kernel(int fd, uint16_t port, struct kymo_error *err)
{
	union address own, peer;
	socklen_t len = sizeof(peer.in);
	uid_t user;

	set_loopback(&own, AF_INET, port);
	if (connect(fd, &own.any, sizeof(own.in)) < 0 || getsockname(fd, &peer.any, &len) < 0)
		return ky_error_errno(err, errno, "cannot connect to port %u of 127.0.0.1",
				      (unsigned int)port);
	if (ky_tsp_peer_user(&peer.any, &own.any, &user, err) == KYMO_OK && user == geteuid())
		return KYMO_OK;
	ky_error_set(err, KYMO_E_IO, "the kernel does not tell whose a connection is");
	ky_error_hint(err, "load its module tcp_diag; without it other users of this machine could "
			   "read the traces");
	return KYMO_E_IO;
}

/* Without the kernel's answer nobody would be let in. */
static int tsp_server_check_kernel(uint16_t port, struct kymo_error *err)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	ret = ask_kernel(fd, port, err);
	close(fd);
	return ret;
}

/* "localhost" may be either. The threads of the daemons begin when the server is complete. */
static int open_both(struct ky_tsp_server *server, struct kymo_error *err)
{
	int fds[2] = {tsp_server_listen_on(AF_INET, &server->port, err), -1};
	int ret = fds[0] < 0 ? fds[0] : tsp_server_check_kernel(server->port, err);

	if (ret < 0) {
		if (fds[0] >= 0)
			close(fds[0]);
		return ret;
	}
	fds[1] = tsp_server_listen_on(AF_INET6, &server->port, NULL);
	snprintf(server->link, sizeof(server->link), "http://127.0.0.1:%u/tsp/api",
		 (unsigned int)server->port);
	for (size_t i = 0; i < 2 && fds[i] >= 0; i++)
		server->daemons[i] = tsp_server_start(server, fds[i]);
	return server->daemons[0] ? KYMO_OK
				  : ky_error_set(err, KYMO_E_IO, "cannot start the trace server");
}

int ky_tsp_server_open(struct ky_tsp *tsp, uint16_t port, const char *const *origins,
		       size_t n_origins, const struct ky_log *log, struct ky_tsp_server **made,
		       struct kymo_error *err)
{
	struct ky_tsp_server *server;
	int ret = ky_http_library_load(err);

	if (ret < 0)
		return ret;
	server = calloc(1, sizeof(*server));
	if (!server)
		return ky_error_nomem(err);
	server->tsp = tsp;
	server->port = port;
	server->origins = origins;
	server->n_origins = n_origins;
	server->log = log;
	ret = open_both(server, err);
	if (ret < 0)
		ky_tsp_server_close(server);
	else
		*made = server;
	return ret;
}

const char *ky_tsp_server_link(const struct ky_tsp_server *server)
{
	return server->link;
}

void ky_tsp_server_close(struct ky_tsp_server *server)
{
	if (!server)
		return;
	atomic_store_explicit(&server->is_closing, true, memory_order_relaxed);
	for (size_t i = 0; i < 2; i++) {
		if (server->daemons[i])
			ky_http.MHD_stop_daemon(server->daemons[i]);
	}
	free(server);
}
