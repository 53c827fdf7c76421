/* SPDX-License-Identifier: MIT */
/* Writing through the public API, read back through the public API. */
#include "unit.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kymo/reader.h>
#include <kymo/writer.h>

static struct kymo_error err;
static char scratch[64], trace_path[96];

/* ---- a directory of its own for each test --------------------------------------------------- */

static int set_up(void **state)
{
	strcpy(scratch, "/tmp/kymo-test-output-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	snprintf(trace_path, sizeof(trace_path), "%s/trace", scratch);
	return 0;
}

static void remove_files(const char *dir, const char *const *names)
{
	char path[200];

	for (; *names; names++) {
		snprintf(path, sizeof(path), "%s/%s", dir, *names);
		(void)unlink(path);
	}
}

static int tear_down(void **state)
{
	static const char *const names[] = {"metadata",	   "s",		  "t",
					    "index/s.idx", "index/t.idx", NULL};
	char index[128];

	remove_files(trace_path, names);
	snprintf(index, sizeof(index), "%s/index", trace_path);
	(void)rmdir(index);
	(void)rmdir(trace_path);
	return rmdir(scratch);
}

/* ---- a small trace: event "n" with a number -------------------------------------------------- */

struct small {
	struct kymo_writer *writer;
	struct kymo_clock_def *clock;
	struct kymo_stream_def *stream;
	struct kymo_event_def *event;
	struct kymo_fields *fields;
	struct kymo_output *output;
};

static void small_define(struct small *s)
{
	struct kymo_writer_options options = kymo_writer_options_init();

	memset(s, 0, sizeof(*s));
	options.packet_bytes = 4096;
	assert_int_equal(kymo_writer_new(&options, &s->writer, &err), KYMO_OK);
	s->clock = kymo_writer_add_clock(s->writer, NULL);
	s->stream = kymo_writer_add_stream(s->writer, s->clock);
	s->event = kymo_stream_def_add_event(s->stream, "event");
	s->fields = kymo_event_def_fields(s->event);
	kymo_fields_add_uint(s->fields, "n", 8);
	assert_non_null(s->fields);
}

static void small_open(struct small *s)
{
	if (kymo_writer_open(s->writer, trace_path, &err) < 0 ||
	    kymo_output_open(s->writer, s->stream, "s", 3, &s->output, &err) < 0)
		fail_msg("%s: %s", err.path, err.message);
}

static int small_put(struct small *s, uint64_t cycles, uint64_t n)
{
	kymo_output_begin(s->output, s->event, cycles);
	kymo_output_u64(s->output, n);
	return kymo_output_commit(s->output, &err);
}

static void small_close(struct small *s)
{
	assert_int_equal(kymo_writer_close(s->writer, &err), KYMO_OK);
}

/* "100=0 L7(100-200) 200=1": time=n of all events, and the losses. */
static const char *all(void)
{
	static char text[4096];
	const char *path = trace_path;
	struct kymo_reader *reader;
	struct kymo_field n = {0};
	struct kymo_batch batch;
	size_t len = 0;

	assert_int_equal(kymo_reader_open(&path, 1, NULL, &reader, &err), KYMO_OK);
	text[0] = '\0';
	while (kymo_reader_next(reader, &batch, &err) > 0) {
		if (batch.loss)
			len += (size_t)sprintf(text + len, "L%" PRIu64 "(%" PRId64 "-%" PRId64 ") ",
					       batch.loss->events, batch.loss->begin_ns,
					       batch.loss->end_ns);
		kymo_batch_foreach(&batch, event) {
			uint64_t value = 999;

			kymo_field_find(event->event_class, "n", &n);
			kymo_event_get_u64(event, &n, &value);
			assert_int_equal(event->cpu, 3);
			assert_in_range(len, 0, sizeof(text) - 100);
			len += (size_t)sprintf(text + len, "%" PRId64 "=%" PRIu64 " ",
					       event->time_ns, value);
		}
	}
	if (len)
		text[len - 1] = '\0';
	kymo_reader_close(reader);
	return text;
}

/* ---- what is written is read ------------------------------------------------------------------ */

static void test_events(void **state)
{
	struct small s;

	small_define(&s);
	small_open(&s);
	assert_int_equal(small_put(&s, 100, 0), KYMO_OK);
	assert_int_equal(small_put(&s, 100, 255), KYMO_OK);
	assert_int_equal(kymo_output_close_packet(s.output, &err), KYMO_OK);
	assert_int_equal(kymo_output_close_packet(s.output, &err), KYMO_OK);
	assert_int_equal(small_put(&s, UINT64_C(5000000000), 2), KYMO_OK);
	small_close(&s);
	assert_string_equal(all(), "100=0 100=255 5000000000=2");
}

static void test_many_packets(void **state)
{
	struct small s;
	const char *path = trace_path;
	struct kymo_reader *reader;
	struct kymo_batch batch;
	uint64_t n = 0;

	small_define(&s);
	small_open(&s);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(small_put(&s, i, i % 256), KYMO_OK);
	small_close(&s);
	assert_int_equal(kymo_reader_open(&path, 1, NULL, &reader, &err), KYMO_OK);
	while (kymo_reader_next(reader, &batch, &err) > 0)
		n += batch.n_events;
	assert_int_equal(n, 10000);
	assert_int_equal(kymo_reader_seek(reader, 9999, &err), KYMO_OK);
	assert_int_equal(kymo_reader_next(reader, &batch, &err), 1);
	assert_int_equal(kymo_batch_event(&batch, 0)->time_ns, 9999);
	kymo_reader_close(reader);
}

static void test_losses(void **state)
{
	struct small s;

	small_define(&s);
	small_open(&s);
	assert_int_equal(kymo_output_lost(s.output, 5, &err), KYMO_OK);
	assert_int_equal(small_put(&s, 100, 0), KYMO_OK);
	assert_int_equal(small_put(&s, 150, 1), KYMO_OK);
	assert_int_equal(kymo_output_lost(s.output, 3, &err), KYMO_OK);
	assert_int_equal(kymo_output_lost(s.output, 4, &err), KYMO_OK);
	assert_int_equal(small_put(&s, 200, 2), KYMO_OK);
	assert_int_equal(kymo_output_lost(s.output, 9, &err), KYMO_OK);
	small_close(&s);
	assert_string_equal(all(), "L5(100-100) 100=0 150=1 L7(150-200) 200=2 L9(200-200)");
}

/* No file may grow beyond @bytes: like a disk that is full. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk(void **state)
{
	struct rlimit before;
	struct small s;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	small_define(&s);
	small_open(&s);
	assert_int_equal(small_put(&s, 100, 0), KYMO_OK);
	assert_int_equal(kymo_output_close_packet(s.output, &err), KYMO_OK);
	assert_int_equal(small_put(&s, 200, 1), KYMO_OK);
	assert_int_equal(small_put(&s, 300, 2), KYMO_OK);
	limit_files(100);
	assert_int_equal(kymo_output_close_packet(s.output, &err), KYMO_E_IO);
	assert_non_null(strstr(err.path, "/trace/s"));
	assert_int_equal(small_put(&s, 400, 3), KYMO_E_IO);
	limit_files(before.rlim_cur);
	assert_int_equal(small_put(&s, 500, 4), KYMO_OK);
	small_close(&s);
	assert_string_equal(all(), "100=0 L2(100-500) 500=4");
}

static void test_identity(void **state)
{
	struct kymo_writer_options options = kymo_writer_options_init();
	struct kymo_clock_options clock_options = kymo_clock_options_init();
	uint8_t uuid[16] = {1, 2, 3};
	const char *path = trace_path;
	struct kymo_writer *writer;
	struct kymo_reader *reader;
	const struct kymo_trace *trace;
	unsigned int major, minor;

	options.uuid = uuid;
	options.format = KYMO_FORMAT_CTF_2;
	clock_options.name = "ticks";
	clock_options.frequency_hz = 1000;
	clock_options.offset_s = -7;
	clock_options.is_unix_epoch = false;
	assert_int_equal(kymo_writer_new(&options, &writer, &err), KYMO_OK);
	memset(uuid, 0, sizeof(uuid));
	kymo_writer_env_text(writer, "hostname", "box");
	kymo_writer_add_stream(writer, kymo_writer_add_clock(writer, &clock_options));
	assert_int_equal(kymo_writer_open(writer, path, &err), KYMO_OK);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
	assert_int_equal(kymo_reader_open(&path, 1, NULL, &reader, &err), KYMO_OK);
	trace = kymo_reader_trace(reader, 0);
	kymo_trace_version(trace, &major, &minor);
	assert_int_equal(major, 2);
	assert_int_equal(kymo_trace_uuid(trace)[2], 3);
	assert_string_equal(kymo_trace_env_text(trace, "hostname"), "box");
	assert_int_equal(kymo_clock_frequency_hz(kymo_trace_clock(trace, 0)), 1000);
	assert_int_equal(kymo_clock_offset_s(kymo_trace_clock(trace, 0)), -7);
	assert_false(kymo_clock_is_unix_epoch(kymo_trace_clock(trace, 0)));
	kymo_reader_close(reader);
}

struct job {
	struct kymo_output *output;
	const struct kymo_event_def *event;
};

static void *append_many(void *data)
{
	struct job *job = data;
	int ret = KYMO_OK;

	for (uint64_t i = 0; i < 20000 && ret == KYMO_OK; i++) {
		kymo_output_begin(job->output, job->event, i);
		kymo_output_u64(job->output, 1);
		ret = kymo_output_commit(job->output, NULL);
	}
	return ret == KYMO_OK ? NULL : job;
}

static void test_outputs_of_two_threads(void **state)
{
	const char *path = trace_path;
	struct kymo_reader *reader;
	struct kymo_batch batch;
	struct job jobs[2];
	pthread_t threads[2];
	struct small s;
	uint64_t n = 0;

	small_define(&s);
	small_open(&s);
	jobs[0] = (struct job){s.output, s.event};
	assert_int_equal(kymo_output_open(s.writer, s.stream, "t", 4, &jobs[1].output, &err),
			 KYMO_OK);
	jobs[1].event = s.event;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, append_many, &jobs[i]), 0);
	for (int i = 0; i < 2; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	small_close(&s);
	assert_int_equal(kymo_reader_open(&path, 1, NULL, &reader, &err), KYMO_OK);
	while (kymo_reader_next(reader, &batch, &err) > 0)
		n += batch.n_events;
	assert_int_equal(n, 40000);
	kymo_reader_close(reader);
}

/* ---- mistakes with definitions ------------------------------------------------------------------ */

/* The trace is wrong as @expected says, and nothing was made. */
static void assert_refused(struct small *s, const char *expected)
{
	assert_int_equal(kymo_writer_open(s->writer, trace_path, &err), KYMO_E_INVALID);
	if (!strstr(err.message, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, err.message);
	assert_int_equal(access(trace_path, F_OK), -1);
	assert_int_equal(kymo_output_open(s->writer, s->stream, "s", 0, &s->output, &err),
			 KYMO_E_STATE);
	assert_int_equal(kymo_writer_close(s->writer, &err), KYMO_OK);
}

static void test_wrong_fields(void **state)
{
	struct small s;

	small_define(&s);
	kymo_fields_add_uint(s.fields, "a b", 8);
	assert_refused(&s, "'a b' cannot be the name of a field");
	small_define(&s);
	kymo_fields_add_uint(s.fields, NULL, 8);
	assert_refused(&s, "'NULL' cannot be");
	small_define(&s);
	kymo_fields_add_string(s.fields, "n");
	kymo_fields_add_uint(s.fields, "later", 5);
	assert_refused(&s, "two fields named 'n'");
	small_define(&s);
	kymo_fields_add_uint(s.fields, "m", 65);
	assert_refused(&s, "field 'm': it has 1 to 64 bits");
	small_define(&s);
	kymo_fields_add_float(s.fields, "m", 24);
	assert_refused(&s, "32 or 64 bits");
	small_define(&s);
	kymo_fields_add_chars(s.fields, "m", 0);
	assert_refused(&s, "chars want a size");
	small_define(&s);
	kymo_enum_def_add(kymo_fields_add_enum(s.fields, "m", 8, true), "big", 0, 128);
	assert_refused(&s, "label 'big'");
	small_define(&s);
	kymo_enum_def_add(kymo_fields_add_enum(s.fields, "m", 8, false), "small", -1, 1);
	assert_refused(&s, "label 'small'");
	small_define(&s);
	kymo_enum_def_add(kymo_fields_add_enum(s.fields, "m", 8, false), "back", 2, 1);
	assert_refused(&s, "label 'back'");
	small_define(&s);
	/* What failed is NULL, and what is below it does no harm. */
	assert_null(kymo_fields_add_enum(s.fields, "m", 0, false));
	kymo_enum_def_add(NULL, "x", 0, 0);
	assert_refused(&s, "it has 1 to 64 bits");
}

static void test_wrong_arrays(void **state)
{
	struct kymo_fields *deep;
	struct small s;

	small_define(&s);
	kymo_fields_add_array(s.fields, "list", 3);
	assert_refused(&s, "array 'list' has no element");
	/* Lengths are sizes of memory: what does not fit is refused, not cut. */
	small_define(&s);
	assert_null(kymo_fields_add_array(s.fields, "list", (size_t)UINT32_MAX + 2));
	assert_refused(&s, "array 'list' has more than 4294967295 elements");
	small_define(&s);
	deep = kymo_fields_add_array(s.fields, "list", 3);
	kymo_fields_add_uint(deep, NULL, 8);
	kymo_fields_add_uint(deep, NULL, 8);
	assert_refused(&s, "array 'list' has an element already");
	small_define(&s);
	kymo_fields_add_struct(kymo_fields_add_array(s.fields, "list", 3), NULL);
	assert_refused(&s, "elements of array 'list' are empty");
	small_define(&s);
	assert_null(kymo_fields_add_sequence(kymo_fields_add_array(s.fields, "list", 3), NULL));
	assert_refused(&s, "cannot be an element or option");
	small_define(&s);
	deep = s.fields;
	for (int i = 0; i < 100; i++)
		deep = kymo_fields_add_struct(deep, "d");
	assert_null(deep);
	assert_refused(&s, "nested deeper");
}

static void test_wrong_others(void **state)
{
	struct kymo_clock_options clock = kymo_clock_options_init();
	struct small s, other;

	small_define(&s);
	clock.name = "no clock";
	assert_null(kymo_writer_add_clock(s.writer, &clock));
	assert_refused(&s, "name of a clock");
	small_define(&s);
	clock.name = "clock";
	clock.frequency_hz = 0;
	assert_null(kymo_writer_add_clock(s.writer, &clock));
	assert_refused(&s, "frequency");
	small_define(&s);
	clock.size = 1;
	assert_null(kymo_writer_add_clock(s.writer, &clock));
	assert_refused(&s, "options of 1 bytes");
	small_define(&s);
	assert_null(kymo_writer_add_stream(s.writer, NULL));
	assert_refused(&s, "wants a clock");
	small_define(&s);
	small_define(&other);
	assert_null(kymo_writer_add_stream(s.writer, other.clock));
	assert_int_equal(kymo_writer_close(other.writer, NULL), KYMO_OK);
	assert_refused(&s, "wants a clock of its writer");
	small_define(&s);
	assert_null(kymo_stream_def_add_event(s.stream, NULL));
	assert_refused(&s, "name of an event");
	small_define(&s);
	kymo_writer_env_text(s.writer, "host name", "x");
	assert_refused(&s, "'host name'");
	small_define(&s);
	kymo_writer_env_text(s.writer, "hostname", NULL);
	assert_refused(&s, "'hostname' is NULL");
}

static void test_wrong_order(void **state)
{
	struct kymo_output *output;
	struct small s;

	small_define(&s);
	assert_int_equal(kymo_output_open(s.writer, s.stream, "s", 0, &output, &err), KYMO_E_STATE);
	small_open(&s);
	assert_int_equal(kymo_writer_open(s.writer, trace_path, &err), KYMO_E_STATE);
	assert_int_equal(kymo_output_open(s.writer, s.stream, "a/b", 0, &output, &err),
			 KYMO_E_INVALID);
	assert_null(kymo_stream_def_add_event(s.stream, "late"));
	assert_int_equal(kymo_output_open(s.writer, s.stream, "t", 0, &output, &err),
			 KYMO_E_INVALID);
	assert_non_null(strstr(err.message, "before kymo_writer_open()"));
	small_close(&s);
	/* There is a trace already. */
	small_define(&s);
	assert_int_equal(kymo_writer_open(s.writer, trace_path, &err), KYMO_E_INVALID);
	assert_string_equal(err.path, trace_path);
	small_close(&s);
}

/* ---- mistakes with values ----------------------------------------------------------------------- */

static void assert_wrong(struct small *s, int code, const char *expected)
{
	assert_int_equal(kymo_output_commit(s->output, &err), code);
	if (!strstr(err.message, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, err.message);
}

static void begin(struct small *s)
{
	kymo_output_begin(s->output, s->event, 100);
}

static void test_wrong_values(void **state)
{
	struct small s;

	small_define(&s);
	kymo_fields_add_int(s.fields, "i", 16);
	kymo_fields_add_string(s.fields, "text");
	kymo_fields_add_float(kymo_fields_add_sequence(s.fields, "list"), NULL, 64);
	small_open(&s);
	begin(&s);
	kymo_output_u64(s.output, 256);
	kymo_output_text(s.output, "not looked at any more");
	assert_wrong(&s, KYMO_E_INVALID, "event 'event', field 'n': the value does not fit");
	begin(&s);
	kymo_output_i64(s.output, -1);
	assert_wrong(&s, KYMO_E_INVALID, "field 'n': the value does not fit");
	begin(&s);
	kymo_output_text(s.output, "x");
	assert_wrong(&s, KYMO_E_INVALID, "field 'n': it is no text");
	begin(&s);
	kymo_output_f64(s.output, 1);
	assert_wrong(&s, KYMO_E_INVALID, "field 'n': it is no floating point number");
	begin(&s);
	kymo_output_length(s.output, 1);
	assert_wrong(&s, KYMO_E_INVALID, "field 'n': it is no sequence");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_i64(s.output, -32769);
	assert_wrong(&s, KYMO_E_INVALID, "field 'i': the value does not fit");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_i64(s.output, -32768);
	kymo_output_u64(s.output, 1);
	assert_wrong(&s, KYMO_E_INVALID, "field 'text': it is no integer");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_u64(s.output, 32767);
	kymo_output_text(s.output, NULL);
	assert_wrong(&s, KYMO_E_INVALID, "field 'text': the text is NULL");
	begin(&s);
	kymo_output_u64(s.output, 1);
	assert_wrong(&s, KYMO_E_INVALID, "field 'i' has no value");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_i64(s.output, -1);
	kymo_output_text_n(s.output, NULL, 0);
	kymo_output_length(s.output, 2);
	kymo_output_f64(s.output, 1);
	assert_wrong(&s, KYMO_E_INVALID, "field 'list' has no value");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_i64(s.output, -1);
	kymo_output_text(s.output, "");
	kymo_output_length(s.output, (size_t)UINT32_MAX + 2);
	assert_wrong(&s, KYMO_E_LIMIT, "field 'list': it has too many elements");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_i64(s.output, -1);
	kymo_output_text(s.output, "");
	kymo_output_length(s.output, 0);
	kymo_output_f64(s.output, 1);
	assert_wrong(&s, KYMO_E_INVALID, "more values than fields");
	begin(&s);
	kymo_output_u64(s.output, 7);
	kymo_output_i64(s.output, -1);
	kymo_output_text(s.output, "");
	kymo_output_length(s.output, 0);
	assert_int_equal(kymo_output_commit(s.output, &err), KYMO_OK);
	small_close(&s);
	assert_string_equal(all(), "100=7");
}

static void test_wrong_events(void **state)
{
	struct kymo_event_def *foreign;
	struct small s;
	char large[5000];

	small_define(&s);
	kymo_fields_add_string(s.fields, "text");
	foreign = kymo_stream_def_add_event(kymo_writer_add_stream(s.writer, s.clock), "foreign");
	small_open(&s);
	assert_wrong(&s, KYMO_E_STATE, "no event was begun");
	kymo_output_begin(s.output, NULL, 0);
	kymo_output_u64(s.output, 1);
	assert_wrong(&s, KYMO_E_STATE, "no event was begun");
	kymo_output_begin(s.output, foreign, 0);
	assert_wrong(&s, KYMO_E_INVALID, "belongs to another stream");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_text(s.output, "a");
	assert_int_equal(kymo_output_commit(s.output, &err), KYMO_OK);
	assert_wrong(&s, KYMO_E_STATE, "no event was begun");
	kymo_output_begin(s.output, s.event, 99);
	assert_wrong(&s, KYMO_E_INVALID, "time goes back");
	/* Larger than any packet; as large as one, but for the headers. */
	memset(large, 'x', sizeof(large));
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_text_n(s.output, large, sizeof(large));
	assert_wrong(&s, KYMO_E_LIMIT, "larger than a packet");
	begin(&s);
	kymo_output_u64(s.output, 1);
	kymo_output_text_n(s.output, large, 4090);
	assert_wrong(&s, KYMO_E_LIMIT, "larger than a packet");
	begin(&s);
	kymo_output_u64(s.output, 2);
	kymo_output_text_n(s.output, large, 3900);
	assert_int_equal(kymo_output_commit(s.output, &err), KYMO_OK);
	/* One that was begun and left behind. */
	begin(&s);
	kymo_output_u64(s.output, 3);
	small_close(&s);
	assert_string_equal(all(), "100=1 100=2");
}

/* ---- misuse -------------------------------------------------------------------------------- */

static void test_null(void **state)
{
	struct kymo_writer_options options = kymo_writer_options_init();
	struct kymo_writer *writer;
	struct kymo_output *output;

	assert_int_equal(kymo_writer_new(NULL, NULL, &err), KYMO_E_INVALID);
	options.packet_bytes = 100;
	assert_int_equal(kymo_writer_new(&options, &writer, &err), KYMO_E_INVALID);
	assert_null(writer);
	options = kymo_writer_options_init();
	options.format = (enum kymo_format)7;
	assert_int_equal(kymo_writer_new(&options, &writer, &err), KYMO_E_INVALID);
	options.size = 0;
	assert_int_equal(kymo_writer_new(&options, &writer, NULL), KYMO_E_INVALID);
	assert_int_equal(kymo_writer_open(NULL, "x", &err), KYMO_E_INVALID);
	assert_int_equal(kymo_writer_close(NULL, &err), KYMO_OK);
	kymo_writer_env_text(NULL, "a", "b");
	kymo_writer_env_number(NULL, "a", 1);
	assert_null(kymo_writer_add_clock(NULL, NULL));
	assert_null(kymo_writer_add_stream(NULL, NULL));
	assert_null(kymo_stream_def_add_event(NULL, "x"));
	assert_null(kymo_stream_def_context(NULL));
	assert_null(kymo_event_def_fields(NULL));
	assert_null(kymo_event_def_context(NULL));
	kymo_event_def_set_loglevel(NULL, 1);
	kymo_fields_add_uint(NULL, "x", 8);
	kymo_fields_add_float(NULL, "x", 8);
	kymo_fields_add_string(NULL, "x");
	kymo_fields_add_chars(NULL, "x", 1);
	assert_null(kymo_fields_add_struct(NULL, "x"));
	assert_null(kymo_fields_add_array(NULL, "x", 1));
	assert_null(kymo_fields_add_sequence(NULL, "x"));
	assert_int_equal(kymo_output_open(NULL, NULL, "x", 0, &output, &err), KYMO_E_INVALID);
	assert_null(output);
	kymo_output_begin(NULL, NULL, 0);
	kymo_output_u64(NULL, 1);
	kymo_output_i64(NULL, 1);
	kymo_output_f64(NULL, 1);
	kymo_output_text(NULL, "x");
	kymo_output_length(NULL, 1);
	assert_int_equal(kymo_output_commit(NULL, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_output_lost(NULL, 1, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_output_close_packet(NULL, NULL), KYMO_E_INVALID);
	assert_int_equal(kymo_writer_new(NULL, &writer, &err), KYMO_OK);
	assert_int_equal(kymo_writer_open(writer, NULL, &err), KYMO_E_INVALID);
	assert_int_equal(kymo_writer_close(writer, NULL), KYMO_OK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_events),
		TEST(test_many_packets),
		TEST(test_losses),
		TEST(test_full_disk),
		TEST(test_identity),
		TEST(test_wrong_fields),
		TEST(test_wrong_arrays),
		TEST(test_wrong_others),
		TEST(test_wrong_order),
		TEST(test_wrong_values),
		TEST(test_wrong_events),
		TEST(test_null),
		TEST(test_outputs_of_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
