/* SPDX-License-Identifier: MIT */
#include "fleet/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/http-answer.h"
#include "fleet/http-connection.h"
#include "fleet/http-key.h"

#define PIECE_BYTES  65536
#define DEFAULT_PORT "8123"
#define TLS_PORT     "8443"

/* ---- addresses ------------------------------------------------------------------------ */

static int http_copy(char *to, size_t bytes, const char *from, size_t len)
{
	if (len >= bytes)
		return KYMO_E_INVALID;
	memcpy(to, from, len);
	to[len] = '\0';
	return KYMO_OK;
}

static int http_parse_user(const char *text, size_t len, struct ky_http_url *url)
{
	if (memchr(text, '\r', len) || memchr(text, '\n', len))
		return KYMO_E_INVALID;
	return http_copy(url->user, sizeof(url->user), text, len);
}

/* HOST[:PORT], [IPV6]:PORT */
static int http_parse_host(const char *text, size_t len, struct ky_http_url *url)
{
	const char *end = *text == '[' ? memchr(text, ']', len) : NULL;
	const char *from = end ? text + 1 : text;
	const char *colon = end ? (end + 1 < text + len && end[1] == ':' ? end + 1 : NULL)
				: memchr(text, ':', len);
	size_t n = end ? (size_t)(end - from) : colon ? (size_t)(colon - from) : len;

	if (!n || http_copy(url->address.host, sizeof(url->address.host), from, n) < 0)
		return KYMO_E_INVALID;
	if (!colon)
		return http_copy(url->address.port, sizeof(url->address.port),
				 url->is_tls ? TLS_PORT : DEFAULT_PORT, strlen(DEFAULT_PORT));
	n = len - (size_t)(colon + 1 - text);
	if (!n || strspn(colon + 1, "0123456789") < n)
		return KYMO_E_INVALID;
	return http_copy(url->address.port, sizeof(url->address.port), colon + 1, n);
}

/* /DATABASE */
static int http_parse_database(const char *text, struct ky_http_url *url)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == '/')
		len--;
	if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < len)
		return KYMO_E_INVALID;
	return len ? http_copy(url->database, sizeof(url->database), text, len)
		   : http_copy(url->database, sizeof(url->database), "kymo", 4);
}

static int http_malformed(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_INVALID, "the address of the server is malformed");
	ky_error_hint(err, "http://USER@HOST:8123/DATABASE or https://USER@HOST:8443/DATABASE");
	return KYMO_E_INVALID;
}

/* All users of a machine see the command lines of its processes. */
static int http_refuse_password(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_INVALID, "an address has no password: others would see it");
	ky_error_hint(err, "write it into ~/.config/kymo/fleet-key (a line 'password TEXT', mode "
			   "0600), or into the environment: KYMO_FLEET_PASSWORD");
	return KYMO_E_INVALID;
}

int ky_http_parse(const char *text, struct ky_http_url *url, struct kymo_error *err)
{
	const char *host = strstr(text, "://"), *slash, *at;
	size_t len;
	int ret = KYMO_OK;

	memset(url, 0, sizeof(*url));
	url->is_tls = strncmp(text, "https://", 8) == 0;
	if (!url->is_tls && strncmp(text, "http://", 7) != 0)
		return ky_error_set(err, KYMO_E_INVALID, "'%s' is not an address of a server",
				    text);
	host += 3;
	slash = host + strcspn(host, "/");
	len = (size_t)(slash - host);
	at = memrchr(host, '@', len);
	if (at && memchr(host, ':', (size_t)(at - host)))
		return http_refuse_password(err);
	if (at) {
		ret = http_parse_user(host, (size_t)(at - host), url);
		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	if (!ret)
		ret = http_parse_host(host, len, url);
	if (!ret)
		ret = http_parse_database(*slash ? slash + 1 : slash, url);
	return ret < 0 ? http_malformed(err) : ky_http_key_find(url, err);
}

void ky_http_put_encoded(struct ky_strbuf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '_' || c == '-' || c == '.')
			ky_strbuf_addc(out, (char)c);
		else
			ky_strbuf_addf(out, "%%%02X", c);
	}
}

/* ---- the request ---------------------------------------------------------------------- */

static int http_request(const struct ky_http_url *url, struct ky_http_connection *connection,
			const struct ky_http_request *request, struct kymo_error *err)
{
	struct ky_strbuf head = KY_STRBUF_INIT;
	bool is_cut = false;
	int ret = KYMO_OK;

	ky_strbuf_addf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n",
		       request->target, url->address.host);
	ky_strbuf_addf(&head, "User-Agent: kymo\r\nContent-Length: %zu\r\n", request->body_bytes);
	if (url->user[0])
		ky_strbuf_addf(&head, "X-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\n",
			       url->user, url->password);
	ky_strbuf_adds(&head, "\r\n");
	if (ky_strbuf_failed(&head))
		ret = ky_error_nomem(err);
	if (!ret)
		ret = ky_http_put(connection, ky_strbuf_text(&head), head.len, &is_cut, err);
	if (!ret)
		ret = ky_http_put(connection, request->body, request->body_bytes, &is_cut, err);
	ky_strbuf_fini(&head);
	return ret;
}

/* ---- the answer ----------------------------------------------------------------------- */

int ky_http_post(const struct ky_http_url *url, const struct ky_http_request *request,
		 int (*take)(void *data, const char *bytes, size_t n, struct kymo_error *err),
		 void *data, struct kymo_error *err)
{
	struct ky_http_answer answer;
	struct ky_http_connection connection;
	char piece[PIECE_BYTES];
	size_t n = 1;
	int ret = ky_http_connect(url, &connection, err);

	ky_http_answer_init(&answer, take, data);
	if (!ret)
		ret = http_request(url, &connection, request, err);
	while (!ret && n && !answer.is_over) {
		ret = ky_http_get(&connection, piece, sizeof(piece), &n, err);
		if (!ret && n)
			ret = ky_http_answer_take(&answer, piece, n, err);
	}
	if (!ret && !answer.has_head)
		ret = ky_http_broke(url, ECONNRESET, err);
	if (!ret)
		ret = ky_http_answer_end(&answer, err);
	if (ret < 0 && answer.has_head)
		ky_error_path(err, url->address.host);
	ky_http_answer_fini(&answer);
	ky_http_disconnect(&connection);
	return ret;
}
