/* SPDX-License-Identifier: MIT */
/* Answers of an HTTP server, of any bytes: pieces of any size have the same meaning. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

#include "fleet/http-answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int keep(void *data, const char *bytes, size_t n, struct kymo_error *err)
{
	(void)err;
	ky_strbuf_add(data, bytes, n);
	return KYMO_OK;
}

static int run(const uint8_t *data, size_t size, size_t piece, struct ky_strbuf *body)
{
	struct ky_http_answer answer;
	struct kymo_error err;
	int ret = KYMO_OK;

	ky_http_answer_init(&answer, keep, body);
	for (size_t at = 0; at < size && !ret && !answer.is_over; at += piece)
		ret = ky_http_answer_take(&answer, (const char *)data + at,
					  size - at < piece ? size - at : piece, &err);
	if (!ret && !answer.has_head)
		ret = KYMO_E_IO;
	if (!ret)
		ret = ky_http_answer_end(&answer, &err);
	ky_http_answer_fini(&answer);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_strbuf whole = KY_STRBUF_INIT, pieces = KY_STRBUF_INIT;
	size_t piece = size && data[0] ? data[0] % 16 + 1u : 1;
	int one, other;

	/* The limit of the head depends on the pieces. */
	if (size > 60000)
		return 0;
	one = run(data, size, size + 1, &whole);
	other = run(data, size, piece, &pieces);
	if (one != other || (one == KYMO_OK && (whole.len != pieces.len ||
						memcmp(ky_strbuf_text(&whole),
						       ky_strbuf_text(&pieces), whole.len) != 0)))
		abort();
	ky_strbuf_fini(&whole);
	ky_strbuf_fini(&pieces);
	return 0;
}
