/* SPDX-License-Identifier: MIT */
/* The sink that forgets: what it keeps, in which order, and that copies do not change it. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/packet.h"
#include "os/file.h"
#include "store/directory/directory-store.h"
#include "store/packets/memory-trace.h"

#define PACKET_BYTES 1000

static char top[64];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/kymo-test-flight-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	return nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A packet of one byte, again and again, the first of which come as a head; @n times as large as others. */
static void send_large(struct ky_store_trace *sink, int stream, char byte, uint32_t n)
{
	char bytes[4 * PACKET_BYTES], head[10];
	struct ky_packet_out out = {
		.data = bytes + sizeof(head),
		.size_bytes = n * PACKET_BYTES,
		.head = head,
		.head_bytes = sizeof(head),
		.content_bits = n * PACKET_BYTES * 8,
		.n_events = 2,
	};
	struct kymo_error err;

	assert_true(out.size_bytes <= sizeof(bytes));
	memset(bytes, byte, sizeof(bytes));
	memset(head, byte, sizeof(head));
	assert_int_equal(ky_store_packet(sink, stream, &out, &err), 0);
}

static void send(struct ky_store_trace *sink, int stream, char byte)
{
	send_large(sink, stream, byte, 1);
}

/* The first bytes of the packets in a stream's file. */
static void packets_of(const char *trace, const char *name, char *to)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[160];
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/%s", trace, name);
	assert_int_equal(ky_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	assert_int_equal(text.len % PACKET_BYTES, 0);
	for (size_t at = 0; at < text.len; at += PACKET_BYTES) {
		assert_int_equal(text.data[at + PACKET_BYTES - 1], text.data[at]);
		to[n++] = text.data[at];
	}
	to[n] = 0;
	ky_strbuf_fini(&text);
}

/* Copy to a new trace; returns its events. */
static uint64_t copy(struct ky_store_trace *sink, const char *name, char *trace)
{
	struct ky_store_trace *to;
	struct kymo_error err;
	uint64_t events, state;

	sprintf(trace, "%s/%s", top, name);
	assert_int_equal(ky_directory_trace_open(trace, false, &to, &err), 0);
	assert_int_equal(ky_memory_trace_copy_events(sink, to, &events, &err), 0);
	assert_int_equal(ky_memory_trace_copy_state(sink, to, &state, &err), 0);
	assert_int_equal(ky_store_close(to, &err), 0);
	return events + state;
}

static void keeps_the_newest(void **state)
{
	struct ky_store_trace *sink;
	char trace[100], found[100];
	struct kymo_error err;
	int a, b, dump;

	assert_int_equal(ky_memory_trace_open(4 * PACKET_BYTES, &sink, &err), 0);
	a = ky_store_stream(sink, "channel0_0", &err);
	dump = ky_store_stream(sink, "statedump_0", &err);
	b = ky_store_stream(sink, "channel0_1", &err);
	assert_int_equal(ky_store_metadata(sink, "old", 3, &err), 0);
	assert_int_equal(ky_store_metadata(sink, "newer", 5, &err), 0);
	for (char c = 'a'; c <= 'j'; c++) {
		send(sink, a, c);
		send(sink, dump, c);
	}
	send(sink, b, 'x');
	assert_int_equal(copy(sink, "first", trace), 2 * (4 + 10 + 1));
	packets_of(trace, "channel0_0", found);
	assert_string_equal(found, "ghij");
	packets_of(trace, "statedump_0", found);
	assert_string_equal(found, "abcdefghij");
	packets_of(trace, "channel0_1", found);
	assert_string_equal(found, "x");
	send(sink, a, 'k');
	assert_int_equal(copy(sink, "second", trace), 2 * (4 + 10 + 1));
	packets_of(trace, "channel0_0", found);
	assert_string_equal(found, "hijk");
	assert_int_equal(ky_store_close(sink, &err), 0);
}

/* Packets are as large as there was to be told when they were closed: what is kept is never less than was wanted. */
static void small_ones_push_out_no_large_one(void **state)
{
	struct ky_store_trace *sink;
	char trace[100], found[100];
	struct kymo_error err;

	assert_int_equal(ky_memory_trace_open(2 * PACKET_BYTES, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "s", &err), 0);
	send_large(sink, 0, 'a', 4);
	send(sink, 0, 'b');
	assert_int_equal(copy(sink, "large", trace), 4);
	packets_of(trace, "s", found);
	assert_string_equal(found, "aaaab");
	send(sink, 0, 'c');
	assert_int_equal(copy(sink, "small", trace), 4);
	packets_of(trace, "s", found);
	assert_string_equal(found, "bc");
	send_large(sink, 0, 'd', 3);
	assert_int_equal(copy(sink, "large-again", trace), 2);
	packets_of(trace, "s", found);
	assert_string_equal(found, "ddd");
	assert_int_equal(ky_store_close(sink, &err), 0);
}

/* A packet of a state dump, as it lies in the trace. */
static void send_dump(struct ky_store_trace *sink, int stream, uint64_t cycles, uint64_t sequence)
{
	char bytes[PACKET_BYTES] = {0};
	struct ky_packet_prolog prolog = {
		.magic = KY_CTF_MAGIC, .begin_cycles = cycles, .sequence = sequence};
	struct ky_packet_out out = {
		.data = bytes,
		.size_bytes = sizeof(bytes),
		.content_bits = sizeof(bytes) * 8,
		.begin_cycles = cycles,
		.sequence = sequence,
		.n_events = 3,
	};
	struct kymo_error err;

	memcpy(bytes, &prolog, sizeof(prolog));
	assert_int_equal(ky_store_packet(sink, stream, &out, &err), 0);
}

/* State dumps that newer ones replace: those that are left are counted without a gap, which would be a loss to readers. */
static void state_dumps_are_dropped(void **state)
{
	static const uint64_t left[] = {10, 50, 60};
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_packet_prolog prolog;
	struct ky_store_trace *sink;
	char trace[100], path[160];
	struct kymo_error err;

	assert_int_equal(ky_memory_trace_open(PACKET_BYTES, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "statedump_0", &err), 0);
	assert_int_equal(ky_store_stream(sink, "channel0_0", &err), 1);
	assert_int_equal(ky_memory_trace_oldest(sink), UINT64_MAX);
	for (uint64_t i = 0; i < 5; i++)
		send_dump(sink, 0, 10 * (i + 1), i);
	send_dump(sink, 1, 25, 0);
	send_dump(sink, 1, 35, 1);
	assert_int_equal(ky_memory_trace_oldest(sink), 35);
	assert_int_equal(ky_memory_trace_drop(sink, 0, 20, 40), 3 * 3);
	assert_int_equal(ky_memory_trace_drop(sink, 0, 20, 40), 0);
	send_dump(sink, 0, 60, 5);
	assert_int_equal(copy(sink, "dumps", trace), 3 + 3 * 3);
	snprintf(path, sizeof(path), "%s/statedump_0", trace);
	assert_int_equal(ky_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	assert_int_equal(text.len, 3 * PACKET_BYTES);
	for (size_t i = 0; i < 3; i++) {
		memcpy(&prolog, text.data + i * PACKET_BYTES, sizeof(prolog));
		assert_int_equal(prolog.begin_cycles, left[i]);
		assert_int_equal(prolog.sequence, i);
	}
	/* The last one, and then all: what comes next is the first. */
	assert_int_equal(ky_memory_trace_drop(sink, 0, 60, 60), 3);
	send_dump(sink, 0, 70, 6);
	assert_int_equal(ky_memory_trace_drop(sink, 0, 0, UINT64_MAX), 3 * 3);
	send_dump(sink, 0, 80, 7);
	assert_int_equal(copy(sink, "one-dump", trace), 2 * 3);
	ky_strbuf_fini(&text);
	assert_int_equal(ky_store_close(sink, &err), 0);
}

static void mistakes(void **state)
{
	struct ky_packet_out out = {.data = "", .size_bytes = 1};
	struct ky_store_trace *sink;
	char trace[100];
	struct kymo_error err;

	assert_int_equal(ky_memory_trace_open(0, &sink, &err), 0);
	assert_int_equal(ky_store_packet(sink, 0, &out, &err), KYMO_E_INVALID);
	assert_int_equal(copy(sink, "empty", trace), 0);
	/* Even without room, the last packet is there. */
	assert_int_equal(ky_store_stream(sink, "s", &err), 0);
	send(sink, 0, 'a');
	send(sink, 0, 'b');
	assert_int_equal(copy(sink, "one", trace), 2);
	assert_int_equal(ky_store_close(sink, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keeps_the_newest, setup, teardown),
		cmocka_unit_test_setup_teardown(small_ones_push_out_no_large_one, setup, teardown),
		cmocka_unit_test_setup_teardown(state_dumps_are_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
