/* SPDX-License-Identifier: MIT */
#include "fleet/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "fleet/http-connection.h"
#include "fleet/http-key.h"

#define HEAD_MAX_BYTES	65536
#define WORDS_MAX_BYTES 400
#define PIECE_BYTES	65536
#define DEFAULT_PORT	"8123"
#define TLS_PORT	"8443"
#define GZIP_WINDOW	31 /* zlib's way to say gzip */

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

static int http_pack(const char *data, size_t n, struct ky_strbuf *out, struct kymo_error *err)
{
	static const int level = 1; /* the network is mostly faster than more */
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)n};
	char piece[PIECE_BYTES];
	int ret;

	if (deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return ky_error_nomem(err);
	do {
		stream.next_out = (Bytef *)piece;
		stream.avail_out = sizeof(piece);
		ret = deflate(&stream, Z_FINISH);
		ky_strbuf_add(out, piece, sizeof(piece) - stream.avail_out);
	} while (ret == Z_OK);
	(void)deflateEnd(&stream);
	return ret == Z_STREAM_END && !ky_strbuf_failed(out) ? KYMO_OK : ky_error_nomem(err);
}

static int http_request(const struct ky_http_url *url, struct ky_http_connection *connection,
			const struct ky_http_request *request, struct kymo_error *err)
{
	struct ky_strbuf head = KY_STRBUF_INIT, packed = KY_STRBUF_INIT;
	const char *body = request->body;
	size_t n = request->body_bytes;
	bool is_cut = false;
	int ret = KYMO_OK;

	if (request->compresses) {
		ret = http_pack(body, n, &packed, err);
		body = ky_strbuf_text(&packed);
		n = packed.len;
	}
	ky_strbuf_addf(&head, "POST %s HTTP/1.0\r\nHost: %s\r\n", request->target,
		       url->address.host);
	ky_strbuf_addf(&head, "User-Agent: kymo\r\nContent-Length: %zu\r\n", n);
	if (url->user[0])
		ky_strbuf_addf(&head, "X-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\n",
			       url->user, url->password);
	ky_strbuf_adds(&head, request->compresses ? "Content-Encoding: gzip\r\n\r\n" : "\r\n");
	if (!ret && ky_strbuf_failed(&head))
		ret = ky_error_nomem(err);
	if (!ret)
		ret = ky_http_put(connection, ky_strbuf_text(&head), head.len, &is_cut, err);
	if (!ret)
		ret = ky_http_put(connection, body, n, &is_cut, err);
	ky_strbuf_fini(&head);
	ky_strbuf_fini(&packed);
	return ret;
}

/* ---- the answer ----------------------------------------------------------------------- */

struct http_answer {
	const struct ky_http_url *url;
	struct ky_strbuf head; /* up to the empty line; of a refusal, its words */
	bool has_head, is_refused;
	int (*take)(void *data, const char *bytes, size_t n, struct kymo_error *err);
	void *data;
};

static int http_body(struct http_answer *answer, const char *bytes, size_t n,
		     struct kymo_error *err)
{
	if (!n)
		return KYMO_OK;
	if (!answer->is_refused)
		return answer->take ? answer->take(answer->data, bytes, n, err) : KYMO_OK;
	if (answer->head.len < WORDS_MAX_BYTES)
		ky_strbuf_add(&answer->head, bytes, n);
	return KYMO_OK;
}

static int http_head(struct http_answer *answer, struct kymo_error *err)
{
	const char *text = ky_strbuf_text(&answer->head);
	const char *end = memmem(text, answer->head.len, "\r\n\r\n", 4);
	struct ky_strbuf rest = KY_STRBUF_INIT;
	int ret;

	if (!end && answer->head.len < HEAD_MAX_BYTES)
		return KYMO_OK;
	if (!end || strncmp(text, "HTTP/1.", 7) != 0)
		return ky_error_set(err, KYMO_E_IO, "the answer is not one of an HTTP server");
	answer->has_head = true;
	answer->is_refused = strncmp(text + 8, " 200", 4) != 0;
	ky_strbuf_add(&rest, end + 4, answer->head.len - (size_t)(end + 4 - text));
	ky_strbuf_clear(&answer->head);
	ret = ky_strbuf_failed(&rest) ? ky_error_nomem(err)
				      : http_body(answer, ky_strbuf_text(&rest), rest.len, err);
	ky_strbuf_fini(&rest);
	return ret;
}

static int http_refused(struct http_answer *answer, struct kymo_error *err)
{
	const char *text = ky_strbuf_text(&answer->head);
	size_t len = answer->head.len;

	len = len > WORDS_MAX_BYTES ? WORDS_MAX_BYTES : len;
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	ky_error_set(err, KYMO_E_IO, "the server says: %.*s", (int)len, text);
	ky_error_path(err, answer->url->address.host);
	return KYMO_E_IO;
}

static int http_answer(struct http_answer *answer, struct ky_http_connection *connection,
		       struct kymo_error *err)
{
	char piece[PIECE_BYTES];
	size_t n = 1;
	int ret = KYMO_OK;

	while (!ret && n) {
		ret = ky_http_get(connection, piece, sizeof(piece), &n, err);
		if (ret || !n)
			continue;
		if (answer->has_head) {
			ret = http_body(answer, piece, n, err);
			continue;
		}
		ky_strbuf_add(&answer->head, piece, n);
		ret = ky_strbuf_failed(&answer->head) ? ky_error_nomem(err)
						      : http_head(answer, err);
	}
	if (!ret && !answer->has_head)
		return ky_http_broke(answer->url, ECONNRESET, err);
	return !ret && answer->is_refused ? http_refused(answer, err) : ret;
}

int ky_http_post(const struct ky_http_url *url, const struct ky_http_request *request,
		 int (*take)(void *data, const char *bytes, size_t n, struct kymo_error *err),
		 void *data, struct kymo_error *err)
{
	struct http_answer answer = {.url = url, .take = take, .data = data};
	struct ky_http_connection connection;
	int ret = ky_http_connect(url, &connection, err);

	if (!ret)
		ret = http_request(url, &connection, request, err);
	if (!ret)
		ret = http_answer(&answer, &connection, err);
	ky_strbuf_fini(&answer.head);
	ky_http_disconnect(&connection);
	return ret;
}
