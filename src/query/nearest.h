/* SPDX-License-Identifier: MIT */
/* The names that are nearest to a wrong one, for messages. */
#ifndef KY_QUERY_NEAREST_H
#define KY_QUERY_NEAREST_H

#include <stddef.h>

#include <kymo/error.h>

/* Zero but for @name, the wrong one. Names that are offered are borrowed. */
struct ky_nearest {
	const char *name;
	const char *best[3];
	size_t distance[3];
};

void ky_nearest_offer(struct ky_nearest *nearest, const char *name);
/* "the nearest names are: ..." as the hint of @err, if any was offered. */
void ky_nearest_hint(const struct ky_nearest *nearest, struct kymo_error *err);

#endif
