/* SPDX-License-Identifier: MIT */
#include "view/page/request.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

/* Parameters, as bits. */
enum {
	HAS_BEGIN = 1,
	HAS_END = 2,
	HAS_NS = 4,
	HAS_ROW = 8,
	HAS_COUNT = 16,
	HAS_FILTER = 32,
	HAS_NAME = 64,
	HAS_IDS = 128,
	HAS_FIELD = 256,
	HAS_TEXT = 512,
	HAS_LEAST = 1024,
	HAS_MOST = 2048,
	HAS_OF = 4096,
	HAS_COMM = 8192,
	HAS_PERIODS = 16384,
	HAS_CELL = 32768,
};

struct resource {
	const char *path; /* below "api/" */
	enum ky_view_what what;
	bool is_post;
	unsigned int needs, may; /* parameters */
	uint64_t max_count;
};

static const struct resource resources[] = {
	{"info", KY_VIEW_INFO, false, 0, 0, 0},
	{"density", KY_VIEW_DENSITY, false, HAS_BEGIN | HAS_END | HAS_COUNT, HAS_FILTER,
	 KY_VIEW_MAX_PIXELS},
	{"rank", KY_VIEW_RANK, false, HAS_NS, HAS_FILTER, 0},
	{"rows", KY_VIEW_ROWS, false, HAS_ROW | HAS_COUNT, HAS_FILTER, KY_VIEW_MAX_ROWS},
	{"event", KY_VIEW_EVENT, false, HAS_ROW, HAS_FILTER, 0},
	{"tree", KY_VIEW_TREE, false, 0, 0, 0},
	{"activity", KY_VIEW_ACTIVITY, false, HAS_BEGIN | HAS_END, 0, 0},
	{"timeline", KY_VIEW_TIMELINE, false, HAS_BEGIN | HAS_END | HAS_COUNT | HAS_IDS, 0,
	 KY_VIEW_MAX_PIXELS},
	{"curves", KY_VIEW_CURVES, false, HAS_BEGIN | HAS_END | HAS_COUNT | HAS_IDS, HAS_NAME,
	 KY_VIEW_MAX_PIXELS},
	{"fields", KY_VIEW_FIELDS, false, 0, 0, 0},
	{"field", KY_VIEW_FIELD, false, HAS_BEGIN | HAS_END | HAS_COUNT | HAS_FIELD, HAS_FILTER,
	 KY_VIEW_MAX_PIXELS},
	{"marks", KY_VIEW_MARKS, false, HAS_BEGIN | HAS_END | HAS_COUNT, HAS_FILTER,
	 KY_VIEW_MAX_PIXELS},
	{"losses", KY_VIEW_LOSSES, false, HAS_BEGIN | HAS_END | HAS_COUNT, 0, KY_VIEW_MAX_PIXELS},
	{"arrows", KY_VIEW_ARROWS, false, HAS_BEGIN | HAS_END | HAS_COUNT | HAS_ROW, 0,
	 KY_VIEW_MAX_PIXELS},
	{"moment", KY_VIEW_MOMENT, false, HAS_ROW | HAS_NS, 0, 0},
	{"cause", KY_VIEW_CAUSE, false, HAS_ROW | HAS_NS, 0, 0},
	{"latency", KY_VIEW_LATENCY, false, HAS_NAME | HAS_BEGIN | HAS_END | HAS_COUNT, HAS_TEXT,
	 KY_VIEW_MAX_ROWS},
	{"members", KY_VIEW_MEMBERS, false,
	 HAS_NAME | HAS_BEGIN | HAS_END | HAS_COUNT | HAS_LEAST | HAS_MOST, HAS_TEXT,
	 KY_VIEW_MAX_ROWS},
	{"notes", KY_VIEW_NOTES, false, 0, 0, 0},
	{"note", KY_VIEW_NOTE, true, HAS_BEGIN | HAS_END | HAS_TEXT, HAS_ROW, 0},
	{"unnote", KY_VIEW_UNNOTE, true, HAS_ROW, 0, 0},
	{"area", KY_VIEW_AREA, false, HAS_BEGIN | HAS_END, HAS_FILTER, 0},
	{"report", KY_VIEW_REPORT, true, HAS_NAME | HAS_BEGIN | HAS_END,
	 HAS_FILTER | HAS_ROW | HAS_NS | HAS_LEAST | HAS_MOST | HAS_OF | HAS_COMM | HAS_PERIODS |
		 HAS_CELL,
	 0},
	{"query", KY_VIEW_QUERY, true, HAS_TEXT | HAS_BEGIN | HAS_END, 0, 0},
	{"drop", KY_VIEW_DROP, true, 0, 0, 0},
	{"drop-file", KY_VIEW_DROP_FILE, true, HAS_ROW | HAS_TEXT, 0, 0},
	{"drop-end", KY_VIEW_DROP_END, true, HAS_ROW, 0, 0},
	{"drop-open", KY_VIEW_DROP_OPEN, true, HAS_ROW, 0, 0},
	{"programs", KY_VIEW_PROGRAMS, false, 0, 0, 0},
	{"program", KY_VIEW_PROGRAM, true, HAS_ROW | HAS_BEGIN | HAS_END, 0, 0},
};

/* ---- texts ------------------------------------------------------------------------------- */

static bool is_utf8(const char *text, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = ky_utf8_length((const uint8_t *)text + i, len - i);
		if (!n)
			return false;
	}
	return true;
}

/* Decode %XX and '+' of @text into @out. Neither a NUL nor bad UTF-8 is text. KYMO_E_LIMIT: it is too long. */
static int request_decode(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			int high = i + 2 < len ? ky_digit_value(text[i + 1]) : KY_NO_DIGIT;
			int low = i + 2 < len ? ky_digit_value(text[i + 2]) : KY_NO_DIGIT;

			if (high > 15 || low > 15)
				return KYMO_E_INVALID;
			c = high * 16 + low;
			i += 2;
		} else if (c == '+') {
			c = ' ';
		}
		if (!c)
			return KYMO_E_INVALID;
		if (n + 1 >= size)
			return KYMO_E_LIMIT;
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return is_utf8(out, n) ? KYMO_OK : KYMO_E_INVALID;
}

/* A decimal number, alone. */
static int request_number(const char *text, bool may_be_negative, int64_t *value)
{
	bool negative = may_be_negative && *text == '-';
	uint64_t magnitude = 0, limit = (uint64_t)INT64_MAX + negative;

	text += negative;
	if (!*text)
		return KYMO_E_INVALID;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9' || magnitude > (limit - digit) / 10)
			return KYMO_E_INVALID;
		magnitude = magnitude * 10 + digit;
	}
	*value = (int64_t)(negative ? 0 - magnitude : magnitude);
	return KYMO_OK;
}

/* A part of a path or the name of a report: no separators, no escapes. */
static int request_plain_name(const char *text, size_t len, char *out)
{
	if (len >= KY_VIEW_NAME_BYTES)
		return KYMO_E_INVALID;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(i && strchr("-._", c)))
			return KYMO_E_INVALID;
	}
	memcpy(out, text, len);
	out[len] = '\0';
	return KYMO_OK;
}

/* ---- parameters -------------------------------------------------------------------------- */

static unsigned int request_key_of(const char *text, size_t len)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} keys[] = {{"begin", HAS_BEGIN}, {"end", HAS_END},	{"ns", HAS_NS},
		    {"row", HAS_ROW},	  {"count", HAS_COUNT}, {"filter", HAS_FILTER},
		    {"name", HAS_NAME},	  {"ids", HAS_IDS},	{"field", HAS_FIELD},
		    {"text", HAS_TEXT},	  {"least", HAS_LEAST}, {"most", HAS_MOST},
		    {"of", HAS_OF},	  {"comm", HAS_COMM},	{"periods", HAS_PERIODS},
		    {"cell", HAS_CELL}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (strlen(keys[i].name) == len && memcmp(keys[i].name, text, len) == 0)
			return keys[i].bit;
	}
	return 0;
}

static int request_take_number(unsigned int key, const char *text, struct ky_view_request *request)
{
	int64_t value = 0;
	int ret = request_number(text, key & (HAS_BEGIN | HAS_END | HAS_NS), &value);

	switch (key) {
	case HAS_BEGIN:
		request->begin_ns = value;
		break;
	case HAS_END:
		request->end_ns = value;
		break;
	case HAS_NS:
		request->ns = value;
		break;
	case HAS_LEAST:
		request->least_ns = (uint64_t)value;
		break;
	case HAS_MOST:
		request->most_ns = (uint64_t)value;
		break;
	case HAS_ROW:
		request->row = (uint64_t)value;
		break;
	default:
		request->count = (uint64_t)value;
		break;
	}
	return ret;
}

/* Numbers with commas between them. */
static int take_ids(const char *text, size_t len, struct ky_view_request *request)
{
	char list[KY_VIEW_MAX_IDS * 11 + 1];
	char *at = list, *comma;
	int64_t value;

	if (request_decode(text, len, list, sizeof(list)) < 0)
		return KYMO_E_INVALID;
	for (;; at = comma + 1) {
		comma = strchr(at, ',');
		if (comma)
			*comma = '\0';
		if (request->n_ids == KY_VIEW_MAX_IDS || request_number(at, false, &value) < 0 ||
		    value > UINT32_MAX)
			return KYMO_E_INVALID;
		request->ids[request->n_ids++] = (uint32_t)value;
		if (!comma)
			return KYMO_OK;
	}
}

/* "COLUMN,ROW", columns from 1 on. */
static int request_take_cell(char *text, struct ky_view_request *request)
{
	char *comma = strchr(text, ',');
	int64_t column, row;

	if (!comma)
		return KYMO_E_INVALID;
	*comma = '\0';
	if (request_number(text, false, &column) < 0 ||
	    request_number(comma + 1, false, &row) < 0 || !column)
		return KYMO_E_INVALID;
	request->cell_column = (uint64_t)column;
	request->cell_row = (uint64_t)row;
	return KYMO_OK;
}

/* Parameters that are texts. NULL: the parameter is not a text. */
static char *request_text(unsigned int key, struct ky_view_request *request, size_t *size)
{
	switch (key) {
	case HAS_FILTER:
	case HAS_TEXT:
		*size = sizeof(request->filter);
		return request->filter;
	case HAS_FIELD:
		*size = sizeof(request->field);
		return request->field;
	case HAS_OF:
		*size = sizeof(request->of);
		return request->of;
	case HAS_COMM:
		*size = sizeof(request->comm);
		return request->comm;
	case HAS_PERIODS:
		*size = sizeof(request->periods);
		return request->periods;
	default:
		return NULL;
	}
}

static int request_take(unsigned int key, const char *text, size_t len,
			struct ky_view_request *request)
{
	char plain[64], *words;
	size_t size;

	words = request_text(key, request, &size);
	if (words)
		return request_decode(text, len, words, size);
	if (key == HAS_NAME)
		return len ? request_plain_name(text, len, request->name) : KYMO_E_INVALID;
	if (key == HAS_IDS)
		return take_ids(text, len, request);
	if (request_decode(text, len, plain, sizeof(plain)) < 0)
		return KYMO_E_INVALID;
	request->has_row |= key == HAS_ROW;
	request->has_ns |= key == HAS_NS;
	return key == HAS_CELL ? request_take_cell(plain, request)
			       : request_take_number(key, plain, request);
}

/* Of the parameter @name. */
static int request_refuse(int ret, const char *name, size_t len, struct kymo_error *err)
{
	if (ret != KYMO_E_LIMIT)
		return ky_error_set(err, KYMO_E_INVALID, "malformed parameter");
	ky_error_set(err, KYMO_E_INVALID, "the %.*s is too long", (int)len, name);
	if (request_key_of(name, len) & (HAS_FILTER | HAS_TEXT))
		ky_error_hint(err, "it may have %d bytes", KY_VIEW_FILTER_BYTES - 1);
	return KYMO_E_INVALID;
}

static int request_take_all(const char *query, const struct resource *resource,
			    struct ky_view_request *request, struct kymo_error *err)
{
	unsigned int given = 0, key;
	int ret;

	while (*query) {
		size_t len = strcspn(query, "&"), name = strcspn(query, "=&");

		key = name < len ? request_key_of(query, name) : 0;
		if (!(key & (resource->needs | resource->may)))
			return ky_error_set(err, KYMO_E_INVALID, "unknown parameter");
		if (given & key)
			return ky_error_set(err, KYMO_E_INVALID, "a parameter is given twice");
		given |= key;
		ret = request_take(key, query + name + 1, len - name - 1, request);
		if (ret < 0)
			return request_refuse(ret, query, name, err);
		query += len + (query[len] == '&');
	}
	if ((given & resource->needs) != resource->needs)
		return ky_error_set(err, KYMO_E_INVALID, "a parameter is missing");
	if ((given & HAS_COUNT) && (!request->count || request->count > resource->max_count))
		return ky_error_set(err, KYMO_E_INVALID, "the count is not from 1 to %llu",
				    (unsigned long long)resource->max_count);
	if ((given & HAS_END) && request->end_ns < request->begin_ns)
		return ky_error_set(err, KYMO_E_INVALID, "the range ends before its begin");
	return KYMO_OK;
}

/* ---- the whole --------------------------------------------------------------------------- */

static const struct resource *resource_of(const char *path, size_t len)
{
	for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
		if (strlen(resources[i].path) == len && memcmp(resources[i].path, path, len) == 0)
			return &resources[i];
	}
	return NULL;
}

/* The number of differing characters must not show in the time. */
static bool request_is_token(const char *text, const char *token)
{
	unsigned int differs = 0;

	if (strnlen(text, KY_VIEW_TOKEN_CHARS) < KY_VIEW_TOKEN_CHARS)
		return false;
	for (size_t i = 0; i < KY_VIEW_TOKEN_CHARS; i++)
		differs |= (unsigned int)((unsigned char)text[i] ^ (unsigned char)token[i]);
	return !differs;
}

/* After "a/", "b/" or "d7/" at the begin of @path, which name a set of traces. */
static const char *request_take_side(const char *path, struct ky_view_request *request)
{
	size_t digits = path[0] == 'd' ? strspn(path + 1, "0123456789") : 0;

	if ((path[0] == 'a' || path[0] == 'b') && path[1] == '/') {
		request->side = path[0] == 'a' ? 1 : 2;
		return path + 2;
	}
	if (!digits || digits > 9 || path[1] == '0' || path[1 + digits] != '/')
		return path;
	for (size_t i = 0; i < digits; i++)
		request->drop = request->drop * 10 + (uint64_t)(path[1 + i] - '0');
	return path + digits + 2;
}

int ky_view_request_parse(const char *target, bool is_post, const char *token,
			  struct ky_view_request *request, struct kymo_error *err)
{
	static const struct resource asset = {.path = "", .what = KY_VIEW_ASSET};
	const struct resource *resource = &asset;
	const char *path;
	size_t len;

	memset(request, 0, sizeof(*request));
	request->is_post = is_post;
	if (target[0] != '/' || !request_is_token(target + 1, token) ||
	    target[1 + KY_VIEW_TOKEN_CHARS] != '/')
		return ky_error_set(err, KYMO_E_PERMISSION, "wrong token");
	path = request_take_side(target + 2 + KY_VIEW_TOKEN_CHARS, request);
	len = strcspn(path, "?");
	if (strncmp(path, "api/", 4) == 0)
		resource = resource_of(path + 4, len - 4);
	else if (request_plain_name(path, len, request->name) < 0)
		resource = NULL;
	if (!resource)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "no such page");
	request->what = resource->what;
	if (resource->is_post != is_post)
		return ky_error_set(err, KYMO_E_PERMISSION, "the resource has another method");
	return request_take_all(path + len + (path[len] == '?'), resource, request, err);
}

bool ky_view_is_host(const char *host, uint16_t port)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char own[32];

	for (size_t i = 0; host && i < sizeof(names) / sizeof(*names); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], (unsigned int)port);
		if (strcmp(host, own) == 0)
			return true;
	}
	return false;
}

bool ky_view_is_origin(const char *origin, uint16_t port)
{
	static const char scheme[] = "http://";

	return origin && strncmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
	       ky_view_is_host(origin + sizeof(scheme) - 1, port);
}
