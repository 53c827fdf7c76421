/* SPDX-License-Identifier: MIT */
/* The files of the viewer's page, embedded in the program: tools/embed-page makes page.c. */
#ifndef KY_VIEW_PAGE_H
#define KY_VIEW_PAGE_H

#include <stddef.h>
#include <stdint.h>

struct ky_view_asset {
	const char *name;    /* "index.html" */
	const char *type;    /* "text/html; charset=utf-8" */
	const uint8_t *data; /* compressed by gzip */
	size_t size_bytes;
};

/* Ends with a NULL name. Empty when the build lacked node or the page's packages. */
extern const struct ky_view_asset ky_view_assets[];

#endif
