/* SPDX-License-Identifier: MIT */
/* Lines of JSON objects, journald's among them, and logfmt: the fields are those of the line. */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/logs/log-format.h"

#define NAME(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

static const struct {
	const char *text;
	size_t len;
} time_names[] = {
	NAME("time"), NAME("timestamp"), NAME("ts"),   NAME("@timestamp"), NAME("t"),
	NAME("date"), NAME("datetime"),	 NAME("when"), NAME("eventTime"),
};

/* journald: microseconds as a text. */
#define JOURNAL_TIME "__REALTIME_TIMESTAMP"

static bool is_time_name(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(time_names) / sizeof(time_names[0]); i++)
		if (time_names[i].len == len && memcmp(time_names[i].text, name, len) == 0)
			return true;
	return false;
}

static bool log_json_text_time(struct ky_log_file *log, const char *text, size_t len, int64_t *ns)
{
	const char *at = text, *end = text + len;
	int64_t seconds;

	if (log->time_format)
		return ky_log_time_format(&log->clock, log->time_format, &at, end, ns);
	if (ky_log_time_iso(&log->clock, &at, end, ns))
		return true;
	at = text;
	if (!ky_log_time_seconds(&at, end, ns) || at != end)
		return false;
	seconds = *ns / 1000000000;
	if (seconds > 100000000000)
		*ns = ky_log_time_number((double)seconds);
	return true;
}

/* ---- JSON ----------------------------------------------------------------------------- */

static bool json_probe(const char *line, size_t len)
{
	json_t *value;
	bool is;

	while (len && isspace((unsigned char)*line)) {
		line++;
		len--;
	}
	if (!len || *line != '{')
		return false;
	value = json_loadb(line, len, 0, NULL);
	is = json_is_object(value);
	json_decref(value);
	return is;
}

static bool json_time(struct ky_log_file *log, const char *name, json_t *value, int64_t *ns)
{
	if (strcmp(name, JOURNAL_TIME) == 0 && json_is_string(value)) {
		return !__builtin_mul_overflow(strtoll(json_string_value(value), NULL, 10), 1000,
					       ns);
	}
	if (!is_time_name(name, strlen(name)))
		return false;
	if (json_is_number(value)) {
		*ns = json_is_integer(value)
			      ? (json_integer_value(value) > 100000000000000000
					 ? json_integer_value(value)
					 : ky_log_time_number((double)json_integer_value(value)))
			      : ky_log_time_number(json_real_value(value));
		return true;
	}
	return json_is_string(value) &&
	       log_json_text_time(log, json_string_value(value), json_string_length(value), ns);
}

void *ky_log_json_load(const char *text, size_t len)
{
	json_t *made = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	return made ? made : json_loadb(text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* The value as a field; texts that have to be made are added to @made. False: it is null. */
bool ky_log_json_value(const char *name, void *json, struct ky_log_value *field, char **made)
{
	json_t *value = json;

	*field = (struct ky_log_value){.name = name, .name_len = strlen(name)};
	if (json_is_null(value))
		return false;
	if (json_is_string(value)) {
		field->kind = KY_MAKER_TEXT;
		field->text = json_string_value(value);
		field->len = json_string_length(value);
	} else if (json_is_integer(value) || json_is_boolean(value)) {
		field->kind = KY_MAKER_S64;
		field->number =
			json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
	} else if (json_is_real(value)) {
		field->kind = KY_MAKER_DOUBLE;
		field->real = json_real_value(value);
	} else {
		*made = json_dumps(value, JSON_COMPACT);
		field->kind = KY_MAKER_TEXT;
		field->text = *made ? *made : "";
		field->len = strlen(field->text);
	}
	return true;
}

static int put_object(struct ky_log_file *log, json_t *object)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	char *made[KY_LOG_FIELDS_MAX] = {0};
	const char *name;
	json_t *value;
	size_t n = 0;
	int64_t ns = log->last_ns;
	int ret;

	json_object_foreach(object, name, value)
	{
		if (json_time(log, name, value, &ns))
			continue;
		if (n < KY_LOG_FIELDS_MAX && ky_log_json_value(name, value, &values[n], &made[n]))
			n++;
	}
	ret = ky_log_event(log, "log", ns, values, n);
	for (size_t i = 0; i < KY_LOG_FIELDS_MAX; i++)
		free(made[i]);
	return ret;
}

/* The same for a field of a simple line. */
static bool json_flat_time(struct ky_log_file *log, const struct ky_log_value *value, int64_t *ns)
{
	int64_t us;

	if (value->name_len == sizeof(JOURNAL_TIME) - 1 && value->kind == KY_MAKER_TEXT &&
	    memcmp(value->name, JOURNAL_TIME, sizeof(JOURNAL_TIME) - 1) == 0)
		return ky_log_is_number(value->text, value->len, &us) &&
		       !__builtin_mul_overflow(us, 1000, ns);
	if (!is_time_name(value->name, value->name_len))
		return false;
	if (value->kind == KY_MAKER_TEXT)
		return log_json_text_time(log, value->text, value->len, ns);
	if (value->kind == KY_MAKER_DOUBLE)
		*ns = ky_log_time_number(value->real);
	else
		*ns = value->number > 100000000000000000
			      ? value->number
			      : ky_log_time_number((double)value->number);
	return true;
}

static int log_json_put_flat(struct ky_log_file *log, struct ky_log_value *values, size_t n)
{
	int64_t ns = log->last_ns;
	size_t kept = 0;
	int ret;

	for (size_t i = 0; i < n; i++) {
		if (json_flat_time(log, &values[i], &ns))
			continue;
		if (kept != i)
			values[kept] = values[i];
		kept++;
	}
	ret = ky_log_event(log, "log", ns, values, kept);
	return ret < 0 ? ret : 1;
}

static int json_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	int n = ky_log_json_flat(line, len, &log->unescaped, values), ret = 0;
	json_t *object;

	if (n >= 0)
		return log_json_put_flat(log, values, (size_t)n);
	object = ky_log_json_load(line, len);
	if (json_is_object(object)) {
		ret = put_object(log, object);
		ret = ret < 0 ? ret : 1;
	}
	json_decref(object);
	return ret;
}

const struct ky_log_format ky_log_json = {
	.name = "json",
	.description = "lines of JSON objects; also those of journalctl -o json",
	.probe = json_probe,
	.line = json_line,
};

/* ---- logfmt --------------------------------------------------------------------------- */

static bool logfmt_probe(const char *line, size_t len)
{
	const char *at = line, *end = line + len;
	struct ky_log_value value;
	bool has_time = false;
	size_t n = 0;

	while (ky_log_pair(&at, end, &value)) {
		/* It begins with a pair, and has no words between. */
		if (!n && value.name != line)
			return false;
		has_time |= is_time_name(value.name, value.name_len);
		n++;
	}
	return n >= 2 && has_time;
}

static int logfmt_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	const char *at = line, *end = line + len;
	int64_t ns = log->last_ns;
	size_t n = 0;
	int ret;

	while (n < KY_LOG_FIELDS_MAX && ky_log_pair(&at, end, &values[n])) {
		struct ky_log_value *value = &values[n];

		if (is_time_name(value->name, value->name_len) &&
		    log_json_text_time(log, value->text, value->len, &ns))
			continue;
		n++;
	}
	if (!n)
		return 0;
	ret = ky_log_event(log, "log", ns, values, n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_logfmt = {
	.name = "logfmt",
	.description = "lines of key=value pairs",
	.probe = logfmt_probe,
	.line = logfmt_line,
};
