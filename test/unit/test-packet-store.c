/* SPDX-License-Identifier: MIT */
/* A packet store that fails: each call in turn. The error is clear, and what was written until then can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing-store.h"
#include "flow/sinks/ctf-sink.h"
#include "os/file.h"
#include "record/kernel/session.h"
#include "store/directory/directory-store.h"

static struct ky_packet_store *store_at(const char *path, uint64_t fail_at, bool plain)
{
	struct ky_packet_store *directory;

	assert_int_equal(ky_directory_store_open(path, &directory, NULL), 0);
	return failing_store_new(directory, fail_at, plain);
}

static void check_error(int ret, const struct kymo_error *err)
{
	assert_int_equal(ret, KYMO_E_IO);
	assert_int_equal(err->code, KYMO_E_IO);
	assert_non_null(strstr(err->message, FAILING_STORE_MESSAGE));
}

/* ---- converting ----------------------------------------------------------------------- */

static int copy(const struct ky_trace_set *set, struct ky_packet_store *store,
		struct kymo_error *err)
{
	struct ky_thread_pool *pool;
	struct ky_ctf_copy how = {0};
	struct ky_selection selection = {0};
	struct ky_pass pass = {0};
	bool *damaged = calloc(set->streams.len + 1, sizeof(*damaged));
	struct ky_sink *sink = NULL;
	int ret;

	assert_non_null(damaged);
	assert_int_equal(ky_thread_pool_new(1, &pool, NULL), 0);
	how.pool = pool;
	ret = ky_ctf_sink_open(set, store, 1, &sink, err);
	if (!ret)
		ret = ky_ctf_sink_copy(sink, set, &how, damaged, err);
	if (!ret) {
		ky_ctf_sink_keep(sink, damaged);
		selection.only = damaged;
		ret = ky_ctf_sink_pass(sink, &pass, pool, set, &selection, err);
	}
	if (!ret)
		ret = ky_sink_finish(sink, err);
	ky_sink_free(sink);
	free(damaged);
	ky_thread_pool_free(pool);
	return ret;
}

/* Returns how many packets the copy has; a store that never fails makes @expected of them. */
static uint64_t copy_with(const struct ky_trace_set *set, uint64_t fail_at, bool plain)
{
	char path[] = "/tmp/test-packet-store-XXXXXX";
	struct kymo_error err = {0};
	uint64_t packets;
	int ret;

	assert_non_null(mkdtemp(path));
	ret = copy(set, store_at(path, fail_at, plain), &err);
	if (fail_at == UINT64_MAX)
		assert_int_equal(ret, 0);
	else if (ret < 0)
		check_error(ret, &err);
	packets = readable_packets(path);
	ky_tree_remove(path);
	return ret < 0 ? packets : UINT64_MAX;
}

static void copying(void **state)
{
	const char *path = KY_TEST_DATA "/ok/traces";
	struct ky_trace_set set;

	(void)state;
	assert_int_equal(ky_trace_set_open(&set, &path, 1, NULL, NULL), 0);
	for (int plain = 0; plain < 2; plain++) {
		uint64_t n = 0;

		assert_int_equal(copy_with(&set, UINT64_MAX, plain), UINT64_MAX);
		while (copy_with(&set, n, plain) != UINT64_MAX)
			n++;
		/* Opening, metadata, a stream, a packet: at least. */
		assert_true(n >= 4);
	}
	ky_trace_set_close(&set);
}

/* ---- recording ------------------------------------------------------------------------ */

static void make_events(void)
{
	for (int i = 0; i < 200; i++)
		usleep(20);
}

/* A recording of the kernel, of which the store fails; true: it did not come to that. */
static bool record_with(uint64_t fail_at)
{
	static const char *const events[] = {"sched_switch", "sched_waking"};
	char path[] = "/tmp/test-packet-store-XXXXXX";
	struct ky_packet_store *store;
	struct ky_session_options options = {.events = events,
					     .n_events = 2,
					     .threads.uid = -1,
					     .buffer_bytes = 1 << 20,
					     .output = "test"};
	struct ky_session *session;
	struct kymo_error err = {0};
	bool failed;
	int ret;

	assert_non_null(mkdtemp(path));
	options.store = store = store_at(path, fail_at, false);
	ret = ky_session_open(&options, &session, &err);
	if (ret == KYMO_E_PERMISSION || ret == KYMO_E_UNSUPPORTED)
		skip();
	if (!ret)
		ret = ky_session_start(session, &err);
	if (!ret) {
		make_events();
		ret = ky_session_stop(session, &err);
	}
	failed = ret < 0;
	if (failed)
		check_error(ret, &err);
	else
		assert_true(failing_store_calls(store) <= fail_at);
	assert_int_equal(ky_session_close(session, NULL), 0);
	ky_store_free(store);
	if (failed)
		(void)readable_packets(path);
	else
		assert_true(readable_packets(path) >= 1);
	ky_tree_remove(path);
	return !failed;
}

static void recording(void **state)
{
	uint64_t n = 0;

	(void)state;
	assert_true(record_with(UINT64_MAX));
	while (!record_with(n))
		n++;
	assert_true(n >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copying),
		cmocka_unit_test(recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
