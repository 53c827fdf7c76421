/* SPDX-License-Identifier: MIT */
/*
 * A small HTTP client: one request a connection, whose answer ends with it (HTTP/1.0). The server is not trusted: its answers have limits.
 * Threads: any.
 */
#ifndef KY_FLEET_HTTP_H
#define KY_FLEET_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "net/link/address.h"

/* http[s]://[USER@]HOST[:PORT][/DATABASE] */
struct ky_http_url {
	struct ky_net_address address;
	char user[128], password[256];
	char database[128];
	char authorities[512]; /* a file of those that sign its certificate; "": the system's */
	bool is_tls;
};

/* KYMO_E_INVALID: also for an address with a password, which ky_http_key_find() has. */
int ky_http_parse(const char *text, struct ky_http_url *url, struct kymo_error *err);

struct ky_http_request {
	const char *target; /* path and query, encoded */
	const char *body;
	size_t body_bytes;
};

/*
 * Sends @request, and gives what comes back piece by piece to @take, which ends it with a negative status. KYMO_E_IO: no connection, or the
 * server says no: then with its words.
 */
int ky_http_post(const struct ky_http_url *url, const struct ky_http_request *request,
		 int (*take)(void *data, const char *bytes, size_t n, struct kymo_error *err),
		 void *data, struct kymo_error *err);

/* Appends @text so that it can stand in a URL. */
void ky_http_put_encoded(struct ky_strbuf *out, const char *text, size_t len);

#endif
