/* SPDX-License-Identifier: MIT */
/* Values into bits: what was decoded from any bytes encodes to what decodes the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "ctf/encode/encode.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/tsdl/tsdl.h"

#define PACKET_BYTES 512
#define ROUNDS	     3000

/* The payload of the only event class of a stream without headers. */
#define CTF2(members)                                                                           \
	"\x1e{\"type\":\"preamble\",\"version\":2}"                                             \
	"\x1e{\"type\":\"data-stream-class\"}"                                                  \
	"\x1e{\"type\":\"event-record-class\",\"payload-field-class\":{\"type\":\"structure\"," \
	"\"member-classes\":[" members "]}}"
#define F(name, cls) "{\"name\":\"" name "\",\"field-class\":{" cls "}}"
#define NUM(type, bits, order) \
	"\"type\":\"fixed-length-" type "\",\"length\":" bits ",\"byte-order\":\"" order "-endian\""
#define AT(name)    "{\"path\":[\"" name "\"]}"
#define UINT8	    NUM("unsigned-integer", "8", "little")
#define BITS3(name) F(name, NUM("unsigned-integer", "3", "little"))

/* No padding, nothing hidden: the very same bits come back. */
static const char *const exact[] = {
	CTF2(F("a", NUM("unsigned-integer", "8", "big")) "," F(
		"b", NUM("signed-integer", "32", "big")) "," F("c",
							       NUM("bit-array", "64", "little"))),
	CTF2(BITS3("a") "," F("b", NUM("signed-integer", "13", "little")) "," F(
		"c", NUM("unsigned-integer", "64", "little")) "," F("d",
								    NUM("boolean", "1", "little"))),
	CTF2(F("a", NUM("unsigned-integer", "5", "big")) "," F(
		"b", NUM("signed-integer", "63",
			 "big")) "," F("c",
				       NUM("bit-map", "7", "big") ",\"flags\":{\"x\":[[0,3]]}")),
	CTF2(F("a", NUM("unsigned-integer", "21", "little") ",\"bit-order\":\"last-to-first\"")),
	CTF2(F("a", NUM("signed-integer", "37", "big") ",\"bit-order\":\"first-to-last\"")),
	CTF2(BITS3("z") "," F("a", NUM("unsigned-integer", "100", "little")) "," F(
		"b", NUM("unsigned-integer", "129", "little"))),
	CTF2(F("a", NUM("signed-integer", "200", "big")) "," F("b", NUM("bit-array", "75", "big"))),
	CTF2(F("a", NUM("floating-point-number", "16", "big")) "," F(
		"b", NUM("floating-point-number", "32",
			 "big")) "," F("c", NUM("floating-point-number", "64", "big"))),
	CTF2(BITS3("z") "," F("a", NUM("floating-point-number", "128", "little")) "," F(
		"b", NUM("floating-point-number", "32", "little"))),
	CTF2(F("a", "\"type\":\"variable-length-unsigned-integer\"") "," F(
		"b", "\"type\":\"variable-length-signed-integer\"")),
	CTF2(F("a", "\"type\":\"null-terminated-string\"") "," F("b", UINT8)),
	CTF2(F("n", UINT8) "," F(
		"a", "\"type\":\"dynamic-length-blob\",\"length-field-location\":" AT("n"))),
	CTF2(F("a", "\"type\":\"static-length-blob\",\"length\":5")),
	CTF2(F("n", NUM("unsigned-integer", "4", "big")) "," F(
		"a",
		"\"type\":\"dynamic-length-array\",\"length-field-location\":" AT(
			"n") ",\"element-field-class\":{" NUM("signed-integer", "9", "big") "}")),
	CTF2(F("s", NUM("boolean", "8", "big")) "," F(
		"a", "\"type\":\"optional\",\"selector-field-location\":" AT(
			     "s") ",\"field-class\":{" NUM("unsigned-integer", "16", "big") "}")),
};

/* With padding and texts of a fixed length: the same values come back. */
static const char *const padded[] = {
	CTF2(F("a", NUM("unsigned-integer", "5", "big")) "," F(
		"b", NUM("unsigned-integer", "32",
			 "big") ",\"alignment\":32") "," F("c", NUM("signed-integer", "3",
								    "little") ",\"alignment\":16")),
	CTF2(F("a", "\"type\":\"static-length-string\",\"length\":9") "," F("n", UINT8) "," F(
		"b", "\"type\":\"dynamic-length-string\",\"length-field-location\":" AT(
			     "n") ",\"encoding\":\"utf-16be\"")),
	CTF2(F("s", NUM("unsigned-integer", "2", "little")) "," F(
		"a",
		"\"type\":\"variant\",\"selector-field-location\":" AT("s") ",\"options\":[{\"selector-field-ranges\":[[0,1]],\"field-class\":{" NUM(
			"unsigned-integer", "64",
			"little") ",\"alignment\":64}},{\"selector-field-ranges\":[[2,3]],"
				  "\"field-class\":{\"type\":\"structure\",\"minimum-alignment\":32,"
				  "\"member-classes\":[" BITS3("x") "," BITS3("y") "]}}]")),
	CTF2(BITS3("z") "," F("a",
			      "\"type\":\"static-length-array\",\"length\":3,"
			      "\"minimum-alignment\":16,\"element-field-class\":{" NUM(
				      "unsigned-integer", "12", "little") ",\"alignment\":8}")),
	CTF2(F("a", "\"type\":\"null-terminated-string\",\"encoding\":\"utf-32le\"")),
};

static uint64_t random_state;

/* A small generator of our own, so that a failure can be repeated: xorshift. */
static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Random bytes, more often small or zero than not, so that texts end and lengths are short. */
static void fill(uint8_t *data)
{
	unsigned int mood = next_random() % 3;

	for (size_t i = 0; i < PACKET_BYTES; i++) {
		uint64_t r = next_random();

		data[i] = (uint8_t)r;
		if (mood && (r >> 8 & 3) == 0)
			data[i] = (uint8_t)(mood == 1 ? data[i] & 7 : 0);
	}
}

/* The first event of @data. False when none exists. */
static bool first_event(struct ky_decoder *decoder, const uint8_t *data, uint64_t size_bytes,
			struct ky_event *event)
{
	const struct ky_packet *packet;
	struct kymo_error err;

	if (ky_decoder_packet(decoder, data, size_bytes, 0, &packet, &err) < 0)
		return false;
	return ky_decoder_next(decoder, event, 1, &err) == 1;
}

static void same_values(const struct ky_values *a, const struct ky_values *b)
{
	assert_int_equal(a->list.len, b->list.len);
	for (size_t i = 0; i < a->list.len; i++) {
		const struct ky_value *x = &a->list.data[i], *y = &b->list.data[i];

		assert_ptr_equal(x->cls, y->cls);
		assert_int_equal(x->n_below, y->n_below);
		switch (x->cls->kind) {
		case KY_FIELD_STRING:
		case KY_FIELD_TEXT:
		case KY_FIELD_BLOB:
			assert_int_equal(x->str.len_bytes, y->str.len_bytes);
			assert_memory_equal(x->str.data, y->str.data, x->str.len_bytes);
			break;
		case KY_FIELD_OPTIONAL:
		case KY_FIELD_VARIANT:
		case KY_FIELD_STRUCT:
		case KY_FIELD_ARRAY:
			break;
		default:
			if (!ky_value_is_big(x))
				assert_int_equal(x->u, y->u);
		}
	}
}

/* Encode what @values hold; returns the bits. */
static uint64_t encode(const struct ky_trace_class *trace, const struct ky_values *values,
		       uint8_t *out, uint64_t size_bytes)
{
	uint64_t slots[16] = {0};
	struct ky_encoder e = {.data = out, .size_bits = size_bytes * 8, .slots = slots};
	struct kymo_error err;
	int ret;

	assert_true(trace->n_slots <= 16);
	ret = ky_encode_scope(&e, values->list.data, values->list.len, &err);
	if (ret < 0)
		fail_msg("%s", err.message);
	assert_int_equal(ret, 0);
	return e.at_bits;
}

static void same_bits(const uint8_t *a, const uint8_t *b, uint64_t n_bits, bool big_endian)
{
	assert_memory_equal(a, b, n_bits / 8);
	if (n_bits % 8)
		assert_int_equal(ky_read_bits(a, n_bits & ~UINT64_C(7), n_bits % 8, big_endian),
				 ky_read_bits(b, n_bits & ~UINT64_C(7), n_bits % 8, big_endian));
}

static bool ends_big_endian(const struct ky_values *values)
{
	for (size_t i = values->list.len; i-- > 0;) {
		const struct ky_field_class *cls = values->list.data[i].cls;

		if (cls->kind < KY_FIELD_VARUINT)
			return cls->num.big_endian;
	}
	return false;
}

/* One round over random bytes. True when they held an event at all. */
static bool round_trip(const struct ky_trace_class *trace, struct ky_decoder *decoder,
		       bool is_exact)
{
	uint8_t in[PACKET_BYTES], out[PACKET_BYTES], again[PACKET_BYTES];
	struct ky_values a, b;
	struct ky_event event;
	struct kymo_error err;
	uint64_t n_bits;

	fill(in);
	memset(out, 0x5a, sizeof(out));
	memset(again, 0xa5, sizeof(again));
	if (!first_event(decoder, in, sizeof(in), &event))
		return false;
	ky_values_init(&a);
	ky_values_init(&b);
	assert_true(ky_values_decode(&a, &event, KY_SCOPE_PAYLOAD, &err) > 0);
	n_bits = encode(trace, &a, out, sizeof(out));
	assert_int_equal(n_bits, event.end_bits);
	if (is_exact)
		same_bits(in, out, n_bits, ends_big_endian(&a));
	assert_true(first_event(decoder, out, sizeof(out), &event));
	assert_int_equal(n_bits, event.end_bits);
	assert_true(ky_values_decode(&b, &event, KY_SCOPE_PAYLOAD, &err) > 0);
	same_values(&a, &b);
	assert_int_equal(encode(trace, &b, again, sizeof(again)), n_bits);
	same_bits(out, again, n_bits, ends_big_endian(&a));
	ky_values_fini(&a);
	ky_values_fini(&b);
	return true;
}

static void many_rounds(const char *metadata, bool is_exact)
{
	struct ky_trace_class *trace;
	struct ky_decoder *decoder;
	struct kymo_error err;
	int held = 0;

	if (ky_metadata_read(metadata, strlen(metadata), &trace, &err) < 0)
		fail_msg("%s: %s", err.message, metadata);
	decoder = ky_decoder_new(trace);
	random_state = 0x9e3779b97f4a7c15;
	for (int i = 0; i < ROUNDS; i++)
		held += round_trip(trace, decoder, is_exact);
	assert_true(held > ROUNDS / 10);
	ky_decoder_free(decoder);
	ky_trace_class_free(trace);
}

static void exact_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
		many_rounds(exact[i], true);
}

static void equal_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(padded) / sizeof(padded[0]); i++)
		many_rounds(padded[i], false);
}

static void leb128(void **state)
{
	static const struct {
		int64_t value;
		bool is_signed;
		unsigned int min_bytes, n;
		const char *bytes;
	} cases[] = {
		{0, false, 0, 1, "\0"},
		{127, false, 0, 1, "\177"},
		{128, false, 0, 2, "\200\1"},
		{-1, true, 0, 1, "\177"},
		{63, true, 0, 1, "\77"},
		{64, true, 0, 2, "\300\0"},
		{-64, true, 0, 1, "\100"},
		{-65, true, 0, 2, "\277\177"},
		{5, false, 3, 3, "\205\200\0"},
		{-2, true, 3, 3, "\376\377\177"},
		{-1, false, 0, 10, "\377\377\377\377\377\377\377\377\377\1"},
		{INT64_MIN, true, 0, 10, "\200\200\200\200\200\200\200\200\200\177"},
	};
	uint8_t bytes[KY_LEB128_MAX_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *at = bytes;
		unsigned int n_bits;
		uint64_t back;

		assert_int_equal(ky_leb128_write(bytes, (uint64_t)cases[i].value,
						 cases[i].is_signed, cases[i].min_bytes),
				 cases[i].n);
		assert_memory_equal(bytes, cases[i].bytes, cases[i].n);
		assert_int_equal(ky_leb128_read(&at, bytes + sizeof(bytes), cases[i].is_signed,
						&back, &n_bits),
				 0);
		assert_int_equal(back, (uint64_t)cases[i].value);
	}
}

/* Values that contradict their classes are refused, and a full buffer is a different error. */
static void refused(void **state)
{
	struct ky_trace_class *trace;
	struct ky_decoder *decoder;
	uint8_t in[PACKET_BYTES] = {3, 1, 2, 3}, out[8];
	uint64_t slots[16] = {0};
	struct ky_encoder e = {.data = out, .size_bits = 64, .slots = slots};
	struct ky_values values;
	struct ky_event event;
	struct kymo_error err;

	(void)state;
	assert_int_equal(ky_metadata_read(exact[11], strlen(exact[11]), &trace, &err), 0);
	decoder = ky_decoder_new(trace);
	ky_values_init(&values);
	assert_true(first_event(decoder, in, sizeof(in), &event));
	assert_int_equal(ky_values_decode(&values, &event, KY_SCOPE_PAYLOAD, &err), 3);
	assert_int_equal(ky_encode_scope(&e, values.list.data, 3, &err), 0);
	assert_int_equal(e.at_bits, 32);
	e.size_bits = 56;
	assert_int_equal(ky_encode_scope(&e, values.list.data, 3, &err), 1);
	assert_int_equal(e.at_bits, 32);
	e.size_bits = 64;
	values.list.data[1].u = 2;
	assert_int_equal(ky_encode_scope(&e, values.list.data, 3, &err), KYMO_E_INVALID);
	assert_int_equal(e.at_bits, 32);
	values.list.data[1].u = 3;
	assert_int_equal(ky_encode_scope(&e, values.list.data, 2, &err), KYMO_E_INVALID);
	ky_values_fini(&values);
	ky_decoder_free(decoder);
	ky_trace_class_free(trace);
}

static void max_align(void **state)
{
	static const uint64_t want[] = {32, 8, 64, 16, 8};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct ky_trace_class *trace;
		struct kymo_error err;

		assert_int_equal(ky_metadata_read(padded[i], strlen(padded[i]), &trace, &err), 0);
		assert_int_equal(ky_encode_max_align(trace->events.data[0]->payload), want[i]);
		ky_trace_class_free(trace);
	}
	assert_int_equal(ky_encode_max_align(NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_bits), cmocka_unit_test(equal_values),
		cmocka_unit_test(leb128),     cmocka_unit_test(refused),
		cmocka_unit_test(max_align),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
