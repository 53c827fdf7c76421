/* SPDX-License-Identifier: MIT */
/*
 * Fields of every kind through the public API, wherever they lie, from a trace that is written byte
 * by byte here. Compiled as C++ too (test-fields-cxx.cpp).
 */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/reader.h>

static struct kymo_error err;
static char scratch[64];

/* ---- the trace ------------------------------------------------------------------------------ */

#define RS "\x1e"
#define UINT(bits)                                                      \
	"{\"type\":\"fixed-length-unsigned-integer\",\"length\":" #bits \
	",\"byte-order\":\"little-endian\"}"
#define MEMBER(n, fc) "{\"name\":\"" n "\",\"field-class\":" fc "}"
#define AT(name)      "{\"origin\":\"event-record-payload\",\"path\":[\"" name "\"]}"

static const char metadata[] = RS "{\"type\":\"preamble\",\"version\":2}\n" RS
				  "{\"type\":\"data-stream-class\",\"id\":0,"
				  "\"event-record-header-field-class\":{\"type\":\"structure\",\"member-classes\":[" MEMBER("kind",
															    "{\"type\":\"fixed-length-unsigned-integer\",\"length\":8,"
															    "\"byte-order\":\"little-endian\",\"roles\":[\"event-record-class-id\"]}") "]},\"packet-context-field-class\":{\"type\":\"structure\",\"member-classes\":[" MEMBER("where",
																																			       UINT(
																																				       16)) "]}}\n" RS
																																					    "{\"type\":\"event-record-class\",\"id\":7,\"name\":\"all\",\"payload-field-class\":"
																																					    "{\"type\":\"structure\",\"member-classes\":[" MEMBER("first",
																																												  UINT(
																																													  8)) "," MEMBER("pair",
																																															 "{\"type\":\"structure\",\"member-classes\":[" MEMBER("a", UINT(8)) "," MEMBER(
																																																 "b.c", UINT(16)) "]}") "," MEMBER("grid", "{\"type\":\"static-length-array\",\"length\":2,\"element-field-class\":"
																																																					   "{\"type\":\"static-length-array\",\"length\":3,\"element-field-class\":" UINT(8) "}}") "," MEMBER("text16",
																																																																	      "{\"type\":\"null-terminated-string\",\"encoding\":\"utf-16le\"}") "," MEMBER("text32", "{\"type\":\"static-length-string\",\"length\":8,\"encoding\":\"utf-32be\"}") "," MEMBER("has",
																																																																																							       "{\"type\":\"fixed-length-boolean\",\"length\":8,\"byte-order\":\"little-endian\"}") "," MEMBER("opt", "{\"type\":\"optional\",\"selector-field-location\":" AT("has") ",\"field-class\":"
																																																																																																												      "{\"type\":\"structure\",\"member-classes\":[" MEMBER("x",
																																																																																																																			    UINT(8)) "]}}") "," MEMBER("sel",
																																																																																																																						       UINT(
																																																																																																																							       8)) "," MEMBER("v", "{\"type\":\"variant\",\"selector-field-location\":" AT("sel") ",\"options\":["
																																																																																																																																		  "{\"name\":\"num\",\"selector-field-ranges\":[[0,0]],\"field-class\":" UINT(
																																																																																																																																			  16) "},"
																																																																																																																																			      "{\"name\":\"word\",\"selector-field-ranges\":[[1,1]],\"field-class\":"
																																																																																																																																			      "{\"type\":\"null-terminated-string\"}},"
																																																																																																																																			      "{\"selector-field-ranges\":[[2,2]],\"field-class\":{\"type\":\"structure\","
																																																																																																																																			      "\"member-classes\":[" MEMBER("y",
																																																																																																																																							    UINT(
																																																																																																																																								    8)) "]}}]}") "," MEMBER("big", "{\"type\":\"fixed-length-signed-integer\",\"length\":72,"
																																																																																																																																												   "\"byte-order\":\"little-endian\"}") "," MEMBER("map", "{\"type\":\"fixed-length-bit-map\",\"length\":16,\"byte-order\":\"little-endian\","
																																																																																																																																																			  "\"flags\":{\"low\":[[0,0]],\"some\":[[3,5]],\"high\":[[15,15]]}}") "," MEMBER("wide",
																																																																																																																																																													 "{\"type\":\"fixed-length-bit-map\",\"length\":128,\"byte-order\":\"little-endian\","
																																																																																																																																																													 "\"flags\":{\"near\":[[1,1]],\"far\":[[100,127]]}}") "," MEMBER("half", "{\"type\":\"fixed-length-floating-point-number\",\"length\":16,"
																																																																																																																																																																						 "\"byte-order\":\"little-endian\"}") "," MEMBER("quad", "{\"type\":\"fixed-length-floating-point-number\",\"length\":128,"
																																																																																																																																																																													 "\"byte-order\":\"little-endian\"}") "," MEMBER("n", UINT(8)) "," MEMBER("blob",
																																																																																																																																																																																						  "{\"type\":\"dynamic-length-blob\",\"length-field-location\":" AT("n") "}") "," MEMBER("m", UINT(8)) "," MEMBER("perms",
																																																																																																																																																																																																				  "{\"type\":\"dynamic-length-array\",\"length-field-location\":" AT(
																																																																																																																																																																																																					  "m") ",\"element-field-class\":{\"type\":\"structure\",\"member-classes\":[" MEMBER("name",
																																																																																																																																																																																																															      "{\"type\":\"null-terminated-string\"}") "," MEMBER("bits", "{\"type\":\"static-length-array\",\"length\":2,\"element-field-class\":" UINT(8) "}") "]}}") "," MEMBER("leb", "{\"type\":\"variable-length-signed-integer\"}") "," MEMBER("state",
																																																																																																																																																																																																																																												      "{\"type\":\"fixed-length-signed-integer\",\"length\":8,"
																																																																																																																																																																																																																																												      "\"byte-order\":\"little-endian\",\"mappings\":{\"neg\":[[-5,-1]],\"odd\":[[-3,-3],[3,3]]}}") "]}}\n" RS
																																																																																																																																																																																																																																																								    "{\"type\":\"event-record-class\",\"id\":8,\"name\":\"none\"}\n";

static const unsigned char
	stream_bytes
		[] =
			{
				0x34, 0x12,			 /* packet context: where */
				7,    11,   22,	  0x44, 0x33,	 /* first, pair */
				1,    2,    3,	  4,	5,    6, /* grid */
				'h',  0,    0xe9, 0,	0x3d, 0xd8, 0x00, 0xde,
				0x00, 0xd8, '!',  0,	0,    0, /* lone surrogate */
				0,    0,    0,	  'A',	0,    0,    0,	  0,
				1,    99,	     /* opt is there */
				1,    'o',  'k',  0, /* v.word */
				0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				0xff,	    /* -2 in 72 bits */
				0x21, 0x00, /* low, some */
				2,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,    0,	  0,	0,    0,    0,	  0x80, /* near, far */
				0x00, 0xc2,					/* -3 */
				0,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,    0,	  0,	0,    0x80, 0xff, 0x3f, /* 1.5 */
				3,    0xde, 0x00, 0xad, 2,    'r',  0,	  1,
				2,    'w',  'x',  0,	3,    4, /* perms */
				0x80, 0x7f,			 /* -128 */
				0xfd,				 /* -3 */
				8,    7,    0,	  0,	0,    0,    0,	  0,
				0,    0,    0,	  0, /* first, pair, grid */
				0,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,		/* text16, text32 */
				0,    0,    0x05, 0x00, /* no opt; v.num */
				1,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,    0, /* big, map */
				0,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,    0,	  0,	0,    0,    0,	  0, /* wide */
				0,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,    0,	  0,	0,    0,    0,	  0,
				0,    0,	     /* half, quad */
				0,    0,    0,	  1, /* n, m, leb, state */
};

static void put_file(const char *name, const void *data, size_t len)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	strcpy(scratch, "/tmp/kymo-test-fields-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	put_file("metadata", metadata, sizeof(metadata) - 1);
	put_file("s", stream_bytes, sizeof(stream_bytes));
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"metadata", "s"};
	char path[128];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", scratch, names[i]);
		unlink(path);
	}
	return rmdir(scratch);
}

/* ---- reading it ------------------------------------------------------------------------------- */

static struct kymo_reader *reader, *reader_of_last;
static struct kymo_batch batch;

static const struct kymo_event *read_to(struct kymo_reader **opened, size_t i)
{
	const char *path = scratch;

	if (kymo_reader_open(&path, 1, NULL, opened, &err) < 0)
		fail_msg("%s:%u:%u: %s", err.path, err.line, err.column, err.message);
	while (kymo_reader_next(*opened, &batch, &err) == 1) {
		if (i < batch.n_events)
			return kymo_batch_event(&batch, i);
		i -= batch.n_events;
	}
	fail_msg("%s: %s", err.path, err.message);
	return NULL;
}

/* Event @i, 0 to 2: "all", "none", "all". */
static const struct kymo_event *open_at(size_t i)
{
	return read_to(&reader, i);
}

/* Event 2, while another one is looked at. Its class is another reader's. */
static const struct kymo_event *open_last(void)
{
	return read_to(&reader_of_last, 2);
}

static struct kymo_field field_of(const struct kymo_event *event, const char *path)
{
	struct kymo_field field;

	if (kymo_field_find(event->event_class, path, &field) != KYMO_OK)
		fail_msg("no field %s", path);
	return field;
}

static uint64_t u64_of(const struct kymo_event *event, const char *path)
{
	struct kymo_field field = field_of(event, path);
	uint64_t value = 0;

	if (!kymo_event_get_u64(event, &field, &value))
		fail_msg("%s has no value", path);
	return value;
}

static bool has(const struct kymo_event *event, const char *path)
{
	struct kymo_field field = field_of(event, path);

	return kymo_event_has(event, &field);
}

static void test_numbers_inside_of_others(void **state)
{
	const struct kymo_event *event = open_at(0);

	assert_int_equal(u64_of(event, "first"), 11);
	assert_int_equal(u64_of(event, "pair.a"), 22);
	assert_int_equal(u64_of(event, "grid[0][0]"), 1);
	assert_int_equal(u64_of(event, "grid[1][2]"), 6);
	assert_int_equal(u64_of(event, "opt.x"), 99);
	assert_int_equal(u64_of(event, "perms[0].bits[1]"), 2);
	assert_int_equal(u64_of(event, "perms[1].bits[0]"), 3);
	/* A name that is no path. */
	struct kymo_field pair = field_of(event, "pair"), field;
	uint64_t value;

	assert_int_equal(kymo_field_member(&pair, "b.c", &field), KYMO_OK);
	assert_true(kymo_event_get_u64(event, &field, &value) && value == 0x3344);
	kymo_reader_close(reader);
}

static void test_what_is_not_there(void **state)
{
	const struct kymo_event *first = open_at(0), *last = open_last();
	struct kymo_field field;
	uint64_t value = 42;

	assert_true(has(first, "opt.x"));
	assert_true(has(first, "opt"));
	assert_true(has(first, "v.word"));
	assert_false(has(first, "v.num"));
	assert_false(has(first, "v[2].y"));
	assert_true(has(first, "perms[1]"));
	assert_false(has(first, "perms[2].name"));
	assert_false(has(last, "opt.x"));
	assert_false(has(last, "opt"));
	assert_true(has(last, "v.num"));
	assert_false(has(last, "perms[0]"));
	field = field_of(first, "perms[2].bits[0]");
	assert_false(kymo_event_get_u64(first, &field, &value));
	assert_int_equal(value, 42);
	field = field_of(first, "v.num");
	assert_false(kymo_event_get_u64(first, &field, &value));
	/* A variant as such is what it holds. */
	field = field_of(first, "v");
	assert_false(kymo_event_get_u64(first, &field, &value));
	/* What belongs to another reader is another class. */
	assert_false(kymo_event_has(last, &field));
	assert_int_equal(u64_of(last, "v"), 5);
	assert_int_equal(u64_of(last, "v.num"), 5);
	kymo_reader_close(reader);
	kymo_reader_close(reader_of_last);
}

static void assert_no_field(const struct kymo_event *event, const char *path, int expected)
{
	struct kymo_field field;
	uint64_t value;

	if (kymo_field_find(event->event_class, path, &field) != expected)
		fail_msg("%s", path);
	assert_false(kymo_event_has(event, &field));
	assert_false(kymo_event_get_u64(event, &field, &value));
}

static void test_wrong_paths(void **state)
{
	const struct kymo_event *event = open_at(0);
	struct kymo_field field, zero = field_of(event, "first");

	assert_no_field(event, "nope", KYMO_E_NOT_FOUND);
	assert_no_field(event, "pair.nope", KYMO_E_NOT_FOUND);
	assert_no_field(event, "first.x", KYMO_E_NOT_FOUND);
	assert_no_field(event, "first[0]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "pair[0]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "grid[2]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "grid[0][3]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "v.x", KYMO_E_NOT_FOUND);
	assert_no_field(event, "v[3]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "perms[4294967296]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "perms[99999999999999999999999]", KYMO_E_NOT_FOUND);
	assert_no_field(event, "", KYMO_E_INVALID);
	assert_no_field(event, "[0]", KYMO_E_INVALID);
	assert_no_field(event, "grid[", KYMO_E_INVALID);
	assert_no_field(event, "grid[]", KYMO_E_INVALID);
	assert_no_field(event, "grid[-1]", KYMO_E_INVALID);
	assert_no_field(event, "grid[0", KYMO_E_INVALID);
	assert_no_field(event, "grid[0]x", KYMO_E_INVALID);
	assert_no_field(event, "pair.", KYMO_E_INVALID);
	assert_no_field(event, "pair..a", KYMO_E_INVALID);
	memset(&zero, 0, sizeof(zero));
	assert_int_equal(kymo_field_child(&zero, 0, &field), KYMO_E_INVALID);
	assert_int_equal(kymo_field_child(NULL, 0, &field), KYMO_E_INVALID);
	assert_int_equal(kymo_field_child(&zero, 0, NULL), KYMO_E_INVALID);
	assert_int_equal(kymo_field_member(&zero, NULL, &field), KYMO_E_INVALID);
	assert_int_equal(kymo_field_root(NULL, KYMO_SCOPE_PAYLOAD, &field), KYMO_E_INVALID);
	assert_int_equal(kymo_field_root(event->event_class, KYMO_SCOPE_COUNT, &field),
			 KYMO_E_INVALID);
	assert_int_equal(kymo_field_root(event->event_class, KYMO_SCOPE_EVENT_CONTEXT, &field),
			 KYMO_E_NOT_FOUND);
	assert_int_equal(kymo_field_root(event->event_class, KYMO_SCOPE_PAYLOAD, NULL),
			 KYMO_E_INVALID);
	kymo_reader_close(reader);
}

/* Without a name: every number below, in order. */
static void walk(const struct kymo_event *event, const struct kymo_field *field, char *text,
		 size_t *len)
{
	size_t n = kymo_field_class_n_members(field->field_class);
	struct kymo_field child;
	uint64_t n_elements, value;

	if (kymo_event_get_length(event, field, &n_elements))
		n = (size_t)n_elements;
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(kymo_field_child(field, i, &child), KYMO_OK);
		walk(event, &child, text, len);
	}
	if (!n && kymo_event_get_u64(event, field, &value))
		*len += (size_t)sprintf(text + *len, "%" PRIu64 " ", value);
}

static void test_walking_by_numbers(void **state)
{
	const struct kymo_event *event = open_at(0);
	struct kymo_field root;
	char text[512] = "";
	size_t len = 0;

	assert_int_equal(kymo_field_root(event->event_class, KYMO_SCOPE_PAYLOAD, &root), KYMO_OK);
	walk(event, &root, text, &len);
	assert_string_equal(text, "11 22 13124 1 2 3 4 5 6 1 99 1 33 3 2 1 2 3 4 ");
	kymo_reader_close(reader);
}

static void test_text(void **state)
{
	const struct kymo_event *event = open_at(0);
	struct kymo_field field = field_of(event, "text16");
	const unsigned char *bytes;
	char buffer[64];
	size_t len;

	assert_null(kymo_event_get_text(event, &field, &len));
	assert_int_equal(kymo_event_get_utf8(event, &field, buffer, sizeof(buffer)), 11);
	assert_string_equal(buffer, "h\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd!");
	/* Whole characters only. */
	assert_int_equal(kymo_event_get_utf8(event, &field, buffer, 7), 11);
	assert_string_equal(buffer, "h\xc3\xa9");
	assert_int_equal(kymo_event_get_utf8(event, &field, buffer, 1), 11);
	assert_string_equal(buffer, "");
	assert_int_equal(kymo_event_get_utf8(event, &field, NULL, 0), 11);
	bytes = (const unsigned char *)kymo_event_get_bytes(event, &field, &len);
	assert_int_equal(len, 12);
	assert_int_equal(bytes[2], 0xe9);
	field = field_of(event, "text32");
	assert_int_equal(kymo_event_get_utf8(event, &field, buffer, sizeof(buffer)), 1);
	assert_string_equal(buffer, "A");
	field = field_of(event, "v");
	assert_int_equal(kymo_event_get_utf8(event, &field, buffer, sizeof(buffer)), 2);
	assert_string_equal(buffer, "ok");
	assert_memory_equal(kymo_event_get_text(event, &field, &len), "ok", 2);
	field = field_of(event, "perms[1].name");
	assert_memory_equal(kymo_event_get_text(event, &field, &len), "wx", 2);
	assert_int_equal(len, 2);
	field = field_of(event, "blob");
	bytes = (const unsigned char *)kymo_event_get_bytes(event, &field, &len);
	assert_int_equal(len, 3);
	assert_int_equal(bytes[2], 0xad);
	assert_null(kymo_event_get_text(event, &field, &len));
	assert_int_equal(kymo_event_get_utf8(event, &field, buffer, sizeof(buffer)), SIZE_MAX);
	assert_string_equal(buffer, "");
	field = field_of(event, "first");
	assert_null(kymo_event_get_bytes(event, &field, &len));
	assert_int_equal(kymo_event_get_utf8(event, &field, NULL, 5), SIZE_MAX);
	kymo_reader_close(reader);
}

static void test_wide_numbers(void **state)
{
	const struct kymo_event *event = open_at(0);
	struct kymo_field field = field_of(event, "big");
	uint64_t words[3];
	int64_t i;
	double f;

	assert_false(kymo_event_get_i64(event, &field, &i));
	assert_false(kymo_event_get_words(event, &field, words, 1));
	assert_true(kymo_event_get_words(event, &field, words, 3));
	assert_true(words[0] == (uint64_t)-2 && words[1] == UINT64_MAX && words[2] == UINT64_MAX);
	field = field_of(event, "half");
	assert_true(kymo_event_get_f64(event, &field, &f) && f < -2.9 && f > -3.1);
	assert_true(kymo_event_get_words(event, &field, words, 1) && words[0] == 0xc200);
	field = field_of(event, "quad");
	assert_true(kymo_event_get_f64(event, &field, &f) && f > 1.49 && f < 1.51);
	assert_true(kymo_event_get_words(event, &field, words, 2));
	assert_true(words[0] == 0 && words[1] == UINT64_C(0x3fff800000000000));
	field = field_of(event, "leb");
	assert_true(kymo_event_get_i64(event, &field, &i) && i == -128);
	assert_true(kymo_event_get_words(event, &field, words, 2) && words[1] == UINT64_MAX);
	field = field_of(event, "text16");
	assert_false(kymo_event_get_words(event, &field, words, 2));
	kymo_reader_close(reader);
}

static void test_labels(void **state)
{
	const struct kymo_event *event = open_at(0);
	struct kymo_field field = field_of(event, "map");
	const char *labels[4] = {NULL};

	assert_int_equal(kymo_event_get_labels(event, &field, labels, 4), 2);
	assert_string_equal(labels[0], "low");
	assert_string_equal(labels[1], "some");
	assert_int_equal(kymo_event_get_labels(event, &field, NULL, 0), 2);
	field = field_of(event, "wide");
	assert_int_equal(kymo_event_get_labels(event, &field, labels, 1), 2);
	assert_string_equal(labels[0], "near");
	field = field_of(event, "state");
	assert_int_equal(kymo_event_get_labels(event, &field, labels, 4), 2);
	assert_string_equal(labels[1], "odd");
	assert_string_equal(kymo_event_get_label(event, &field), "neg");
	field = field_of(event, "quad");
	assert_int_equal(kymo_event_get_labels(event, &field, labels, 4), 0);
	field = field_of(event, "first");
	assert_null(kymo_event_get_label(event, &field));
	kymo_reader_close(reader);
}

static void test_options(void **state)
{
	const struct kymo_event *first = open_at(0), *last = open_last();
	struct kymo_field field = field_of(first, "v");
	size_t option = 9;

	assert_true(kymo_event_get_option(first, &field, &option) && option == 1);
	assert_string_equal(kymo_field_class_member_name(field.field_class, option), "word");
	field = field_of(last, "v");
	assert_true(kymo_event_get_option(last, &field, &option) && option == 0);
	field = field_of(first, "sel");
	assert_false(kymo_event_get_option(first, &field, &option));
	kymo_reader_close(reader);
	kymo_reader_close(reader_of_last);
}

static void test_headers(void **state)
{
	const struct kymo_event *event = open_at(2);
	struct kymo_field field;
	uint64_t value = 0, offset = 0;

	assert_int_equal(
		kymo_field_find_in(event->event_class, KYMO_SCOPE_EVENT_HEADER, "kind", &field),
		KYMO_OK);
	assert_true(kymo_event_get_u64(event, &field, &value) && value == 7);
	assert_int_equal(u64_of(event, "where"), 0x1234);
	assert_ptr_equal(kymo_batch_stream(&batch, event), kymo_reader_stream(reader, 0));
	assert_string_equal(kymo_batch_place(&batch, event, &offset),
			    kymo_stream_path(kymo_reader_stream(reader, 0)));
	assert_int_equal(stream_bytes[offset], 7);
	assert_int_equal(stream_bytes[offset - 1], 8);
	assert_null(kymo_batch_place(&batch, NULL, &offset));
	assert_null(kymo_batch_place(&batch, event, NULL));
	assert_null(kymo_batch_stream(NULL, event));
	kymo_reader_close(reader);
}

static void test_values_of_one_field(void **state)
{
	const struct kymo_event *event = open_at(0);
	struct kymo_field field = field_of(event, "perms");
	struct kymo_values *values = kymo_values_new();
	const struct kymo_value *value, *child;
	const char *labels[2];
	char buffer[16];
	size_t len;

	assert_int_equal(kymo_event_value(event, &field, values, &value, &err), 1);
	assert_int_equal(kymo_value_kind(value), KYMO_FIELD_ARRAY);
	assert_int_equal(kymo_value_n_children(value), 2);
	child = kymo_value_member(kymo_value_child(value, 1), "name");
	assert_memory_equal(kymo_value_bytes(child, &len), "wx", 2);
	assert_int_equal(kymo_value_utf8(child, buffer, sizeof(buffer)), 2);
	assert_string_equal(buffer, "wx");
	assert_null(kymo_value_child(value, 2));
	assert_null(kymo_value_member(value, "name"));
	assert_null(kymo_value_member(kymo_value_child(value, 0), "nope"));
	field = field_of(event, "big");
	assert_int_equal(kymo_event_value(event, &field, values, &value, &err), 1);
	assert_true(kymo_value_word(value, 0) == (uint64_t)-2);
	assert_true(kymo_value_word(value, 1) == UINT64_MAX);
	assert_true(kymo_value_word(value, 7) == UINT64_MAX);
	field = field_of(event, "quad");
	assert_int_equal(kymo_event_value(event, &field, values, &value, &err), 1);
	assert_true(kymo_value_word(value, 1) == UINT64_C(0x3fff800000000000));
	assert_true(kymo_value_f64(value) > 1.4);
	field = field_of(event, "wide");
	assert_int_equal(kymo_event_value(event, &field, values, &value, &err), 1);
	assert_int_equal(kymo_value_labels(value, labels, 2), 2);
	assert_string_equal(kymo_value_label(value), "near");
	assert_int_equal(kymo_value_utf8(value, buffer, sizeof(buffer)), SIZE_MAX);
	field = field_of(event, "perms[2]");
	assert_int_equal(kymo_event_value(event, &field, values, &value, &err), 0);
	assert_null(value);
	memset(&field, 0, sizeof(field));
	assert_int_equal(kymo_event_value(event, &field, values, &value, &err), 0);
	assert_int_equal(kymo_event_value(event, NULL, values, &value, &err), KYMO_E_INVALID);
	kymo_values_free(values);
	kymo_reader_close(reader);
}

/* Every prefix of the stream: no crash, and nothing but what is there. */
static void test_cut_anywhere(void **state)
{
	static const char *const paths[] = {"first", "grid[1][2]",    "text16", "opt.x",
					    "v",     "big",	      "wide",	"quad",
					    "blob",  "perms[1].name", "leb",	"state"};
	const char *path = scratch;
	struct kymo_field field;
	uint64_t words[4];
	char buffer[32];

	for (size_t len = 0; len < sizeof(stream_bytes); len++) {
		put_file("s", stream_bytes, len);
		assert_int_equal(kymo_reader_open(&path, 1, NULL, &reader, &err), KYMO_OK);
		while (kymo_reader_next(reader, &batch, &err) > 0) {
			kymo_batch_foreach(&batch, event) {
				for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
					kymo_field_find(event->event_class, paths[i], &field);
					kymo_event_get_words(event, &field, words, 4);
					kymo_event_get_utf8(event, &field, buffer, 32);
					kymo_event_get_label(event, &field);
				}
			}
		}
		kymo_reader_close(reader);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers_inside_of_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_paths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_walking_by_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wide_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_labels, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_options, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_headers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_values_of_one_field, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_anywhere, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
