/* SPDX-License-Identifier: MIT */
/* The public API, from outside: this program includes public headers and links libkymo only. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/version.h>
#include <kymo/reader.h>

#define OK(name)  KY_TEST_DATA "/ok/traces/" name
#define BAD(name) KY_TEST_DATA "/bad/traces/" name
#define ZERO_NS	  INT64_C(1600000000000000000)

static struct kymo_error err;

static struct kymo_reader *must_open(const char *path, const struct kymo_reader_options *options)
{
	struct kymo_reader *reader;

	if (kymo_reader_open(&path, 1, options, &reader, &err) < 0)
		fail_msg("%s: %s", err.path, err.message);
	return reader;
}

/* "0 1 L7 2 !": payload field n of all events that are left, losses, an error. */
static const char *all(struct kymo_reader *reader)
{
	static char text[4096];
	struct kymo_field n = {0};
	struct kymo_batch batch;
	size_t len = 0;
	int ret;

	text[0] = '\0';
	while ((ret = kymo_reader_next(reader, &batch, &err)) > 0) {
		if (batch.loss && batch.loss->events)
			len += (size_t)sprintf(text + len, "L%" PRIu64 " ", batch.loss->events);
		if (batch.loss && batch.loss->packets)
			len += (size_t)sprintf(text + len, "P%" PRIu64 " ", batch.loss->packets);
		kymo_batch_foreach(&batch, event) {
			uint64_t value = 999;

			kymo_field_find(event->event_class, "n", &n);
			kymo_event_get_u64(event, &n, &value);
			assert_in_range(len, 0, sizeof(text) - 32);
			len += (size_t)sprintf(text + len, "%" PRIu64 " ", value);
		}
	}
	if (ret < 0)
		strcpy(text + len, "!");
	else if (len)
		text[len - 1] = '\0';
	return text;
}

/* The first event; its batch stays as it is until the reader goes on. */
static const struct kymo_event *first(struct kymo_reader *reader)
{
	static struct kymo_batch batch;

	assert_int_equal(kymo_reader_next(reader, &batch, &err), 1);
	assert_true(batch.n_events > 0);
	return kymo_batch_event(&batch, 0);
}

/* ---- events ----------------------------------------------------------------------------- */

static void test_merged_in_order(void **state)
{
	struct kymo_reader *reader = must_open(OK("equal-times"), NULL);

	assert_string_equal(all(reader), "20 21 10 11 0 1 22 23 12 13 2 3 24 25 14 15 4 5");
	assert_int_equal(kymo_reader_next(reader, &(struct kymo_batch){0}, NULL), 0);
	kymo_reader_close(reader);
}

static void test_streams_of_events(void **state)
{
	struct kymo_reader *reader = must_open(OK("equal-times"), NULL);
	struct kymo_batch batch;
	struct kymo_field n;
	uint64_t value;

	while (kymo_reader_next(reader, &batch, &err) > 0) {
		kymo_batch_foreach(&batch, event) {
			const struct kymo_stream *stream = kymo_batch_stream(&batch, event);
			uint64_t offset = 0;

			assert_int_equal(kymo_field_find(event->event_class, "n", &n), KYMO_OK);
			assert_true(kymo_event_get_u64(event, &n, &value));
			/* The first stream has 20 and more, the last one 0 and more. */
			assert_int_equal(kymo_stream_index(stream), 2 - value / 10);
			assert_string_equal(kymo_batch_place(&batch, event, &offset),
					    kymo_stream_path(stream));
			assert_true(offset > 0 && offset < kymo_stream_size_bytes(stream));
		}
	}
	kymo_reader_close(reader);
}

static void test_losses(void **state)
{
	struct kymo_reader *reader = must_open(OK("losses"), NULL);
	struct kymo_batch batch;

	assert_string_equal(all(reader), "0 1 L7 2 3 L1 P2 4");
	assert_int_equal(kymo_reader_seek(reader, ZERO_NS + 1000, &err), KYMO_OK);
	do
		assert_int_equal(kymo_reader_next(reader, &batch, &err), 1);
	while (!batch.loss);
	assert_int_equal(batch.loss->begin_ns, ZERO_NS + 1200);
	assert_int_equal(batch.loss->end_ns, ZERO_NS + 2200);
	kymo_reader_close(reader);
}

static void test_several_paths(void **state)
{
	const char *paths[] = {OK("index"), OK("losses")};
	struct kymo_reader *reader;

	assert_int_equal(kymo_reader_open(paths, 2, NULL, &reader, &err), KYMO_OK);
	assert_int_equal(kymo_reader_n_traces(reader), 2);
	assert_int_equal(kymo_reader_n_streams(reader), 2);
	assert_string_equal(all(reader), "0 0 1 1 2 3 L7 2 4 3 5 L1 P2 4");
	kymo_reader_close(reader);
}

static void test_damage(void **state)
{
	struct kymo_reader *reader = must_open(BAD("unknown-event-beside"), NULL);
	struct kymo_batch batch;

	assert_string_equal(all(reader), "0 10 1 11 12 13 !");
	assert_int_equal(err.code, KYMO_E_FORMAT);
	assert_int_equal(err.offset, 110);
	assert_non_null(strstr(err.path, "unknown-event-beside/c_0"));
	assert_int_equal(kymo_reader_next(reader, &batch, &err), 0);
	/* Going back is possible, and the damage is still there. */
	assert_int_equal(kymo_reader_seek(reader, INT64_MIN, &err), KYMO_OK);
	assert_string_equal(all(reader), "0 10 1 11 12 13 !");
	kymo_reader_close(reader);
}

static void test_seek(void **state)
{
	struct kymo_reader *reader = must_open(OK("index"), NULL);

	assert_int_equal(kymo_reader_seek(reader, ZERO_NS + 1101, &err), KYMO_OK);
	assert_string_equal(all(reader), "2 3 4 5");
	assert_int_equal(kymo_reader_seek(reader, ZERO_NS + 2200, &err), KYMO_OK);
	assert_string_equal(all(reader), "5");
	assert_int_equal(kymo_reader_seek(reader, INT64_MAX, &err), KYMO_OK);
	assert_string_equal(all(reader), "");
	assert_int_equal(kymo_reader_seek(reader, 0, &err), KYMO_OK);
	assert_string_equal(all(reader), "0 1 2 3 4 5");
	kymo_reader_close(reader);
}

static void test_range(void **state)
{
	struct kymo_reader *reader = must_open(OK("index"), NULL);
	int64_t begin_ns, end_ns;

	assert_int_equal(kymo_reader_range(reader, &begin_ns, &end_ns, &err), KYMO_OK);
	assert_int_equal(begin_ns, ZERO_NS + 1000);
	assert_int_equal(end_ns, ZERO_NS + 2200);
	assert_int_equal(kymo_reader_range(reader, NULL, &end_ns, &err), KYMO_E_INVALID);
	kymo_reader_close(reader);
}

static void test_seek_end(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_reader *reader = must_open(OK("index"), NULL);

	assert_int_equal(kymo_reader_seek_end(reader, 0, &err), KYMO_OK);
	assert_string_equal(all(reader), "5");
	assert_int_equal(kymo_reader_seek_end(reader, 200, &err), KYMO_OK);
	assert_string_equal(all(reader), "3 4 5");
	assert_int_equal(kymo_reader_seek_end(reader, INT64_MAX, &err), KYMO_OK);
	assert_string_equal(all(reader), "0 1 2 3 4 5");
	assert_int_equal(kymo_reader_seek_end(reader, -1, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_seek_end(NULL, 0, &err), KYMO_E_INVALID);
	kymo_reader_close(reader);
	options.end_ns = ZERO_NS + 2000;
	reader = must_open(OK("index"), &options);
	assert_int_equal(kymo_reader_seek_end(reader, 0, &err), KYMO_OK);
	assert_string_equal(all(reader), "3");
	kymo_reader_close(reader);
}

static uint64_t count(const char *path, const struct kymo_reader_options *options, int expected)
{
	struct kymo_reader *reader = must_open(path, options);
	uint64_t n_events = 0;

	assert_int_equal(kymo_reader_count(reader, &n_events, &err), expected);
	kymo_reader_close(reader);
	return n_events;
}

static void test_count(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_reader *reader = must_open(OK("index"), NULL);
	const char *tick = "tick";
	uint64_t n_events;

	assert_int_equal(kymo_reader_seek(reader, ZERO_NS + 2200, &err), KYMO_OK);
	assert_int_equal(kymo_reader_count(reader, &n_events, &err), KYMO_OK);
	assert_int_equal(n_events, 6);
	assert_string_equal(all(reader), "5");
	assert_int_equal(kymo_reader_count(NULL, &n_events, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_count(reader, NULL, &err), KYMO_E_INVALID);
	kymo_reader_close(reader);
	options.events = &tick;
	options.n_events = 1;
	assert_int_equal(count(OK("index"), &options, KYMO_OK), 6);
	options.filter = "n > 3";
	assert_int_equal(count(OK("index"), &options, KYMO_OK), 2);
	assert_int_equal(count(BAD("unknown-event-beside"), NULL, KYMO_E_FORMAT), 6);
	assert_int_equal(err.offset, 110);
	options = kymo_reader_options_init();
	options.recover = true;
	options.jobs = 2;
	assert_int_equal(count(BAD("unknown-event-beside"), &options, KYMO_OK), 6);
}

/* ---- options ----------------------------------------------------------------------------- */

static void test_selecting(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	char filter[] = "n % 2 == 1", glob[] = "ti*", stream[] = "c_?";
	const char *globs[] = {glob}, *streams[] = {stream};
	struct kymo_reader *reader;

	options.filter = filter;
	options.events = globs;
	options.n_events = 1;
	options.streams = streams;
	options.n_streams = 1;
	options.begin_ns = ZERO_NS + 1100;
	options.end_ns = ZERO_NS + 2100;
	reader = must_open(OK("index"), &options);
	/* Options are the library's own after opening. */
	memset(filter, 'x', sizeof(filter) - 1);
	memset(glob, 'x', sizeof(glob) - 1);
	memset(stream, 'x', sizeof(stream) - 1);
	globs[0] = streams[0] = NULL;
	assert_string_equal(all(reader), "1 3");
	/* Seeking does not leave the range. */
	assert_int_equal(kymo_reader_seek(reader, 0, &err), KYMO_OK);
	assert_string_equal(all(reader), "1 3");
	kymo_reader_close(reader);
}

static void test_recovering(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_batch batch = {0};
	struct kymo_reader *reader;
	unsigned int n_damages = 0;
	int ret;

	options.recover = true;
	reader = must_open(BAD("unknown-event-beside"), &options);
	while ((ret = kymo_reader_next(reader, &batch, &err)) > 0) {
		if (!batch.loss || !batch.loss->damage)
			continue;
		n_damages++;
		assert_int_equal(batch.loss->damage->offset, 110);
		assert_non_null(strstr(batch.loss->damage->path, "unknown-event-beside/c_0"));
		assert_string_equal(kymo_stream_name(batch.loss->stream), "c_0");
		assert_true(batch.loss->skipped_bytes > 0);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(n_damages, 1);
	kymo_reader_close(reader);
}

static void test_jobs(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();

	for (options.jobs = 0; options.jobs < 5; options.jobs++) {
		struct kymo_reader *reader = must_open(OK("equal-times"), &options);

		assert_string_equal(all(reader), "20 21 10 11 0 1 22 23 12 13 2 3 24 25 14 15 4 5");
		assert_int_equal(kymo_reader_seek(reader, INT64_MIN, &err), KYMO_OK);
		first(reader);
		kymo_reader_close(reader);
		reader = must_open(BAD("unknown-event-beside"), &options);
		assert_string_equal(all(reader), "0 10 1 11 12 13 !");
		kymo_reader_close(reader);
	}
}

static void test_clock_offsets(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	char offset[] = "index:-5", *offsets[] = {offset};
	const char *path = OK("index");
	struct kymo_reader *reader;

	options.clock_offsets = (const char *const *)offsets;
	options.n_clock_offsets = 1;
	reader = must_open(OK("index"), &options);
	assert_int_equal(first(reader)->time_ns, ZERO_NS + 1000 - 5);
	kymo_reader_close(reader);
	strcpy(offset, "nope:5");
	assert_int_equal(kymo_reader_open(&path, 1, &options, &reader, &err), KYMO_E_INVALID);
	strcpy(offset, "5x");
	assert_int_equal(kymo_reader_open(&path, 1, &options, &reader, &err), KYMO_E_INVALID);
}

static void test_clocks_that_differ(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	const char *paths[] = {OK("index"), OK("no-clock")};
	struct kymo_reader *reader;

	assert_int_equal(kymo_reader_open(paths, 2, NULL, &reader, &err), KYMO_E_FORMAT);
	assert_null(reader);
	/* Options of the command line are no help to a program. */
	assert_null(strstr(err.hint, "--"));
	options.force_correlate = true;
	assert_int_equal(kymo_reader_open(paths, 2, &options, &reader, &err), KYMO_OK);
	kymo_reader_close(reader);
}

/* A program that was compiled with the first version's options. */
static void test_options_of_the_first_version(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_reader *reader;

	options.size = offsetof(struct kymo_reader_options, recover);
	memset((char *)&options + options.size, 0xff, sizeof(options) - options.size);
	reader = must_open(OK("index"), &options);
	assert_string_equal(all(reader), "0 1 2 3 4 5");
	kymo_reader_close(reader);
}

static int open_with(const struct kymo_reader_options *options)
{
	const char *path = OK("index");
	struct kymo_reader *reader = (struct kymo_reader *)&err;
	int ret = kymo_reader_open(&path, 1, options, &reader, &err);

	if (ret < 0)
		assert_null(reader);
	else
		kymo_reader_close(reader);
	return ret;
}

static void test_wrong_options(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	const char *unknown[] = {"no such event"}, *null[] = {NULL};

	options.filter = "n == ";
	assert_int_equal(open_with(&options), KYMO_E_INVALID);
	assert_int_equal(err.line, 1);
	assert_true(err.column >= 5);
	options = kymo_reader_options_init();
	options.n_events = 1;
	assert_int_equal(open_with(&options), KYMO_E_INVALID);
	options.events = null;
	assert_int_equal(open_with(&options), KYMO_E_INVALID);
	options.events = unknown;
	assert_int_equal(open_with(&options), KYMO_E_INVALID);
	assert_non_null(strstr(err.message, "no such event"));
	options = kymo_reader_options_init();
	options.begin_ns = 1;
	options.end_ns = 0;
	assert_int_equal(open_with(&options), KYMO_E_INVALID);
	options.size = 0;
	assert_int_equal(open_with(&options), KYMO_E_INVALID);
}

static void test_options_of_another_version(void **state)
{
	struct {
		struct kymo_reader_options options;
		uint64_t more;
	} later = {.options = kymo_reader_options_init(), .more = 0};

	later.options.size = sizeof(later);
	assert_int_equal(open_with(&later.options), KYMO_OK);
	later.more = 1;
	assert_int_equal(open_with(&later.options), KYMO_E_UNSUPPORTED);
}

static void test_version(void **state)
{
	(void)state;
	assert_string_equal(kymo_version(), KYMO_VERSION);
	assert_int_equal(kymo_version_number(), KYMO_VERSION_NUMBER);
	assert_true(KYMO_VERSION_OF(0, 2, 0) > KYMO_VERSION_OF(0, 1, 999));
}

static void on_log(void *data, enum kymo_log_level level, const char *text)
{
	*(unsigned int *)data += level == KYMO_LOG_WARNING && strstr(text, "time goes back");
}

static void test_log(void **state)
{
	struct kymo_reader_options options = kymo_reader_options_init();
	struct kymo_reader *reader;
	unsigned int n_warnings = 0;

	options.log = on_log;
	options.log_data = &n_warnings;
	reader = must_open(OK("back-in-time"), &options);
	all(reader);
	assert_int_equal(n_warnings, 1);
	kymo_reader_close(reader);
	reader = must_open(OK("back-in-time"), NULL);
	all(reader);
	kymo_reader_close(reader);
}

static void test_wrong_paths(void **state)
{
	const char *missing = OK("there is no such trace"), *null = NULL;
	const char *damaged = BAD("random-metadata");
	struct kymo_reader *reader;

	assert_int_equal(kymo_reader_open(&missing, 1, NULL, &reader, &err), KYMO_E_NOT_FOUND);
	assert_null(reader);
	assert_string_equal(err.path, missing);
	assert_int_equal(kymo_reader_open(&missing, 1, NULL, &reader, NULL), KYMO_E_NOT_FOUND);
	assert_int_equal(kymo_reader_open(&damaged, 1, NULL, &reader, &err), KYMO_E_FORMAT);
	assert_int_equal(kymo_reader_open(&null, 1, NULL, &reader, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_open(NULL, 1, NULL, &reader, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_open(&missing, 0, NULL, &reader, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_open(&missing, 1, NULL, NULL, &err), KYMO_E_INVALID);
}

static void test_no_reader(void **state)
{
	struct kymo_batch batch;

	kymo_reader_close(NULL);
	assert_int_equal(kymo_reader_next(NULL, &batch, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_next(NULL, &batch, NULL), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_seek(NULL, 0, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_reader_n_traces(NULL), 0);
	assert_null(kymo_reader_trace(NULL, 0));
	assert_int_equal(kymo_reader_n_streams(NULL), 0);
	assert_null(kymo_reader_stream(NULL, 0));
}

/* ---- fields ------------------------------------------------------------------------------ */

static struct kymo_field field_of(const struct kymo_event *event, const char *name)
{
	struct kymo_field field;

	assert_int_equal(kymo_field_find(event->event_class, name, &field), KYMO_OK);
	return field;
}

static void test_typed_access(void **state)
{
	struct kymo_reader *reader = must_open(OK("kinds"), NULL);
	const struct kymo_event *event = first(reader);
	struct kymo_field field = field_of(event, "h");
	const char *text;
	uint64_t u = 0;
	int64_t i = 0;
	double f = 0;
	size_t len;

	assert_string_equal(kymo_event_class_name(event->event_class), "kinds");
	assert_int_equal(event->time_ns, ZERO_NS + 5);
	assert_int_equal(event->cycles, 5);
	assert_int_equal(event->cpu, 1);
	assert_true(kymo_event_get_u64(event, &field, &u) && u == 171);
	assert_true(kymo_event_get_i64(event, &field, &i) && i == 171);
	assert_true(kymo_event_get_f64(event, &field, &f) && f == 171.0);
	assert_null(kymo_event_get_text(event, &field, &len));
	field = field_of(event, "sh");
	assert_false(kymo_event_get_u64(event, &field, &u));
	assert_true(kymo_event_get_i64(event, &field, &i) && i == -85);
	assert_true(kymo_event_get_f64(event, &field, &f) && f == -85.0);
	field = field_of(event, "d");
	assert_false(kymo_event_get_i64(event, &field, &i));
	assert_true(kymo_event_get_f64(event, &field, &f) && f == -1e300);
	field = field_of(event, "e1");
	assert_string_equal(kymo_event_get_label(event, &field), "sp ace");
	field = field_of(event, "e3");
	assert_null(kymo_event_get_label(event, &field));
	field = field_of(event, "txt");
	text = kymo_event_get_text(event, &field, &len);
	assert_true(text && len == 2 && !memcmp(text, "ab", 2));
	assert_false(kymo_event_get_u64(event, &field, &u));
	/* Behind fields of variable size. */
	field = field_of(event, "s64");
	assert_true(kymo_event_get_i64(event, &field, &i) && i == -3);
	/* In contexts. */
	field = field_of(event, "ctx");
	assert_true(kymo_event_get_u64(event, &field, &u) && u == 9);
	field = field_of(event, "ectx");
	assert_true(kymo_event_get_u64(event, &field, &u) && u == 5);
	field = field_of(event, "cpu_id");
	assert_true(kymo_event_get_u64(event, &field, &u) && u == 1);
	kymo_reader_close(reader);
}

static void test_wrong_fields(void **state)
{
	struct kymo_reader *reader = must_open(OK("kinds"), NULL);
	const struct kymo_event *event = first(reader);
	const struct kymo_event_class *other =
		kymo_trace_find_event_class(kymo_reader_trace(reader, 0), "text");
	struct kymo_field field, zero = {0};
	uint64_t u = 42;
	int64_t i;
	size_t len;

	assert_int_equal(kymo_field_find(event->event_class, "nope", &field), KYMO_E_NOT_FOUND);
	assert_false(kymo_event_get_u64(event, &field, &u));
	assert_int_equal(
		kymo_field_find_in(event->event_class, KYMO_SCOPE_EVENT_CONTEXT, "h", &field),
		KYMO_E_NOT_FOUND);
	assert_int_equal(kymo_field_find_in(event->event_class, KYMO_SCOPE_COUNT, "h", &field),
			 KYMO_E_INVALID);
	assert_int_equal(kymo_field_find(NULL, "h", &field), KYMO_E_INVALID);
	assert_int_equal(kymo_field_find(event->event_class, NULL, &field), KYMO_E_INVALID);
	assert_int_equal(kymo_field_find(event->event_class, "h", NULL), KYMO_E_INVALID);
	/* Another class' field has no place in this event. */
	assert_int_equal(kymo_field_find(other, "s", &field), KYMO_OK);
	assert_null(kymo_event_get_text(event, &field, &len));
	assert_false(kymo_event_get_u64(event, &zero, &u));
	assert_null(kymo_event_get_label(event, &zero));
	assert_int_equal(u, 42);
	field = field_of(event, "h");
	assert_false(kymo_event_get_u64(NULL, &field, &u));
	assert_false(kymo_event_get_u64(event, NULL, &u));
	assert_false(kymo_event_get_u64(event, &field, NULL));
	assert_false(kymo_event_get_i64(NULL, &field, &i));
	assert_null(kymo_event_get_text(event, NULL, &len));
	assert_null(kymo_event_get_text(event, &field, NULL));
	kymo_reader_close(reader);
}

/* ---- all fields --------------------------------------------------------------------------- */

static size_t put_value(char *out, const struct kymo_value *value)
{
	const struct kymo_value *child = kymo_value_first(value);
	const char *name = kymo_value_name(value), *bytes;
	size_t at = 0, len;

	if (name)
		at += (size_t)sprintf(out + at, "%s=", name);
	bytes = kymo_value_bytes(value, &len);
	if (bytes)
		return at + (size_t)sprintf(out + at, "'%.*s'", (int)len, bytes);
	switch (kymo_value_kind(value)) {
	case KYMO_FIELD_FLOAT:
		return at + (size_t)sprintf(out + at, "%g", kymo_value_f64(value));
	case KYMO_FIELD_SINT:
		return at + (size_t)sprintf(out + at, "%" PRId64, kymo_value_i64(value));
	case KYMO_FIELD_UINT:
		return at + (size_t)sprintf(out + at, "%" PRIu64, kymo_value_u64(value));
	default:
		break;
	}
	if (kymo_value_option(value))
		at += (size_t)sprintf(out + at, "%s:", kymo_value_option(value));
	out[at++] = '(';
	for (size_t i = 0; i < kymo_value_n_children(value); i++) {
		if (i)
			out[at++] = ' ';
		at += put_value(out + at, child);
		child = kymo_value_next(child);
	}
	out[at++] = ')';
	out[at] = '\0';
	return at;
}

static void test_walk(void **state)
{
	struct kymo_reader *reader = must_open(OK("kinds"), NULL);
	const struct kymo_event *event = first(reader);
	struct kymo_values *values = kymo_values_new();
	const struct kymo_value *root;
	char text[4096];

	assert_non_null(values);
	assert_int_equal(kymo_event_values(event, KYMO_SCOPE_PAYLOAD, values, &root, &err), 1);
	put_value(text, root);
	assert_non_null(strstr(text, "(h=171 sh=-85 sh12=-85 o=171 so=-85 b=21 sb=-85 bits3=5 "));
	assert_non_null(strstr(text,
			       " arr=(1 2 3) n=2 seq=(7 8) z=0 zseq=() empty=() "
			       "nest=(in=(x=17)) tag=1 v=two:((y=34)) strs=('a' 'b') "
			       "txt='ab' chr=120 two_d=((1 2) (3 4)) structs=((a=5) (a=6)) "));
	assert_int_equal(kymo_event_values(event, KYMO_SCOPE_STREAM_CONTEXT, values, &root, &err),
			 1);
	put_value(text, root);
	assert_string_equal(text, "(ctx=9)");
	assert_int_equal(kymo_event_values(event, KYMO_SCOPE_COUNT, values, &root, &err),
			 KYMO_E_INVALID);
	assert_null(root);
	assert_int_equal(kymo_event_values(NULL, KYMO_SCOPE_PAYLOAD, values, &root, &err),
			 KYMO_E_INVALID);
	assert_int_equal(kymo_event_values(event, KYMO_SCOPE_PAYLOAD, NULL, &root, &err),
			 KYMO_E_INVALID);
	assert_int_equal(kymo_event_values(event, KYMO_SCOPE_PAYLOAD, values, NULL, &err),
			 KYMO_E_INVALID);
	kymo_values_free(values);
	kymo_values_free(NULL);
	kymo_reader_close(reader);
}

/* ---- metadata ---------------------------------------------------------------------------- */

static void test_trace(void **state)
{
	struct kymo_reader *reader = must_open(OK("kinds"), NULL);
	const struct kymo_trace *trace = kymo_reader_trace(reader, 0);
	const struct kymo_stream *stream = kymo_reader_stream(reader, 0);
	const struct kymo_clock *clock = kymo_trace_clock(trace, 0);
	unsigned int major, minor;
	const char *text = "";
	int64_t number = 0;

	assert_string_equal(kymo_trace_path(trace), OK("kinds"));
	kymo_trace_version(trace, &major, &minor);
	assert_true(major == 1 && minor == 8);
	assert_int_equal(kymo_trace_uuid(trace)[15], 0x1f);
	assert_int_equal(kymo_trace_n_env(trace), 4);
	assert_string_equal(kymo_trace_env_text(trace, "hostname"), "box");
	assert_null(kymo_trace_env_text(trace, "vpid"));
	assert_null(kymo_trace_env_text(trace, "nope"));
	assert_string_equal(kymo_trace_env(trace, 2, &text, &number), "vpid");
	assert_true(!text && number == 42);
	assert_null(kymo_trace_env(trace, 4, &text, &number));
	assert_int_equal(kymo_trace_n_clocks(trace), 1);
	assert_null(kymo_trace_clock(trace, 1));
	assert_string_equal(kymo_clock_name(clock), "monotonic");
	assert_int_equal(kymo_clock_frequency_hz(clock), 1000000000);
	assert_int_equal(kymo_clock_offset_s(clock), 1600000000);
	assert_true(kymo_clock_is_unix_epoch(clock));
	assert_int_equal(kymo_clock_to_ns(clock, 7), ZERO_NS + 7);
	assert_null(kymo_clock_uuid(clock));
	assert_ptr_equal(kymo_stream_trace(stream), trace);
	assert_string_equal(kymo_stream_name(stream), "c_0");
	assert_string_equal(kymo_stream_path(stream), OK("kinds") "/c_0");
	assert_int_equal(kymo_stream_cpu(stream), 1);
	assert_true(kymo_stream_size_bytes(stream) > 100);
	assert_ptr_equal(kymo_stream_stream_class(stream), kymo_trace_stream_class(trace, 0));
	assert_ptr_equal(kymo_stream_class_clock(kymo_trace_stream_class(trace, 0)), clock);
	assert_int_equal(kymo_stream_class_n_event_classes(kymo_trace_stream_class(trace, 0)), 6);
	kymo_reader_close(reader);
}

static void test_packets(void **state)
{
	struct kymo_reader *reader = must_open(OK("losses"), NULL);
	const struct kymo_stream *stream = kymo_reader_stream(reader, 0);
	struct kymo_packets *packets;
	int64_t begin_ns, end_ns;

	assert_int_equal(kymo_packets_open(stream, &packets, &err), KYMO_OK);
	assert_true(kymo_packets_n(packets) >= 3);
	assert_int_equal(kymo_packets_get(packets, 0)->offset_bytes, 0);
	assert_int_equal(kymo_packets_get(packets, 0)->end_ns, ZERO_NS + 1200);
	assert_int_equal(kymo_packets_get(packets, 1)->discarded -
				 kymo_packets_get(packets, 0)->discarded,
			 7);
	assert_null(kymo_packets_get(packets, kymo_packets_n(packets)));
	kymo_packets_free(packets);
	kymo_packets_free(NULL);
	assert_true(kymo_stream_range(stream, &begin_ns, &end_ns));
	assert_true(begin_ns >= ZERO_NS && begin_ns < end_ns);
	assert_false(kymo_stream_range(NULL, &begin_ns, NULL));
	assert_int_equal(begin_ns, INT64_MIN);
	assert_int_equal(kymo_packets_open(NULL, &packets, &err), KYMO_E_INVALID);
	assert_null(packets);
	assert_int_equal(kymo_packets_open(stream, NULL, &err), KYMO_E_INVALID);
	kymo_reader_close(reader);
	reader = must_open(BAD("packet-huge"), NULL);
	assert_int_equal(kymo_packets_open(kymo_reader_stream(reader, 0), &packets, &err),
			 KYMO_E_FORMAT);
	assert_non_null(packets);
	kymo_packets_free(packets);
	kymo_reader_close(reader);
}

static void test_what_tells(void **state)
{
	struct kymo_reader *reader = must_open(OK("kinds"), NULL);
	const struct kymo_trace *trace = kymo_reader_trace(reader, 0);
	const struct kymo_event_class *event = kymo_trace_find_event_class(trace, "kinds");
	const struct kymo_stream_class *stream = kymo_event_class_stream_class(event);
	const struct kymo_field_class *root = kymo_event_class_scope(event, KYMO_SCOPE_PAYLOAD);
	enum kymo_scope scope = KYMO_SCOPE_COUNT;
	uint64_t begin = 9, end = 9;

	assert_ptr_equal(kymo_field_class_length_or_selector(
				 kymo_field_class_find_member(root, "seq"), &scope),
			 kymo_field_class_find_member(root, "n"));
	assert_int_equal(scope, KYMO_SCOPE_PAYLOAD);
	assert_ptr_equal(
		kymo_field_class_length_or_selector(kymo_field_class_find_member(root, "v"), NULL),
		kymo_field_class_find_member(root, "tag"));
	assert_null(kymo_field_class_length_or_selector(root, NULL));
	assert_true(kymo_field_class_option_range(kymo_field_class_find_member(root, "v"), 1, 0,
						  &begin, &end));
	assert_true(begin == 1 && end == 1);
	assert_false(kymo_field_class_option_range(root, 0, 0, NULL, NULL));
	assert_int_equal(kymo_field_class_align_bits(kymo_field_class_find_member(root, "h")), 8);
	assert_non_null(kymo_stream_class_scope(stream, KYMO_SCOPE_PACKET_HEADER));
	assert_non_null(kymo_stream_class_scope(stream, KYMO_SCOPE_EVENT_HEADER));
	assert_null(kymo_stream_class_scope(stream, KYMO_SCOPE_PAYLOAD));
	assert_null(kymo_stream_class_scope(NULL, KYMO_SCOPE_EVENT_HEADER));
	assert_false(kymo_trace_is_big_endian(trace));
	assert_null(kymo_trace_name(trace));
	assert_null(kymo_field_class_media_type(root));
	assert_null(kymo_field_class_clock(root));
	assert_null(kymo_event_class_emf_uri(NULL));
	kymo_reader_close(reader);
}

static void test_field_classes(void **state)
{
	struct kymo_reader *reader = must_open(OK("kinds"), NULL);
	const struct kymo_trace *trace = kymo_reader_trace(reader, 0);
	const struct kymo_event_class *event = kymo_trace_find_event_class(trace, "kinds");
	const struct kymo_field_class *root, *cls;
	uint64_t begin = 0, end = 0;
	size_t n_ranges = 0;
	int64_t level = 0;

	assert_null(kymo_trace_find_event_class(trace, "nope"));
	assert_true(kymo_event_class_loglevel(event, &level) && level == 3);
	assert_false(kymo_event_class_loglevel(kymo_trace_event_class(trace, 1), &level));
	assert_null(kymo_event_class_scope(kymo_trace_event_class(trace, 1), KYMO_SCOPE_PAYLOAD));
	root = kymo_event_class_scope(event, KYMO_SCOPE_PAYLOAD);
	assert_int_equal(kymo_field_class_kind(root), KYMO_FIELD_STRUCT);
	assert_string_equal(kymo_field_class_member_name(root, 18), "n");
	cls = kymo_field_class_find_member(root, "e2");
	assert_true(kymo_field_class_is_enum(cls));
	assert_int_equal(kymo_field_class_n_labels(cls), 3);
	assert_string_equal(kymo_field_class_label(cls, 1, &n_ranges), "B");
	assert_int_equal(n_ranges, 1);
	assert_true(kymo_field_class_label_range(cls, 1, 0, &begin, &end));
	assert_true(begin == 2 && end == 4);
	assert_false(kymo_field_class_label_range(cls, 1, 1, &begin, &end));
	assert_string_equal(kymo_field_class_label_of(cls, 3), "B");
	cls = kymo_field_class_find_member(root, "h");
	assert_int_equal(kymo_field_class_size_bits(cls), 8);
	assert_int_equal(kymo_field_class_base(cls), 16);
	cls = kymo_field_class_find_member(root, "seq");
	assert_int_equal(kymo_field_class_kind(cls), KYMO_FIELD_ARRAY);
	assert_true(kymo_field_class_length(cls) == KYMO_VARIES);
	assert_int_equal(kymo_field_class_kind(kymo_field_class_element(cls)), KYMO_FIELD_UINT);
	assert_null(kymo_field_class_element(root));
	cls = kymo_field_class_find_member(root, "txt");
	assert_int_equal(kymo_field_class_length(cls), 4);
	assert_int_equal(kymo_field_class_encoding(cls), KYMO_ENCODING_UTF8);
	cls = kymo_field_class_find_member(root, "v");
	assert_int_equal(kymo_field_class_n_members(cls), 2);
	assert_string_equal(kymo_field_class_member_name(cls, 1), "two");
	assert_string_equal(kymo_field_kind_text(kymo_field_class_kind(cls)), "variant");
	kymo_reader_close(reader);
}

static void test_null_metadata(void **state)
{
	assert_null(kymo_trace_path(NULL));
	assert_null(kymo_trace_event_class(NULL, 0));
	assert_null(kymo_trace_find_event_class(NULL, "x"));
	assert_null(kymo_stream_name(NULL));
	assert_int_equal(kymo_stream_cpu(NULL), KYMO_NO_CPU);
	assert_null(kymo_clock_name(NULL));
	assert_null(kymo_event_class_name(NULL));
	assert_null(kymo_event_class_scope(NULL, KYMO_SCOPE_PAYLOAD));
	assert_null(kymo_field_class_member(NULL, 0));
	assert_null(kymo_field_class_element(NULL));
	assert_null(kymo_field_class_label_of(NULL, 0));
	assert_int_equal(kymo_field_class_n_members(NULL), 0);
	assert_non_null(kymo_field_kind_text((enum kymo_field_kind)77));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged_in_order),
		cmocka_unit_test(test_streams_of_events),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_several_paths),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_seek),
		cmocka_unit_test(test_seek_end),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_recovering),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_clock_offsets),
		cmocka_unit_test(test_clocks_that_differ),
		cmocka_unit_test(test_options_of_the_first_version),
		cmocka_unit_test(test_selecting),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_options_of_another_version),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_wrong_paths),
		cmocka_unit_test(test_no_reader),
		cmocka_unit_test(test_typed_access),
		cmocka_unit_test(test_wrong_fields),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_what_tells),
		cmocka_unit_test(test_field_classes),
		cmocka_unit_test(test_null_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
