/* SPDX-License-Identifier: MIT */
/* Packets that packet-writer.c made, decoded: headers, values, handles, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ctf/decode/decode.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/encode/packet-writer.h"
#include "ctf/decode/plan.h"

struct fixture {
	struct ky_trace_class *trace;
	struct ky_stream_class *stream;
	struct ky_event_class *plain, *texts, *choice, *empty;
	struct ky_packet_writer writer;
	struct ky_decoder *decoder;
};

static void add_plain(struct fixture *f)
{
	f->plain = ky_event_class_new(f->stream, 0, "plain");
	f->plain->payload = ky_struct_new(f->trace);
	ky_struct_add_int(f->trace, f->plain->payload, "_a", 32, true, 10);
	ky_struct_add_int(f->trace, f->plain->payload, "_b", 64, false, 16);
	ky_struct_add_text(f->trace, f->plain->payload, "_comm", 16);
}

/* What follows a string has no constant place; what a length tells has no constant size. */
static void add_texts(struct fixture *f)
{
	struct ky_field_class *length;

	f->texts = ky_event_class_new(f->stream, 7, "texts");
	f->texts->payload = ky_struct_new(f->trace);
	ky_struct_add_int(f->trace, f->texts->payload, "_first", 16, false, 10);
	ky_struct_add_string(f->trace, f->texts->payload, "_name");
	ky_struct_add_int(f->trace, f->texts->payload, "_after", 32, true, 10);
	length = ky_struct_add_int(f->trace, f->texts->payload, "_len", 8, false, 10);
	ky_struct_add_dynamic_text(f->trace, f->texts->payload, "_data", length);
	ky_struct_add_int(f->trace, f->texts->payload, "_last", 8, false, 10);
}

static void add_choice(struct fixture *f)
{
	struct ky_field_class *tag, *variant;

	f->choice = ky_event_class_new(f->stream, 70000, "choice");
	f->choice->payload = ky_struct_new(f->trace);
	tag = ky_struct_add_enum(f->trace, f->choice->payload, "_tag", 8, false);
	ky_enum_add(f->trace, tag, "small", 0, 9);
	ky_enum_add(f->trace, tag, "large", 10, 19);
	variant = ky_struct_add_variant(f->trace, f->choice->payload, "_value", tag);
	ky_variant_add(f->trace, variant, "small", ky_int_new(f->trace, 8, false, 10));
	ky_variant_add(f->trace, variant, "large", ky_int_new(f->trace, 64, true, 10));
}

static void open_fixture(struct fixture *f, bool compact)
{
	struct ky_clock_class *clock;
	struct kymo_error err;

	memset(f, 0, sizeof(*f));
	f->trace = ky_trace_class_new();
	f->trace->has_uuid = true;
	memset(f->trace->uuid, 0x42, 16);
	clock = ky_clock_class_new(f->trace, "monotonic");
	clock->frequency_hz = 1000000000;
	clock->offset_s = 5;
	assert_int_equal(ky_lttng_layout_trace(f->trace), 0);
	f->stream = ky_lttng_layout_stream(f->trace, 0, clock, compact);
	f->stream->event_context = ky_struct_new(f->trace);
	ky_struct_add_int(f->trace, f->stream->event_context, "_tid", 32, true, 10);
	add_plain(f);
	add_texts(f);
	add_choice(f);
	f->empty = ky_event_class_new(f->stream, 9, "empty");
	f->empty->payload = ky_struct_new(f->trace);
	if (ky_trace_class_finish(f->trace, true, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(f->stream->plan->header_kind,
			 compact ? KY_HEADER_COMPACT : KY_HEADER_LARGE);
	assert_int_equal(ky_packet_writer_init(&f->writer, 4096, f->trace->uuid, 0, 11, 3, compact),
			 0);
	ky_packet_writer_begin(&f->writer, 1000);
	f->decoder = ky_decoder_new(f->trace);
	assert_non_null(f->decoder);
}

static void close_fixture(struct fixture *f)
{
	ky_decoder_free(f->decoder);
	ky_packet_writer_fini(&f->writer);
	ky_trace_class_free(f->trace);
}

static void put_plain(struct fixture *f, uint64_t cycles, int32_t tid, int32_t a, uint64_t b)
{
	uint8_t *body = ky_packet_writer_event(&f->writer, 0, cycles, 4 + 4 + 8 + 16);

	memcpy(body, &tid, 4);
	memcpy(body + 4, &a, 4);
	memcpy(body + 8, &b, 8);
	memcpy(body + 16, "swapper/3\0junkju", 16);
}

static void put_texts(struct fixture *f, uint64_t cycles)
{
	static const char body[] = "\1\0\0\0"	      /* tid */
				   "\2\1"	      /* first = 0x102 */
				   "hello\0"	      /* name */
				   "\376\377\377\377" /* after = -2 */
				   "\5"		      /* len */
				   "ab\0cd"	      /* data */
				   "\7";	      /* last */

	memcpy(ky_packet_writer_event(&f->writer, 7, cycles, sizeof(body) - 1), body,
	       sizeof(body) - 1);
}

static const struct ky_packet *decode_packet(struct fixture *f, uint32_t size)
{
	const struct ky_packet *packet;
	struct kymo_error err;

	if (ky_decoder_packet(f->decoder, f->writer.data, size, 4096, &packet, &err) < 0)
		fail_msg("%s", err.message);
	return packet;
}

static void check_events(bool compact)
{
	struct ky_event events[8];
	const struct ky_packet *packet;
	struct ky_handle handle;
	struct kymo_error err;
	struct fixture f;
	size_t len;

	open_fixture(&f, compact);
	put_plain(&f, 1010, 77, -5, UINT64_MAX);
	put_texts(&f, UINT64_C(1) << 40);
	ky_packet_writer_event(&f.writer, 9, (UINT64_C(1) << 40) + 1, 4);
	packet = decode_packet(&f, ky_packet_writer_close(&f.writer, UINT64_C(1) << 41, 3, 64));
	assert_int_equal(packet->begin_cycles, 1000);
	assert_int_equal(packet->begin_ns, 5000001000);
	assert_int_equal(packet->cpu_id, 3);
	assert_int_equal(packet->discarded, 3);
	assert_int_equal(packet->stream_id, 11);
	assert_int_equal(ky_decoder_next(f.decoder, events, 8, &err), 3);
	assert_int_equal(ky_decoder_next(f.decoder, events + 3, 5, &err), 0);
	assert_ptr_equal(events[0].cls, f.plain);
	assert_int_equal(events[0].ns, 5000001010);
	assert_int_equal(events[1].cycles, UINT64_C(1) << 40);
	assert_int_equal(events[2].cycles, (UINT64_C(1) << 40) + 1);
	assert_ptr_equal(events[2].cls, f.empty);

	assert_true(ky_handle_find(&handle, f.plain, KY_SCOPE_STREAM_CONTEXT, "tid"));
	assert_int_equal(ky_get_i64(&events[0], &handle, -1), 77);
	assert_true(ky_handle_find(&handle, f.plain, KY_SCOPE_PAYLOAD, "a"));
	assert_int_equal(ky_get_i64(&events[0], &handle, 0), -5);
	assert_true(ky_handle_find_any(&handle, f.plain, "_b"));
	assert_int_equal(ky_get_u64(&events[0], &handle, 0), UINT64_MAX);
	assert_true(ky_handle_find_any(&handle, f.plain, "comm"));
	assert_memory_equal(ky_get_text(&events[0], &handle, &len), "swapper/3", 9);
	assert_int_equal(len, 9);

	assert_true(ky_handle_find_any(&handle, f.texts, "after"));
	assert_int_equal(handle.fixed_at_bits, -1);
	assert_int_equal(ky_get_i64(&events[1], &handle, 0), -2);
	assert_true(ky_handle_find_any(&handle, f.texts, "last"));
	assert_int_equal(ky_get_u64(&events[1], &handle, 0), 7);
	assert_true(ky_handle_find_any(&handle, f.texts, "data"));
	assert_memory_equal(ky_get_text(&events[1], &handle, &len), "ab", 2);
	assert_int_equal(len, 2);
	assert_false(ky_handle_find_any(&handle, f.texts, "nothing"));
	assert_int_equal(ky_get_u64(&events[1], &handle, 99), 99);
	close_fixture(&f);
}

static void large(void **state)
{
	check_events(false);
}

static void compact(void **state)
{
	check_events(true);
}

static void values(void **state)
{
	struct ky_values v;
	struct ky_event events[4];
	struct kymo_error err;
	struct fixture f;
	uint8_t *body;

	open_fixture(&f, false);
	put_texts(&f, 2000);
	body = ky_packet_writer_event(&f.writer, 70000, 2001, 4 + 1 + 8);
	memset(body, 0, 13);
	body[4] = 12;
	memset(body + 5, 0xff, 8);
	decode_packet(&f, ky_packet_writer_close(&f.writer, 2001, 0, 8));
	assert_int_equal(ky_decoder_next(f.decoder, events, 4, &err), 2);
	ky_values_init(&v);

	assert_int_equal(ky_values_decode(&v, &events[0], KY_SCOPE_PAYLOAD, &err), 7);
	assert_int_equal(v.list.data[0].n_children, 6);
	assert_int_equal(v.list.data[0].n_below, 6);
	assert_string_equal(v.list.data[1].name, "first");
	assert_int_equal(v.list.data[1].u, 0x102);
	assert_int_equal(v.list.data[2].str.len_bytes, 5);
	assert_int_equal(v.list.data[3].s, -2);
	assert_int_equal(v.list.data[5].str.len_bytes, 2);
	assert_int_equal(v.list.data[6].u, 7);
	assert_int_equal(ky_values_decode(&v, &events[0], KY_SCOPE_EVENT_CONTEXT, &err), 0);
	assert_int_equal(ky_values_decode(&v, &events[0], KY_SCOPE_STREAM_CONTEXT, &err), 2);
	assert_int_equal(v.list.data[1].s, 1);
	assert_true(ky_values_decode(&v, &events[0], KY_SCOPE_PACKET_CONTEXT, &err) > 7);
	assert_true(ky_values_decode(&v, &events[0], KY_SCOPE_EVENT_HEADER, &err) > 3);

	/* root, tag, variant, and the option that 12 selects */
	assert_int_equal(ky_values_decode(&v, &events[1], KY_SCOPE_PAYLOAD, &err), 4);
	assert_string_equal(v.list.data[2].option->display, "large");
	assert_int_equal(v.list.data[3].s, -1);
	ky_values_fini(&v);
	close_fixture(&f);
}

/* A length in an option that the event does not have: no handle takes it for 0, or for the last one. */
static void not_there(void **state)
{
	static const uint8_t body[] = {1, 2, 'a', 'b'};
	struct ky_field_class *tag, *variant, *some, *length;
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_stream_class *stream = ky_stream_class_new(trace, 0);
	struct ky_event_class *cls = ky_event_class_new(stream, 0, "e");
	struct ky_packet packet = {.stream_class = stream, .data = body};
	struct ky_event event = {.cls = cls, .packet = &packet, .end_bits = 32};
	struct ky_values values;
	struct ky_handle handle;
	struct ky_place place;
	struct kymo_error err;
	uint8_t other[4];
	size_t len;

	cls->payload = ky_struct_new(trace);
	tag = ky_struct_add_enum(trace, cls->payload, "tag", 8, false);
	ky_enum_add(trace, tag, "none", 0, 0);
	ky_enum_add(trace, tag, "some", 1, 1);
	variant = ky_struct_add_variant(trace, cls->payload, "v", tag);
	ky_variant_add(trace, variant, "none", ky_int_new(trace, 8, false, 10));
	some = ky_struct_new(trace);
	length = ky_struct_add_int(trace, some, "n", 8, false, 10);
	ky_variant_add(trace, variant, "some", some);
	ky_struct_add_dynamic_text(trace, cls->payload, "text", length);
	if (ky_trace_class_finish(trace, true, &err) < 0)
		fail_msg("%s", err.message);
	ky_values_init(&values);
	assert_true(ky_handle_find(&handle, cls, KY_SCOPE_PAYLOAD, "text"));
	assert_memory_equal(ky_get_text(&event, &handle, &len), "ab", 2);
	assert_int_equal(len, 2);
	assert_true(ky_values_decode(&values, &event, KY_SCOPE_PAYLOAD, &err) > 0);

	memcpy(other, body, sizeof(other));
	other[0] = 0;
	packet.data = other;
	assert_false(ky_handle_place(&event, &handle, &place));
	assert_int_equal(ky_handle_decode(&values, &event, &handle, &err), KYMO_E_FORMAT);
	assert_int_equal(ky_values_decode(&values, &event, KY_SCOPE_PAYLOAD, &err), KYMO_E_FORMAT);
	assert_non_null(strstr(err.message, "is not there"));
	ky_values_fini(&values);
	ky_trace_class_free(trace);
	(void)state;
}

/* What is whole comes first, then the error with its place. */
static void damage(void **state)
{
	struct ky_event events[4];
	struct kymo_error err;
	struct fixture f;
	uint32_t size;

	open_fixture(&f, false);
	put_plain(&f, 1001, 1, 1, 1);
	put_plain(&f, 1002, 2, 2, 2);
	size = ky_packet_writer_close(&f.writer, 1002, 0, 8);
	decode_packet(&f, size - 20);
	assert_int_equal(ky_decoder_next(f.decoder, events, 4, &err), 1);
	assert_int_equal(ky_decoder_next(f.decoder, events, 4, &err), KYMO_E_FORMAT);
	assert_non_null(strstr(err.message, "truncated"));
	assert_int_equal(err.offset, 4096 + size - 20);
	assert_int_equal(ky_decoder_next(f.decoder, events, 4, &err), 0);

	/* An id that the metadata does not have. */
	decode_packet(&f, size);
	f.writer.data[KY_PACKET_PROLOG_BYTES + 6 + 32] = 99;
	assert_int_equal(ky_decoder_next(f.decoder, events, 4, &err), 1);
	assert_int_equal(ky_decoder_next(f.decoder, events, 4, &err), KYMO_E_FORMAT);
	assert_non_null(strstr(err.message, "id 99"));
	close_fixture(&f);
}

static void bad_packets(void **state)
{
	const struct ky_packet *packet;
	struct kymo_error err;
	struct fixture f;
	uint64_t huge = UINT64_MAX;
	uint32_t size;

	open_fixture(&f, false);
	put_plain(&f, 1001, 1, 1, 1);
	size = ky_packet_writer_close(&f.writer, 1001, 0, 8);
	for (uint32_t cut = 0; cut < KY_PACKET_PROLOG_BYTES; cut++)
		assert_int_equal(ky_decoder_packet(f.decoder, f.writer.data, cut, 0, &packet, &err),
				 KYMO_E_FORMAT);
	memcpy(f.writer.data + 48, &huge, 8);
	assert_int_equal(ky_decoder_packet(f.decoder, f.writer.data, size, 0, &packet, &err),
			 KYMO_E_FORMAT);
	memset(f.writer.data + 48, 0, 8);
	assert_int_equal(ky_decoder_packet(f.decoder, f.writer.data, size, 0, &packet, &err),
			 KYMO_E_FORMAT);
	f.writer.data[4] ^= 1;
	assert_int_equal(ky_decoder_packet(f.decoder, f.writer.data, size, 0, &packet, &err),
			 KYMO_E_FORMAT);
	assert_non_null(strstr(err.message, "UUID"));
	f.writer.data[0] ^= 1;
	assert_int_equal(ky_decoder_packet(f.decoder, f.writer.data, size, 0, &packet, &err),
			 KYMO_E_FORMAT);
	assert_non_null(strstr(err.message, "magic"));
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large),     cmocka_unit_test(compact),
		cmocka_unit_test(values),    cmocka_unit_test(damage),
		cmocka_unit_test(not_there), cmocka_unit_test(bad_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
