/* SPDX-License-Identifier: MIT */
/*
 * Chrome's JSON trace format (chrome://tracing, many profilers): an array of objects, alone or as "traceEvents". Objects are read one by one,
 * so that a file of any size takes little memory. Durations become pairs NAME_begin and NAME_end, which the viewer and Perfetto show as slices.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/logs/log-chrome.h"
#include "import/logs/log-format.h"

static const struct ky_maker_field context[] = {
	{.name = "tid", .kind = KY_MAKER_S64},
	{.name = "pid", .kind = KY_MAKER_S64},
	{.name = "comm", .kind = KY_MAKER_TEXT},
};

/* ---- objects -------------------------------------------------------------------------- */

static bool chrome_number(json_t *object, const char *name, double *value)
{
	json_t *member = json_object_get(object, name);

	if (json_is_string(member)) {
		*value = strtod(json_string_value(member), NULL);
		return true;
	}
	*value = json_number_value(member);
	return json_is_number(member);
}

/* Microseconds, with a fraction. Times beyond the years of 64 bits, and what is no number, are 0. */
static int64_t chrome_ns(double us)
{
	int64_t whole;

	if (!(us > -9e15 && us < 9e15))
		return 0;
	whole = (int64_t)us;
	return whole * 1000 + (int64_t)((us - (double)whole) * 1000 + (us < 0 ? -0.5 : 0.5));
}

/* ---- events --------------------------------------------------------------------------- */

/* Which of several things of one name an event is about. */
static json_t *chrome_id(json_t *object)
{
	json_t *id = json_object_get(object, "id"), *id2 = json_object_get(object, "id2");

	if (!id)
		id = json_object_get(id2, "local");
	return id ? id : json_object_get(id2, "global");
}

/* What the name of the event does not tell of its phase: flows, objects, steps. */
static bool chrome_has_phase(const char *phase)
{
	return *phase && !strchr("BEXbeSFiInCPRc", *phase);
}

struct chrome_fields {
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	char *made[KY_LOG_FIELDS_MAX];
	size_t n;
	bool is_repaired; /* the object */
};

static bool chrome_add(struct chrome_fields *fields, const char *name, json_t *value)
{
	size_t n = fields->n;

	if (!value)
		return true;
	if (n == KY_LOG_FIELDS_MAX)
		return false;
	fields->made[n] = NULL;
	fields->n += ky_log_json_value(name, value, fields->is_repaired, &fields->values[n],
				       &fields->made[n]);
	return true;
}

static void chrome_fields(struct ky_log_file *log, json_t *object, struct chrome_fields *fields)
{
	json_t *args = json_object_get(object, "args"), *value;
	const char *key;
	bool has_room = true;

	if (*ky_chrome_text(object, "cat"))
		chrome_add(fields, "cat", json_object_get(object, "cat"));
	if (json_is_object(args))
		json_object_foreach(args, key, value) has_room &= chrome_add(fields, key, value);
	else
		chrome_add(fields, "args", args);
	has_room &= chrome_add(fields, "id", chrome_id(object));
	if (chrome_has_phase(ky_chrome_text(object, "ph")))
		has_room &= chrome_add(fields, "ph", json_object_get(object, "ph"));
	log->n_shortened += !has_room;
}

/* An event called @name and @suffix. */
static int chrome_put(struct ky_log_file *log, json_t *object, const char *name, const char *suffix,
		      int64_t ns, struct chrome_fields *fields)
{
	int64_t pid = ky_chrome_id(object, "pid"), tid = ky_chrome_id(object, "tid");
	const char *comm = ky_chrome_name(log, object, pid, tid);
	char event[KY_CHROME_NAME_BYTES + 16];
	int ret;

	snprintf(event, sizeof(event), "%.*s%s", KY_CHROME_NAME_BYTES, name, suffix);
	ret = ky_log_begin(log, event, ns, fields->values, fields->n);
	if (ret < 0)
		return ret;
	ky_log_context_number(log, tid);
	ky_log_context_number(log, pid);
	ky_log_context_text(log, comm, strlen(comm));
	return ky_log_put(log, fields->values, fields->n);
}

static int chrome_duration(struct ky_log_file *log, json_t *object, int64_t ns,
			   struct chrome_fields *fields)
{
	const char *name = ky_chrome_text(object, "name");
	struct chrome_fields none;
	double us = 0;
	int ret = chrome_put(log, object, name, "_begin", ns, fields);

	none.n = 0;
	chrome_number(object, "dur", &us);
	if (!ret && __builtin_add_overflow(ns, chrome_ns(us), &ns))
		ns = INT64_MAX;
	return ret ? ret : chrome_put(log, object, name, "_end", ns, &none);
}

/* Phases B and E, which need no name at the end. */
static int chrome_half(struct ky_log_file *log, json_t *object, int64_t ns,
		       struct chrome_fields *fields)
{
	const char *name = ky_chrome_text(object, "name");
	char opened[KY_CHROME_NAME_BYTES + 1];

	if (*ky_chrome_text(object, "ph") == 'B')
		return ky_chrome_push(log, object, name) < 0
			       ? log->err->code
			       : chrome_put(log, object, name, "_begin", ns, fields);
	ky_chrome_pop(log, object, opened);
	return chrome_put(log, object, *name ? name : opened, "_end", ns, fields);
}

static int chrome_phase(struct ky_log_file *log, json_t *object, int64_t ns,
			struct chrome_fields *fields)
{
	const char *name = ky_chrome_text(object, "name");

	switch (*ky_chrome_text(object, "ph")) {
	case 'X':
		return chrome_duration(log, object, ns, fields);
	case 'B':
	case 'E':
		return chrome_half(log, object, ns, fields);
	case 'b':
	case 'S':
		return chrome_put(log, object, name, "_begin", ns, fields);
	case 'e':
	case 'F':
		return chrome_put(log, object, name, "_end", ns, fields);
	default:
		return chrome_put(log, object, name, "", ns, fields);
	}
}

static int chrome_event(struct ky_log_file *log, json_t *object, bool is_repaired)
{
	struct chrome_fields fields;
	double us;
	int64_t ns;
	int ret;

	/* Names of processes and threads are those of other events: ky_chrome_keep_name(). */
	if (*ky_chrome_text(object, "ph") == 'M')
		return KYMO_OK;
	if (!chrome_number(object, "ts", &us))
		us = 0;
	if (__builtin_add_overflow(chrome_ns(us), log->origin_ns, &ns))
		ns = log->origin_ns;
	fields.n = 0;
	fields.is_repaired = is_repaired;
	chrome_fields(log, object, &fields);
	ret = chrome_phase(log, object, ns, &fields);
	for (size_t i = 0; i < fields.n; i++)
		free(fields.made[i]);
	return ret;
}

/* ---- the file ------------------------------------------------------------------------- */

/* 1: the event is no JSON. */
static int chrome_object(struct ky_log_file *log, const uint8_t *text, size_t len)
{
	bool is_repaired;
	json_t *object = ky_log_json_load((const char *)text, len, true, &is_repaired);
	int ret = json_is_object(object) ? chrome_event(log, object, is_repaired) : 1;

	json_decref(object);
	return ret;
}

/* Where in an object a piece of it ends. */
struct chrome_scan {
	bool is_quoted, is_escaped;
	size_t depth;
};

/* Where the object ends of which @text is the next piece; 0: not within @len. */
static size_t chrome_object_end(struct chrome_scan *scan, const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (scan->is_escaped) {
			scan->is_escaped = false; /* any character: "C:\\" ends here */
		} else if (scan->is_quoted) {
			scan->is_escaped = text[i] == '\\';
			scan->is_quoted = text[i] != '"';
		} else if (text[i] == '"') {
			scan->is_quoted = true;
		} else if (text[i] == '{' || text[i] == '[') {
			scan->depth++;
		} else if ((text[i] == '}' || text[i] == ']') && --scan->depth == 0) {
			return i + 1;
		}
	}
	return 0;
}

/* Of files of kymo convert --to chrome-json: when their times begin. */
static void chrome_origin(struct ky_log_file *log, const uint8_t *head, size_t len)
{
	static const char name[] = "\"begin_ns\":\"";
	const char *at = len ? memmem(head, len, name, sizeof(name) - 1) : NULL;

	/* The text goes on with the name of the array: that ends the number. */
	if (at)
		log->origin_ns = strtoll(at + sizeof(name) - 1, NULL, 10);
}

/* To the array of events: the first byte behind its '['. @is_bare: it is not in an object. */
static int chrome_array(struct ky_log_file *log, bool *is_bare)
{
	static const char name[] = "\"traceEvents\"";
	uint64_t left = log->file.size_bytes - log->at;
	size_t want = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX;
	const uint8_t *text = ky_foreign_bytes(&log->file, log->at, want, "the head", log->err);
	const uint8_t *at;

	if (!text)
		return log->err->code;
	at = memmem(text, want, name, sizeof(name) - 1);
	chrome_origin(log, text, at ? (size_t)(at - text) : 0);
	at = memchr(at ? at : text, '[', (size_t)(text + want - (at ? at : text)));
	if (!at)
		return ky_foreign_bad(&log->file, 0, "the file has no traceEvents", log->err);
	*is_bare = !memchr(text, '{', (size_t)(at - text));
	log->at += (uint64_t)(at - text) + 1;
	return KYMO_OK;
}

/* To the next character that matters, with the bytes in the file's window from there on. 1, 0 at the file's end, negative. */
static int chrome_skip(struct ky_log_file *log, const uint8_t **text, size_t *have)
{
	while (log->at < log->file.size_bytes) {
		const uint8_t *bytes =
			ky_foreign_bytes(&log->file, log->at, 1, "an event", log->err);
		size_t in, skip = 0;

		if (!bytes)
			return log->err->code;
		in = (size_t)(log->file.window_at + log->file.window_bytes - log->at);
		while (skip < in && (isspace(bytes[skip]) || bytes[skip] == ','))
			skip++;
		log->at += skip;
		*text = bytes + skip;
		*have = in - skip;
		if (*have)
			return 1;
	}
	return 0;
}

/* Behind the object at log->at, of which nothing is kept. 1, negative. */
static int chrome_skip_long(struct ky_log_file *log)
{
	struct chrome_scan scan = {.depth = 0};
	uint64_t begin = log->at;

	while (log->at < log->file.size_bytes) {
		uint64_t left = log->file.size_bytes - log->at;
		size_t want = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX, len;
		const uint8_t *text =
			ky_foreign_bytes(&log->file, log->at, want, "an event", log->err);

		if (!text)
			return log->err->code;
		len = chrome_object_end(&scan, text, want);
		log->at += len ? len : want;
		if (len)
			return 1;
	}
	return ky_foreign_bad(&log->file, begin, "an event is cut", log->err);
}

/*
 * The next object of the array, behind which log->at is then. 1, 0: the array is over; negative. *object NULL: the object is longer
 * than 1 MiB.
 */
static int chrome_next(struct ky_log_file *log, const uint8_t **object, size_t *len)
{
	struct chrome_scan scan = {.depth = 0}, again = {.depth = 0};
	const uint8_t *text = NULL;
	size_t have = 0;
	int ret = chrome_skip(log, &text, &have);

	if (ret <= 0 || *text == ']')
		return ret < 0 ? ret : 0;
	if (*text != '{')
		return ky_foreign_bad(&log->file, log->at, "this is no event", log->err);
	*len = chrome_object_end(&scan, text, have);
	if (!*len) {
		uint64_t left = log->file.size_bytes - log->at;

		have = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX;
		text = ky_foreign_bytes(&log->file, log->at, have, "an event", log->err);
		if (!text)
			return log->err->code;
		*len = chrome_object_end(&again, text, have);
	}
	*object = *len ? text : NULL;
	if (!*len)
		return chrome_skip_long(log);
	log->at += *len;
	return 1;
}

/* A pass over the array for names; it ends silently where the next pass will tell what is wrong. */
static int chrome_find_names(struct ky_log_file *log)
{
	static const char phase[] = "\"M\"";
	struct kymo_error ignored = {0}, *err = log->err;
	uint64_t begin = log->at;
	const uint8_t *text;
	size_t len;
	int ret = KYMO_OK;

	log->err = &ignored;
	while (!ret && chrome_next(log, &text, &len) > 0) {
		bool is_repaired;
		json_t *object;

		if (!text || !memmem(text, len, phase, sizeof(phase) - 1))
			continue;
		object = ky_log_json_load((const char *)text, len, true, &is_repaired);
		if (json_is_object(object) && strcmp(ky_chrome_text(object, "ph"), "M") == 0)
			ret = ky_chrome_keep_name(log, object);
		json_decref(object);
	}
	log->err = err;
	log->at = begin;
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* An event that is no JSON or too long is left out: where it ends is known. The first one is the file's damage. */
static int chrome_events(struct ky_log_file *log)
{
	const char *why = NULL;
	const uint8_t *text;
	uint64_t begin, bad = 0;
	size_t len;
	int ret;

	for (;;) {
		begin = log->at;
		ret = chrome_next(log, &text, &len);
		if (ret <= 0)
			break;
		ret = text ? chrome_object(log, text, len) : 1;
		if (ret < 0)
			return ret;
		if (ret && !why) {
			bad = text ? log->at - len : begin;
			why = text ? "an event is no JSON" : "an event is longer than 1 MiB";
		}
	}
	return !ret && why ? ky_foreign_bad(&log->file, bad, why, log->err) : ret;
}

static int chrome_file(struct ky_log_file *log)
{
	bool is_bare = false;
	int ret = chrome_array(log, &is_bare);

	if (!ret)
		ret = ky_chrome_threads_open(log);
	if (!ret)
		ret = chrome_find_names(log);
	if (!ret)
		ret = chrome_events(log);
	/* The format allows a bare array without its end, as a program that was killed leaves it. */
	if (!ret && !is_bare && log->at == log->file.size_bytes)
		ret = ky_foreign_bad(&log->file, log->at, "the list of events is cut", log->err);
	ky_chrome_threads_close(log);
	return ret;
}

static bool chrome_probe(const char *head, size_t len)
{
	const char *end = head + len;

	while (head < end && isspace((unsigned char)*head))
		head++;
	if (head == end || (*head != '{' && *head != '['))
		return false;
	if (*head == '{')
		return memmem(head, (size_t)(end - head), "\"traceEvents\"", 13);
	for (head++; head < end && isspace((unsigned char)*head); head++)
		;
	return head < end && *head == '{' && memmem(head, (size_t)(end - head), "\"ph\"", 4) &&
	       memmem(head, (size_t)(end - head), "\"pid\"", 5);
}

const struct ky_log_format ky_log_chrome = {
	.name = "chrome",
	.description = "Chrome's JSON trace format",
	.domain = "chrome",
	.context = context,
	.n_context = 3,
	.probe_head = chrome_probe,
	.file = chrome_file,
};
