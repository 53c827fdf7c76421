/* SPDX-License-Identifier: MIT */
/* Lines of JSON objects, journald's among them, and logfmt: the fields are those of the line. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/logs/log-format.h"

/* journald: microseconds as a text. */
#define JOURNAL_TIME "__REALTIME_TIMESTAMP"

#define NAME(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

/* A line may have several of these: the first one here is its time. */
static const struct {
	const char *text;
	size_t len;
} time_names[] = {
	NAME(JOURNAL_TIME),
	NAME("time"),
	NAME("timestamp"),
	NAME("ts"),
	NAME("@timestamp"),
	NAME("t"),
	NAME("date"),
	NAME("datetime"),
	NAME("when"),
	NAME("eventTime"),
	NAME("@t"),
	NAME("eventtime"),
	NAME("stageTimestamp"),
	NAME("requestReceivedTimestamp"),
};

#define TIME_NAMES ((int)(sizeof(time_names) / sizeof(time_names[0])))

/* The place in time_names; TIME_NAMES: the name is not there. */
static int log_json_time_rank(const char *name, size_t len)
{
	int i = 0;

	while (i < TIME_NAMES &&
	       (time_names[i].len != len || memcmp(time_names[i].text, name, len) != 0))
		i++;
	return i;
}

/* MongoDB's {"$date":"2022-07-28T18:00:00.903+02:00"} and {"$date":1659024000903}: what is inside. */
static void log_json_date(const char **text, size_t *len)
{
	static const char front[] = "{\"$date\":";
	const size_t n = sizeof(front) - 1;

	if (*len < n + 3 || memcmp(*text, front, n) != 0 || (*text)[*len - 1] != '}')
		return;
	*text += n;
	*len -= n + 1;
	if (**text == '"' && (*text)[*len - 1] == '"') {
		++*text;
		*len -= 2;
	}
}

static bool log_json_text_time(struct ky_log_file *log, const char *text, size_t len, int64_t *ns)
{
	const char *at, *end;

	log_json_date(&text, &len);
	at = text;
	end = text + len;

	if (log->time_format)
		return ky_log_time_format(&log->clock, log->time_format, &at, end, ns);
	if (ky_log_time_iso(&log->clock, &at, end, ns))
		return true;
	at = text;
	return ky_log_time_count(&at, end, ns) && at == end;
}

/* Of 1764181493.000005, a double has no more than the first 16 digits, and those are what the program wrote. */
static bool log_json_real_time(const struct ky_log_value *value, int64_t *ns)
{
	char text[40];
	const char *at = value->text ? value->text : text, *end = at + value->len;

	if (!value->text) {
		for (int n = 15; n <= 17; n++) {
			snprintf(text, sizeof(text), "%.*g", n, value->real);
			if (strtod(text, NULL) == value->real)
				break;
		}
		end = text + strlen(text);
	}
	/* An exponent, or a sign. */
	return (ky_log_time_count(&at, end, ns) && at == end) ||
	       ky_log_time_number(value->real, ns);
}

/* Of field @rank of time_names. False: the value is no time. */
static bool log_json_value_time(struct ky_log_file *log, int rank, const struct ky_log_value *value,
				int64_t *ns)
{
	int64_t us;

	if (rank == 0 && value->kind == KY_MAKER_TEXT)
		return ky_log_is_number(value->text, value->len, &us) &&
		       !__builtin_mul_overflow(us, 1000, ns);
	if (value->kind == KY_MAKER_TEXT)
		return log_json_text_time(log, value->text, value->len, ns);
	/* A number may also be what the user's format describes. */
	if (value->text && log->time_format && log_json_text_time(log, value->text, value->len, ns))
		return true;
	if (value->kind == KY_MAKER_DOUBLE)
		return log_json_real_time(value, ns);
	return value->kind == KY_MAKER_S64 && ky_log_time_integer(value->number, ns);
}

/* Also of a number, such as the zone -1000. */
static const struct ky_log_value *log_json_text_of(const struct ky_log_value *values, size_t n,
						   const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].text && values[i].name_len == strlen(name) &&
		    memcmp(values[i].name, name, values[i].name_len) == 0)
			return &values[i];
	return NULL;
}

/* "date=2024-10-14 time=13:46:40 tz=-0700" of firewalls: two or three fields are the time. */
static bool log_json_split_time(struct ky_log_file *log, const struct ky_log_value *values,
				size_t n, int64_t *ns)
{
	const struct ky_log_value *date = log_json_text_of(values, n, "date");
	const struct ky_log_value *time = date ? log_json_text_of(values, n, "time") : NULL;
	const struct ky_log_value *zone = time ? log_json_text_of(values, n, "tz") : NULL;
	char text[64];
	const char *at = text, *end;
	int64_t found;

	if (log->time_format || !time || date->len != 10 || time->len > 32)
		return false;
	if (zone && (!zone->len || zone->len > 6 || (*zone->text != '+' && *zone->text != '-')))
		zone = NULL;
	end = text + snprintf(text, sizeof(text), "%.*s %.*s%.*s", (int)date->len, date->text,
			      (int)time->len, time->text, zone ? (int)zone->len : 0,
			      zone ? zone->text : "");
	if (!ky_log_time_iso(&log->clock, &at, end, &found) || at != end)
		return false;
	*ns = found;
	return true;
}

/* journalctl writes numbers into JSON as texts. Its other format for export, which log-journal.c reads, has no types. */
static void log_json_of_journal(struct ky_log_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].kind == KY_MAKER_TEXT &&
		    ky_log_is_number(values[i].text, values[i].len, &values[i].number))
			values[i].kind = KY_MAKER_S64;
}

/* The event of a line, of whose fields one is the time. */
static int log_json_put(struct ky_log_file *log, struct ky_log_value *values, size_t n)
{
	int64_t ns = log->last_ns, found;
	int best = TIME_NAMES;
	size_t time = n;
	int ret;

	for (size_t i = 0; i < n; i++) {
		int rank = log_json_time_rank(values[i].name, values[i].name_len);

		if (rank < best && log_json_value_time(log, rank, &values[i], &found)) {
			best = rank;
			time = i;
			ns = found;
		}
	}
	if (time < n) {
		n--;
		memmove(&values[time], &values[time + 1], (n - time) * sizeof(values[0]));
	} else if (!log_json_split_time(log, values, n, &ns)) {
		log->n_timeless++;
	}
	if (best == 0)
		log_json_of_journal(values, n);
	ret = ky_log_event(log, "log", ns, values, n);
	return ret < 0 ? ret : 1;
}

/* ---- JSON ----------------------------------------------------------------------------- */

/* What may stand before an object: RFC 7464, journalctl -o json-seq, has a record separator there. */
static void log_json_skip(const char **line, size_t *len)
{
	while (*len && (isspace((unsigned char)**line) || **line == '\x1e')) {
		++*line;
		--*len;
	}
}

static bool json_probe(const char *line, size_t len)
{
	json_t *value;
	bool is, is_repaired;

	log_json_skip(&line, &len);
	if (!len || *line != '{')
		return false;
	value = ky_log_json_load(line, len, false, &is_repaired);
	is = json_is_object(value);
	json_decref(value);
	return is;
}

/* A field of the journal whose bytes are no text, such as one with colours of a terminal, is an array of them. */
static bool log_json_bytes(json_t *array, struct ky_log_value *field, char **made)
{
	size_t n = json_array_size(array);

	*made = n ? malloc(n) : NULL;
	if (!*made)
		return false;
	for (size_t i = 0; i < n; i++) {
		json_t *byte = json_array_get(array, i);
		json_int_t value = json_integer_value(byte);

		if (!json_is_integer(byte) || value < 0 || value > 255) {
			free(*made);
			*made = NULL;
			return false;
		}
		(*made)[i] = (char)value;
	}
	field->kind = KY_MAKER_TEXT;
	field->text = *made;
	field->len = n;
	return true;
}

static bool log_json_text(json_t *value, bool is_repaired, struct ky_log_value *field)
{
	field->text = json_string_value(value);
	field->len = json_string_length(value);
	field->kind = KY_MAKER_TEXT;
	if (is_repaired &&
	    ky_log_json_integer(field->text, field->len, &field->number) == KY_MAKER_U64)
		field->kind = KY_MAKER_U64;
	return true;
}

bool ky_log_json_value(const char *name, void *json, bool is_repaired, struct ky_log_value *field,
		       char **made)
{
	json_t *value = json;

	*field = (struct ky_log_value){.name = name, .name_len = strlen(name)};
	if (json_is_null(value))
		return false;
	if (json_is_string(value))
		return log_json_text(value, is_repaired, field);
	if (json_is_integer(value) || json_is_boolean(value)) {
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

struct log_json_fields {
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	char *made[KY_LOG_FIELDS_MAX];
	size_t n;
	bool is_journal, is_repaired, is_cut;
};

static void log_json_add(struct log_json_fields *fields, const char *name, json_t *value)
{
	struct ky_log_value *field = &fields->values[fields->n];
	char **made = &fields->made[fields->n];

	if (fields->n == KY_LOG_FIELDS_MAX) {
		fields->is_cut = true;
		return;
	}
	*made = NULL;
	if (fields->is_journal && json_is_array(value) && log_json_bytes(value, field, made)) {
		field->name = name;
		field->name_len = strlen(name);
		field->is_escaped = false;
		fields->n++;
	} else if (ky_log_json_value(name, value, fields->is_repaired, field, made)) {
		fields->n++;
	}
}

/* A field that an entry of the journal has more than once is an array of its values. */
static bool log_json_is_repeated(const struct log_json_fields *fields, json_t *value)
{
	json_t *first = json_is_array(value) ? json_array_get(value, 0) : NULL;

	return fields->is_journal && (json_is_string(first) || json_is_array(first));
}

static int put_object(struct ky_log_file *log, json_t *object, bool is_repaired)
{
	struct log_json_fields fields;
	const char *name;
	json_t *value, *one;
	size_t i;
	int ret;

	fields.n = 0;
	fields.is_journal = json_object_get(object, JOURNAL_TIME);
	fields.is_repaired = is_repaired;
	fields.is_cut = false;
	json_object_foreach(object, name, value)
	{
		if (log_json_is_repeated(&fields, value)) {
			json_array_foreach(value, i, one) log_json_add(&fields, name, one);
		} else {
			log_json_add(&fields, name, value);
		}
	}
	log->n_shortened += fields.is_cut;
	ret = log_json_put(log, fields.values, fields.n);
	for (i = 0; i < fields.n; i++)
		free(fields.made[i]);
	return ret;
}

static int json_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX];
	bool is_repaired;
	json_t *object;
	int n, ret = 0;

	log_json_skip(&line, &len);
	n = ky_log_json_flat(line, len, &log->unescaped, values);
	if (n >= 0)
		return log_json_put(log, values, (size_t)n);
	object = ky_log_json_load(line, len, false, &is_repaired);
	if (json_is_object(object))
		ret = put_object(log, object, is_repaired);
	json_decref(object);
	return ret;
}

const struct ky_log_format ky_log_json = {
	.name = "json",
	.description = "lines of JSON objects; also those of journalctl -o json",
	.takes_time_format = true,
	.probe = json_probe,
	.line = json_line,
};

/* ---- logfmt --------------------------------------------------------------------------- */

/* "key" alone, which is a number without a text. */
static bool logfmt_is_word(const struct ky_log_value *value)
{
	return value->kind == KY_MAKER_S64 && !value->text;
}

static bool logfmt_probe(const char *line, size_t len)
{
	const char *at = line, *end = line + len;
	struct ky_log_value value;
	bool has_time = false;
	size_t n = 0;

	while (ky_log_pair(&at, end, &value)) {
		/* It begins with a pair. */
		if (!n && (value.name != line || logfmt_is_word(&value)))
			return false;
		has_time |= log_json_time_rank(value.name, value.name_len) < TIME_NAMES;
		n += !logfmt_is_word(&value);
	}
	return n >= 2 && has_time;
}

/* A number of 64 bits may have more digits than those that words are guessed by. */
static void logfmt_long_number(struct ky_log_value *value)
{
	enum ky_maker_kind kind;
	int64_t number;

	if (value->kind != KY_MAKER_TEXT || value->len < 19 || value->len > 20 ||
	    value->text[-1] == '"')
		return;
	kind = ky_log_json_integer(value->text, value->len, &number);
	if (kind == KY_MAKER_TEXT)
		return;
	value->kind = kind;
	value->number = number;
}

static int logfmt_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX], more;
	const char *at = line, *end = line + len;
	size_t n = 0, pairs = 0;

	while (n < KY_LOG_FIELDS_MAX && ky_log_pair(&at, end, &values[n])) {
		logfmt_long_number(&values[n]);
		pairs += !logfmt_is_word(&values[n++]);
	}
	if (!pairs)
		return 0;
	log->n_shortened += n == KY_LOG_FIELDS_MAX && ky_log_pair(&at, end, &more);
	return log_json_put(log, values, n);
}

const struct ky_log_format ky_log_logfmt = {
	.name = "logfmt",
	.description = "lines of key=value pairs",
	.takes_time_format = true,
	.probe = logfmt_probe,
	.line = logfmt_line,
};
