/* SPDX-License-Identifier: MIT */
#include "fleet/http-answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define HEAD_MAX_BYTES	65536
#define LINE_MAX_BYTES	256
#define WORDS_MAX_BYTES 400

void ky_http_answer_init(struct ky_http_answer *answer,
			 int (*take)(void *data, const char *bytes, size_t n,
				     struct kymo_error *err),
			 void *data)
{
	*answer = (struct ky_http_answer){
		.take = take, .data = data, .head = KY_STRBUF_INIT, .line = KY_STRBUF_INIT};
}

void ky_http_answer_fini(struct ky_http_answer *answer)
{
	ky_strbuf_fini(&answer->head);
	ky_strbuf_fini(&answer->line);
}

/* ---- the body ------------------------------------------------------------------------- */

static int http_answer_give(struct ky_http_answer *answer, const char *bytes, size_t n,
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

static int http_answer_strange(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_IO, "the answer is not one of an HTTP server");
}

/* The line before a chunk: its size in hexadecimal, or the empty line behind the chunk before. */
static int http_answer_line(struct ky_http_answer *answer, struct kymo_error *err)
{
	const char *text = ky_strbuf_text(&answer->line);
	char *end;

	if (answer->line.len && text[answer->line.len - 1] == '\r')
		answer->line.len--;
	if (answer->line.len) {
		if (!strchr("0123456789abcdefABCDEF", text[0]))
			return http_answer_strange(err);
		answer->left = strtoull(text, &end, 16);
		if (*end && *end != ';' && *end != '\r' && *end != ' ')
			return http_answer_strange(err);
		answer->is_over = !answer->left;
		answer->is_in_chunk = !answer->is_over;
	}
	ky_strbuf_clear(&answer->line);
	return KYMO_OK;
}

static int http_answer_chunks(struct ky_http_answer *answer, const char *bytes, size_t n,
			      struct kymo_error *err)
{
	int ret = KYMO_OK;

	while (n && !ret && !answer->is_over) {
		size_t len = n < answer->left ? n : (size_t)answer->left;

		if (answer->is_in_chunk) {
			ret = http_answer_give(answer, bytes, len, err);
			answer->left -= len;
			answer->is_in_chunk = answer->left != 0;
			bytes += len;
			n -= len;
			continue;
		}
		if (*bytes != '\n')
			ky_strbuf_addc(&answer->line, *bytes);
		else
			ret = http_answer_line(answer, err);
		if (answer->line.len > LINE_MAX_BYTES || ky_strbuf_failed(&answer->line))
			ret = http_answer_strange(err);
		bytes++;
		n--;
	}
	return ret;
}

static int http_answer_body(struct ky_http_answer *answer, const char *bytes, size_t n,
			    struct kymo_error *err)
{
	if (answer->ends == KY_HTTP_IN_CHUNKS)
		return http_answer_chunks(answer, bytes, n, err);
	if (answer->ends == KY_HTTP_BY_LENGTH) {
		n = n < answer->left ? n : (size_t)answer->left;
		answer->left -= n;
		answer->is_over = !answer->left;
	}
	return http_answer_give(answer, bytes, n, err);
}

/* ---- the head ------------------------------------------------------------------------- */

/* The value of the field @name, or NULL. @head ends with an empty line. */
static const char *http_answer_field(const char *head, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = strchr(head, '\n'); line; line = strchr(line + 1, '\n'))
		if (strncasecmp(line + 1, name, len) == 0 && line[1 + len] == ':')
			return line + 2 + len + strspn(line + 2 + len, " \t");
	return NULL;
}

static void http_answer_find_end(struct ky_http_answer *answer, const char *head)
{
	const char *coding = http_answer_field(head, "Transfer-Encoding");
	const char *length = http_answer_field(head, "Content-Length");

	if (coding && strncasecmp(coding, "chunked", 7) == 0) {
		answer->ends = KY_HTTP_IN_CHUNKS;
	} else if (length && strspn(length, "0123456789")) {
		answer->ends = KY_HTTP_BY_LENGTH;
		answer->left = strtoull(length, NULL, 10);
		answer->is_over = !answer->left;
	}
}

/* A server that wants to hear more first says so by an answer without a body. */
static bool http_answer_is_early(const char *head)
{
	return head[9] == '1';
}

static int http_answer_head(struct ky_http_answer *answer, struct kymo_error *err)
{
	const char *text = ky_strbuf_text(&answer->head);
	const char *end = memmem(text, answer->head.len, "\r\n\r\n", 4);
	struct ky_strbuf head = answer->head;
	size_t body;
	int ret;

	if (!end && answer->head.len < HEAD_MAX_BYTES)
		return KYMO_OK;
	if (!end || strncmp(text, "HTTP/1.", 7) != 0 || memchr(text, '\0', (size_t)(end - text)))
		return http_answer_strange(err);
	body = (size_t)(end + 4 - text);
	ky_strbuf_init(&answer->head);
	if (http_answer_is_early(text)) {
		ky_strbuf_add(&answer->head, text + body, head.len - body);
		ky_strbuf_fini(&head);
		return answer->head.len ? http_answer_head(answer, err) : KYMO_OK;
	}
	answer->has_head = true;
	answer->is_refused = strncmp(text + 8, " 200", 4) != 0;
	head.data[body - 1] = '\0';
	http_answer_find_end(answer, text);
	ret = http_answer_body(answer, text + body, head.len - body, err);
	ky_strbuf_fini(&head);
	return ret;
}

int ky_http_answer_take(struct ky_http_answer *answer, const char *bytes, size_t n,
			struct kymo_error *err)
{
	if (answer->has_head)
		return http_answer_body(answer, bytes, n, err);
	ky_strbuf_add(&answer->head, bytes, n);
	return ky_strbuf_failed(&answer->head) ? ky_error_nomem(err)
					       : http_answer_head(answer, err);
}

/* ---- the end -------------------------------------------------------------------------- */

int ky_http_answer_end(struct ky_http_answer *answer, struct kymo_error *err)
{
	const char *text = ky_strbuf_text(&answer->head);
	size_t len = answer->head.len < WORDS_MAX_BYTES ? answer->head.len : WORDS_MAX_BYTES;

	if (answer->is_refused) {
		while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
			len--;
		return ky_error_set(err, KYMO_E_IO, "the server says: %.*s", (int)len, text);
	}
	if (answer->ends != KY_HTTP_WITH_CONNECTION && !answer->is_over)
		return ky_error_set(
			err, KYMO_E_IO,
			"the answer of the server is cut: the connection ended before it");
	return KYMO_OK;
}
