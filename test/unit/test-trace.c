/* SPDX-License-Identifier: MIT */
/* Opening trace directories, and packet lists from indexes and from files. */
#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/read/index.h"

#define OK(name)  KY_TEST_DATA "/ok/traces/" name
#define BAD(name) KY_TEST_DATA "/bad/traces/" name

static struct kymo_error err;
static char warning[512];
static unsigned int n_warnings;

static void on_log(void *data, enum ky_log_level level, const char *text)
{
	n_warnings += level == KY_LOG_WARNING;
	snprintf(warning, sizeof(warning), "%s", text);
}

static const struct ky_log test_log = {on_log, NULL};

static int setup(void **state)
{
	ky_error_clear(&err);
	n_warnings = 0;
	warning[0] = '\0';
	return 0;
}

static int open_one(struct ky_trace_set *set, const char *path)
{
	return ky_trace_set_open(set, &path, 1, &test_log, &err);
}

static void open_ok(struct ky_trace_set *set, const char *path)
{
	if (open_one(set, path) < 0)
		fail_msg("%s: %s", err.path, err.message);
}

/* ---- finding traces ---------------------------------------------------------------------- */

static void streams_in_order(void **state)
{
	struct ky_trace_set set;

	open_ok(&set, OK("equal-times"));
	assert_int_equal(set.traces.len, 1);
	assert_int_equal(set.streams.len, 3);
	/* By instance id, which runs against the names there. */
	assert_string_equal(set.streams.data[0]->name, "c_2");
	assert_string_equal(set.streams.data[2]->name, "c_0");
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(set.streams.data[i]->index, i);
		assert_int_equal(set.streams.data[i]->id, i);
		assert_true(set.streams.data[i]->has_cpu_id);
		assert_int_equal(set.streams.data[i]->cpu_id, 2 - i);
	}
	ky_trace_set_close(&set);
}

static void empty_stream_file(void **state)
{
	struct ky_packet_list packets = KY_VEC_INIT;
	struct ky_trace_set set;

	open_ok(&set, OK("empty-stream"));
	assert_int_equal(set.streams.len, 2);
	assert_null(set.streams.data[1]->cls);
	assert_null(set.streams.data[1]->file.data);
	assert_int_equal(ky_stream_packets(set.streams.data[1], &packets, &err), 0);
	assert_int_equal(packets.len, 0);
	ky_vec_fini(&packets);
	ky_trace_set_close(&set);
}

static void all_below_a_directory(void **state)
{
	const char *twice[] = {OK(""), OK("kinds"), KY_TEST_DATA "/ok/traces/"};
	struct ky_trace_set set;
	size_t n;

	open_ok(&set, OK(""));
	n = set.traces.len;
	assert_true(n > 10);
	for (size_t i = 1; i < n; i++)
		assert_true(strcmp(set.traces.data[i - 1]->path, set.traces.data[i]->path) < 0);
	ky_trace_set_close(&set);
	/* A trace is opened once however many ways lead to it. */
	assert_int_equal(ky_trace_set_open(&set, twice, 3, &test_log, &err), 0);
	assert_int_equal(set.traces.len, n);
	ky_trace_set_close(&set);
}

static char top[64];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int make_top(void **state)
{
	strcpy(top, "/tmp/kymo-test-trace-XXXXXX");
	return setup(state) || !mkdtemp(top);
}

static int remove_top(void **state)
{
	return nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *below(const char *name)
{
	static char path[4][256];
	static unsigned int turn;
	char *at = path[turn++ % 4];

	snprintf(at, 256, "%s/%s", top, name);
	return at;
}

static void links(void **state)
{
	struct ky_trace_set set;

	assert_int_equal(mkdir(below("a"), 0700), 0);
	assert_int_equal(mkdir(below(".hidden"), 0700), 0);
	assert_int_equal(symlink("..", below("a/circle")), 0);
	assert_int_equal(symlink("nowhere", below("a/broken")), 0);
	assert_int_equal(open_one(&set, top), KYMO_E_NOT_FOUND);
	assert_string_equal(err.path, top);
	assert_non_null(strstr(err.message, "no trace"));
	assert_true(err.hint[0]);
	assert_int_equal(symlink(OK("kinds"), below(".hidden/k")), 0);
	assert_int_equal(open_one(&set, top), KYMO_E_NOT_FOUND);
	assert_int_equal(symlink(OK("kinds"), below("a/k")), 0);
	assert_int_equal(symlink(OK("kinds"), below("again")), 0);
	open_ok(&set, top);
	assert_int_equal(set.traces.len, 1);
	ky_trace_set_close(&set);
}

static void deep_directories(void **state)
{
	char path[4096];
	struct ky_trace_set set;

	snprintf(path, sizeof(path), "%s", top);
	for (int i = 0; i < 40; i++) {
		strcat(path, "/d");
		assert_int_equal(mkdir(path, 0700), 0);
	}
	strcat(path, "/k");
	assert_int_equal(symlink(OK("kinds"), path), 0);
	assert_int_equal(open_one(&set, top), KYMO_E_NOT_FOUND);
	open_ok(&set, path);
	ky_trace_set_close(&set);
}

static void no_traces(void **state)
{
	struct ky_trace_set set;

	assert_int_equal(open_one(&set, "/nonexistent/trace"), KYMO_E_NOT_FOUND);
	assert_string_equal(err.path, "/nonexistent/trace");
	assert_int_equal(open_one(&set, OK("kinds/c_0")), KYMO_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "not a directory"));
	assert_int_equal(open_one(&set, BAD("no-metadata")), KYMO_E_NOT_FOUND);
	assert_int_equal(open_one(&set, BAD("random-metadata")), KYMO_E_FORMAT);
	assert_string_equal(err.path, BAD("random-metadata/metadata"));
	assert_true(err.hint[0]);
	assert_int_equal(set.traces.len, 0);
	assert_int_equal(set.streams.len, 0);
}

/* ---- packet lists ------------------------------------------------------------------------ */

static int packets_of(const char *path, struct ky_packet_list *packets)
{
	struct ky_trace_set set;
	int ret;

	open_ok(&set, path);
	assert_int_equal(set.streams.len, 1);
	ret = ky_stream_packets(set.streams.data[0], packets, &err);
	ky_trace_set_close(&set);
	return ret;
}

static void check_pair(const struct ky_packet_list *packets)
{
	const struct ky_packet_entry *second = &packets->data[1];

	assert_int_equal(packets->len, 2);
	assert_int_equal(packets->data[0].offset_bytes, 0);
	assert_int_equal(second->offset_bytes, packets->data[0].packet_bits / 8);
	assert_int_equal(second->begin_cycles, 2000);
	assert_int_equal(second->end_cycles, 2200);
	assert_int_equal(second->begin_ns, INT64_C(1600000000000002000));
	assert_true(second->has_times);
	assert_true(second->has_discarded);
}

static void right_indexes(void **state)
{
	struct ky_packet_list packets = KY_VEC_INIT;

	assert_int_equal(packets_of(OK("index"), &packets), 0);
	check_pair(&packets);
	assert_true(packets.data[1].has_sequence);
	assert_int_equal(packets.data[1].sequence, 1);
	assert_int_equal(packets_of(OK("index-1.0"), &packets), 0);
	check_pair(&packets);
	assert_false(packets.data[1].has_sequence);
	assert_int_equal(n_warnings, 0);
	ky_vec_fini(&packets);
}

static void wrong_indexes(void **state)
{
	struct ky_packet_list packets = KY_VEC_INIT;

	assert_int_equal(packets_of(OK("wrong-index"), &packets), 0);
	check_pair(&packets);
	assert_int_equal(n_warnings, 1);
	assert_non_null(strstr(warning, "wrong-index/index/c_0.idx: wrong index"));
	assert_int_equal(packets_of(OK("lying-index"), &packets), 0);
	check_pair(&packets);
	assert_int_equal(n_warnings, 2);
	ky_vec_fini(&packets);
}

static void damaged_files(void **state)
{
	struct ky_packet_list packets = KY_VEC_INIT;

	/* A truncated packet has events: it is in the list. */
	assert_int_equal(packets_of(BAD("truncated"), &packets), KYMO_E_FORMAT);
	assert_int_equal(packets.len, 2);
	assert_string_equal(err.path, BAD("truncated/c_0"));
	assert_int_equal(packets_of(BAD("truncated-header"), &packets), KYMO_E_FORMAT);
	assert_int_equal(packets.len, 1);
	assert_int_equal(packets_of(BAD("packet-zero"), &packets), KYMO_E_FORMAT);
	assert_int_equal(packets.len, 1);
	assert_int_equal(err.offset, 114);
	assert_int_equal(packets_of(BAD("packet-huge"), &packets), KYMO_E_FORMAT);
	assert_int_equal(packets.len, 1);
	assert_int_equal(packets_of(BAD("zero-tail"), &packets), KYMO_E_FORMAT);
	assert_int_equal(packets.len, 1);
	assert_non_null(strstr(err.message, "4096 zero bytes"));
	ky_vec_fini(&packets);
}

/* ---- index bytes ------------------------------------------------------------------------- */

static uint8_t bytes[16 + 2 * 72];

static void put32(size_t at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[at + (size_t)i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put64(size_t at, uint64_t value)
{
	put32(at, (uint32_t)(value >> 32));
	put32(at + 4, (uint32_t)value);
}

/* Two packets of 64 and 32 bytes. */
static void make_index(void)
{
	memset(bytes, 0, sizeof(bytes));
	put32(0, KY_INDEX_MAGIC);
	put32(4, 1);
	put32(8, 1);
	put32(12, 72);
	put64(16 + 8, 64 * 8);
	put64(16 + 16, 60 * 8);
	put64(88, 64);
	put64(88 + 8, 32 * 8);
	put64(88 + 16, 32 * 8);
}

static int read_index(size_t size)
{
	static const struct ky_stream stream = {.file = {.size_bytes = 96}};
	struct ky_packet_list packets = KY_VEC_INIT;
	int ret = ky_index_read(bytes, size, &stream, &packets, &err);

	if (ret == KYMO_OK)
		assert_int_equal(packets.len, (size - 16) / 72);
	ky_vec_fini(&packets);
	return ret;
}

static void index_bytes(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		bool wide;
	} wrong[] = {
		{0, 0xC1FC1FC1, false},		    /* magic */
		{4, 2, false},			    /* major */
		{12, 0, false},			    /* entry length */
		{12, 71, false},		    /* */
		{12, 56, false},		    /* too short for 1.1 */
		{12, UINT32_MAX, false},	    /* */
		{16, 8, true},			    /* the first does not begin at 0 */
		{16 + 8, 0, true},		    /* no packet */
		{16 + 8, 64 * 8 + 1, true},	    /* no whole bytes */
		{16 + 8, 65 * 8, true},		    /* a gap */
		{16 + 8, UINT64_MAX & ~7ull, true}, /* beyond the file */
		{16 + 16, 65 * 8, true},	    /* content > packet */
		{88, 56, true},			    /* overlap */
		{88 + 8, 40 * 8, true},		    /* beyond the file */
		{88 + 8, 24 * 8, true}, /* does not cover the file, and content > packet */
	};

	make_index();
	assert_int_equal(read_index(sizeof(bytes)), 0);
	assert_int_equal(read_index(sizeof(bytes) - 72), KYMO_E_FORMAT);
	assert_int_equal(read_index(sizeof(bytes) - 1), KYMO_E_FORMAT);
	assert_int_equal(read_index(16), KYMO_E_FORMAT);
	assert_int_equal(read_index(15), KYMO_E_FORMAT);
	assert_int_equal(read_index(0), KYMO_E_FORMAT);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		make_index();
		if (wrong[i].wide)
			put64(wrong[i].at, wrong[i].value);
		else
			put32(wrong[i].at, (uint32_t)wrong[i].value);
		if (read_index(sizeof(bytes)) != KYMO_E_FORMAT)
			fail_msg("case %zu was accepted", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(streams_in_order, setup),
		cmocka_unit_test_setup(empty_stream_file, setup),
		cmocka_unit_test_setup(all_below_a_directory, setup),
		cmocka_unit_test_setup_teardown(links, make_top, remove_top),
		cmocka_unit_test_setup_teardown(deep_directories, make_top, remove_top),
		cmocka_unit_test_setup(no_traces, setup),
		cmocka_unit_test_setup(right_indexes, setup),
		cmocka_unit_test_setup(wrong_indexes, setup),
		cmocka_unit_test_setup(damaged_files, setup),
		cmocka_unit_test_setup(index_bytes, setup),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
