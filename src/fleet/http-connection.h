/* SPDX-License-Identifier: MIT */
/* A connection to an HTTP server, with or without TLS. Threads: any; one at a time per connection. */
#ifndef KY_FLEET_HTTP_CONNECTION_H
#define KY_FLEET_HTTP_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fleet/http.h"
#include "net/link/tls.h"

struct ky_http_connection {
	const struct ky_http_url *url;
	int fd;
	struct ky_tls *tls;
	struct ky_tls_session *session;
};

/* KYMO_E_IO: no connection, or the certificate is not that of the server. The caller closes it in any case. */
int ky_http_connect(const struct ky_http_url *url, struct ky_http_connection *connection,
		    struct kymo_error *err);
void ky_http_disconnect(struct ky_http_connection *connection);

/* Sends all of it. *is_cut: the server takes no more; it may have said why. */
int ky_http_put(struct ky_http_connection *connection, const char *data, size_t bytes, bool *is_cut,
		struct kymo_error *err);
/* Waits for bytes. *n: how many came; 0: the end. */
int ky_http_get(struct ky_http_connection *connection, char *data, size_t bytes, size_t *n,
		struct kymo_error *err);
/* The connection broke for the reason @errnum. */
int ky_http_broke(const struct ky_http_url *url, int errnum, struct kymo_error *err);

#endif
