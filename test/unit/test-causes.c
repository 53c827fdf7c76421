/* SPDX-License-Identifier: MIT */
/*
 * Causes, of the reference trace: the parts of any time of any thread, and of any critical path, lie one after the other
 * from its begin to its end; wake-ups of a path lie where it goes from one thread to another.
 */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "analysis/causes/causes-pass.h"
#include "analysis/causes/part-sums.h"
#include "base/error.h"

#define WINDOWS 40

struct run {
	struct ky_trace_set set;
	struct ky_causes_pass pass;
};

static void open_run(struct run *run)
{
	const char *path = KY_TEST_SHARED "/traces/lttng-kernel/kernel";
	struct kymo_error err;
	struct ky_flow *flow;

	if (access(path, R_OK) < 0)
		skip();
	assert_int_equal(ky_trace_set_open(&run->set, &path, 1, NULL, &err), 0);
	assert_int_equal(ky_flow_open_set(&run->set, &flow, &err), 0);
	assert_int_equal(ky_causes_pass_run(&run->pass, &run->set, flow, INT64_MAX, &err), 0);
	ky_flow_close(flow);
}

static void close_run(struct run *run)
{
	ky_causes_pass_fini(&run->pass);
	ky_trace_set_close(&run->set);
}

/* Window @i: some are long, some short; some reach beyond the trace. */
static void window(const struct run *run, int i, int64_t *begin_ns, int64_t *end_ns)
{
	int64_t begin = ky_model_begin_ns(run->pass.model), end = ky_model_end_ns(run->pass.model);
	int64_t span = end - begin;

	*begin_ns = begin + span / WINDOWS * i - 1000;
	*end_ns = *begin_ns + (i % 3 ? span / 7 : 12345);
}

struct following {
	int64_t at_ns;
	size_t n;
};

static int follow(void *data, const struct ky_part *part)
{
	struct following *following = data;

	assert_true(part->begin_ns == following->at_ns && part->end_ns > part->begin_ns);
	assert_true(part->cause < KY_CAUSES);
	assert_true(!part->waker || ky_cause_is_blocked(part->cause));
	following->at_ns = part->end_ns;
	following->n++;
	return 0;
}

static void parts_are_the_whole(void **unused)
{
	struct run run;
	size_t n = 0;

	(void)unused;
	open_run(&run);
	for (size_t t = 0; t < ky_model_n_threads(run.pass.model); t++) {
		for (int i = 0; i < WINDOWS; i++) {
			struct following following = {0};
			int64_t begin, end;

			window(&run, i, &begin, &end);
			following.at_ns = begin;
			assert_int_equal(ky_causes_explain(run.pass.causes,
							   ky_model_thread(run.pass.model, t),
							   begin, end, follow, &following),
					 0);
			assert_true(following.at_ns == end);
			n += following.n;
		}
	}
	assert_true(n > ky_model_n_threads(run.pass.model) * WINDOWS);
	close_run(&run);
}

static bool goes_over(const struct ky_path *path, const struct ky_path_arrow *arrow, int64_t end_ns)
{
	bool from = false, to = arrow->ns == end_ns;

	ky_vec_foreach(&path->parts, part) {
		from |= part->end_ns == arrow->ns && part->thread == arrow->from;
		to |= part->begin_ns == arrow->ns && part->thread == arrow->to;
	}
	return from && to;
}

static void check_path(const struct ky_path *path, int64_t begin_ns, int64_t end_ns)
{
	struct following following = {.at_ns = begin_ns};
	int64_t before = INT64_MIN;

	ky_vec_foreach(&path->parts, part)
		follow(&following, part);
	assert_true(following.at_ns == end_ns);
	ky_vec_foreach(&path->arrows, arrow) {
		assert_true(arrow->ns >= before && arrow->from != arrow->to);
		assert_true(goes_over(path, arrow, end_ns));
		before = arrow->ns;
	}
}

static void paths_are_the_window(void **unused)
{
	size_t n_arrows = 0;
	struct run run;

	(void)unused;
	open_run(&run);
	for (size_t t = 0; t < ky_model_n_threads(run.pass.model); t++) {
		for (int i = 0; i < WINDOWS; i += 5) {
			struct ky_path path;
			int64_t begin, end;

			window(&run, i, &begin, &end);
			assert_int_equal(ky_causes_path(run.pass.causes,
							ky_model_thread(run.pass.model, t), begin,
							end, &path),
					 0);
			check_path(&path, begin, end);
			n_arrows += path.arrows.len;
			ky_path_fini(&path);
		}
	}
	assert_true(n_arrows > 0);
	close_run(&run);
}

static void threads_are_found_by_their_ids(void **unused)
{
	const struct ky_thread *thread;
	int64_t begin, end;
	struct run run;

	(void)unused;
	open_run(&run);
	begin = ky_model_begin_ns(run.pass.model);
	end = ky_model_end_ns(run.pass.model);
	thread = ky_causes_thread(run.pass.causes, 0, 327, begin, end);
	assert_non_null(thread);
	assert_int_equal(thread->tid, 327);
	assert_null(ky_causes_thread(run.pass.causes, 1, 327, begin, end));
	assert_null(ky_causes_thread(run.pass.causes, 0, 999999, begin, end));
	assert_null(ky_causes_thread(run.pass.causes, 0, 327, end + 1, end + 2));
	close_run(&run);
}

static int add(void *data, const struct ky_part *part)
{
	return ky_part_sums_add(data, part, 0, part->cause == KY_CAUSE_RUN_USER);
}

/* Whatever sums distinguish, they are the same in total. */
static void sums_are_equal(void **unused)
{
	uint64_t totals[2][8] = {{0}};
	int64_t begin, end;
	struct run run;

	(void)unused;
	open_run(&run);
	window(&run, 1, &begin, &end);
	for (unsigned int details = 0; details < 8; details++) {
		struct ky_part_sums sums = {.details = details};

		for (size_t t = 0; t < ky_model_n_threads(run.pass.model); t++)
			assert_int_equal(ky_causes_explain(run.pass.causes,
							   ky_model_thread(run.pass.model, t),
							   begin, end, add, &sums),
					 0);
		ky_part_sums_sort(&sums);
		ky_vec_foreach(&sums.list, sum) {
			totals[0][details] += sum->total_ns;
			totals[1][details] += sum->slow_ns;
		}
		assert_true(totals[0][details] == sums.total_ns);
		assert_true(totals[0][details] == totals[0][0] &&
			    totals[1][details] == totals[1][0]);
		ky_part_sums_fini(&sums);
	}
	close_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_the_whole),
		cmocka_unit_test(paths_are_the_window),
		cmocka_unit_test(threads_are_found_by_their_ids),
		cmocka_unit_test(sums_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
