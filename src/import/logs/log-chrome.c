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
};

#define NAME_MAX_BYTES 200

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
		ky_maker_number(log->maker, (uint64_t)chrome_id(object, "tid"));
		ky_maker_number(log->maker, (uint64_t)chrome_id(object, "pid"));
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
		/* Names of processes and threads have no time. */
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

/* To the array of events: the first byte behind its '['. */
static int chrome_array(struct ky_log_file *log)
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
	log->at += (uint64_t)(at - text) + 1;
	return KYMO_OK;
}

/* The next object of the array. 1, 0: it is over; negative. */
static int log_chrome_next(struct ky_log_file *log)
{
	for (;;) {
		uint64_t left = log->file.size_bytes - log->at;
		size_t want = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX, end;
		const uint8_t *text;
		size_t have, skip = 0;
		int ret;

		if (!left)
			return ky_foreign_bad(&log->file, log->at, "the list of events is cut",
					      log->err);
		text = ky_foreign_bytes(&log->file, log->at, 1, "an event", log->err);
		if (!text)
			return log->err->code;
		have = (size_t)(log->file.window_at + log->file.window_bytes - log->at);
		while (skip < have && (isspace(text[skip]) || text[skip] == ','))
			skip++;
		log->at += skip;
		if (skip == have)
			continue;
		if (text[skip] != '{')
			return text[skip] == ']' ? 0
						 : ky_foreign_bad(&log->file, log->at,
								  "this is no event", log->err);
		end = chrome_object_end(text + skip, have - skip);
		if (!end) {
			left = log->file.size_bytes - log->at;
			want = left < KY_LOG_LINE_MAX ? (size_t)left : KY_LOG_LINE_MAX;
			text = ky_foreign_bytes(&log->file, log->at, want, "an event", log->err);
			if (!text)
				return log->err->code;
			skip = 0;
			end = chrome_object_end(text, want);
		}
		if (!end)
			return ky_foreign_bad(&log->file, log->at,
					      "an event is cut, or longer than 1 MiB", log->err);
		ret = chrome_object(log, text + skip, end);
		log->at += end;
		return ret < 0 ? ret : 1;
	}
}

static int chrome_file(struct ky_log_file *log)
{
	int ret = chrome_array(log);

	while (!ret) {
		ret = log_chrome_next(log);
		if (ret == 0)
			return KYMO_OK;
		ret = ret < 0 ? ret : KYMO_OK;
	}
	return ret;
}

static bool chrome_probe(const char *line, size_t len)
{
	while (len && isspace((unsigned char)*line)) {
		line++;
		len--;
	}
	if (len > 13 && *line == '{' && memmem(line, len, "\"traceEvents\"", 13))
		return true;
	return len > 2 && *line == '[' && memmem(line, len, "\"ph\"", 4) &&
	       memmem(line, len, "\"ts\"", 4);
}

const struct ky_log_format ky_log_chrome = {
	.name = "chrome",
	.description = "Chrome's JSON trace format",
	.domain = "chrome",
	.context = context,
	.n_context = 2,
	.probe = chrome_probe,
	.file = chrome_file,
};
