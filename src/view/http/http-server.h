/* SPDX-License-Identifier: MIT */
/*
 * The common part of the viewer's two HTTP servers, by libmicrohttpd: a port of the loopback interface, one thread for each
 * connection, an exchange for each request, answers. Memory is bounded: so many connections, so much for each request.
 *
 * Threads: a server's handler runs in the threads of its connections; the other functions run in any thread.
 */
#ifndef KY_VIEW_HTTP_SERVER_H
#define KY_VIEW_HTTP_SERVER_H

#include <netinet/in.h>
#include <stdatomic.h>

#include "base/strbuf.h"
#include "view/http/http-library.h"

/* One request, from its first line to its answer: the first member of a server's own struct. */
struct ky_http_exchange {
	void *server; /* that ky_http_server_start() got */
	char *target; /* as it was on the wire; NULL: memory was out */
	bool is_begun;
	struct ky_strbuf body;
};

/* What differs between servers. The server's memory holds it until its daemons have ended. */
struct ky_http_server {
	MHD_AccessHandlerCallback handle;		/* its last argument has the exchange */
	MHD_AcceptPolicyCallback accept;		/* NULL: all connections */
	void (*end)(struct ky_http_exchange *exchange); /* what it holds; NULL: nothing */
	size_t exchange_bytes; /* of the struct that begins with the exchange */
	unsigned int max_connections;
	void *server;
};

/* Whether the client of a request still waits; for struct ky_view_stop. */
struct ky_http_client {
	const atomic_bool *is_closing; /* of the server; relaxed: answers end soon after it */
	int fd;
};

/* A header of an answer. */
struct ky_http_header {
	const char *name, *value;
};

union ky_http_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* The loopback interface's address of @family, AF_INET or AF_INET6. */
void ky_http_set_loopback(union ky_http_address *address, int family, uint16_t port);
/*
 * Listens there. *@port 0 becomes the port that the kernel chose. @hint: what to do if another program has the port.
 * Returns the socket, or a negative status.
 */
int ky_http_listen(int family, uint16_t *port, const char *hint, struct kymo_error *err);
/* Starts threads that answer at the socket @fd, which they take. NULL: they cannot start, and @fd is closed. */
struct MHD_Daemon *ky_http_server_start(struct ky_http_server *server, int fd);

/* A header of the request, or NULL. */
const char *ky_http_header(struct MHD_Connection *connection, const char *name);
/* Whether a body follows the headers. */
bool ky_http_has_body(struct MHD_Connection *connection);
struct ky_http_client ky_http_client_of(struct MHD_Connection *connection,
					const atomic_bool *is_closing);
/* @data: a struct ky_http_client. The client has gone, or the server closes. */
bool ky_http_client_is_over(void *data);

/* An answer with the text of @json, which it takes. NULL: memory is out. */
struct MHD_Response *ky_http_json(struct ky_strbuf *json);
/* The same with @bytes of a media type. */
struct MHD_Response *ky_http_data(struct ky_strbuf *bytes, const char *type);
/* Sends @response, which it takes, with @n @headers. NULL closes the connection. */
enum MHD_Result ky_http_send(struct MHD_Connection *connection, unsigned int status,
			     const struct ky_http_header *headers, size_t n,
			     struct MHD_Response *response);

#endif
