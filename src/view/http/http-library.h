/* SPDX-License-Identifier: MIT */
/* The functions of libmicrohttpd that the server calls. They are loaded with the server: no other command needs them. */
#ifndef KY_VIEW_HTTP_LIBRARY_H
#define KY_VIEW_HTTP_LIBRARY_H

#include <microhttpd.h>

#include <kymo/error.h>

#include "os/library.h"

#define KY_HTTP_FUNCTIONS(X)                       \
	X(MHD_add_response_header)                 \
	X(MHD_create_response_from_buffer)         \
	X(MHD_create_response_from_fd_at_offset64) \
	X(MHD_destroy_response)                    \
	X(MHD_get_connection_info)                 \
	X(MHD_lookup_connection_value)             \
	X(MHD_queue_response)                      \
	X(MHD_start_daemon)                        \
	X(MHD_stop_daemon)

KY_HTTP_FUNCTIONS(KY_LIBRARY_TYPE)

struct ky_http_library {
	KY_HTTP_FUNCTIONS(KY_LIBRARY_MEMBER)
};

/* The functions; NULL before ky_http_library_load(). */
extern struct ky_http_library ky_http;

/* KYMO_E_UNSUPPORTED: the library is missing. One thread at a time. */
int ky_http_library_load(struct kymo_error *err);

#endif
