/* SPDX-License-Identifier: MIT */
/* Crews, and what runs on them: parts in parallel, reading ahead. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/prefetch.h"
#include "flow/graph/parallel.h"

#define N_TASKS 1000

static struct kymo_error err;

static struct ky_thread_pool *pool_of(unsigned int jobs)
{
	struct ky_thread_pool *pool;

	ky_error_clear(&err);
	assert_int_equal(ky_thread_pool_new(jobs, &pool, &err), KYMO_OK);
	assert_int_equal(ky_thread_pool_jobs(pool), jobs);
	return pool;
}

/* ---- tasks --------------------------------------------------------------------------------- */

struct counting {
	struct ky_task task;
	struct ky_thread_pool *pool;
	size_t *done, number;
	size_t *order;
};

static void count_task(struct ky_task *task)
{
	struct counting *c = (struct counting *)task;

	ky_thread_pool_lock(c->pool);
	c->order[(*c->done)++] = c->number;
	ky_thread_pool_unlock(c->pool);
}

static bool all_done(void *data)
{
	return *(size_t *)data == N_TASKS;
}

static void run_tasks(unsigned int jobs)
{
	static struct counting tasks[N_TASKS];
	static size_t order[N_TASKS];
	struct ky_thread_pool *pool = pool_of(jobs);
	uint64_t sum = 0;
	size_t done = 0;

	for (size_t i = 0; i < N_TASKS; i++) {
		tasks[i] = (struct counting){{.run = count_task}, pool, &done, i, order};
		ky_thread_pool_add(pool, &tasks[i].task);
	}
	ky_thread_pool_wait(pool, all_done, &done);
	for (size_t i = 0; i < N_TASKS; i++) {
		sum += order[i];
		if (jobs == 1)
			assert_int_equal(order[i], i);
	}
	assert_int_equal(sum, N_TASKS * (N_TASKS - 1) / 2);
	ky_thread_pool_free(pool);
}

static void tasks_are_carried_out(void **state)
{
	run_tasks(1);
	run_tasks(2);
	run_tasks(5);
}

static void nothing_to_do(void **state)
{
	ky_thread_pool_free(pool_of(3));
	ky_thread_pool_free(NULL);
	assert_true(ky_cpus_usable() >= 1);
}

/* ---- parts --------------------------------------------------------------------------------- */

static int odd_fails(void *data, size_t i, struct kymo_error *error)
{
	((uint8_t *)data)[i]++;
	return i % 2 ? ky_error_set(error, KYMO_E_FORMAT, "part %zu", i) : KYMO_OK;
}

static void first_failure_counts(void **state)
{
	uint64_t sizes[7] = {1, 2, 3, 4, 5, 6, 7};

	for (unsigned int jobs = 1; jobs < 5; jobs++) {
		struct ky_thread_pool *pool = pool_of(jobs);
		uint8_t seen[7] = {0};

		assert_int_equal(ky_parallel_each(pool, 7, sizes, odd_fails, seen, &err),
				 KYMO_E_FORMAT);
		assert_string_equal(err.message, "part 1");
		for (size_t i = 0; i < 7; i++)
			assert_int_equal(seen[i], 1);
		assert_int_equal(ky_parallel_each(pool, 1, NULL, odd_fails, seen, &err), KYMO_OK);
		assert_int_equal(ky_parallel_each(pool, 0, NULL, odd_fails, seen, &err), KYMO_OK);
		ky_thread_pool_free(pool);
	}
}

/* ---- reading ahead ---------------------------------------------------------------------------- */

/* Yields batches of one to three events, numbered through, then an error. */
struct numbers {
	struct ky_flow flow;
	struct ky_packet packet;
	struct ky_event events[3];
	uint64_t next, end;
	int64_t seek_ns;
	int code;
	const struct ky_log *log;
};

static int numbers_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *error)
{
	struct numbers *n = (struct numbers *)flow;

	if (n->next >= n->end)
		return n->code < 0 ? ky_error_set(error, n->code, "no more") : 0;
	if (n->next % 100 == 0)
		ky_log_warning(n->log, "%llu", (unsigned long long)n->next);
	memset(n->events, 0xff, sizeof(n->events));
	*batch = (struct ky_batch){.events = n->events, .n_events = n->next % 3 + 1};
	n->packet.sequence = n->next;
	for (size_t i = 0; i < batch->n_events; i++) {
		n->events[i].cycles = n->next++;
		n->events[i].packet = &n->packet;
	}
	return 1;
}

static int numbers_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *error)
{
	((struct numbers *)flow)->next = (uint64_t)ns;
	return KYMO_OK;
}

static void numbers_close(struct ky_flow *flow)
{
}

static const struct ky_flow_ops numbers_ops = {numbers_next, numbers_seek, numbers_close};

static uint64_t expected;

static void on_warning(void *data, enum ky_log_level level, const char *text)
{
	char want[24];

	snprintf(want, sizeof(want), "%llu", (unsigned long long)expected);
	assert_string_equal(text, want);
	++*(unsigned int *)data;
}

static void check_numbers(struct ky_flow *flow, int code)
{
	struct ky_batch batch;
	int ret;

	while ((ret = ky_flow_next(flow, &batch, &err)) > 0) {
		assert_int_equal(batch.events->packet->sequence, batch.events->cycles);
		for (size_t i = 0; i < batch.n_events; i++)
			assert_int_equal(batch.events[i].cycles, expected++);
	}
	assert_int_equal(ret, code);
	assert_int_equal(ky_flow_next(flow, &batch, &err), 0);
}

static void ahead_is_the_same(void **state)
{
	for (unsigned int jobs = 1; jobs < 4; jobs++) {
		struct ky_thread_pool *pool = pool_of(jobs);
		struct ky_log_keep *keep = ky_prefetch_log_new();
		struct numbers n = {.flow.ops = &numbers_ops,
				    .end = 10000,
				    .code = KYMO_E_FORMAT,
				    .log = &keep->log};
		unsigned int n_warnings = 0;
		struct ky_log log = {on_warning, &n_warnings};
		struct ky_flow *flow;

		assert_int_equal(ky_prefetch_open(pool, &n.flow, keep, &log, &flow, &err), KYMO_OK);
		expected = 0;
		check_numbers(flow, KYMO_E_FORMAT);
		assert_true(expected >= 10000 && n_warnings > 0);
		assert_int_equal(ky_flow_seek(flow, 5001, &err), KYMO_OK);
		expected = 5001;
		n.log = NULL;
		check_numbers(flow, KYMO_E_FORMAT);
		/* Close while it reads. */
		assert_int_equal(ky_flow_seek(flow, 0, &err), KYMO_OK);
		assert_int_equal(ky_flow_next(flow, &(struct ky_batch){0}, &err), 1);
		ky_flow_close(flow);
		ky_thread_pool_free(pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_are_carried_out),
		cmocka_unit_test(nothing_to_do),
		cmocka_unit_test(first_failure_counts),
		cmocka_unit_test(ahead_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
