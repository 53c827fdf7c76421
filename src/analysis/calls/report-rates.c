/* SPDX-License-Identifier: MIT */
/* Report syscall-rates: system calls per second, over time. */
#include "analysis/reports/report-list.h"

#include <string.h>

#include "analysis/state/errno-name.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { STEP_BEGIN, STEP_CALLS, STEP_RATE, STEP_FAILED, STEP_TIME };

static const struct ky_column step_columns[] = {
	[STEP_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP,
			"The begin of the step; the first step begins with the range."},
	[STEP_CALLS] = {"count", "Calls", KY_CELL_COUNT, "How many calls ended in the step."},
	[STEP_RATE] = {"rate", "Calls/s", KY_CELL_RATE,
		       "Calls per second in the step; for the last step, in its part of the range. "
		       "The longest bar is the largest value.",
		       .bar = KY_BAR_MOST},
	[STEP_FAILED] = {"failed", "Failed", KY_CELL_COUNT, "How many of them returned an error."},
	[STEP_TIME] = {"total", "Time", KY_CELL_DURATION,
		       "The sum of their durations, with the parts before the step.", .spare = 1},
};

static const struct ky_table_def step_table = KY_TABLE_DEF(
	"steps", "System calls over time",
	"One row for each step of the range, in the order of time; steps without calls have rows, "
	"too.",
	step_columns, KY_TABLE_FIXED);

enum { CALL_SYSCALL, CALL_COUNT, CALL_RATE, CALL_PEAK, CALL_PEAK_AT };

static const struct ky_column call_columns[] = {
	[CALL_SYSCALL] = {"syscall", "System call", KY_CELL_SYSCALL, "The call's name."},
	[CALL_COUNT] = {"count", "Calls", KY_CELL_COUNT, "How many calls ended in the range."},
	[CALL_RATE] = {"rate", "Calls/s", KY_CELL_RATE,
		       "Calls per second over the range. The longest bar is the largest value.",
		       .bar = KY_BAR_MOST},
	[CALL_PEAK] = {"peak", "Peak/s", KY_CELL_RATE, "Calls per second in its busiest step."},
	[CALL_PEAK_AT] = {"peak_begin", "Peak at", KY_CELL_TIMESTAMP,
			  "The begin of that step; of several, the first.", .spare = 1},
};

static const struct ky_table_def call_table = KY_TABLE_DEF(
	"syscalls", "Rate of each system call",
	"One row for each system call, the most calls first.", call_columns, KY_TABLE_RANK);

enum { WHO_PROCESS, WHO_SYSCALL, WHO_COUNT, WHO_RATE, WHO_PEAK, WHO_PEAK_AT };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			 "Thread ID, process ID and last name.", .group = true},
	[WHO_SYSCALL] = {"syscall", "System call", KY_CELL_SYSCALL, "The call's name."},
	[WHO_COUNT] = {"count", "Calls", KY_CELL_COUNT, "How many calls ended in the range."},
	[WHO_RATE] = {"rate", "Calls/s", KY_CELL_RATE, "Calls per second over the range.",
		      .bar = KY_BAR_MOST},
	[WHO_PEAK] = {"peak", "Peak/s", KY_CELL_RATE, "Calls per second in its busiest step."},
	[WHO_PEAK_AT] = {"peak_begin", "Peak at", KY_CELL_TIMESTAMP, "The begin of that step.",
			 .spare = 1},
};

static const struct ky_table_def who_table =
	KY_DETAIL_TABLE_DEF("threads", "Rate of each system call of each thread",
			    "One row for each system call of each thread; the highest peaks first.",
			    who_columns, KY_TABLE_RANK);

enum { LOG_BEGIN, LOG_PROCESS, LOG_SYSCALL, LOG_COUNT, LOG_RATE };

static const struct ky_column log_columns[] = {
	[LOG_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "The begin of the step."},
	[LOG_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			 "Thread ID, process ID and last name."},
	[LOG_SYSCALL] = {"syscall", "System call", KY_CELL_SYSCALL, "The call's name."},
	[LOG_COUNT] = {"count", "Calls", KY_CELL_COUNT, "How many calls ended in the step."},
	[LOG_RATE] = {"rate", "Calls/s", KY_CELL_RATE, "Calls per second in the step."},
};

static const struct ky_table_def log_table = KY_TABLE_DEF(
	"log", "Rates over time",
	"One row for each step, thread and system call with calls, in the order of time.",
	log_columns, KY_TABLE_LOG);

static const struct ky_table_def *const tables[] = {&step_table, &call_table, &who_table,
						    &log_table, NULL};

enum { TABLE_STEPS, TABLE_CALLS, TABLE_WHO, TABLE_LOG };

/* ---- the run --------------------------------------------------------------------------- */

/*
 * Steps are so long that there are at most MAX_STEPS: they begin with 1 ms, and when the range outgrows
 * them, pairs of them become one of twice the length. So memory does not grow with the trace.
 */
#define MAX_STEPS     30
#define FIRST_STEP_NS 1000000

struct step {
	uint64_t count, failed;
	unsigned __int128 ns;
};

/* One system call of one thread. Most threads live for few steps: only what lies between is kept. */
struct series {
	const struct ky_thread *thread;
	uint32_t syscall;
	uint32_t first; /* the step of steps.data[0] */
	uint64_t count;
	KY_VEC(uint64_t) steps; /* calls in each step */
};

/* System calls that are added up. */
struct sum {
	const struct ky_thread *thread;
	uint32_t syscall;
	uint64_t count;
	uint64_t steps[MAX_STEPS];
};

struct run {
	struct ky_model *model;
	int64_t step_ns;
	size_t last_step;
	int64_t last_ns; /* where that begins */
	struct step steps[MAX_STEPS];
	struct ky_arena arena; /* the series */
	struct ky_map by_key;
	/* Those asked for last, by a part of the key. */
	struct series *recent[KY_AGGREGATION_RECENT];
	KY_VEC(struct series *) series;
};

static struct series *report_rates_find_or_make(struct run *run, const struct ky_call *call)
{
	uint64_t key = (uint64_t)call->thread->index << 32 | call->syscall;
	struct series *series = ky_map_get(&run->by_key, key);

	if (series)
		return series;
	series = ky_arena_new(&run->arena, struct series);
	if (!series || ky_vec_push(&run->series, series) < 0)
		return NULL;
	series->thread = call->thread;
	series->syscall = call->syscall;
	return ky_map_set(&run->by_key, key, series) < 0 ? NULL : series;
}

static struct series *find_series(struct run *run, const struct ky_call *call)
{
	struct series **recent =
		&run->recent[(call->syscall ^ call->thread->index) % KY_AGGREGATION_RECENT];

	if (!*recent || (*recent)->thread != call->thread || (*recent)->syscall != call->syscall)
		*recent = report_rates_find_or_make(run, call);
	return *recent;
}

/* Keep step @at as well. */
static int report_rates_reach(struct series *series, size_t at)
{
	size_t before;

	if (!series->steps.len)
		series->first = (uint32_t)at;
	/* In streams whose time goes back. */
	if (at < series->first) {
		before = series->first - at;
		if (ky_vec_reserve(&series->steps, before) < 0)
			return KYMO_E_MEMORY;
		memmove(series->steps.data + before, series->steps.data,
			series->steps.len * sizeof(*series->steps.data));
		memset(series->steps.data, 0, before * sizeof(*series->steps.data));
		series->steps.len += before;
		series->first = (uint32_t)at;
	}
	while (at - series->first >= series->steps.len) {
		if (ky_vec_push(&series->steps, 0) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

static int add_to_series(struct series *series, size_t at)
{
	/* Of one before the first that is a large number. */
	if (at - series->first >= series->steps.len && report_rates_reach(series, at) < 0)
		return KYMO_E_MEMORY;
	series->steps.data[at - series->first]++;
	series->count++;
	return 0;
}

static void widen_series(struct series *series)
{
	uint32_t first = series->first / 2;
	size_t n = 0;

	for (size_t i = 0; i < series->steps.len; i++) {
		uint64_t count = series->steps.data[i];

		n = (series->first + i) / 2 - first;
		series->steps.data[i] = 0;
		series->steps.data[n] += count;
	}
	series->steps.len = series->steps.len ? n + 1 : 0;
	series->first = first;
}

static void report_rates_sum_steps(struct run *run, int i)
{
	struct step sum = {0};

	for (int k = 2 * i; k < 2 * i + 2 && k < MAX_STEPS; k++) {
		sum.count += run->steps[k].count;
		sum.failed += run->steps[k].failed;
		sum.ns += run->steps[k].ns;
	}
	run->steps[i] = sum;
}

/* Steps of twice the length. */
static void report_rates_widen(struct run *run)
{
	run->step_ns *= 2;
	for (int i = 0; i < MAX_STEPS; i++)
		report_rates_sum_steps(run, i);
	ky_vec_foreach(&run->series, it)
		widen_series(*it);
}

/* The step of a moment of the range. */
static size_t step_of(struct run *run, int64_t ns)
{
	int64_t begin_ns = ky_model_begin_ns(run->model);
	uint64_t since = ky_ns_between(begin_ns, ns);

	while (since / (uint64_t)run->step_ns >= MAX_STEPS)
		report_rates_widen(run);
	run->last_step = since / (uint64_t)run->step_ns;
	run->last_ns = begin_ns + (int64_t)run->last_step * run->step_ns;
	return run->last_step;
}

static int report_rates_on_call(void *data, const struct ky_call *call)
{
	struct run *run = data;
	struct series *series;
	size_t at;

	if (call->outcome != KY_CALL_DONE)
		return 0;
	/* Most often the one of the call before: no need to divide. */
	at = (uint64_t)call->end_ns - (uint64_t)run->last_ns < (uint64_t)run->step_ns
		     ? run->last_step
		     : step_of(run, call->end_ns);
	series = find_series(run, call);
	if (!series || add_to_series(series, at) < 0)
		return KYMO_E_MEMORY;
	run->steps[at].count++;
	run->steps[at].failed += call->has_ret && ky_is_error(call->ret);
	run->steps[at].ns += ky_ns_between(call->begin_ns, call->end_ns);
	return 0;
}

static void report_rates_free_run(void *data)
{
	struct run *run = data;

	ky_vec_foreach(&run->series, series)
		ky_vec_fini(&(*series)->steps);
	ky_vec_fini(&run->series);
	ky_arena_fini(&run->arena);
	ky_map_fini(&run->by_key);
	free(run);
}

static void *report_rates_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.call = report_rates_on_call};
	struct run *run = ky_report_run(model, sizeof(*run), &listener);

	(void)options;
	if (!run)
		return NULL;
	run->step_ns = FIRST_STEP_NS;
	run->last_ns = INT64_MIN; /* in no step yet */
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

static int64_t step_begin(const struct run *run, size_t i)
{
	return ky_model_begin_ns(run->model) + (int64_t)i * run->step_ns;
}

/* How much of step @i the range covers. */
static uint64_t step_length(const struct run *run, size_t i)
{
	uint64_t left = ky_ns_between(step_begin(run, i), ky_model_end_ns(run->model));

	return left < (uint64_t)run->step_ns ? left : (uint64_t)run->step_ns;
}

static void fill_rate(struct ky_cell *cell, uint64_t count, uint64_t ns)
{
	if (ns)
		ky_cell_f64(cell, ky_part(count, ns) * 1e9);
}

static size_t n_steps(const struct run *run)
{
	uint64_t range_ns = ky_report_range_ns(run->model);
	uint64_t n = range_ns / (uint64_t)run->step_ns + (range_ns % (uint64_t)run->step_ns != 0);

	/* A call that ends with the range's last event stands at its very end. */
	return n < MAX_STEPS ? n + (n < MAX_STEPS && run->steps[n].count) : MAX_STEPS;
}

static void fill_steps(const struct run *run, struct ky_table *table)
{
	for (size_t i = 0; i < n_steps(run); i++) {
		struct ky_cell *row = ky_table_row(table);

		ky_cell_i64(&row[STEP_BEGIN], step_begin(run, i));
		ky_cell_u64(&row[STEP_CALLS], run->steps[i].count);
		fill_rate(&row[STEP_RATE], run->steps[i].count, step_length(run, i));
		ky_cell_u64(&row[STEP_FAILED], run->steps[i].failed);
		ky_cell_sum(&row[STEP_TIME], run->steps[i].ns);
	}
}

static void add_series(struct sum *sum, const struct series *series)
{
	sum->count += series->count;
	for (size_t i = 0; i < series->steps.len; i++)
		sum->steps[series->first + i] += series->steps.data[i];
}

static size_t peak_of(const struct sum *sum)
{
	size_t peak = 0;

	for (size_t i = 1; i < MAX_STEPS; i++) {
		if (sum->steps[i] > sum->steps[peak])
			peak = i;
	}
	return peak;
}

/* Count, rate, peak and where it is, from @row on. */
static void fill_sum(const struct run *run, struct ky_cell *row, const struct sum *sum)
{
	size_t peak = peak_of(sum);

	ky_cell_u64(&row[0], sum->count);
	fill_rate(&row[1], sum->count, ky_report_range_ns(run->model));
	fill_rate(&row[2], sum->steps[peak], (uint64_t)run->step_ns);
	ky_cell_i64(&row[3], step_begin(run, peak));
}

static int fill_calls(const struct run *run, struct ky_table *table)
{
	size_t n = ky_model_n_syscalls(run->model);
	struct sum *sums = calloc(n + 1, sizeof(*sums));

	if (!sums)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&run->series, it)
		add_series(&sums[(*it)->syscall], *it);
	for (size_t i = 0; i < n; i++) {
		struct ky_cell *row;

		if (!sums[i].count)
			continue;
		row = ky_table_row(table);
		ky_cell_text(table, &row[CALL_SYSCALL],
			     ky_model_syscall_name(run->model, (uint32_t)i));
		fill_sum(run, &row[CALL_COUNT], &sums[i]);
	}
	free(sums);
	ky_table_sort_then(table, CALL_COUNT, false, CALL_SYSCALL, true);
	return 0;
}

static int compare_series(const void *a, const void *b, void *data)
{
	const struct series *left = *(struct series *const *)a;
	const struct series *right = *(struct series *const *)b;
	const enum ky_by *by = data;

	return ky_threads_compare_what(left->thread, left->syscall, right->thread, right->syscall,
				       *by);
}

static void report_rates_fill_thread(const struct run *run, struct ky_table *table,
				     const struct sum *sum, enum ky_by by)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, sum->thread, by);
	ky_cell_text(table, &row[WHO_SYSCALL], ky_model_syscall_name(run->model, sum->syscall));
	fill_sum(run, &row[WHO_COUNT], sum);
}

static int report_rates_fill_threads(const struct run *run, struct ky_table *table, enum ky_by by)
{
	size_t n = run->series.len;
	struct series **sorted = calloc(n + 1, sizeof(*sorted));
	struct sum sum = {0};

	if (!sorted)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++)
		sorted[i] = run->series.data[i];
	qsort_r(sorted, n, sizeof(*sorted), compare_series, &by);
	for (size_t i = 0; i < n; i++) {
		const struct series *series = sorted[i], *next = sorted[i + 1];

		if (!i || series->syscall != sum.syscall ||
		    ky_threads_compare(series->thread, sum.thread, by))
			sum = (struct sum){.thread = series->thread, .syscall = series->syscall};
		add_series(&sum, series);
		if (!next || next->syscall != sum.syscall ||
		    ky_threads_compare(next->thread, sum.thread, by))
			report_rates_fill_thread(run, table, &sum, by);
	}
	free(sorted);
	ky_table_sort_then(table, WHO_PROCESS, true, WHO_SYSCALL, true);
	ky_table_sort_groups(table, WHO_PEAK, false);
	return 0;
}

/* How many calls of @series ended in @step. */
static uint64_t calls_in(const struct series *series, size_t step)
{
	return step - series->first < series->steps.len ? series->steps.data[step - series->first]
							: 0;
}

static void fill_log(const struct run *run, struct ky_table *table, uint64_t limit)
{
	for (size_t i = 0; i < n_steps(run); i++) {
		ky_vec_foreach(&run->series, it) {
			uint64_t count = calls_in(*it, i);
			struct ky_cell *row;

			if (!count)
				continue;
			if (limit && ky_table_n_rows(table) >= limit) {
				table->n_omitted++;
				continue;
			}
			row = ky_table_row(table);
			ky_cell_i64(&row[LOG_BEGIN], step_begin(run, i));
			ky_cell_thread(table, &row[LOG_PROCESS], run->model, (*it)->thread);
			ky_cell_text(table, &row[LOG_SYSCALL],
				     ky_model_syscall_name(run->model, (*it)->syscall));
			ky_cell_u64(&row[LOG_COUNT], count);
			fill_rate(&row[LOG_RATE], count, step_length(run, i));
		}
	}
}

static int report_rates_finish(void *data, const struct ky_report_options *options,
			       struct ky_report_result *result)
{
	struct run *run = data;
	int status;

	/* The steps are as long as the range wants, whether or not calls came in its last part. */
	if (ky_model_begin_ns(run->model) != INT64_MIN)
		step_of(run, ky_model_end_ns(run->model));
	status = fill_calls(run, &result->tables[TABLE_CALLS]);
	fill_steps(run, &result->tables[TABLE_STEPS]);
	if (status >= 0)
		status = report_rates_fill_threads(run, &result->tables[TABLE_WHO],
						   ky_report_by(options, KY_BY_THREAD));
	if (!result->tables[TABLE_LOG].hidden)
		fill_log(run, &result->tables[TABLE_LOG],
			 ky_report_keep(options, &ky_report_syscall_rates, TABLE_LOG));
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_syscall_rates = {
	.name = "syscall-rates",
	.summary = "system calls per second, over time",
	.description =
		"Counts the system calls that end in each step of the range. It divides the range "
		"into at most 30 steps of equal length: 1 ms, or 1 ms doubled as often as "
		"necessary. The log has the rate of every call of every thread in every step.\n"
		"\n"
		"Only calls with entry and exit in the trace count. For another step length, use "
		"kymo report syscalls --refresh 100ms.",
	.events = "syscall_entry_NAME and syscall_exit_NAME, as for report syscalls.",
	.reading = "A constant rate is mostly normal; look for bursts and for growing rates. A "
		   "polling loop shows as one call with a constant high rate. A peak far above the "
		   "mean is a burst: with --begin and --end at its time, every other report shows "
		   "only the burst.",
	.example = "$ kymo report syscall-rates -n 3 -t syscalls -t threads my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Rate of each system call\n"
		   "  System call  Calls  Calls/s   Peak/s             Peak at\n"
		   "  newfstatat    2058   548.63  6781.25  05:30:39.121245630  ██████████"
		   "██████████\n"
		   "  write          897   239.13  5031.25  05:30:38.993245630  ████████▊\n"
		   "  read           654   174.35  4710.94  05:30:38.993245630  ██████▍\n"
		   "  55 more rows: --limit 0 shows all\n"
		   "\n"
		   "Rate of each system call of each thread\n"
		   "  System call      Calls  Calls/s   Peak/s             Peak at\n"
		   "  lttng-consumerd (tid 275, pid 268)\n"
		   "  ioctl              517   137.82  4039.06  05:30:38.865245630  ██████"
		   "██████████\n"
		   "  sync_file_range    171    45.59  1335.94  05:30:38.865245630  █████▎\n"
		   "  write               86    22.93   671.88  05:30:38.865245630  ██▋\n"
		   "  work (tid 323, pid 323)\n"
		   "  read               315    83.97  2359.38  05:30:38.993245630  ██████"
		   "███▊\n"
		   "  write              300    79.98  2343.75  05:30:38.993245630  ██████"
		   "███▎\n"
		   "  clone               30     8.00   109.38  05:30:39.121245630  ▉\n"
		   "  tcp-server (tid 326, pid 323)\n"
		   "  read               301    80.24  2351.56  05:30:38.993245630  ██████"
		   "███▍\n"
		   "  write              300    79.98  2343.75  05:30:38.993245630  ██████"
		   "███▎\n"
		   "  accept               1     0.27     7.81  05:30:38.993245630\n"
		   "  532 more rows: --limit 0 shows all\n",
	.next = "report syscalls|how long these calls took",
	.tables = tables,
	KY_NEEDS_SYSCALLS,
	.begin = report_rates_begin,
	.finish = report_rates_finish,
	.free = report_rates_free_run,
};
