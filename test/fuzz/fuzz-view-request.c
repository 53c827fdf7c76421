/* SPDX-License-Identifier: MIT */
/*
 * A request's target, as any program of the machine can send it. Whatever it is: an accepted one has the
 * token, and its numbers, names and texts are within their limits. The headers Host and Origin are texts of
 * the same kind.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "view/page/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[KY_VIEW_TOKEN_CHARS + 1] = "0123456789abcdef0123456789abcdef";

static void check_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max);

	if (len == max)
		abort();
	for (size_t i = 0, n; i < len; i += n) {
		n = ky_utf8_length((const uint8_t *)text + i, len - i);
		if (!n)
			abort();
	}
}

static void try_target(const char *target, bool is_post)
{
	static struct ky_view_request request;
	struct kymo_error err = {0};
	int ret = ky_view_request_parse(target, is_post, token, &request, &err);

	if (ret < 0) {
		if (ret != err.code || !memchr(err.message, 0, sizeof(err.message)))
			abort();
		return;
	}
	if (target[0] != '/' || strncmp(target + 1, token, KY_VIEW_TOKEN_CHARS) != 0 ||
	    request.end_ns < request.begin_ns || request.count > KY_VIEW_MAX_PIXELS ||
	    request.is_post != is_post ||
	    is_post != (request.what == KY_VIEW_REPORT || request.what == KY_VIEW_NOTE ||
			request.what == KY_VIEW_UNNOTE || request.what == KY_VIEW_PROGRAM ||
			(request.what >= KY_VIEW_DROP && request.what <= KY_VIEW_DROP_OPEN)))
		abort();
	if (request.what == KY_VIEW_ROWS && (!request.count || request.count > KY_VIEW_MAX_ROWS))
		abort();
	check_text(request.of, sizeof(request.of));
	check_text(request.comm, sizeof(request.comm));
	check_text(request.periods, sizeof(request.periods));
	if (request.drop && (request.side || request.drop > 999999999))
		abort();
	if (request.side > 2)
		abort();
	if (request.n_ids > KY_VIEW_MAX_IDS ||
	    ((request.what == KY_VIEW_TIMELINE || request.what == KY_VIEW_CURVES) &&
	     !request.n_ids))
		abort();
	check_text(request.filter, sizeof(request.filter));
	check_text(request.name, sizeof(request.name));
	if (strchr(request.name, '/') || request.name[0] == '.')
		abort();
}

/* The first byte: a POST; whether the token is given. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = 0;
	char *target;

	if (!size || size > 65536)
		return 0;
	target = malloc(size + KY_VIEW_TOKEN_CHARS + 3);
	if (!target)
		return 0;
	if (data[0] & 2) {
		target[0] = '/';
		memcpy(target + 1, token, KY_VIEW_TOKEN_CHARS);
		target[1 + KY_VIEW_TOKEN_CHARS] = '/';
		len = KY_VIEW_TOKEN_CHARS + 2;
	}
	memcpy(target + len, data + 1, size - 1);
	target[len + size - 1] = '\0';
	try_target(target, data[0] & 1);
	if (ky_view_is_origin(target, 80) && strcmp(target, "http://127.0.0.1:80") != 0 &&
	    strcmp(target, "http://localhost:80") != 0)
		abort();
	if (ky_view_is_host(target, 80) && ky_view_is_origin(target, 80))
		abort();
	free(target);
	return 0;
}
