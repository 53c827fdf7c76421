/* SPDX-License-Identifier: MIT */
/* CTF 2 metadata: what is read, what is refused and where, and that writing it loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ctf/ctf2/ctf2-read.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/decode/decode.h"
#include "ctf/resolve/lttng-layout.h"

#define RS	 "\x1e"
#define PREAMBLE RS "{\"type\": \"preamble\", \"version\": 2}\n"
#define STREAM	 RS "{\"type\": \"data-stream-class\"}\n"
#define U8 \
	"{\"type\": \"fixed-length-unsigned-integer\", \"length\": 8, \"byte-order\": \"little-endian\"}"
#define EVENT(members)                                                                              \
	RS "{\"type\": \"event-record-class\", \"payload-field-class\": {\"type\": \"structure\", " \
	   "\"member-classes\": [" members "]}}"
#define MEMBER(name, cls) "{\"name\": \"" name "\", \"field-class\": " cls "}"

static struct ky_trace_class *read_ok(const char *text)
{
	struct ky_trace_class *trace;
	struct kymo_error err;

	if (ky_ctf2_read(text, strlen(text), &trace, &err) < 0)
		fail_msg("%u:%u: %s", err.line, err.column, err.message);
	return trace;
}

static void refused(void **state)
{
	static const struct {
		const char *text, *says;
		int code;
		uint32_t line;
	} cases[] = {
		{"", "no preamble", KYMO_E_FORMAT, 1},
		{"{}", "record separator", KYMO_E_FORMAT, 1},
		{STREAM, "must be a preamble", KYMO_E_FORMAT, 1},
		{RS "{\"type\": \"preamble\", \"version\": 3}", "version 3", KYMO_E_FORMAT, 1},
		{RS
		 "{\"type\": \"preamble\", \"version\": 2,\n\"extensions\": {\"a\": {\"b\": 1}}}",
		 "extension 'b' of 'a'", KYMO_E_UNSUPPORTED, 2},
		{PREAMBLE PREAMBLE, "second preamble", KYMO_E_FORMAT, 2},
		{PREAMBLE STREAM STREAM, "id 0 already", KYMO_E_FORMAT, 3},
		{PREAMBLE STREAM EVENT(MEMBER("a", "\"nothing\"")), "no field class alias",
		 KYMO_E_FORMAT, 3},
		{PREAMBLE RS
		 "{\"type\": \"field-class-alias\", \"name\": \"a\", \"field-class\": "
		 "{\"type\": \"structure\", \"member-classes\": [" MEMBER("b", "\"a\"") "]}}",
		 "no field class alias", KYMO_E_FORMAT, 2},
		{PREAMBLE STREAM EVENT(MEMBER(
			 "s",
			 "{\"type\": \"dynamic-length-string\", "
			 "\"length-field-location\": {\"path\": [\"n\"]}}") ", " MEMBER("n", U8)),
		 "decoded after", KYMO_E_FORMAT, 3},
		{PREAMBLE STREAM "x", "record separator", KYMO_E_FORMAT, 3},
		{PREAMBLE RS "{\"type\": \"trace-class\"", "'}'", KYMO_E_FORMAT, 2},
		{PREAMBLE RS "{\"type\": \"\\ud800\"}", "surrogate", KYMO_E_FORMAT, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ky_trace_class *trace;
		struct kymo_error err;

		assert_int_equal(ky_ctf2_read(cases[i].text, strlen(cases[i].text), &trace, &err),
				 cases[i].code);
		assert_null(trace);
		if (err.line != cases[i].line || !strstr(err.message, cases[i].says))
			fail_msg("case %zu: %u:%u: %s", i, err.line, err.column, err.message);
	}
}

/* What the last drafts said in other words. */
static void drafts(void **state)
{
	static const char text[] = PREAMBLE RS
		"{\"type\": \"clock-class\", \"name\": \"c\", \"frequency\": 1000}" RS
		"{\"type\": \"data-stream-class\", \"default-clock-class-name\": \"c\"}" EVENT(MEMBER(
			"tag",
			"{\"type\": \"fixed-length-unsigned-enumeration\", \"length\": 8, "
			"\"byte-order\": \"big-endian\", \"mappings\": {\"x\": [[1, 2]]}}") ", " MEMBER("var",
													"{\"type\": \"variant\", \"selector-field-location\": "
													"[\"event-record-payload\", \"tag\"], \"options\": [{\"name\": \"x\", "
													"\"selector-field-ranges\": [[1, 2]], \"field-class\": " U8
													"}]}"));
	struct ky_trace_class *trace = read_ok(text);
	const struct ky_field_class *payload = trace->events.data[0]->payload;

	assert_ptr_equal(trace->streams.data[0]->clock, trace->clocks.data[0]);
	assert_string_equal(trace->clocks.data[0]->name, "c");
	assert_true(payload->st.members[0].cls->num.is_enum);
	assert_ptr_equal(payload->st.members[1].cls->var.selector->target,
			 payload->st.members[0].cls);
	ky_trace_class_free(trace);
	trace = read_ok(PREAMBLE);
	assert_int_equal(trace->streams.len, 0);
	ky_trace_class_free(trace);
}

/* Every prefix of good metadata is refused or read, never anything worse. */
static void prefixes(void **state)
{
	static const char text[] = PREAMBLE STREAM EVENT(MEMBER("a\\u00e9\\ud83d\\ude00", U8));
	char *copy;

	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		struct ky_trace_class *trace;

		/* A heap copy of exactly this length, so that reading past it is noticed. */
		copy = malloc(len + 1);
		memcpy(copy, text, len);
		if (ky_ctf2_read(copy, len, &trace, NULL) == 0)
			ky_trace_class_free(trace);
		free(copy);
	}
	ky_trace_class_free(read_ok(text));
}

static void decodes(void **state)
{
	static const char text[] = PREAMBLE STREAM EVENT(MEMBER("n", "{\"type\": \"variable-length-unsigned-integer\"}") ", " MEMBER(
		"s",
		"{\"type\": \"dynamic-length-string\", \"length-field-location\": "
		"{\"path\": [\"n\"]}}") ", " MEMBER("o",
						    "{\"type\": \"optional\", \"selector-field-location\": {\"path\": "
						    "[\"n\"]}, \"selector-field-ranges\": [[3, 3]], \"field-class\": " U8
						    "}") ", " MEMBER("h",
								     "{\"type\": \"fixed-length-floating-point-number\", \"length\": 16, "
								     "\"byte-order\": \"little-endian\"}") ", " MEMBER("r",
														       "{\"type\": \"fixed-length-bit-array\", \"length\": 8, \"byte-order\": "
														       "\"little-endian\", \"bit-order\": \"last-to-first\"}") ", " MEMBER("w",
																							   "{\"type\": \"fixed-length-signed-integer\", \"length\": 96, "
																							   "\"byte-order\": \"big-endian\"}"));
	static const uint8_t bytes[] = {
		3,  'a', 'b', 'c',  42,	  0x00, 0xc1, 0x01, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
		11, 1,	 'z', 0x00, 0x3c, 0x80, 0,    0,    0,	  0, 0, 0, 0, 0, 0, 0, 0, 1};
	struct ky_trace_class *trace = read_ok(text);
	struct ky_decoder *decoder = ky_decoder_new(trace);
	const struct ky_packet *packet;
	struct ky_event events[4];
	struct ky_handle handle;
	struct kymo_error err;
	struct ky_values v;

	assert_int_equal(ky_decoder_packet(decoder, bytes, sizeof(bytes), 0, &packet, &err), 0);
	assert_int_equal(ky_decoder_next(decoder, events, 4, &err), 2);
	assert_int_equal(ky_decoder_next(decoder, events, 4, &err), 0);
	ky_values_init(&v);
	assert_int_equal(ky_values_decode(&v, &events[0], KY_SCOPE_PAYLOAD, &err), 8);
	assert_int_equal(v.list.data[1].u, 3);
	assert_int_equal(v.list.data[2].str.len_bytes, 3);
	assert_int_equal(v.list.data[3].n_children, 1);
	assert_int_equal(v.list.data[4].u, 42);
	assert_true(v.list.data[5].f < -2.49 && v.list.data[5].f > -2.51);
	assert_int_equal(v.list.data[6].u, 0x80);
	assert_true(ky_value_is_big(&v.list.data[7]));
	assert_int_equal(ky_value_word(&v.list.data[7], 0), 0x0405060708090a0b);
	assert_int_equal(ky_value_word(&v.list.data[7], 1), 0xff010203);
	assert_int_equal(ky_values_decode(&v, &events[1], KY_SCOPE_PAYLOAD, &err), 7);
	assert_int_equal(v.list.data[3].n_children, 0);
	assert_true(v.list.data[4].f > 0.99 && v.list.data[4].f < 1.01);
	assert_true(ky_handle_find_any(&handle, events[0].cls, "n"));
	assert_int_equal(ky_get_u64(&events[1], &handle, 9), 1);
	ky_values_fini(&v);
	ky_decoder_free(decoder);
	ky_trace_class_free(trace);
}

/* CTF 1.8 in LTTng's layout -> CTF 2 -> model -> CTF 2: the second text equals the first. */
static void written(void **state)
{
	struct ky_trace_class *trace = ky_trace_class_new(), *again;
	struct ky_field_class *tag, *variant;
	struct ky_stream_class *stream;
	struct ky_event_class *event;
	struct ky_clock_class *clock;
	struct kymo_error err;
	char *first, *second;
	size_t len, len2;

	trace->has_uuid = true;
	ky_env_add_text(trace, "hostname", "a \"quoted\" \\ name");
	ky_env_add_number(trace, "tracer_major", -2);
	clock = ky_clock_class_new(trace, "monotonic");
	clock->frequency_hz = 1000;
	clock->offset_cycles = -1;
	ky_lttng_layout_trace(trace);
	stream = ky_lttng_layout_stream(trace, 0, clock, true);
	event = ky_event_class_new(stream, 5, "e");
	event->has_loglevel = true;
	event->loglevel = 13;
	event->payload = ky_struct_new(trace);
	tag = ky_struct_add_enum(trace, event->payload, "_tag", 8, true);
	ky_enum_add(trace, tag, "a", -5, 0);
	ky_enum_add(trace, tag, "a", 3, 3);
	ky_enum_add(trace, tag, "b", 1, 2);
	variant = ky_struct_add_variant(trace, event->payload, "_v", tag);
	ky_variant_add(trace, variant, "a", ky_int_new(trace, 7, true, 16));
	ky_variant_add(trace, variant, "b", ky_struct_new(trace));
	ky_struct_add_text(trace, event->payload, "_comm", 16);
	if (ky_trace_class_finish(trace, true, &err) < 0)
		fail_msg("%s", err.message);
	if (ky_ctf2_write(trace, &first, &len, &err) < 0)
		fail_msg("%s", err.message);
	again = read_ok(first);
	assert_int_equal(again->events.data[0]->loglevel, 13);
	assert_int_equal(again->clocks.data[0]->offset_s, -1);
	assert_int_equal(again->clocks.data[0]->offset_cycles, 999);
	assert_int_equal(again->events.data[0]->payload->st.members[0].cls->num.n_mappings, 2);
	assert_int_equal(ky_ctf2_write(again, &second, &len2, &err), 0);
	assert_string_equal(first, second);
	free(first);
	free(second);
	ky_trace_class_free(again);
	ky_trace_class_free(trace);
}

/* Who a clock is and where it counts from is written as it was read. */
static void clocks_keep_their_identity(void **state)
{
	static const char text[] = PREAMBLE RS
		"{\"type\": \"clock-class\", \"id\": \"a\", \"namespace\": \"n\", \"name\": \"c\", "
		"\"uid\": \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\", \"frequency\": 5, "
		"\"accuracy\": 0, \"precision\": 9, "
		"\"origin\": {\"namespace\": \"on\", \"name\": \"o\", \"uid\": \"u\"}}\n" RS
		"{\"type\": \"clock-class\", \"id\": \"b\", \"name\": \"c\", \"uid\": \"no UUID\", "
		"\"frequency\": 5, \"origin\": \"unix-epoch\"}\n" STREAM;
	struct ky_trace_class *trace = read_ok(text), *back;
	const struct ky_clock_class *clock;
	struct kymo_error err;
	size_t len_bytes;
	char *written;

	assert_int_equal(ky_ctf2_write(trace, &written, &len_bytes, &err), KYMO_OK);
	back = read_ok(written);
	clock = back->clocks.data[0];
	assert_string_equal(clock->self.space, "n");
	assert_string_equal(clock->self.name, "c");
	assert_string_equal(clock->self.uid, "2a6422d0-6cee-11e0-8c08-cb07d7b3a564");
	assert_true(clock->has_uuid && clock->uuid[0] == 0x2a);
	assert_true(clock->has_accuracy && clock->accuracy_cycles == 0);
	assert_int_equal(clock->precision_cycles, 9);
	assert_string_equal(clock->origin.space, "on");
	assert_string_equal(clock->origin.name, "o");
	assert_string_equal(clock->origin.uid, "u");
	assert_string_equal(clock->identity, trace->clocks.data[0]->identity);
	clock = back->clocks.data[1];
	assert_false(clock->has_uuid || clock->has_accuracy);
	assert_string_equal(clock->self.uid, "no UUID");
	assert_true(clock->is_unix_epoch && !clock->origin.uid);
	free(written);
	ky_trace_class_free(back);
	ky_trace_class_free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_keep_their_identity),
		cmocka_unit_test(refused),
		cmocka_unit_test(drafts),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(decodes),
		cmocka_unit_test(written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
