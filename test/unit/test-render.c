/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <string.h>

#include <jansson.h>

#include "analysis/render/render.h"

static const struct ky_column columns[] = {
	{"process", "Thread", KY_CELL_PROCESS, "help", .group = true},
	{"call", "Call", KY_CELL_SYSCALL, "help"},
	{"count", "Calls", KY_CELL_COUNT, "help"},
	{"time", "Time", KY_CELL_DURATION, "help", .spare = 1},
	{"nothing", "Nothing", KY_CELL_COUNT, "help"}, /* always empty: not shown */
	{"share", "Share", KY_CELL_RATIO, "help", .bar = KY_BAR_MOST},
	{"errors", "Errors", KY_CELL_TALLY, "help"},
};

static const struct ky_table_def def = {"calls", "Calls made", "help", columns, 7};
static const struct ky_table_def *const defs[] = {&def, NULL};
static const struct ky_report report = {.name = "test", .summary = "a test", .tables = defs};

struct fixture {
	struct ky_table table;
	struct ky_trace trace, *traces[1];
	struct ky_trace_set set;
	struct ky_report_results results;
	struct ky_report_result result;
	char *notes[1];
	struct ky_strbuf out;
};

static void add(struct fixture *f, int tid, const char *call, uint64_t count, double ns,
		double share)
{
	struct ky_tally_item errors[] = {{"EAGAIN", 2}, {"EINTR", 1}};
	struct ky_cell *row = ky_table_row(&f->table);

	ky_cell_process(&f->table, &row[0], tid, tid == 9 ? -1 : 5, "wo\033rk", NULL);
	ky_cell_text(&f->table, &row[1], call);
	ky_cell_u64(&row[2], count);
	ky_cell_f64(&row[3], ns);
	ky_cell_f64(&row[5], share);
	if (count > 100)
		ky_cell_tally(&f->table, &row[6], errors, 2);
}

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	ky_table_init(&f->table, &def);
	add(f, 7, "read", 1200, 999.96e3, 1);
	add(f, 7, "write", 3, 312, 0.5);
	add(f, 9, "futex", 42, 12.5e9, 0.25);
	f->table.n_omitted = 4;
	f->trace.path = "some/trace";
	f->traces[0] = &f->trace;
	f->set.traces.data = f->traces;
	f->set.traces.len = 1;
	f->notes[0] = "a note";
	f->result =
		(struct ky_report_result){.report = &report, .tables = &f->table, .n_tables = 1};
	f->result.notes.data = f->notes;
	f->result.notes.len = 1;
	f->results = (struct ky_report_results){
		.set = &f->set, .begin_ns = 0, .end_ns = 1500000000, .n_events = 12};
	f->results.list.data = &f->result;
	f->results.list.len = 1;
}

static void teardown(struct fixture *f)
{
	ky_strbuf_fini(&f->out);
	ky_table_fini(&f->table);
}

static void test_text(void **state)
{
	struct ky_render_options options = {.columns = 70, .utf8 = false};
	struct fixture f;

	setup(&f);
	setenv("TZ", "UTC", 1);
	ky_render_text(&f.out, &f.results, &options);
	assert_string_equal(
		ky_strbuf_text(&f.out),
		"Trace  some/trace\n"
		"Range  1970-01-01 00:00:00.000000000 to 1970-01-01 00:00:01.500000000\n"
		"       1.500 s, 12 events\n"
		"\n"
		"Note: test: a note\n"
		"\n"
		"Calls made\n"
		"  Call   Calls      Time     Share  Errors\n"
		"  wo\\x1brk (tid 7, pid 5)\n"
		"  read    1200  1.000 ms  100.00 %  EAGAIN 2, EINTR 1  ###############\n"
		"  write      3    312 ns   50.00 %                     ########\n"
		"  wo\\x1brk (tid 9, pid ?)\n"
		"  futex     42  12.50 s    25.00 %                     ####\n"
		"  4 more rows: --limit 0 shows all\n");
	teardown(&f);
}

static void test_narrow_text(void **state)
{
	struct ky_render_options options = {.columns = 42};
	struct fixture f;

	setup(&f);
	ky_render_text(&f.out, &f.results, &options);
	assert_null(strstr(ky_strbuf_text(&f.out), "1.000 ms"));
	assert_null(strstr(ky_strbuf_text(&f.out), "###"));
	assert_non_null(strstr(ky_strbuf_text(&f.out), "  --wide shows: Time\n"));
	teardown(&f);
}

static void test_utf8_and_colour(void **state)
{
	struct ky_render_options options = {.columns = 100, .utf8 = true, .colour = true};
	struct fixture f;

	setup(&f);
	ky_render_text(&f.out, &f.results, &options);
	assert_non_null(strstr(ky_strbuf_text(&f.out), "\033[1mCalls made\033[0m\n"));
	assert_non_null(strstr(ky_strbuf_text(&f.out), "\033[36m█"));
	teardown(&f);
}

static const char *duration(double ns)
{
	static struct ky_strbuf out;

	ky_strbuf_clear(&out);
	ky_render_duration(&out, ns);
	return ky_strbuf_text(&out);
}

static void test_durations(void **state)
{
	assert_string_equal(duration(0), "0 ns");
	assert_string_equal(duration(999), "999 ns");
	assert_string_equal(duration(1.5), "1.500 ns");
	assert_string_equal(duration(1000), "1.000 us");
	assert_string_equal(duration(9999.6), "10.00 us");
	assert_string_equal(duration(123456), "123.5 us");
	assert_string_equal(duration(999960), "1.000 ms");
	assert_string_equal(duration(3.6e12), "3600.0 s");
}

static void test_json(void **state)
{
	struct fixture f;
	json_t *root, *row, *table;

	setup(&f);
	assert_int_equal(ky_render_json(&f.out, &f.results, NULL), 0);
	root = json_loads(ky_strbuf_text(&f.out), 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_array_get(json_object_get(root, "traces"), 0)),
			    "some/trace");
	table = json_array_get(
		json_object_get(json_array_get(json_object_get(root, "reports"), 0), "tables"), 0);
	assert_int_equal(json_integer_value(json_object_get(table, "omitted")), 4);
	row = json_array_get(json_object_get(table, "rows"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "count")), 1200);
	assert_true(json_real_value(json_object_get(row, "time")) == 999960);
	assert_true(json_is_null(json_object_get(row, "nothing")));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(row, "errors"), "EAGAIN")), 2);
	row = json_array_get(json_object_get(table, "rows"), 2);
	assert_true(json_is_null(json_object_get(json_object_get(row, "process"), "pid")));
	json_decref(root);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_narrow_text),
		cmocka_unit_test(test_utf8_and_colour),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
