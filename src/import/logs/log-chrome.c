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
#include "import/logs/log-format.h"

static const struct ky_maker_field context[] = {
	{.name = "tid", .kind = KY_MAKER_S64},
	{.name = "pid", .kind = KY_MAKER_S64},
	{.name = "comm", .kind = KY_MAKER_TEXT},
};

#define NAME_MAX_BYTES 200
/* Threads and processes beyond have no names. */
#define NAMES_MAX 65536

/* Names of threads and processes, which may stand anywhere in the file. */
struct chrome_names {
	struct ky_map threads, processes; /* hash of the ids -> name, in the log's arena */
	size_t n;
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

static const char *log_chrome_text(json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Ids of processes and threads are numbers, or texts that are taken by their hash. */
static int64_t chrome_id(json_t *object, const char *name)
{
	json_t *member = json_object_get(object, name);
	char *end;
	const char *text;
	int64_t value;

	if (!json_is_string(member))
		return json_integer_value(member);
	text = json_string_value(member);
	value = strtoll(text, &end, 10);
	return *text && !*end ? value : (int64_t)(ky_hash_bytes(text, strlen(text)) & INT32_MAX);
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

/* ---- names ---------------------------------------------------------------------------- */

static uint64_t chrome_thread_key(int64_t pid, int64_t tid)
{
	return ky_hash_u64((uint64_t)pid) ^ (uint64_t)tid;
}

static int chrome_keep_name(struct ky_log_file *log, json_t *object)
{
	struct chrome_names *names = log->state;
	const char *what = log_chrome_text(object, "name");
	const char *name = log_chrome_text(json_object_get(object, "args"), "name");
	int64_t pid = chrome_id(object, "pid"), tid = chrome_id(object, "tid");
	bool is_thread = strcmp(what, "thread_name") == 0;
	char *kept;

	if (!*name || names->n >= NAMES_MAX || (!is_thread && strcmp(what, "process_name") != 0))
		return KYMO_OK;
	kept = ky_arena_strndup(&log->arena, name, strnlen(name, NAME_MAX_BYTES));
	if (!kept)
		return ky_error_nomem(log->err);
	names->n++;
	if (is_thread)
		return ky_map_set(&names->threads, chrome_thread_key(pid, tid), kept);
	return ky_map_set(&names->processes, (uint64_t)pid, kept);
}

/* The thread's name, or else the process'. */
static const char *chrome_name(const struct ky_log_file *log, int64_t pid, int64_t tid)
{
	const struct chrome_names *names = log->state;
	const char *name = ky_map_get(&names->threads, chrome_thread_key(pid, tid));

	if (!name)
		name = ky_map_get(&names->processes, (uint64_t)pid);
	return name ? name : "";
}

/* ---- events --------------------------------------------------------------------------- */

static void chrome_put_context(struct ky_log_file *log, json_t *object)
{
	int64_t pid = chrome_id(object, "pid"), tid = chrome_id(object, "tid");
	const char *name = chrome_name(log, pid, tid);

	ky_maker_number(log->maker, (uint64_t)tid);
	ky_maker_number(log->maker, (uint64_t)pid);
	ky_maker_text(log->maker, name, strlen(name));
}

static int chrome_put(struct ky_log_file *log, json_t *object, const char *suffix, int64_t ns,
		      bool has_fields)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	char name[NAME_MAX_BYTES + 16], *args = NULL;
	const char *category = log_chrome_text(object, "cat"), *key;
	json_t *members = json_object_get(object, "args"), *value;
	char *made[KY_LOG_FIELDS_MAX] = {0};
	size_t n = 0;
	int ret;

	snprintf(name, sizeof(name), "%.*s%s", NAME_MAX_BYTES, log_chrome_text(object, "name"),
		 suffix);
	if (has_fields && *category)
		values[n++] = ky_log_text("cat", category, strlen(category));
	if (has_fields)
		json_object_foreach(members, key,
				    value) if (n < KY_LOG_FIELDS_MAX &&
					       ky_log_json_value(key, value, &values[n], &made[n]))
			n++;
	ret = ky_log_begin(log, name, ns, values, n);
	if (!ret) {
		chrome_put_context(log, object);
		ret = ky_log_put(log, values, n);
	}
	for (size_t i = 0; i < KY_LOG_FIELDS_MAX; i++)
		free(made[i]);
	free(args);
	return ret;
}

static int chrome_event(struct ky_log_file *log, json_t *object)
{
	const char *phase = log_chrome_text(object, "ph");
	double us, duration_us = 0;
	int64_t ns;
	int ret;

	if (!chrome_number(object, "ts", &us))
		us = 0;
	if (__builtin_add_overflow(chrome_ns(us), log->origin_ns, &ns))
		ns = log->origin_ns;
	switch (*phase) {
	case 'X':
		chrome_number(object, "dur", &duration_us);
		ret = chrome_put(log, object, "_begin", ns, true);
		if (!ret && __builtin_add_overflow(ns, chrome_ns(duration_us), &ns))
			ns = INT64_MAX;
		return ret ? ret : chrome_put(log, object, "_end", ns, false);
	case 'B':
	case 'b':
	case 'S':
		return chrome_put(log, object, "_begin", ns, true);
	case 'E':
	case 'e':
	case 'F':
		return chrome_put(log, object, "_end", ns, true);
	case 'M':
	case '\0':
		/* Names of processes and threads: chrome_keep_name(). */
		return KYMO_OK;
	default:
		return chrome_put(log, object, "", ns, true);
	}
}

/* ---- the file ------------------------------------------------------------------------- */

static int chrome_object(struct ky_log_file *log, const uint8_t *text, size_t len)
{
	json_t *object = ky_log_json_load((const char *)text, len);
	int ret = KYMO_OK;

	if (!json_is_object(object))
		ret = ky_foreign_bad(&log->file, log->at, "an event is no JSON", log->err);
	else
		ret = chrome_event(log, object);
	json_decref(object);
	return ret;
}

/* Where the object at @text ends; 0: not within @len. */
static size_t chrome_object_end(const uint8_t *text, size_t len)
{
	bool is_quoted = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (is_quoted && text[i] == '\\') {
			i++; /* of any character: "C:\\" ends here */
		} else if (is_quoted) {
			is_quoted = text[i] != '"';
		} else if (text[i] == '"') {
			is_quoted = true;
		} else if (text[i] == '{' || text[i] == '[') {
			depth++;
		} else if ((text[i] == '}' || text[i] == ']') && --depth == 0) {
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

/* The next object of the array, behind which log->at is then. 1, 0: the array is over; negative. */
static int chrome_next(struct ky_log_file *log, const uint8_t **object, size_t *len)
{
	const uint8_t *text = NULL;
	size_t have = 0;
	int ret = chrome_skip(log, &text, &have);

	if (ret <= 0 || *text == ']')
		return ret < 0 ? ret : 0;
	if (*text != '{')
		return ky_foreign_bad(&log->file, log->at, "this is no event", log->err);
	*len = chrome_object_end(text, have);
	if (!*len) {
		uint64_t left = log->file.size_bytes - log->at;

		have = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX;
		text = ky_foreign_bytes(&log->file, log->at, have, "an event", log->err);
		if (!text)
			return log->err->code;
		*len = chrome_object_end(text, have);
	}
	if (!*len)
		return ky_foreign_bad(&log->file, log->at, "an event is cut, or longer than 1 MiB",
				      log->err);
	*object = text;
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
		json_t *object;

		if (!memmem(text, len, phase, sizeof(phase) - 1))
			continue;
		object = ky_log_json_load((const char *)text, len);
		if (json_is_object(object) && strcmp(log_chrome_text(object, "ph"), "M") == 0)
			ret = chrome_keep_name(log, object);
		json_decref(object);
	}
	log->err = err;
	log->at = begin;
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int chrome_events(struct ky_log_file *log)
{
	const uint8_t *text;
	size_t len;
	int ret;

	while ((ret = chrome_next(log, &text, &len)) > 0) {
		uint64_t end = log->at;

		log->at -= len; /* where an error is */
		ret = chrome_object(log, text, len);
		if (ret < 0)
			return ret;
		log->at = end;
	}
	return ret;
}

static int chrome_file(struct ky_log_file *log)
{
	struct chrome_names names = {.n = 0};
	bool is_bare = false;
	int ret = chrome_array(log, &is_bare);

	ky_map_init(&names.threads);
	ky_map_init(&names.processes);
	log->state = &names;
	if (!ret)
		ret = chrome_find_names(log);
	if (!ret)
		ret = chrome_events(log);
	/* The format allows a bare array without its end, as a program that was killed leaves it. */
	if (!ret && !is_bare && log->at == log->file.size_bytes)
		ret = ky_foreign_bad(&log->file, log->at, "the list of events is cut", log->err);
	log->state = NULL;
	ky_map_fini(&names.threads);
	ky_map_fini(&names.processes);
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
