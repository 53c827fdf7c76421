/* SPDX-License-Identifier: MIT */
/* The directory sink: layout, index bytes, permissions, full disks; and that a peer reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "ctf/encode/packet-writer.h"
#include "os/file.h"
#include "store/directory/directory-store.h"

static char top[64], trace[96];
static struct ky_strbuf text;

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/kymo-test-writer-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(trace, sizeof(trace), "%s/trace", top);
	ky_strbuf_init(&text);
	return 0;
}

static int teardown(void **state)
{
	ky_strbuf_fini(&text);
	return nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const uint8_t *contents(const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", trace, name);
	assert_int_equal(ky_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	return (const uint8_t *)ky_strbuf_text(&text);
}

static unsigned int mode_of(const char *name)
{
	struct stat st;
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", trace, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static struct ky_packet_out packet_of(char *bytes, size_t size)
{
	memset(bytes, 'p', size);
	return (struct ky_packet_out){.data = bytes,
				      .size_bytes = size,
				      .content_bits = size * 8 - 16,
				      .begin_cycles = 100,
				      .end_cycles = 200,
				      .discarded = 3,
				      .sequence = 9,
				      .stream_class_id = 1,
				      .stream_id = 42};
}

static void check_index(void)
{
	const uint8_t *index = contents("index/channel0_0.idx");
	const uint8_t *second = index + 16 + 72;

	assert_int_equal(text.len, 16 + 2 * 72);
	assert_int_equal(ky_load32(index, true), 0xC1F1DCC1);
	assert_int_equal(ky_load32(index + 4, true), 1);
	assert_int_equal(ky_load32(index + 8, true), 1);
	assert_int_equal(ky_load32(index + 12, true), 72);
	assert_int_equal(ky_load64(index + 16, true), 0);
	assert_int_equal(ky_load64(second, true), 64); /* offset: bytes */
	assert_int_equal(ky_load64(second + 8, true), 32 * 8);
	assert_int_equal(ky_load64(second + 16, true), 32 * 8 - 16);
	assert_int_equal(ky_load64(second + 24, true), 100);
	assert_int_equal(ky_load64(second + 32, true), 200);
	assert_int_equal(ky_load64(second + 40, true), 3);
	assert_int_equal(ky_load64(second + 48, true), 1);
	assert_int_equal(ky_load64(second + 56, true), 42);
	assert_int_equal(ky_load64(second + 64, true), 9);
}

static void layout(void **state)
{
	struct ky_store_trace *sink;
	struct ky_packet_out packet;
	struct kymo_error err;
	char bytes[64];

	assert_int_equal(ky_directory_trace_open(trace, false, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "channel0_0", &err), 0);
	assert_int_equal(ky_store_stream(sink, "channel0_1", &err), 1);
	packet = packet_of(bytes, 64);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), 0);
	packet = packet_of(bytes, 32);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), 0);
	assert_int_equal(ky_store_packet(sink, 2, &packet, &err), KYMO_E_INVALID);
	assert_int_equal(sink->bytes_written, 96);
	assert_int_equal(ky_store_metadata(sink, "old text", 8, &err), 0);
	assert_int_equal(ky_store_metadata(sink, "new", 3, &err), 0);
	assert_int_equal(ky_store_close(sink, &err), 0);
	assert_string_equal((const char *)contents("metadata"), "new");
	contents("channel0_0");
	assert_int_equal(text.len, 96);
	contents("channel0_1");
	assert_int_equal(text.len, 0);
	check_index();
	assert_int_equal(mode_of("."), 0700);
	assert_int_equal(mode_of("index"), 0700);
	assert_int_equal(mode_of("metadata"), 0600);
	assert_int_equal(mode_of("channel0_0"), 0600);
	assert_int_equal(mode_of("index/channel0_0.idx"), 0600);
}

/* More entries than the batch that is kept in memory. */
static bool is_there(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", trace, name);
	return access(path, F_OK) == 0;
}

/* A store with several traces: names that are taken get a number, and discarded traces leave nothing. */
static void traces_of_a_store(void **state)
{
	const struct ky_store_place place = {.path = "ust/pid/shop", .is_numbered = true};
	const struct ky_store_place part = {.path = "raw/state", .is_part = true};
	struct ky_packet_store *store;
	struct ky_store_trace *first, *second, *third;
	struct kymo_error err;

	assert_int_equal(mkdir(trace, 0700), 0);
	assert_int_equal(ky_directory_store_open(trace, &store, &err), 0);
	assert_int_equal(ky_store_open(store, &place, &first, &err), 0);
	assert_string_equal(first->path, "ust/pid/shop");
	assert_int_equal(ky_store_open(store, &place, &second, &err), 0);
	assert_string_equal(second->path, "ust/pid/shop-2");
	assert_int_equal(ky_store_stream(second, "s", &err), 0);
	assert_int_equal(ky_store_metadata(second, "text", 4, &err), 0);
	ky_store_discard(second);
	assert_false(is_there("ust/pid/shop-2"));
	assert_int_equal(ky_store_close(first, &err), 0);
	assert_true(is_there("ust/pid/shop"));
	assert_int_equal(ky_store_open(store, &part, &third, &err), 0);
	assert_int_equal(ky_store_metadata(third, "text", 4, &err), 0);
	assert_int_equal(ky_store_close(third, &err), 0);
	assert_true(is_there("raw/state/metadata.ctf"));
	assert_false(is_there("raw/state/metadata"));
	ky_store_free(store);
}

/* The metadata can change when all streams are complete, and no file is open meanwhile. */
static void ended_streams(void **state)
{
	struct ky_store_trace *sink;
	struct ky_packet_out packet;
	struct kymo_error err;
	char bytes[64];

	assert_int_equal(ky_directory_trace_open(trace, false, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "s", &err), 0);
	packet = packet_of(bytes, 64);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), 0);
	assert_int_equal(ky_store_flush(sink, &err), 0);
	contents("index/s.idx");
	assert_int_equal(text.len, 16 + 72);
	assert_int_equal(ky_store_metadata(sink, "0123456789", 10, &err), 0);
	assert_int_equal(ky_store_end_streams(sink, &err), 0);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), KYMO_E_STATE);
	assert_true(ky_store_can_patch(sink));
	assert_int_equal(ky_store_patch_metadata(sink, 3, "abc", 3, &err), 0);
	assert_string_equal((const char *)contents("metadata"), "012abc6789");
	assert_int_equal(ky_store_metadata(sink, "whole", 5, &err), 0);
	assert_int_equal(ky_store_close(sink, &err), 0);
	assert_string_equal((const char *)contents("metadata"), "whole");
}

/* The trace moves away, and streams continue in a new one, in files that begin with their next packet. */
static void rotation(void **state)
{
	const struct ky_store_place place = {.path = "kernel"};
	struct ky_packet_store *store;
	struct ky_store_trace *sink;
	struct ky_packet_out packet;
	struct kymo_error err;
	char bytes[64];

	assert_int_equal(mkdir(trace, 0700), 0);
	assert_int_equal(ky_directory_store_open(trace, &store, &err), 0);
	assert_int_equal(ky_store_open(store, &place, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "a", &err), 0);
	assert_int_equal(ky_store_stream(sink, "b", &err), 1);
	packet = packet_of(bytes, 64);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), 0);
	assert_int_equal(ky_store_metadata(sink, "first", 5, &err), 0);
	assert_int_equal(ky_store_rotate(sink, "old/1/kernel", &err), 0);
	assert_string_equal(sink->path, "kernel");
	assert_int_equal(ky_store_packet(sink, 1, &packet, &err), 0);
	assert_int_equal(ky_store_packet(sink, 1, &packet, &err), 0);
	assert_int_equal(ky_store_metadata(sink, "second", 6, &err), 0);
	contents("old/1/kernel/a");
	assert_int_equal(text.len, 64);
	assert_string_equal((const char *)contents("old/1/kernel/metadata"), "first");
	contents("kernel/b");
	assert_int_equal(text.len, 128);
	assert_false(is_there("kernel/a"));
	/* A trace without packets to come only moves; its metadata can still change. */
	assert_int_equal(ky_store_end_streams(sink, &err), 0);
	assert_int_equal(ky_store_rotate(sink, "old/2/kernel", &err), 0);
	assert_false(is_there("kernel"));
	assert_int_equal(ky_store_metadata(sink, "last", 4, &err), 0);
	assert_int_equal(ky_store_close(sink, &err), 0);
	assert_string_equal((const char *)contents("old/2/kernel/metadata"), "last");
	/* Other processes may have put anything in the place of the archive. */
	assert_int_equal(ky_store_open(store, &place, &sink, &err), 0);
	assert_int_equal(ky_store_rotate(sink, "old/2/kernel", &err), KYMO_E_INVALID);
	assert_int_equal(ky_store_close(sink, &err), 0);
	ky_store_free(store);
}

static void many_packets(void **state)
{
	struct ky_store_trace *sink;
	struct ky_packet_out packet;
	char bytes[8];

	assert_int_equal(ky_directory_trace_open(trace, false, &sink, NULL), 0);
	assert_int_equal(ky_store_stream(sink, "c_0", NULL), 0);
	packet = packet_of(bytes, sizeof(bytes));
	for (int i = 0; i < 150; i++)
		assert_int_equal(ky_store_packet(sink, 0, &packet, NULL), 0);
	assert_int_equal(ky_store_close(sink, NULL), 0);
	contents("index/c_0.idx");
	assert_int_equal(text.len, 16 + 150 * 72);
	assert_int_equal(ky_load64((const uint8_t *)text.data + 16 + 149 * 72, true), 149 * 8);
}

static void refused(void **state)
{
	struct ky_store_trace *sink;
	struct kymo_error err;

	assert_int_equal(ky_directory_trace_open("/nonexistent/trace", false, &sink, &err),
			 KYMO_E_NOT_FOUND);
	assert_string_equal(err.path, "/nonexistent/trace");
	assert_null(sink);
	assert_int_equal(mkdir(trace, 0755), 0);
	assert_int_equal(ky_directory_trace_open(trace, false, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "../evil", &err), KYMO_E_INVALID);
	assert_int_equal(ky_store_stream(sink, "metadata", &err), KYMO_E_INVALID);
	assert_int_equal(ky_store_stream(sink, ".hidden", &err), KYMO_E_INVALID);
	assert_int_equal(ky_store_stream(sink, "", &err), KYMO_E_INVALID);
	assert_int_equal(ky_store_stream(sink, "a", &err), 0);
	assert_true(ky_store_stream(sink, "a", &err) < 0);
	assert_non_null(strstr(err.path, "/trace/a"));
	assert_int_equal(ky_store_close(sink, &err), 0);
	/* What holds a trace already is not overwritten. */
	assert_int_equal(ky_directory_trace_open(trace, false, &sink, &err), KYMO_E_INVALID);
	assert_string_equal(err.path, trace);
	assert_true(err.hint[0]);
}

/* A file size limit stands for the full disk: the write comes out short. */
static void full_disk(void **state)
{
	struct rlimit old, small = {96, 96};
	struct ky_store_trace *sink;
	struct ky_packet_out packet;
	struct kymo_error err;
	char bytes[64];

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(ky_directory_trace_open(trace, false, &sink, &err), 0);
	assert_int_equal(ky_store_stream(sink, "c_0", &err), 0);
	packet = packet_of(bytes, 64);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), 0);
	assert_int_equal(ky_store_packet(sink, 0, &packet, &err), KYMO_E_IO);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(err.path, "/trace/c_0"));
	assert_int_equal(sink->bytes_written, 64);
	assert_int_equal(ky_store_close(sink, &err), 0);
	/* Only whole packets are left. */
	contents("c_0");
	assert_int_equal(text.len, 64);
	contents("index/c_0.idx");
	assert_int_equal(text.len, 16 + 72);
}

/* Packets that a thread writes: a later call reports a failed write, and no index has the packet. */
static void full_disk_of_blocks(void **state)
{
	struct rlimit old, small;
	struct ky_block_writer *blocks;
	struct ky_store_trace *sink;
	struct kymo_error err;
	int ret = 0;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(ky_block_writer_open(&blocks, KY_BLOCK_BYTES, &err), 0);
	assert_int_equal(ky_directory_trace_open(trace, false, &sink, &err), 0);
	(void)ky_store_use_blocks(sink, blocks);
	assert_int_equal(ky_store_stream(sink, "c_0", &err), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 70 * 4096 + 100;
	setrlimit(RLIMIT_FSIZE, &small);
	for (uint64_t i = 0; i < 100 && !ret; i++) {
		struct ky_packet_out packet = {
			.size_bytes = 4096, .content_bits = 8, .sequence = i};

		packet.block = ky_block_take(blocks);
		assert_non_null(packet.block);
		packet.data = memset(packet.block->data, (int)i, 4096);
		ret = ky_store_packet(sink, 0, &packet, &err);
		assert_true(ret == 0 || (ret == KYMO_E_IO && strstr(err.path, "/trace/c_0")));
	}
	if (ret)
		assert_int_equal(ky_store_close(sink, NULL), KYMO_E_IO);
	else
		assert_int_equal(ky_store_close(sink, &err), KYMO_E_IO);
	assert_non_null(strstr(err.path, "/trace/c_0"));
	ky_block_writer_close(blocks);
	setrlimit(RLIMIT_FSIZE, &old);
	contents("c_0");
	assert_int_equal(text.len, 70 * 4096);
	contents("index/c_0.idx");
	assert_int_equal(text.len, 16 + 70 * 72);
}

static const char metadata[] =
	"/* CTF 1.8 */\n"
	"typealias integer { size = 8; align = 8; } := uint8_t;\n"
	"typealias integer { size = 32; align = 8; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; } := uint64_t;\n"
	"trace { major = 1; minor = 8; byte_order = %s;\n"
	"	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id;\n"
	"		uint64_t stream_instance_id; };\n"
	"	uuid = \"01020304-0506-0708-090a-0b0c0d0e0f10\"; };\n"
	"clock { name = \"monotonic\"; freq = 1000000000; };\n"
	"typealias integer { size = 32; align = 8; map = clock.monotonic.value; } := t32;\n"
	"typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := t64;\n"
	"stream { id = 0;\n"
	"	packet.context := struct { t64 timestamp_begin; t64 timestamp_end;\n"
	"		uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num;\n"
	"		uint64_t events_discarded; uint32_t cpu_id; };\n"
	"	event.header := struct {\n"
	"		enum : integer { size = 16; align = 8; } { c = 0 ... 65534, e = 65535 } id;\n"
	"		variant <id> { struct { t32 timestamp; } c;\n"
	"			struct { uint32_t id; t64 timestamp; } e; } v; } align(8); };\n"
	"event { name = \"tick\"; id = 7; stream_id = 0;\n"
	"	fields := struct { uint32_t n; string what; }; };\n";

static void send_packet(struct ky_store_trace *sink, struct ky_packet_writer *writer, uint64_t end)
{
	uint32_t size = ky_packet_writer_close(writer, end, 0, 64);
	struct ky_packet_out packet = {.data = writer->data,
				       .size_bytes = size,
				       .content_bits = (uint64_t)writer->used_bytes * 8,
				       .begin_cycles = writer->begin_cycles,
				       .end_cycles = writer->last_cycles,
				       .sequence = writer->sequence,
				       .stream_id = writer->stream_id};

	assert_int_equal(ky_store_packet(sink, 0, &packet, NULL), 0);
}

static void write_ticks(struct ky_store_trace *sink, unsigned int count)
{
	const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	struct ky_packet_writer writer;

	assert_int_equal(ky_packet_writer_init(&writer, 512, uuid, 0, 1, 2, false), 0);
	ky_packet_writer_begin(&writer, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t cycles = i * UINT64_C(2000000000); /* some steps need the long header */
		uint8_t *at = ky_packet_writer_event(&writer, 7, cycles, 8);

		if (!at) {
			send_packet(sink, &writer, cycles);
			ky_packet_writer_begin(&writer, cycles);
			at = ky_packet_writer_event(&writer, 7, cycles, 8);
		}
		memcpy(at, &i, 4);
		memcpy(at + 4, "abc", 4);
	}
	send_packet(sink, &writer, count * UINT64_C(2000000000));
	ky_packet_writer_fini(&writer);
}

static void peer_reads(void **state)
{
	bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	struct ky_store_trace *sink;
	char command[256], line[256], want[64];
	unsigned int n = 0;
	FILE *pipe;

	if (system("command -v babeltrace2 >/dev/null") != 0) {
		print_message("babeltrace2 is not installed\n");
		skip();
	}
	assert_int_equal(ky_directory_trace_open(trace, false, &sink, NULL), 0);
	assert_int_equal(ky_store_stream(sink, "channel0_2", NULL), 0);
	write_ticks(sink, 100);
	ky_strbuf_addf(&text, metadata, big ? "be" : "le");
	assert_int_equal(ky_store_metadata(sink, text.data, text.len, NULL), 0);
	assert_int_equal(ky_store_close(sink, NULL), 0);
	snprintf(command, sizeof(command), "babeltrace2 --clock-seconds %s 2>&1", trace);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		snprintf(want, sizeof(want), "[%u.000000000] ", 2 * n);
		assert_memory_equal(line, want, strlen(want));
		snprintf(want, sizeof(want), "tick: { cpu_id = 2 }, { n = %u, what = \"abc\" }", n);
		assert_non_null(strstr(line, want));
		n++;
	}
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(n, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(layout, setup, teardown),
		cmocka_unit_test_setup_teardown(traces_of_a_store, setup, teardown),
		cmocka_unit_test_setup_teardown(ended_streams, setup, teardown),
		cmocka_unit_test_setup_teardown(rotation, setup, teardown),
		cmocka_unit_test_setup_teardown(many_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(full_disk_of_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(peer_reads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
