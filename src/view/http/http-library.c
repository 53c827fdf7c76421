/* SPDX-License-Identifier: MIT */
#include "view/http/http-library.h"

#include <stddef.h>

#define SYMBOL(name) {#name, offsetof(struct ky_http_library, name)},

static const struct ky_library_symbol symbols[] = {KY_HTTP_FUNCTIONS(SYMBOL){0}};

struct ky_http_library ky_http;

int ky_http_library_load(struct kymo_error *err)
{
	return ky_library_load("libmicrohttpd.so.12", "libmicrohttpd12", symbols, &ky_http, err);
}
