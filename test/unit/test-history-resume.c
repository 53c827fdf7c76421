/* SPDX-License-Identifier: MIT */
/*
 * The state history: a report of a range that begins with a state of the model from the index is, byte for byte, the one that
 * begins with the first event of the trace. $KYMO_RESUME_TRACE: another trace.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/history/history.h"
#include "analysis/render/render.h"
#include "analysis/state/model.h"
#include "base/error.h"
#include "os/file.h"

#define RANGES 14

static const struct ky_history_identity identity = {{1, 2, 3}, {4, 5, 6}};

static bool open_real(struct ky_trace_set *set)
{
	const char *path = getenv("KYMO_RESUME_TRACE");
	struct kymo_error err;

	if (!path)
		path = KY_TEST_SHARED "/traces/lttng-kernel/kernel";
	return access(path, R_OK) == 0 && ky_trace_set_open(set, &path, 1, NULL, &err) == 0;
}

static void build(const struct ky_trace_set *set, uint64_t every, int fd)
{
	const struct ky_history_pace pace = {.events = every};
	struct ky_history_builder *builder;
	struct kymo_error err;
	struct ky_batch batch;
	struct ky_flow *flow;

	assert_int_equal(ky_history_builder_open(set, &identity, fd, &builder, &err), 0);
	ky_history_builder_set_pace(builder, &pace);
	assert_int_equal(ky_flow_open_set(set, &flow, &err), 0);
	while (ky_flow_next(flow, &batch, &err) > 0)
		assert_int_equal(ky_history_builder_feed(builder, &batch, &err), 0);
	assert_int_equal(ky_history_builder_end(builder, &err), 0);
	ky_flow_close(flow);
	ky_history_builder_free(builder);
}

/* All that these need is in a state; docs/design/history.md names them. */
static bool begins_with_state(const char *name)
{
	static const char *const names[] = {"cpu", "threads", "sched", "syscall-rates", "signals"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* The report of a range as JSON. @history: NULL: from the begin. */
static char *report(const struct ky_report *report, const struct ky_trace_set *set,
		    struct ky_history *history, int64_t begin_ns, int64_t end_ns)
{
	struct ky_report_results results = {0};
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_report_options options;
	struct kymo_error err;
	struct ky_flow *flow;

	ky_report_options_init(&options);
	options.focus.begin_ns = begin_ns;
	options.focus.end_ns = end_ns;
	options.history = history;
	options.limit = 0;
	assert_int_equal(ky_flow_open_set(set, &flow, &err), 0);
	if (ky_reports_run(&report, 1, set, flow, &options, &results, &err) < 0)
		ky_strbuf_adds(&out, err.message);
	else
		assert_int_equal(ky_render_json(&out, &results, &err), 0);
	if (results.list.len && history && begins_with_state(report->name) && !results.resumed)
		fail_msg("%s does not begin with a state", report->name);
	ky_flow_close(flow);
	ky_report_results_fini(&results);
	ky_report_options_fini(&options);
	return ky_strbuf_take(&out);
}

static void check_range(const struct ky_report *of, const struct ky_trace_set *set,
			struct ky_history *history, int64_t begin_ns, int64_t end_ns)
{
	char *whole = report(of, set, NULL, begin_ns, end_ns);
	char *resumed = report(of, set, history, begin_ns, end_ns);

	if (strcmp(whole, resumed) != 0) {
		size_t at = 0;

		while (whole[at] == resumed[at])
			at++;
		at = at > 200 ? at - 200 : 0;
		fail_msg("%s from %lld: %.400s\n--- instead of ---\n%.400s", of->name,
			 (long long)begin_ns, resumed + at, whole + at);
	}
	free(whole);
	free(resumed);
}

static void reports_of_ranges_are_the_same(void **unused)
{
	struct ky_trace_set set;
	struct ky_history *history;
	struct kymo_error err;
	int fd = ky_file_open_unnamed("/tmp");
	int64_t begin, span;

	(void)unused;
	if (!open_real(&set))
		skip();
	build(&set, 500, fd);
	assert_int_equal(ky_history_open_fd(fd, &identity, false, &history, &err), 0);
	begin = ky_history_begin_ns(history);
	span = ky_history_end_ns(history) - begin;
	for (size_t i = 0; ky_reports[i]; i++) {
		for (int64_t r = 0; r < RANGES - 2 && !ky_reports[i]->wants_periods; r++)
			check_range(ky_reports[i], &set, history,
				    begin + span / RANGES * (r + 1) - 54321,
				    begin + span / RANGES * (r + 2 + r % 3));
	}
	ky_history_close(history);
	close(fd);
	ky_trace_set_close(&set);
}

/* ---- the states themselves -------------------------------------------------------------------- */

static int hear(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
		struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	(void)cpu;
	(void)state;
	(void)thread;
	*(int64_t *)data += end_ns - begin_ns;
	return 0;
}

/* A model that begins at @ns; returns the ns of the state that it got, or INT64_MIN: it got none. */
static int64_t resume(const struct ky_trace_set *set, struct ky_history *history, int64_t ns)
{
	int64_t sum = 0, at = INT64_MIN;
	const struct ky_listener listener = {.data = &sum, .ran = hear};
	struct ky_focus focus;
	struct ky_model *model;
	struct kymo_error err;

	ky_focus_init(&focus);
	focus.begin_ns = ns;
	model = ky_model_new(set, &err);
	assert_non_null(model);
	assert_int_equal(ky_model_listen(model, &listener), 0);
	ky_model_set_focus(model, &focus);
	assert_true(ky_history_resume(history, model, ns, &at, &err) >= 0);
	ky_model_free(model);
	ky_focus_fini(&focus);
	return at;
}

static void states_are_where_they_are_wanted(void **unused)
{
	struct ky_trace_set set;
	struct ky_history *history;
	struct kymo_error err;
	int fd = ky_file_open_unnamed("/tmp");
	int64_t end, last;

	(void)unused;
	if (!open_real(&set))
		skip();
	build(&set, 500, fd);
	assert_int_equal(ky_history_open_fd(fd, &identity, false, &history, &err), 0);
	end = ky_history_end_ns(history);
	assert_true(resume(&set, history, ky_history_begin_ns(history)) == INT64_MIN);
	last = resume(&set, history, end);
	assert_true(last > ky_history_begin_ns(history) && last <= end);
	assert_true(resume(&set, history, last) == last);
	assert_true(resume(&set, history, last - 1) < last);
	ky_history_close(history);
	close(fd);
	ky_trace_set_close(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_of_ranges_are_the_same),
		cmocka_unit_test(states_are_where_they_are_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
