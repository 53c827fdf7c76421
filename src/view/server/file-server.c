/* SPDX-License-Identifier: MIT */
#include "view/server/file-server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "view/http/http-server.h"
#include "view/tsp/tsp-request.h"

#define MAX_CONNECTIONS 8u
#define TOKEN_BYTES	16
#define LINK_BYTES	128

struct ky_file_server {
	struct ky_http_server http;
	struct MHD_Daemon *daemon;
	int fd;
	uint64_t size_bytes;
	uint16_t port;
	const char *origin;
	char name[LINK_BYTES]; /* "/0123...pftrace" */
	char link[2 * LINK_BYTES];
};

static enum MHD_Result file_server_send(const struct ky_file_server *server,
					struct MHD_Connection *connection, unsigned int status,
					struct MHD_Response *response)
{
	const struct ky_http_header headers[] = {
		{"X-Content-Type-Options", "nosniff"},
		{"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
		{"Cache-Control", "no-store"},
		{"Vary", "Origin"},
		{"Access-Control-Allow-Origin", server->origin},
		{"Access-Control-Allow-Private-Network", "true"},
	};

	return ky_http_send(connection, status, headers, sizeof(headers) / sizeof(*headers),
			    response);
}

static enum MHD_Result file_server_refuse(const struct ky_file_server *server,
					  struct MHD_Connection *connection, unsigned int status)
{
	struct MHD_Response *response =
		ky_http.MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	return response ? file_server_send(server, connection, status, response) : MHD_NO;
}

/* The response takes a descriptor of its own. */
static enum MHD_Result file_server_answer(const struct ky_file_server *server,
					  struct MHD_Connection *connection)
{
	int fd = fcntl(server->fd, F_DUPFD_CLOEXEC, 0);
	struct MHD_Response *response =
		fd < 0 ? NULL
		       : ky_http.MHD_create_response_from_fd_at_offset64(server->size_bytes, fd, 0);

	if (response) {
		ky_http.MHD_add_response_header(response, "Content-Type",
						"application/octet-stream");
		return file_server_send(server, connection, MHD_HTTP_OK, response);
	}
	if (fd >= 0)
		close(fd);
	return file_server_refuse(server, connection, MHD_HTTP_INTERNAL_SERVER_ERROR);
}

static enum MHD_Result file_server_handle(void *data, struct MHD_Connection *connection,
					  const char *url, const char *method, const char *version,
					  const char *upload, size_t *n_upload, void **own)
{
	struct ky_http_exchange *exchange = *own;
	const struct ky_file_server *server = exchange ? exchange->server : NULL;
	const char *origin = ky_http_header(connection, "Origin");

	(void)data;
	(void)url;
	(void)version;
	(void)upload;
	if (!exchange || !exchange->target || *n_upload)
		return MHD_NO;
	if (!exchange->is_begun) {
		exchange->is_begun = true;
		return MHD_YES;
	}
	if (!ky_tsp_is_host(ky_http_header(connection, "Host"), server->port) ||
	    (origin && strcmp(origin, server->origin) != 0))
		return file_server_refuse(server, connection, MHD_HTTP_FORBIDDEN);
	if (strcmp(exchange->target, server->name) != 0)
		return file_server_refuse(server, connection, MHD_HTTP_NOT_FOUND);
	if (strcmp(method, "OPTIONS") == 0)
		return file_server_refuse(server, connection, MHD_HTTP_NO_CONTENT);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return file_server_refuse(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED);
	return file_server_answer(server, connection);
}

/* ---- opening ------------------------------------------------------------------------------ */

static int file_server_name(struct ky_file_server *server, const char *suffix,
			    struct kymo_error *err)
{
	uint8_t token[TOKEN_BYTES];
	size_t at = 1;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return ky_error_errno(err, errno, "no random numbers");
	server->name[0] = '/';
	for (size_t i = 0; i < sizeof(token); i++, at += 2)
		snprintf(server->name + at, sizeof(server->name) - at, "%02x", token[i]);
	snprintf(server->name + at, sizeof(server->name) - at, "%s", suffix);
	snprintf(server->link, sizeof(server->link), "http://127.0.0.1:%u%s",
		 (unsigned int)server->port, server->name);
	return KYMO_OK;
}

static int file_server_start(struct ky_file_server *server, const char *suffix,
			     struct kymo_error *err)
{
	static const char hint[] = "another program has this port, perhaps another kymo view "
				   "--perfetto or trace_processor; end it first";
	int ret = file_server_name(server, suffix, err), fd;

	if (ret < 0)
		return ret;
	fd = ky_http_listen(AF_INET, &server->port, hint, err);
	if (fd < 0)
		return fd;
	server->http = (struct ky_http_server){.handle = file_server_handle,
					       .exchange_bytes = sizeof(struct ky_http_exchange),
					       .max_connections = MAX_CONNECTIONS,
					       .server = server};
	server->daemon = ky_http_server_start(&server->http, fd);
	return server->daemon ? KYMO_OK : ky_error_set(err, KYMO_E_IO, "cannot start the server");
}

int ky_file_server_open(int fd, const char *suffix, const char *origin, uint16_t port,
			struct ky_file_server **made, struct kymo_error *err)
{
	struct ky_file_server *server;
	struct stat st;
	int ret = ky_http_library_load(err);

	if (ret == KYMO_OK && fstat(fd, &st) < 0)
		ret = ky_error_errno(err, errno, "cannot read the file");
	server = ret == KYMO_OK ? calloc(1, sizeof(*server)) : NULL;
	if (!server) {
		close(fd);
		return ret < 0 ? ret : ky_error_nomem(err);
	}
	server->fd = fd;
	server->size_bytes = (uint64_t)st.st_size;
	server->origin = origin;
	server->port = port;
	ret = file_server_start(server, suffix, err);
	if (ret < 0)
		ky_file_server_close(server);
	else
		*made = server;
	return ret;
}

const char *ky_file_server_link(const struct ky_file_server *server)
{
	return server->link;
}

void ky_file_server_close(struct ky_file_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		ky_http.MHD_stop_daemon(server->daemon);
	close(server->fd);
	free(server);
}
