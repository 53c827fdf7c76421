/* SPDX-License-Identifier: MIT */
/* The parameters of TSP requests, from JSON. Threads: any. */
#ifndef KY_VIEW_TSP_PARAMETERS_H
#define KY_VIEW_TSP_PARAMETERS_H

#include "view/tsp/tsp-request.h"

/* Parameters, as bits. */
enum {
	KY_TSP_HAS_URI = 1 << 0,
	KY_TSP_HAS_NAME = 1 << 1,
	KY_TSP_HAS_TRACES = 1 << 2,
	KY_TSP_HAS_START = 1 << 3, /* of a bookmark, as the next one */
	KY_TSP_HAS_END = 1 << 4,
	KY_TSP_HAS_RANGE = 1 << 5,
	KY_TSP_HAS_ITEMS = 1 << 6,
	KY_TSP_HAS_TIMES = 1 << 7,
	KY_TSP_HAS_INDEX = 1 << 8,
	KY_TSP_HAS_COUNT = 1 << 9,
	KY_TSP_HAS_COLUMNS = 1 << 10,
	KY_TSP_HAS_SEARCH = 1 << 11,
	KY_TSP_HAS_DIRECTION = 1 << 12,
	KY_TSP_HAS_ELEMENT = 1 << 13,
	KY_TSP_HAS_STATE_FILTER = 1 << 14,
	KY_TSP_HAS_CATEGORIES = 1 << 15,
	KY_TSP_HAS_FILTER = 1 << 16,
	KY_TSP_HAS_TID = 1 << 17, /* of a configuration, as the next two */
	KY_TSP_HAS_PATH_START = 1 << 18,
	KY_TSP_HAS_PATH_END = 1 << 19,
};

/*
 * Take the parameters @needs and @may (bits) from @body, {"parameters": {...}}, into @request; others
 * are ignored, as clients send some. Returns 0, KYMO_E_INVALID, KYMO_E_MEMORY.
 */
int ky_tsp_parameters(const char *body, size_t len, unsigned int needs, unsigned int may,
		      struct ky_arena *arena, struct ky_tsp_request *request,
		      struct kymo_error *err);

#endif
