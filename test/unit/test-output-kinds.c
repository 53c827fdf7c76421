/* SPDX-License-Identifier: MIT */
/*
 * Writing fields of every kind, and finishing or giving up as a whole. What is written is read back
 * by write-random.c. Compiled as C++ too (test-output-kinds-cxx.cpp).
 */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/reader.h>
#include <kymo/writer.h>

static struct kymo_error err;
static char scratch[64], trace_path[96];

static int set_up(void **state)
{
	strcpy(scratch, "/tmp/kymo-test-kinds-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	snprintf(trace_path, sizeof(trace_path), "%s/trace", scratch);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"/trace/metadata", "/trace/s", "/trace/index/s.idx",
					    "/trace/other"};
	static const char *const dirs[] = {"/trace/index", "/trace"};
	char path[200];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", scratch, names[i]);
		unlink(path);
	}
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s", scratch, dirs[i]);
		rmdir(path);
	}
	return rmdir(scratch);
}

/* How many entries @path has. */
static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* ---- an event with one field more ------------------------------------------------------------- */

static struct kymo_writer *writer;
static struct kymo_stream_def *stream;
static struct kymo_event_def *event_def;
static struct kymo_output *output;

static struct kymo_fields *define(enum kymo_format format, bool atomic)
{
	struct kymo_writer_options options = kymo_writer_options_init();

	options.format = format;
	options.packet_bytes = 4096;
	options.atomic = atomic;
	assert_int_equal(kymo_writer_new(&options, &writer, &err), KYMO_OK);
	stream = kymo_writer_add_stream(writer, kymo_writer_add_clock(writer, NULL));
	event_def = kymo_stream_def_add_event(stream, "event");
	return kymo_event_def_fields(event_def);
}

static void open_it(void)
{
	if (kymo_writer_open(writer, trace_path, &err) < 0 ||
	    kymo_output_open(writer, stream, "s", 0, &output, &err) < 0)
		fail_msg("%s: %s", err.path, err.message);
	kymo_output_begin(output, event_def, 1);
}

static void must_commit(void)
{
	if (kymo_output_commit(output, &err) < 0)
		fail_msg("%s", err.message);
}

static void assert_refused(int code, const char *expected)
{
	assert_int_equal(kymo_writer_open(writer, trace_path, &err), code);
	if (!strstr(err.message, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, err.message);
	assert_int_equal(entries(scratch), 0);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
}

static void assert_wrong(const char *expected)
{
	assert_int_equal(kymo_output_commit(output, &err), KYMO_E_INVALID);
	if (!strstr(err.message, expected))
		fail_msg("\"%s\" is not in \"%s\"", expected, err.message);
	kymo_output_begin(output, event_def, 1);
}

static void add_number(struct kymo_fields *fields, enum kymo_field_kind kind, unsigned int bits)
{
	struct kymo_number_options options = kymo_number_options_init();

	options.kind = kind;
	options.bits = bits;
	kymo_fields_add_number(fields, "x", &options);
}

static void add_text(struct kymo_fields *fields, enum kymo_field_kind kind,
		     enum kymo_encoding encoding, uint32_t size_bytes)
{
	struct kymo_text_options options = kymo_text_options_init();

	options.kind = kind;
	options.encoding = encoding;
	options.size_bytes = size_bytes;
	kymo_fields_add_text(fields, "x", &options);
}

/* ---- definitions --------------------------------------------------------------------------------- */

static void test_what_ctf_1_8_cannot_say(void **state)
{
	static const struct {
		enum kymo_field_kind kind;
		unsigned int bits;
		const char *expected;
	} numbers[] = {
		{KYMO_FIELD_BITS, 8, "field 'x': CTF 1.8 has no bit arrays"},
		{KYMO_FIELD_BITMAP, 8, "CTF 1.8 has no bit maps"},
		{KYMO_FIELD_BOOL, 8, "CTF 1.8 has no booleans"},
		{KYMO_FIELD_VARUINT, 0, "CTF 1.8 has no integers of variable length"},
		{KYMO_FIELD_VARSINT, 0, "CTF 1.8 has no integers of variable length"},
		{KYMO_FIELD_FLOAT, 16, "CTF 1.8 has no floating point numbers of 16 or 128"},
		{KYMO_FIELD_FLOAT, 128, "CTF 1.8 has no floating point numbers of 16 or 128"},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		add_number(define(KYMO_FORMAT_CTF_1_8, false), numbers[i].kind, numbers[i].bits);
		assert_refused(KYMO_E_UNSUPPORTED, numbers[i].expected);
	}
	add_text(define(KYMO_FORMAT_CTF_1_8, false), KYMO_FIELD_BLOB, KYMO_ENCODING_UTF8, 4);
	assert_refused(KYMO_E_UNSUPPORTED, "CTF 1.8 has no bytes");
	add_text(define(KYMO_FORMAT_CTF_1_8, false), KYMO_FIELD_STRING, KYMO_ENCODING_UTF16LE, 0);
	assert_refused(KYMO_E_UNSUPPORTED, "CTF 1.8 has no text in UTF-16");
	kymo_fields_add_optional(define(KYMO_FORMAT_CTF_1_8, true), "x");
	assert_refused(KYMO_E_UNSUPPORTED, "CTF 1.8 has no optional fields");
}

/* ---- attributes --------------------------------------------------------------------------------- */

static const char *const given[] = {
	"{\"a.b\":{\"x\":[1,-2,1.5,true,null]}}",
	" {\"clock\" : 1.0}",
	"{\"stream\": \"\u00e9\\n\"}",
	"{\"me\": {}, \"lttng.org,2009\": {\"log-level\": 6, \"other\": 1, \"emf-uri\": \"u\"}}",
};

static const char *const kept[] = {
	"{\"a.b\": {\"x\": [1, -2, 1.5, true, null]}}",
	"{\"clock\": 1.0}",
	"{\"stream\": \"\u00e9\\u000a\"}",
	"{\"lttng.org,2009\": {\"other\": 1}, \"me\": {}}",
};

static void define_attributes(void)
{
	struct kymo_fields *fields = define(KYMO_FORMAT_CTF_2, false), *in;
	struct kymo_clock_options options = kymo_clock_options_init();
	struct kymo_clock_def *clock;

	options.name = "another";
	clock = kymo_writer_add_clock(writer, &options);
	kymo_writer_set_attributes(writer, given[0]);
	kymo_clock_def_set_attributes(clock, given[1]);
	stream = kymo_writer_add_stream(writer, clock);
	kymo_stream_def_set_attributes(stream, given[2]);
	event_def = kymo_stream_def_add_event(stream, "event");
	kymo_event_def_set_attributes(event_def, given[3]);
	fields = kymo_event_def_fields(event_def);
	kymo_fields_add_uint(fields, "n", 8);
	kymo_fields_set_attributes(fields, "n", "{\"first\": 1}");
	kymo_fields_set_attributes(fields, "n", "{\"field\": 1}");
	in = kymo_fields_add_sequence(fields, "list");
	kymo_fields_add_uint(in, NULL, 8);
	kymo_fields_set_attributes(in, NULL, "{\"element\": 1}");
	kymo_fields_set_attributes(fields, NULL, "{\"all\": 1}");
}

static void check_attributes(const struct kymo_trace *trace)
{
	const struct kymo_stream_class *stream_class = kymo_trace_stream_class(trace, 1);
	const struct kymo_event_class *event = kymo_stream_class_event_class(stream_class, 0);
	const struct kymo_field_class *fields = kymo_event_class_scope(event, KYMO_SCOPE_PAYLOAD);
	const struct kymo_field_class *list = kymo_field_class_find_member(fields, "list");
	int64_t loglevel;

	assert_string_equal(kymo_trace_attributes(trace), kept[0]);
	assert_string_equal(kymo_clock_attributes(kymo_stream_class_clock(stream_class)), kept[1]);
	assert_string_equal(kymo_stream_class_attributes(stream_class), kept[2]);
	assert_string_equal(kymo_event_class_attributes(event), kept[3]);
	assert_true(kymo_event_class_loglevel(event, &loglevel) && loglevel == 6);
	assert_string_equal(kymo_event_class_emf_uri(event), "u");
	assert_string_equal(kymo_field_class_attributes(fields), "{\"all\": 1}");
	assert_string_equal(kymo_field_class_attributes(kymo_field_class_find_member(fields, "n")),
			    "{\"field\": 1}");
	assert_string_equal(kymo_field_class_attributes(kymo_field_class_element(list)),
			    "{\"element\": 1}");
	assert_null(kymo_field_class_attributes(list));
	assert_null(kymo_field_class_member_attributes(fields, 0));
	assert_null(kymo_field_class_member_attributes(fields, 99));
	assert_null(kymo_stream_class_attributes(kymo_trace_stream_class(trace, 0)));
	assert_null(kymo_trace_attributes(NULL));
	assert_null(kymo_field_class_attributes(NULL));
}

static void test_attributes(void **state)
{
	const char *const paths[] = {trace_path};
	struct kymo_reader *reader;

	define_attributes();
	open_it();
	kymo_output_u64(output, 1);
	kymo_output_length(output, 0);
	must_commit();
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
	if (kymo_reader_open(paths, 1, NULL, &reader, &err) < 0)
		fail_msg("%s:%u:%u: %s", err.path, err.line, err.column, err.message);
	check_attributes(kymo_reader_trace(reader, 0));
	kymo_reader_close(reader);
}

static void test_wrong_attributes(void **state)
{
	static const struct {
		const char *json, *expected;
	} wrong[] = {
		{NULL, "trace: the attributes are NULL"},
		{"", "trace: attributes:1:1: "},
		{"[]", "trace: attributes:1:1: attributes are one JSON object"},
		{"{} {}", "one JSON object"},
		{"{\n\"a\": }", "trace: attributes:2:6: "},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		define(KYMO_FORMAT_CTF_2, false);
		kymo_writer_set_attributes(writer, wrong[i].json);
		assert_refused(KYMO_E_INVALID, wrong[i].expected);
	}
	kymo_fields_set_attributes(define(KYMO_FORMAT_CTF_2, false), "no", "{}");
	assert_refused(KYMO_E_INVALID, "there is no field 'no' to have attributes");
	define(KYMO_FORMAT_CTF_1_8, false);
	kymo_event_def_set_attributes(event_def, "{}");
	assert_refused(KYMO_E_UNSUPPORTED, "event: CTF 1.8 has no attributes");
	define(KYMO_FORMAT_CTF_2, false);
	kymo_writer_add_clock(writer, NULL);
	assert_refused(KYMO_E_INVALID, "there are two clocks named 'realtime'");
	/* Nobody's attributes are no mistake. */
	kymo_fields_set_attributes(NULL, NULL, NULL);
	kymo_clock_def_set_attributes(NULL, "{}");
}

static void test_wrong_numbers(void **state)
{
	struct kymo_number_options options = kymo_number_options_init();

	add_number(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_STRING, 8);
	assert_refused(KYMO_E_INVALID, "not that of a number");
	add_number(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_UINT, 65);
	assert_refused(KYMO_E_INVALID, "1 to 64 bits");
	add_number(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_FLOAT, 80);
	assert_refused(KYMO_E_INVALID, "32 or 64 bits");
	options.align_bits = 3;
	kymo_fields_add_number(define(KYMO_FORMAT_CTF_2, false), "x", &options);
	assert_refused(KYMO_E_INVALID, "a power of two");
	options.align_bits = 0;
	options.base = 7;
	kymo_fields_add_number(define(KYMO_FORMAT_CTF_2, false), "x", &options);
	assert_refused(KYMO_E_INVALID, "base 2, 8, 10 or 16");
	options.size = 3;
	kymo_fields_add_number(define(KYMO_FORMAT_CTF_2, false), "x", &options);
	assert_refused(KYMO_E_INVALID, "options of 3 bytes");
}

static void test_wrong_texts(void **state)
{
	add_text(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_UINT, KYMO_ENCODING_UTF8, 4);
	assert_refused(KYMO_E_INVALID, "not that of a text");
	add_text(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_STRING, KYMO_ENCODING_UTF8, 4);
	assert_refused(KYMO_E_INVALID, "a string has no size");
	add_text(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_TEXT, KYMO_ENCODING_UTF32BE, 6);
	assert_refused(KYMO_E_INVALID, "no multiple of the encoding's units");
	add_text(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_TEXT, KYMO_ENCODING_NONE, 6);
	assert_refused(KYMO_E_INVALID, "no such encoding");
}

static void test_wrong_variants(void **state)
{
	struct kymo_variant_def *variant;

	kymo_fields_add_variant(define(KYMO_FORMAT_CTF_1_8, false), "v");
	assert_refused(KYMO_E_INVALID, "variant 'v' has no options");
	variant = kymo_fields_add_variant(define(KYMO_FORMAT_CTF_1_8, false), "v");
	kymo_variant_def_add(variant, "a");
	assert_refused(KYMO_E_INVALID, "has an option without a field");
	variant = kymo_fields_add_variant(define(KYMO_FORMAT_CTF_1_8, false), "v");
	kymo_fields_add_uint(kymo_variant_def_add(variant, "a"), NULL, 8);
	assert_null(kymo_variant_def_add(variant, "a"));
	assert_refused(KYMO_E_INVALID, "two options named 'a'");
	variant = kymo_fields_add_variant(define(KYMO_FORMAT_CTF_1_8, false), "v");
	assert_null(kymo_variant_def_add(variant, "a b"));
	assert_refused(KYMO_E_INVALID, "cannot be the name of a option");
	kymo_fields_add_variant(
		kymo_fields_add_array(define(KYMO_FORMAT_CTF_1_8, false), "list", 2), NULL);
	assert_refused(KYMO_E_INVALID, "cannot be an element or option");
	kymo_fields_add_optional(define(KYMO_FORMAT_CTF_2, false), "o");
	assert_refused(KYMO_E_INVALID, "has an option without a field");
	assert_null(kymo_fields_add_variant(NULL, "v"));
	assert_null(kymo_variant_def_add(NULL, "v"));
	assert_null(kymo_fields_add_optional(NULL, "v"));
	assert_null(kymo_fields_add_number(NULL, "v", NULL));
	kymo_fields_add_text(NULL, "v", NULL);
	kymo_enum_def_add_unsigned(NULL, "v", 0, 0);
}

static void test_labels(void **state)
{
	struct kymo_enum_def *labels;

	labels = kymo_fields_add_enum(define(KYMO_FORMAT_CTF_1_8, false), "x", 64, false);
	kymo_enum_def_add_unsigned(labels, "top", UINT64_MAX, UINT64_MAX);
	open_it();
	kymo_output_u64(output, UINT64_MAX);
	must_commit();
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
	labels = kymo_fields_add_enum(define(KYMO_FORMAT_CTF_2, false), "x", 3, true);
	kymo_enum_def_add(labels, "no", -5, 0);
	assert_int_equal(kymo_writer_open(writer, trace_path, &err), KYMO_E_INVALID);
	assert_non_null(strstr(err.message, "label 'no'"));
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
}

/* ---- values -------------------------------------------------------------------------------------- */

static void test_wrong_values(void **state)
{
	struct kymo_fields *fields = define(KYMO_FORMAT_CTF_2, false);
	struct kymo_variant_def *variant = kymo_fields_add_variant(fields, "v");

	kymo_fields_add_uint(kymo_variant_def_add(variant, "a"), NULL, 3);
	kymo_fields_add_uint(kymo_fields_add_optional(fields, "o"), NULL, 8);
	add_text(fields, KYMO_FIELD_BLOB, KYMO_ENCODING_NONE, 2);
	kymo_fields_add_string(fields, "t");
	open_it();
	kymo_output_option(output, 1);
	assert_wrong("field 'v': it has no such option");
	kymo_output_u64(output, 1);
	assert_wrong("field 'v': it is no integer");
	kymo_output_option(output, 0);
	kymo_output_u64(output, 8);
	assert_wrong("field 'v': the value does not fit");
	kymo_output_option(output, 0);
	kymo_output_u64(output, 7);
	kymo_output_option(output, 0);
	assert_wrong("field 'o': it is no variant");
	kymo_output_option(output, 0);
	kymo_output_u64(output, 7);
	kymo_output_present(output, false);
	kymo_output_bytes(output, "abc", 3);
	assert_wrong("field 'x': it is of another size");
	kymo_output_option(output, 0);
	kymo_output_u64(output, 7);
	kymo_output_present(output, false);
	kymo_output_bytes(output, NULL, 2);
	assert_wrong("field 'x': the data is NULL");
	kymo_output_option(output, 0);
	kymo_output_u64(output, 7);
	kymo_output_present(output, false);
	kymo_output_bytes(output, "ab", 2);
	kymo_output_bytes(output, "ab", 2);
	assert_wrong("field 't': it is no blob");
	kymo_output_present(output, false);
	assert_wrong("field 'v': it is not optional");
	kymo_output_option(output, 0);
	kymo_output_u64(output, 7);
	kymo_output_present(output, true);
	assert_wrong("field 'o' has no value");
	kymo_output_option(NULL, 0);
	kymo_output_present(NULL, true);
	kymo_output_bytes(NULL, "", 0);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
}

static void test_byte_order_inside_a_byte(void **state)
{
	struct kymo_fields *fields = define(KYMO_FORMAT_CTF_1_8, false);
	struct kymo_number_options options = kymo_number_options_init();

	options.bits = 4;
	options.byte_order = KYMO_BYTE_ORDER_LITTLE;
	kymo_fields_add_number(fields, "a", &options);
	options.byte_order = KYMO_BYTE_ORDER_BIG;
	kymo_fields_add_number(fields, "b", &options);
	open_it();
	kymo_output_u64(output, 1);
	kymo_output_u64(output, 2);
	assert_wrong("event 'event': field b: the byte order would change inside a byte");
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
}

static void test_text_is_cut_between_characters(void **state)
{
	static const struct {
		enum kymo_encoding encoding;
		const char *text;
		size_t expected;
	} cases[] = {{KYMO_ENCODING_UTF8, "abc\xc3\xa9", 3},
		     {KYMO_ENCODING_UTF16LE, "a\xf0\x9f\x98\x80", 1},
		     {KYMO_ENCODING_UTF32BE, "ab", 1}};
	const char *path = trace_path;
	struct kymo_reader *reader;
	struct kymo_batch batch;
	struct kymo_field field;
	char buffer[16];

	for (size_t i = 0; i < 3; i++) {
		add_text(define(KYMO_FORMAT_CTF_2, false), KYMO_FIELD_TEXT, cases[i].encoding, 4);
		open_it();
		kymo_output_text(output, cases[i].text);
		must_commit();
		assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
		assert_int_equal(kymo_reader_open(&path, 1, NULL, &reader, &err), KYMO_OK);
		assert_int_equal(kymo_reader_next(reader, &batch, &err), 1);
		assert_int_equal(
			kymo_field_find(kymo_batch_event(&batch, 0)->event_class, "x", &field),
			KYMO_OK);
		assert_int_equal(kymo_event_get_utf8(kymo_batch_event(&batch, 0), &field, buffer,
						     sizeof(buffer)),
				 cases[i].expected);
		kymo_reader_close(reader);
		tear_down(NULL);
		assert_int_equal(mkdir(scratch, 0700), 0);
	}
	add_text(define(KYMO_FORMAT_CTF_1_8, false), KYMO_FIELD_STRING, KYMO_ENCODING_ASCII, 0);
	open_it();
	kymo_output_text(output, "\xc3\xa9");
	assert_wrong("field 'x': it is not ASCII");
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
}

/* ---- all or nothing ------------------------------------------------------------------------------- */

static void write_one(bool atomic)
{
	kymo_fields_add_uint(define(KYMO_FORMAT_CTF_1_8, atomic), "x", 8);
	open_it();
	kymo_output_u64(output, 1);
	must_commit();
	assert_int_equal(kymo_output_close_packet(output, &err), KYMO_OK);
}

static void test_atomic(void **state)
{
	write_one(true);
	assert_int_equal(access(trace_path, F_OK), -1);
	assert_int_equal(entries(scratch), 1);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
	assert_int_equal(entries(scratch), 1);
	assert_int_equal(entries(trace_path), 3);
	/* There is one now. */
	kymo_fields_add_uint(define(KYMO_FORMAT_CTF_1_8, true), "x", 8);
	assert_int_equal(kymo_writer_open(writer, trace_path, &err), KYMO_E_INVALID);
	assert_string_equal(err.path, trace_path);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
	assert_int_equal(entries(scratch), 1);
}

static void test_atomic_into_an_empty_directory(void **state)
{
	assert_int_equal(mkdir(trace_path, 0700), 0);
	write_one(true);
	assert_int_equal(entries(trace_path), 0);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_OK);
	assert_int_equal(entries(trace_path), 3);
}

static void test_atomic_and_overtaken(void **state)
{
	int fd;

	write_one(true);
	fd = open(trace_path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(kymo_writer_close(writer, &err), KYMO_E_INVALID);
	assert_string_equal(err.path, trace_path);
	assert_int_equal(entries(scratch), 1);
	assert_int_equal(unlink(trace_path), 0);
}

static void test_abort(void **state)
{
	char path[128];
	int fd;

	kymo_writer_abort(NULL);
	write_one(true);
	kymo_writer_abort(writer);
	assert_int_equal(entries(scratch), 0);
	write_one(false);
	kymo_writer_abort(writer);
	assert_int_equal(entries(scratch), 0);
	/* Before anything was written. */
	kymo_fields_add_uint(define(KYMO_FORMAT_CTF_1_8, false), "x", 8);
	kymo_writer_abort(writer);
	/* What is not the writer's stays. */
	write_one(false);
	snprintf(path, sizeof(path), "%s/other", trace_path);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	kymo_writer_abort(writer);
	assert_int_equal(entries(trace_path), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_what_ctf_1_8_cannot_say),
		TEST(test_attributes),
		TEST(test_wrong_attributes),
		TEST(test_wrong_numbers),
		TEST(test_wrong_texts),
		TEST(test_wrong_variants),
		TEST(test_labels),
		TEST(test_wrong_values),
		TEST(test_byte_order_inside_a_byte),
		TEST(test_text_is_cut_between_characters),
		TEST(test_atomic),
		TEST(test_atomic_into_an_empty_directory),
		TEST(test_atomic_and_overtaken),
		TEST(test_abort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
