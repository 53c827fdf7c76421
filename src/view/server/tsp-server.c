/* SPDX-License-Identifier: MIT */
/* The server, by libmicrohttpd: one thread for each connection. */
#include "view/server/tsp-server.h"

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
#include "view/http/http-server.h"
#include "view/http/tsp-peer.h"

#define MAX_CONNECTIONS 32u
#define LINK_BYTES	48

struct ky_tsp_server {
	struct ky_http_server http;
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

struct exchange {
	struct ky_http_exchange http;
	bool is_refused;
};

/* ---- answers ----------------------------------------------------------------------------- */

/* A web view may read the answer, if it is a client's. */
static enum MHD_Result tsp_server_send(const struct ky_tsp_server *server,
				       struct MHD_Connection *connection, unsigned int status,
				       struct MHD_Response *response)
{
	const char *origin = ky_http_header(connection, "Origin");
	const struct ky_http_header headers[] = {
		{"X-Content-Type-Options", "nosniff"},
		{"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
		{"Cache-Control", "no-store"},
		{"Vary", "Origin"},
		{"Access-Control-Allow-Origin", origin},
	};
	size_t n = sizeof(headers) / sizeof(*headers);

	if (!ky_tsp_is_origin(origin, server->origins, server->n_origins))
		n--;
	return ky_http_send(connection, status, headers, n, response);
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
	return tsp_server_send(exchange->http.server, connection, status, ky_http_json(&json));
}

/* May a web view send a request with a body of JSON? Its browser asks before. */
static enum MHD_Result send_permission(const struct ky_tsp_server *server,
				       struct MHD_Connection *connection)
{
	struct MHD_Response *response =
		ky_http.MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return MHD_NO;
	ky_http.MHD_add_response_header(response, "Access-Control-Allow-Methods",
					"GET, POST, PUT, DELETE");
	ky_http.MHD_add_response_header(response, "Access-Control-Allow-Headers",
					"Accept, Content-Type");
	if (ky_http_header(connection, "Access-Control-Request-Private-Network"))
		ky_http.MHD_add_response_header(response, "Access-Control-Allow-Private-Network",
						"true");
	return tsp_server_send(server, connection, MHD_HTTP_NO_CONTENT, response);
}

static enum MHD_Result tsp_server_answer(struct exchange *exchange,
					 struct MHD_Connection *connection, const char *method)
{
	struct ky_tsp_server *server = exchange->http.server;
	struct ky_http_client client = ky_http_client_of(connection, &server->is_closing);
	const struct ky_view_stop stop = {ky_http_client_is_over, &client};
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_tsp_request request;
	enum MHD_Result result;
	struct ky_arena arena;
	struct kymo_error err;
	unsigned int status;

	ky_error_clear(&err);
	ky_arena_init(&arena);
	if (ky_tsp_request_parse(method, exchange->http.target,
				 ky_strbuf_text(&exchange->http.body), exchange->http.body.len,
				 &arena, &request, &err) < 0)
		status = ky_tsp_put_error(&out, &err);
	else
		status = ky_tsp_answer(server->tsp, &request, &stop, &out);
	result = tsp_server_send(server, connection, status, ky_http_json(&out));
	ky_strbuf_fini(&out);
	ky_arena_fini(&arena);
	return result;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Is it from a client? NULL, or why not. */
static const char *tsp_server_foreign(const struct ky_tsp_server *server,
				      struct MHD_Connection *connection)
{
	const char *origin = ky_http_header(connection, "Origin"), *site;

	if (!ky_tsp_is_host(ky_http_header(connection, "Host"), server->port))
		return "wrong Host";
	if (origin && !ky_tsp_is_origin(origin, server->origins, server->n_origins))
		return "wrong Origin; kymo view --tsp --origin allows others";
	/* A browser sends some requests of pages without an Origin. */
	site = ky_http_header(connection, "Sec-Fetch-Site");
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
	const char *length = ky_http_header(connection, "Content-Length"),
		   *why = tsp_server_foreign(exchange->http.server, connection);
	uint64_t n_bytes = 0;

	if (why)
		return tsp_server_refuse(exchange, connection, 403, why);
	if (!ky_tsp_request_has_body(method, exchange->http.target))
		return ky_http_has_body(connection) ? tsp_server_refuse(exchange, connection, 400,
									"the request has no body")
						    : MHD_YES;
	if (!is_json(ky_http_header(connection, "Content-Type")))
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
	if (!exchange || !exchange->http.target)
		return MHD_NO;
	if (!exchange->http.is_begun) {
		exchange->http.is_begun = true;
		return tsp_server_begin(exchange, connection, method);
	}
	if (*n_upload) {
		if (exchange->is_refused || exchange->http.body.len + *n_upload > KY_TSP_BODY_BYTES)
			return MHD_NO;
		ky_strbuf_add(&exchange->http.body, upload, *n_upload);
		*n_upload = 0;
		return ky_strbuf_failed(&exchange->http.body) ? MHD_NO : MHD_YES;
	}
	if (strcmp(method, "OPTIONS") == 0)
		return send_permission(exchange->http.server, connection);
	return tsp_server_answer(exchange, connection, method);
}

/* ---- opening ----------------------------------------------------------------------------- */

/* Connections of this user and of root only. */
static enum MHD_Result accept_peer(void *data, const struct sockaddr *peer, socklen_t len)
{
	struct ky_tsp_server *server = data;
	union ky_http_address own;
	uid_t user;

	(void)len;
	ky_http_set_loopback(&own, peer->sa_family, server->port);
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

/*
 * Asks which user owns a connection of this process. The kernel gives the same error if a module is missing, and if there is no
 * connection.
 */
static int ask_kernel(int fd, uint16_t port, struct kymo_error *err)
{
	union ky_http_address own, peer;
	socklen_t len = sizeof(peer.in);
	uid_t user;

	ky_http_set_loopback(&own, AF_INET, port);
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
	static const char hint[] =
		"another program has this port; choose another one, and set it in the client, too";
	int fds[2] = {ky_http_listen(AF_INET, &server->port, hint, err), -1};
	int ret = fds[0] < 0 ? fds[0] : tsp_server_check_kernel(server->port, err);

	if (ret < 0) {
		if (fds[0] >= 0)
			close(fds[0]);
		return ret;
	}
	fds[1] = ky_http_listen(AF_INET6, &server->port, hint, NULL);
	snprintf(server->link, sizeof(server->link), "http://127.0.0.1:%u/tsp/api",
		 (unsigned int)server->port);
	server->http = (struct ky_http_server){.handle = tsp_server_handle,
					       .accept = accept_peer,
					       .exchange_bytes = sizeof(struct exchange),
					       .max_connections = MAX_CONNECTIONS,
					       .server = server};
	for (size_t i = 0; i < 2 && fds[i] >= 0; i++)
		server->daemons[i] = ky_http_server_start(&server->http, fds[i]);
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
