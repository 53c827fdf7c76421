/* SPDX-License-Identifier: MIT */
/* The server of a build without libmicrohttpd. */
#include <unistd.h>

#include "base/error.h"
#include "view/server/file-server.h"
#include "view/server/server.h"
#include "view/server/tsp-server.h"

static int server_none_refuse(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_UNSUPPORTED,
		     "cannot start the viewer: this build has no HTTP server");
	ky_error_hint(err, "install libmicrohttpd-dev and build Kymo again");
	return KYMO_E_UNSUPPORTED;
}

int ky_view_server_open(const struct ky_view_served *served, uint16_t port,
			struct ky_view_server **server, struct kymo_error *err)
{
	(void)served;
	(void)port;
	(void)server;
	return server_none_refuse(err);
}

const char *ky_view_server_link(const struct ky_view_server *server)
{
	(void)server;
	return "";
}

void ky_view_server_close(struct ky_view_server *server)
{
	(void)server;
}

int ky_tsp_server_open(struct ky_tsp *tsp, uint16_t port, const char *const *origins,
		       size_t n_origins, const struct ky_log *log, struct ky_tsp_server **server,
		       struct kymo_error *err)
{
	(void)tsp;
	(void)port;
	(void)origins;
	(void)n_origins;
	(void)log;
	(void)server;
	return server_none_refuse(err);
}

const char *ky_tsp_server_link(const struct ky_tsp_server *server)
{
	(void)server;
	return "";
}

void ky_tsp_server_close(struct ky_tsp_server *server)
{
	(void)server;
}

int ky_file_server_open(int fd, const char *suffix, const char *origin, uint16_t port,
			struct ky_file_server **server, struct kymo_error *err)
{
	(void)suffix;
	(void)origin;
	(void)port;
	(void)server;
	close(fd);
	return server_none_refuse(err);
}

const char *ky_file_server_link(const struct ky_file_server *server)
{
	(void)server;
	return "";
}

void ky_file_server_close(struct ky_file_server *server)
{
	(void)server;
}
