/* SPDX-License-Identifier: MIT */
/*
 * Requests of the Trace Server Protocol 0.6 (docs/viewer.md): from method, target and body to
 * checked parameters.
 *
 * Everything here is untrusted. A parsed request has only numbers within their limits, ids of plain
 * characters, and UTF-8 texts.
 *
 * Threads: any; the functions have no state.
 */
#ifndef KY_VIEW_TSP_REQUEST_H
#define KY_VIEW_TSP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"

#define KY_TSP_BODY_BYTES   ((size_t)256 << 10)
#define KY_TSP_OUTPUT_BYTES 128
#define KY_TSP_UUID_BYTES   37
#define KY_TSP_NAME_BYTES   256
#define KY_TSP_PATH_BYTES   4096
#define KY_TSP_FILTER_BYTES 4096
#define KY_TSP_TIMES	    65536 /* the protocol's limit */
#define KY_TSP_LINES	    4096

enum ky_tsp_what {
	KY_TSP_HEALTH,
	KY_TSP_IDENTIFIER,
	KY_TSP_TRACES,
	KY_TSP_TRACE_OPEN,
	KY_TSP_TRACE,
	KY_TSP_TRACE_DELETE,
	KY_TSP_EXPERIMENTS,
	KY_TSP_EXPERIMENT_CREATE,
	KY_TSP_EXPERIMENT,
	KY_TSP_EXPERIMENT_DELETE,
	KY_TSP_OUTPUTS,
	KY_TSP_OUTPUT,
	KY_TSP_MARKER_SETS,
	KY_TSP_BOOKMARKS,
	KY_TSP_BOOKMARK_CREATE,
	KY_TSP_BOOKMARK,
	KY_TSP_BOOKMARK_UPDATE,
	KY_TSP_BOOKMARK_DELETE,
	KY_TSP_GRAPH_TREE,
	KY_TSP_GRAPH_STATES,
	KY_TSP_GRAPH_ARROWS,
	KY_TSP_GRAPH_TOOLTIP,
	KY_TSP_XY_TREE,
	KY_TSP_XY,
	KY_TSP_GENERIC_TREE,
	KY_TSP_GENERIC_XY,
	KY_TSP_TABLE_COLUMNS,
	KY_TSP_TABLE_LINES,
	KY_TSP_DATA_TREE,
	KY_TSP_STYLES,
	KY_TSP_CATEGORIES,
	KY_TSP_ANNOTATIONS,
	KY_TSP_CONFIG_TYPES,
	KY_TSP_OUTPUT_CONFIG_TYPES,
	KY_TSP_OUTPUT_CONFIG_TYPE,
	KY_TSP_OUTPUT_DERIVE,
	KY_TSP_OUTPUT_REMOVE,
};

enum ky_tsp_element {
	KY_TSP_STATE,
	KY_TSP_ARROW,
	KY_TSP_ANNOTATION,
};

/* A column and the pattern that its cells are searched for. */
struct ky_tsp_search {
	uint64_t column;
	const char *pattern;
};

struct ky_tsp_texts {
	const char *const *data;
	size_t len;
};

/* Texts and arrays are in the request's arena; what the body lacks is zero. */
struct ky_tsp_request {
	enum ky_tsp_what what;
	char uuid[2][KY_TSP_UUID_BYTES]; /* of the path, in small letters */
	char output[KY_TSP_OUTPUT_BYTES];
	char derived[KY_TSP_OUTPUT_BYTES]; /* the second id of the path: of an output or a type */
	const char *source_type;	   /* of a configuration */
	int64_t tid;
	bool has_start, has_end; /* ->begin_ns, ->end_ns of a configuration were given */
	const char *uri, *name, *filter;
	struct ky_tsp_texts traces, categories;
	struct ky_tsp_texts dim, exclude; /* what states must match */
	bool has_range, has_categories, has_columns, has_index, has_direction, is_backward;
	int64_t begin_ns, end_ns; /* of the range or the bookmark, both inclusive */
	size_t n_times;		  /* samples of the range; 0: not given */
	const int64_t *items, *columns;
	size_t n_items, n_columns;
	int64_t time_ns; /* the requested time */
	bool has_time;
	uint64_t index, count;
	const struct ky_tsp_search *searches;
	size_t n_searches;
	enum ky_tsp_element element;
	int64_t element_ns, element_duration_ns, element_target;
};

/*
 * Parse a request. @target: path and query, as they are on the wire. @body has @len bytes. @arena
 * must outlive @request; it is used after an error, too.
 *
 * Returns 0; KYMO_E_NOT_FOUND for an unknown path; KYMO_E_UNSUPPORTED for a method that the path does
 * not have; KYMO_E_INVALID for a malformed body, a missing or malformed parameter, or a number
 * beyond its limit; KYMO_E_MEMORY.
 */
int ky_tsp_request_parse(const char *method, const char *target, const char *body, size_t len,
			 struct ky_arena *arena, struct ky_tsp_request *request,
			 struct kymo_error *err);

/* Does a request of this method and target have a body? False for unknown ones, too. */
bool ky_tsp_request_has_body(const char *method, const char *target);

/*
 * Whether @host (of the header Host; NULL: missing) is the loopback interface: "127.0.0.1:PORT",
 * "localhost:PORT" or "[::1]:PORT".
 */
bool ky_tsp_is_host(const char *host, uint16_t port);

/*
 * Whether @origin (of the header Origin) is a client's: a web view of VS Code, which no web site can
 * pose as, or one of the @n origins @allowed.
 */
bool ky_tsp_is_origin(const char *origin, const char *const *allowed, size_t n);

/* Whether @origin is "http://HOST" or "https://HOST", with nothing behind it. */
bool ky_tsp_is_origin_text(const char *origin);

#endif
