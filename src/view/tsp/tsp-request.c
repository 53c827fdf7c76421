/* SPDX-License-Identifier: MIT */
#include "view/tsp/tsp-request.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "view/page/request.h"
#include "view/tsp/tsp-parameters.h"

#define BASE "/tsp/api/"

#define GRAPH_STATES (KY_TSP_HAS_RANGE | KY_TSP_HAS_ITEMS)
#define BOOKMARK     (KY_TSP_HAS_NAME | KY_TSP_HAS_START | KY_TSP_HAS_END)

/* In a path: '%' stands for a UUID, '*' for the id of an output. */
struct route {
	const char *method, *path; /* below BASE */
	enum ky_tsp_what what;
	unsigned int needs, may; /* parameters */
};

#define EXPERIMENT "experiments/%"
#define OUTPUTS	   "experiments/%/outputs"

static const struct route routes[] = {
	{"GET", "health", KY_TSP_HEALTH, 0, 0},
	{"GET", "identifier", KY_TSP_IDENTIFIER, 0, 0},
	{"GET", "traces", KY_TSP_TRACES, 0, 0},
	{"POST", "traces", KY_TSP_TRACE_OPEN, KY_TSP_HAS_URI, KY_TSP_HAS_NAME},
	{"GET", "traces/%", KY_TSP_TRACE, 0, 0},
	{"DELETE", "traces/%", KY_TSP_TRACE_DELETE, 0, 0},
	{"GET", "experiments", KY_TSP_EXPERIMENTS, 0, 0},
	{"POST", "experiments", KY_TSP_EXPERIMENT_CREATE, KY_TSP_HAS_NAME | KY_TSP_HAS_TRACES, 0},
	{"GET", EXPERIMENT, KY_TSP_EXPERIMENT, 0, 0},
	{"DELETE", EXPERIMENT, KY_TSP_EXPERIMENT_DELETE, 0, 0},
	{"GET", EXPERIMENT "/bookmarks", KY_TSP_BOOKMARKS, 0, 0},
	{"POST", EXPERIMENT "/bookmarks", KY_TSP_BOOKMARK_CREATE, BOOKMARK, 0},
	{"GET", EXPERIMENT "/bookmarks/%", KY_TSP_BOOKMARK, 0, 0},
	{"PUT", EXPERIMENT "/bookmarks/%", KY_TSP_BOOKMARK_UPDATE, BOOKMARK, 0},
	{"DELETE", EXPERIMENT "/bookmarks/%", KY_TSP_BOOKMARK_DELETE, 0, 0},
	{"GET", OUTPUTS, KY_TSP_OUTPUTS, 0, 0},
	{"GET", OUTPUTS "/markerSets", KY_TSP_MARKER_SETS, 0, 0},
	{"GET", OUTPUTS "/*", KY_TSP_OUTPUT, 0, 0},
	{"POST", OUTPUTS "/timeGraph/*/tree", KY_TSP_GRAPH_TREE, 0, KY_TSP_HAS_RANGE},
	{"POST", OUTPUTS "/timeGraph/*/states", KY_TSP_GRAPH_STATES, GRAPH_STATES,
	 KY_TSP_HAS_STATE_FILTER},
	{"POST", OUTPUTS "/timeGraph/*/arrows", KY_TSP_GRAPH_ARROWS, KY_TSP_HAS_RANGE, 0},
	{"POST", OUTPUTS "/timeGraph/*/tooltip", KY_TSP_GRAPH_TOOLTIP,
	 KY_TSP_HAS_ITEMS | KY_TSP_HAS_TIMES | KY_TSP_HAS_ELEMENT, 0},
	{"POST", OUTPUTS "/XY/*/tree", KY_TSP_XY_TREE, 0, KY_TSP_HAS_RANGE},
	{"POST", OUTPUTS "/XY/*/xy", KY_TSP_XY, KY_TSP_HAS_RANGE | KY_TSP_HAS_ITEMS, 0},
	{"POST", OUTPUTS "/genericXY/*/tree", KY_TSP_GENERIC_TREE, 0, KY_TSP_HAS_RANGE},
	{"POST", OUTPUTS "/genericXY/*/xy", KY_TSP_GENERIC_XY, KY_TSP_HAS_RANGE | KY_TSP_HAS_ITEMS,
	 0},
	{"POST", OUTPUTS "/table/*/columns", KY_TSP_TABLE_COLUMNS, 0, 0},
	{"POST", OUTPUTS "/table/*/lines", KY_TSP_TABLE_LINES, KY_TSP_HAS_COUNT,
	 KY_TSP_HAS_INDEX | KY_TSP_HAS_TIMES | KY_TSP_HAS_COLUMNS | KY_TSP_HAS_SEARCH |
		 KY_TSP_HAS_DIRECTION | KY_TSP_HAS_FILTER},
	{"POST", OUTPUTS "/data/*/tree", KY_TSP_DATA_TREE, 0, KY_TSP_HAS_RANGE},
	{"POST", OUTPUTS "/*/style", KY_TSP_STYLES, 0, 0},
	{"GET", OUTPUTS "/*/annotations", KY_TSP_CATEGORIES, 0, 0},
	{"POST", OUTPUTS "/*/annotations", KY_TSP_ANNOTATIONS, KY_TSP_HAS_RANGE,
	 KY_TSP_HAS_CATEGORIES},
	{"GET", OUTPUTS "/*/configTypes", KY_TSP_OUTPUT_CONFIG_TYPES, 0, 0},
	{"GET", OUTPUTS "/*/configTypes/*", KY_TSP_OUTPUT_CONFIG_TYPE, 0, 0},
	{"POST", OUTPUTS "/*", KY_TSP_OUTPUT_DERIVE, KY_TSP_HAS_TID,
	 KY_TSP_HAS_PATH_START | KY_TSP_HAS_PATH_END},
	{"DELETE", OUTPUTS "/*/*", KY_TSP_OUTPUT_REMOVE, 0, 0},
	{"GET", "config/types", KY_TSP_CONFIG_TYPES, 0, 0},
};

/* ---- paths ------------------------------------------------------------------------------- */

static bool take_uuid(const char *text, size_t len, char *out)
{
	uint8_t uuid[16];

	if (len != KY_TSP_UUID_BYTES - 1)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	if (!ky_parse_uuid(out, uuid))
		return false;
	ky_format_uuid(out, uuid);
	return true;
}

static bool take_output(const char *text, size_t len, char *out)
{
	if (!len || len >= KY_TSP_OUTPUT_BYTES)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !strchr("-._:", c))
			return false;
	}
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* Does the path @text fit @route? Then its ids are in @request. */
static bool tsp_request_fits(const struct route *route, const char *text, size_t len,
			     struct ky_tsp_request *request)
{
	const char *want = route->path, *end = text + len;
	size_t n_uuids = 0, n_outputs = 0, part, wanted;
	bool good = true;

	while (good) {
		wanted = strcspn(want, "/");
		for (part = 0; text + part < end && text[part] != '/';)
			part++;
		if (*want == '%')
			good = take_uuid(text, part, request->uuid[n_uuids++]);
		else if (*want == '*')
			good = take_output(text, part,
					   n_outputs++ ? request->derived : request->output);
		else
			good = wanted == part && memcmp(want, text, part) == 0;
		want += wanted;
		text += part;
		if (!*want || text == end)
			break;
		want++;
		text++;
	}
	return good && !*want && text == end;
}

/* The route of @target; NULL, and whether another method has one. */
static const struct route *route_of(const char *method, const char *target,
				    struct ky_tsp_request *request, bool *has_other)
{
	size_t len = strcspn(target, "?");

	*has_other = false;
	if (strncmp(target, BASE, sizeof(BASE) - 1) != 0)
		return NULL;
	target += sizeof(BASE) - 1;
	len -= sizeof(BASE) - 1;
	for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
		if (!tsp_request_fits(&routes[i], target, len, request))
			continue;
		if (strcmp(routes[i].method, method) == 0)
			return &routes[i];
		*has_other = true;
	}
	return NULL;
}

static bool tsp_request_has_body(const char *method)
{
	return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
}

bool ky_tsp_request_has_body(const char *method, const char *target)
{
	struct ky_tsp_request request;
	bool has_other;

	return tsp_request_has_body(method) &&
	       route_of(method, target, &request, &has_other) != NULL;
}

int ky_tsp_request_parse(const char *method, const char *target, const char *body, size_t len,
			 struct ky_arena *arena, struct ky_tsp_request *request,
			 struct kymo_error *err)
{
	const struct route *route;
	bool has_other;

	memset(request, 0, sizeof(*request));
	route = route_of(method, target, request, &has_other);
	if (!route && has_other)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "the resource has no method %.16s",
				    method);
	if (!route)
		return ky_error_set(err, KYMO_E_NOT_FOUND,
				    "the Trace Server Protocol 0.6 has no such resource");
	request->what = route->what;
	if (!tsp_request_has_body(method))
		return KYMO_OK;
	return ky_tsp_parameters(body, len, route->needs, route->may, arena, request, err);
}

/* ---- headers ----------------------------------------------------------------------------- */

bool ky_tsp_is_host(const char *host, uint16_t port)
{
	char own[32];

	snprintf(own, sizeof(own), "[::1]:%u", (unsigned int)port);
	return host && (ky_view_is_host(host, port) || strcmp(host, own) == 0);
}

/* Letters, digits, and the separators of a host name with a port. */
static bool is_plain_host(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789.-:[]");

	return len && !text[len];
}

bool ky_tsp_is_origin_text(const char *origin)
{
	if (strncmp(origin, "http://", 7) == 0)
		return is_plain_host(origin + 7);
	return strncmp(origin, "https://", 8) == 0 && is_plain_host(origin + 8);
}

bool ky_tsp_is_origin(const char *origin, const char *const *allowed, size_t n)
{
	static const char scheme[] = "vscode-webview://";

	if (!origin)
		return false;
	if (strncmp(origin, scheme, sizeof(scheme) - 1) == 0)
		return is_plain_host(origin + sizeof(scheme) - 1);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(origin, allowed[i]) == 0)
			return true;
	}
	return false;
}
