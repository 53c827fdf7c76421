/* SPDX-License-Identifier: MIT */
/* The server, by libmicrohttpd: one thread for each connection. */
#include "view/server/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "view/http/http-server.h"
#include "view/page/page.h"
#include "view/http/tsp-peer.h"
#include "view/answers/answer-internal.h"

#define MAX_CONNECTIONS 24u
#define LINK_BYTES	96

struct ky_view_server {
	struct ky_http_server http;
	struct ky_view_served served;
	struct MHD_Daemon *daemon;
	uint16_t port;
	char token[KY_VIEW_TOKEN_CHARS + 1];
	char link[LINK_BYTES];
	atomic_bool is_closing; /* relaxed: answers end soon after it */
};

struct exchange {
	struct ky_http_exchange http;
	struct ky_view_request request;
	bool has_file; /* ->file is open: what comes goes there */
	int file;
	struct kymo_error failed; /* of a file: the answer once all of it has come */
};

/* ---- answers ----------------------------------------------------------------------------- */

/* A page that shows others' text must not be able to load, send or run anything else. */
static const struct ky_http_header headers[] = {
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
	 "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'self'; frame-ancestors 'self'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "SAMEORIGIN"},
	{"Referrer-Policy", "no-referrer"}, /* the link has the token */
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

static enum MHD_Result send_answer(struct MHD_Connection *connection, unsigned int status,
				   struct MHD_Response *response)
{
	return ky_http_send(connection, status, headers, sizeof(headers) / sizeof(*headers),
			    response);
}

static unsigned int server_status_of(int code)
{
	switch (code) {
	case KYMO_E_PERMISSION:
		return MHD_HTTP_FORBIDDEN;
	case KYMO_E_NOT_FOUND:
		return MHD_HTTP_NOT_FOUND;
	case KYMO_E_INVALID:
		return MHD_HTTP_BAD_REQUEST;
	case KYMO_E_UNSUPPORTED:
		return 422; /* the request is fine, the trace lacks what it needs */
	case KYMO_E_LIMIT:
	case KYMO_E_MEMORY:
	case KYMO_E_INTERRUPTED:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

static enum MHD_Result send_error(struct MHD_Connection *connection, const struct kymo_error *err)
{
	struct ky_strbuf json = KY_STRBUF_INIT;

	ky_strbuf_adds(&json, "{\"error\": ");
	ky_view_put_error(&json, err);
	ky_strbuf_adds(&json, "}\n");
	return send_answer(connection, server_status_of(err->code), ky_http_json(&json));
}

static enum MHD_Result server_refuse(struct MHD_Connection *connection, int code, const char *why)
{
	struct kymo_error err;

	ky_error_set(&err, code, "%s", why);
	return send_error(connection, &err);
}

static enum MHD_Result send_asset(struct MHD_Connection *connection, const char *name)
{
	const struct ky_view_asset *asset = ky_view_assets;
	struct MHD_Response *response;

	while (asset->name && strcmp(asset->name, name) != 0)
		asset++;
	if (!asset->name)
		return server_refuse(connection, KYMO_E_NOT_FOUND, "no such page");
	response = ky_http.MHD_create_response_from_buffer(
		asset->size_bytes, (void *)(uintptr_t)asset->data, MHD_RESPMEM_PERSISTENT);
	if (response) {
		ky_http.MHD_add_response_header(response, "Content-Type", asset->type);
		ky_http.MHD_add_response_header(response, "Content-Encoding", "gzip");
	}
	return send_answer(connection, MHD_HTTP_OK, response);
}

/* ---- requests ---------------------------------------------------------------------------- */

static bool is_of_notes(const struct ky_view_request *request)
{
	return request->what == KY_VIEW_NOTES || request->what == KY_VIEW_NOTE ||
	       request->what == KY_VIEW_UNNOTE;
}

static bool is_of_drops(const struct ky_view_request *request)
{
	return request->what == KY_VIEW_DROP || request->what == KY_VIEW_DROP_FILE ||
	       request->what == KY_VIEW_DROP_END || request->what == KY_VIEW_DROP_OPEN;
}

/* Of traces that are dropped on the page. A file has come by now. */
static int server_answer_drop(struct ky_view_drops *drops, const struct ky_view_request *request,
			      struct ky_strbuf *out, struct kymo_error *err)
{
	uint64_t number = request->row, space_bytes;
	int ret = KYMO_OK;

	if (request->what == KY_VIEW_DROP)
		ret = ky_view_drops_begin(drops, &number, &space_bytes, err);
	else if (request->what == KY_VIEW_DROP_END)
		ret = ky_view_drops_remove(drops, number, err);
	else if (request->what == KY_VIEW_DROP_OPEN)
		ret = ky_view_drops_finish(drops, number, err);
	if (ret < 0)
		return ret;
	ky_strbuf_addf(out, "{\"drop\": %llu", (unsigned long long)number);
	if (request->what == KY_VIEW_DROP)
		ky_strbuf_addf(out, ", \"space\": %llu", (unsigned long long)space_bytes);
	ky_strbuf_adds(out, "}\n");
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}

static int server_answer_view(const struct ky_view_programs *programs, struct ky_view *view,
			      const struct ky_view_request *request,
			      const struct ky_view_stop *stop, struct ky_strbuf *out,
			      struct kymo_error *err)
{
	if (request->what == KY_VIEW_PROGRAMS || request->what == KY_VIEW_PROGRAM)
		return ky_view_programs_answer(programs, view, request, stop, out, err);
	return ky_view_answer(view, request, stop, out, err);
}

/* Of a dropped trace. */
static int server_answer_dropped(struct ky_view_drops *drops, const struct ky_view_request *request,
				 const struct ky_view_stop *stop, struct ky_strbuf *out,
				 struct kymo_error *err)
{
	const struct ky_view_programs none = {0};
	struct ky_view_notes *notes;
	struct ky_view *view = ky_view_drops_view(drops, request->drop, &notes);

	if (!view)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such drop");
	if (is_of_notes(request))
		return ky_view_notes_answer(notes, request, out, err);
	return server_answer_view(&none, view, request, stop, out, err);
}

/* The answer: JSON, or columns. */
static int server_make_answer(struct ky_view_server *server, const struct ky_view_request *request,
			      const struct ky_view_stop *stop, struct ky_strbuf *out,
			      struct kymo_error *err)
{
	const struct ky_view_served *served = &server->served;
	struct ky_view *view;
	int ret;

	if (is_of_drops(request))
		return server_answer_drop(served->drops, request, out, err);
	if (request->drop)
		return server_answer_dropped(served->drops, request, stop, out, err);
	if (is_of_notes(request))
		return ky_view_notes_answer(request->side == 2 ? served->beside_notes
							       : served->notes,
					    request, out, err);
	if (served->pair.open && ky_view_is_of_two(request))
		return ky_view_compare(&served->pair,
				       request->side == 2 ? served->beside : served->view, request,
				       stop, out, err);
	if (request->side == 2)
		return server_answer_view(&served->beside_programs, served->beside, request, stop,
					  out, err);
	view = served->live ? ky_view_live_take(served->live) : served->view;
	ret = server_answer_view(&served->programs, view, request, stop, out, err);
	if (served->live)
		ky_view_live_put(served->live, view);
	return ret;
}

static enum MHD_Result server_answer(struct exchange *exchange, struct MHD_Connection *connection)
{
	struct ky_view_server *server = exchange->http.server;
	struct ky_http_client client = ky_http_client_of(connection, &server->is_closing);
	const struct ky_view_stop stop = {ky_http_client_is_over, &client};
	struct ky_strbuf out = KY_STRBUF_INIT;
	enum MHD_Result result;
	struct kymo_error err;

	ky_error_clear(&err);
	if (server_make_answer(server, &exchange->request, &stop, &out, &err) < 0)
		result = send_error(connection, &err);
	else
		result = send_answer(connection, MHD_HTTP_OK,
				     ky_view_is_columns(exchange->request.what)
					     ? ky_http_data(&out, "application/octet-stream")
					     : ky_http_json(&out));
	ky_strbuf_fini(&out);
	return result;
}

/* Is it from the server's own page? NULL, or why not. */
static const char *server_foreign(const struct exchange *exchange,
				  struct MHD_Connection *connection)
{
	const struct ky_view_server *server = exchange->http.server;
	const char *origin = ky_http_header(connection, "Origin");
	uint16_t port = server->port;

	if (!ky_view_is_host(ky_http_header(connection, "Host"), port))
		return "wrong Host";
	if ((origin || exchange->request.is_post) && !ky_view_is_origin(origin, port))
		return "wrong Origin";
	return NULL;
}

static int server_begin_file(struct exchange *exchange, struct kymo_error *err)
{
	const struct ky_view_server *server = exchange->http.server;
	int fd = ky_view_drops_file(server->served.drops, exchange->request.row,
				    exchange->request.filter, err);

	exchange->has_file = fd >= 0;
	exchange->file = fd;
	return fd < 0 ? fd : KYMO_OK;
}

/* After an error, what still comes goes nowhere: browsers read the answer only when they have sent all. */
static void server_take_file(struct exchange *exchange, const char *bytes, size_t len)
{
	const struct ky_view_server *server = exchange->http.server;

	if (!exchange->failed.code)
		(void)ky_view_drops_write(server->served.drops, exchange->request.row,
					  exchange->file, bytes, len, &exchange->failed);
}

static void server_end(struct ky_http_exchange *http)
{
	struct exchange *exchange = (struct exchange *)http;

	if (exchange->has_file)
		close(exchange->file);
}

/* Check a request whose headers are there. MHD_YES with *done false: it may be answered. */
static enum MHD_Result server_begin(struct exchange *exchange, struct MHD_Connection *connection,
				    const char *method, bool *done)
{
	const struct ky_view_server *server = exchange->http.server;
	bool is_post = strcmp(method, "POST") == 0;
	struct kymo_error err;
	const char *why;

	*done = true;
	if (!is_post && strcmp(method, "GET") != 0)
		return server_refuse(connection, KYMO_E_PERMISSION, "no such method");
	exchange->request.is_post = is_post;
	why = server_foreign(exchange, connection);
	if (why)
		return server_refuse(connection, KYMO_E_PERMISSION, why);
	ky_error_clear(&err);
	if (ky_view_request_parse(exchange->http.target, is_post, server->token, &exchange->request,
				  &err) < 0)
		return send_error(connection, &err);
	if (exchange->request.what != KY_VIEW_DROP_FILE && ky_http_has_body(connection))
		return server_refuse(connection, KYMO_E_INVALID, "the request has no body");
	if (exchange->request.side && !server->served.beside)
		return server_refuse(connection, KYMO_E_NOT_FOUND, "no such page");
	if (exchange->request.what == KY_VIEW_DROP_FILE && server_begin_file(exchange, &err) < 0)
		return send_error(connection, &err);
	*done = false;
	return MHD_YES;
}

/* Of two sets of traces, the page has a frame for each. */
static const char *asset_of(const struct exchange *exchange)
{
	const struct ky_view_server *server = exchange->http.server;
	const struct ky_view_request *request = &exchange->request;

	if (request->name[0])
		return request->name;
	return server->served.beside && !request->side && !request->drop ? "pair.html"
									 : "index.html";
}

static enum MHD_Result server_handle(void *data, struct MHD_Connection *connection, const char *url,
				     const char *method, const char *version, const char *upload,
				     size_t *n_upload, void **own)
{
	struct exchange *exchange = *own;
	enum MHD_Result ret;
	bool done;

	(void)data;
	(void)url;
	(void)version;
	if (!exchange || !exchange->http.target || (*n_upload && !exchange->has_file))
		return MHD_NO;
	if (!exchange->http.is_begun) {
		exchange->http.is_begun = true;
		ret = server_begin(exchange, connection, method, &done);
		if (done || exchange->request.is_post)
			return ret; /* a POST comes again after its (empty) body */
	}
	if (*n_upload) {
		server_take_file(exchange, upload, *n_upload);
		*n_upload = 0;
		return MHD_YES;
	}
	if (exchange->failed.code)
		return send_error(connection, &exchange->failed);
	if (exchange->request.what == KY_VIEW_ASSET)
		return send_asset(connection, asset_of(exchange));
	return server_answer(exchange, connection);
}

/* ---- opening ----------------------------------------------------------------------------- */

static int make_token(struct ky_view_server *server, struct kymo_error *err)
{
	uint8_t bytes[KY_VIEW_TOKEN_CHARS / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return ky_error_errno(err, errno, "cannot make a secret token");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(server->token + 2 * i, 3, "%02x", bytes[i]);
	snprintf(server->link, sizeof(server->link), "http://127.0.0.1:%u/%s/",
		 (unsigned int)server->port, server->token);
	return KYMO_OK;
}

/*
 * Other users have no token, but they could take all connections. A page of root's server may be open in the browser of any user, and where the
 * kernel does not tell whose a connection is, the token is enough.
 */
static enum MHD_Result server_accept(void *data, const struct sockaddr *peer, socklen_t len)
{
	const struct ky_view_server *server = data;
	union ky_http_address own;
	uid_t user;

	(void)len;
	ky_http_set_loopback(&own, peer->sa_family, server->port);
	if (geteuid() == 0 || ky_tsp_peer_user(peer, &own.any, &user, NULL) < 0)
		return MHD_YES;
	return user == geteuid() || user == 0 ? MHD_YES : MHD_NO;
}

static int server_start(struct ky_view_server *server, int fd, struct kymo_error *err)
{
	server->http = (struct ky_http_server){.handle = server_handle,
					       .accept = server_accept,
					       .end = server_end,
					       .exchange_bytes = sizeof(struct exchange),
					       .max_connections = MAX_CONNECTIONS,
					       .server = server};
	server->daemon = ky_http_server_start(&server->http, fd);
	return server->daemon ? KYMO_OK
			      : ky_error_set(err, KYMO_E_IO, "cannot start the viewer's server");
}

int ky_view_server_open(const struct ky_view_served *served, uint16_t port,
			struct ky_view_server **made, struct kymo_error *err)
{
	struct ky_view_server *server;
	int ret, fd;

	if (!ky_view_assets[0].name) {
		ky_error_set(err, KYMO_E_UNSUPPORTED,
			     "cannot start the viewer: this build has no page for the browser");
		ky_error_hint(err, "install nodejs and npm, and build Kymo again with make");
		return KYMO_E_UNSUPPORTED;
	}
	ret = ky_http_library_load(err);
	if (ret)
		return ret;
	server = calloc(1, sizeof(*server));
	if (!server)
		return ky_error_nomem(err);
	server->served = *served;
	server->port = port;
	fd = ky_http_listen(AF_INET, &server->port,
			    "another program has this port; choose another one, or none", err);
	ret = fd < 0 ? fd : make_token(server, err);
	if (ret == KYMO_OK)
		ret = server_start(server, fd, err);
	else if (fd >= 0)
		close(fd);
	if (ret == KYMO_OK)
		*made = server;
	else
		free(server);
	return ret;
}

const char *ky_view_server_link(const struct ky_view_server *server)
{
	return server->link;
}

void ky_view_server_close(struct ky_view_server *server)
{
	if (!server)
		return;
	atomic_store_explicit(&server->is_closing, true, memory_order_relaxed);
	ky_http.MHD_stop_daemon(server->daemon);
	free(server);
}
