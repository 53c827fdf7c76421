/* SPDX-License-Identifier: MIT */
/* Report syscalls: which system calls were made, how long they took, which failed. */
#include "analysis/reports/report-list.h"

#include "analysis/calls/single-calls.h"
#include "analysis/calls/syscall-counts.h"

/* ---- documentation --------------------------------------------------------------------- */

/* What the tables of calls share; in this order in each of them. */
enum {
	CALL_SYSCALL,
	CALL_COUNT,
	CALL_ERRORS,
	CALL_TIME,
	CALL_MIN,
	CALL_AVG,
	CALL_MAX,
	CALL_STDEV,
	CALL_P50,
	CALL_P90,
	CALL_P99,
	CALL_P999,
};

#define CALL_COLUMNS                                                                               \
	{"syscall", "System call", KY_CELL_SYSCALL,                                                \
	 "The call's name; 'syscall 334' if the trace has only its number; 'compat_' before "      \
	 "calls of 32-bit programs on a 64-bit kernel."},                                          \
		{"count", "Calls", KY_CELL_COUNT,                                                  \
		 "How many calls were measured: calls with entry and exit in the trace."},         \
		{"failed", "Failed", KY_CELL_COUNT,                                                \
		 "How many of them returned an error (-1 to -4095)."},                             \
		{"total",                                                                          \
		 "Time",                                                                           \
		 KY_CELL_DURATION,                                                                 \
		 "The sum of their durations, with waiting.",                                      \
		 .bar = KY_BAR_ROOM,                                                               \
		 .spare = 1},                                                                      \
		{"min", "Min", KY_CELL_DURATION, "The shortest call.", .spare = 4},                \
		{"avg", "Mean", KY_CELL_DURATION, "The mean duration."},                           \
		{"max", "Max", KY_CELL_DURATION, "The longest call."},                             \
		{"stdev", "Stdev", KY_CELL_DURATION,                                               \
		 "The sample standard deviation of the durations (n - 1); needs two calls.",       \
		 .spare = 6},                                                                      \
		{"p50", "p50", KY_CELL_DURATION,                                                   \
		 "The median: half of the calls are not longer. Percentiles are nearest-rank; "    \
		 "exact up to 32 calls, else within 0.8 %.",                                       \
		 .spare = 3},                                                                      \
		{"p90", "p90", KY_CELL_DURATION, "90 % of the calls are not longer.", .spare = 5}, \
		{"p99", "p99", KY_CELL_DURATION, "99 % of the calls are not longer.", .spare = 2}, \
	{                                                                                          \
		"p999", "p99.9", KY_CELL_DURATION, "99.9 % of the calls are not longer.",          \
			.spare = 8                                                                 \
	}

#define ERRORS_COLUMN                                                                           \
	{                                                                                       \
		"errors", "Errors", KY_CELL_TALLY,                                              \
			"The errors by name, each with its number of calls, the most frequent " \
			"first."                                                                \
	}

enum { SYSCALL_FIRST, SYSCALL_UNMEASURED = CALL_P999 + 1, SYSCALL_TALLY };

static const struct ky_column syscall_columns[] = {
	CALL_COLUMNS,
	[SYSCALL_UNMEASURED] = {"unmeasured", "Unmeasured", KY_CELL_COUNT,
				"How many calls could not be measured; the last table has the "
				"reasons.",
				.spare = 7},
	[SYSCALL_TALLY] = ERRORS_COLUMN,
};

static const struct ky_table_def syscall_table = KY_TABLE_DEF(
	"syscalls", "System calls", "One row for each system call, the most frequent first.",
	syscall_columns, KY_TABLE_RANK);

enum { PROCESS_ID, PROCESS_THREADS, PROCESS_COUNT, PROCESS_FAILED, PROCESS_TIME, PROCESS_SHARE };

static const struct ky_column process_columns[] = {
	[PROCESS_ID] =
		{"process", "Process", KY_CELL_PROCESS,
		 "Process ID (in JSON also as tid), and the name of its first thread, or of "
		 "another thread if that is unknown. A thread with an unknown process has its own "
		 "row, with '?'.",
		 .whole_process = true},
	[PROCESS_THREADS] = {"threads", "Threads", KY_CELL_COUNT,
			     "How many of its threads made calls.", .spare = 1},
	[PROCESS_COUNT] = {"count", "Calls", KY_CELL_COUNT, "How many calls were measured."},
	[PROCESS_FAILED] = {"failed", "Failed", KY_CELL_COUNT, "How many calls returned an error."},
	[PROCESS_TIME] = {"total", "Time", KY_CELL_DURATION,
			  "The sum of their durations, with waiting. Threads wait in parallel, so "
			  "the sum can exceed the trace's duration."},
	[PROCESS_SHARE] = {"share", "Share", KY_CELL_RATIO,
			   "Its share of all measured calls. The longest bar is the largest value.",
			   .bar = KY_BAR_MOST},
};

static const struct ky_table_def process_table =
	KY_DETAIL_TABLE_DEF("processes", "System calls of each process",
			    "One row for each process that made calls, the most calls first.",
			    process_columns, KY_TABLE_RANK);

enum { THREAD_PROCESS, THREAD_CALLS, THREAD_TALLY = THREAD_CALLS + CALL_P999 + 1 };

static const struct ky_column thread_columns[] = {
	[THREAD_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			    "Thread ID, process ID ('?' if no event has it) and last name. With "
			    "--group-by, the process, or the common name of threads.",
			    .group = true},
	CALL_COLUMNS,
	[THREAD_TALLY] = ERRORS_COLUMN,
};

static const struct ky_table_def thread_table = KY_DETAIL_TABLE_DEF(
	"threads", "System calls of each thread",
	"One row for each system call of each thread: the thread with the most calls first, and "
	"its most frequent calls first.",
	thread_columns, KY_TABLE_RANK);

enum { OUTCOME_TEXT, OUTCOME_COUNT };

static const struct ky_column outcome_columns[] = {
	[OUTCOME_TEXT] = {"outcome", "Outcome", KY_CELL_TEXT,
			  "The outcome: measured; began before the trace; a new thread's return "
			  "from its creation (not a call of the thread); events lost in between; "
			  "never returned, the thread went on (rt_sigreturn); the thread ended in "
			  "the call (exit, exit_group); active at the end of the trace."},
	[OUTCOME_COUNT] = {"count", "Calls", KY_CELL_COUNT, "How many."},
};

static const struct ky_table_def outcome_table = KY_TABLE_DEF(
	"outcomes", "Outcomes of the calls",
	"One row for each outcome. The figures of the other tables contain only measured calls.",
	outcome_columns, KY_TABLE_FIXED);

static const char *const outcome_texts[KY_CALL_OUTCOMES] = {
	[KY_CALL_DONE] = "measured",
	[KY_CALL_HEADLESS] = "began before the trace",
	[KY_CALL_BIRTH] = "return of a new thread",
	[KY_CALL_TORN] = "events lost in between",
	[KY_CALL_NO_RETURN] = "never returned, thread went on",
	[KY_CALL_EXITED] = "thread ended in it",
	[KY_CALL_UNENDED] = "under way at the end",
};

static const struct ky_table_def *const tables[] = {
	&syscall_table, &process_table, &thread_table, &ky_calls_top,
	&ky_calls_freq, &outcome_table, &ky_calls_log, NULL};

enum {
	TABLE_SYSCALLS,
	TABLE_PROCESSES,
	TABLE_THREADS,
	TABLE_TOP,
	TABLE_FREQ,
	TABLE_OUTCOMES,
	TABLE_LOG
};

/* ---- the run --------------------------------------------------------------------------- */

struct unmeasured {
	uint64_t counts[KY_CALL_OUTCOMES];
};

struct run {
	struct ky_model *model;
	struct ky_syscall_counts usages;
	struct ky_calls calls;
	KY_VEC(struct unmeasured) unmeasured; /* by system call */
	uint64_t outcomes[KY_CALL_OUTCOMES];
};

static int count_unmeasured(struct run *run, const struct ky_call *call)
{
	while (run->unmeasured.len <= call->syscall) {
		if (ky_vec_push(&run->unmeasured, (struct unmeasured){{0}}) < 0)
			return KYMO_E_MEMORY;
	}
	run->unmeasured.data[call->syscall].counts[call->outcome]++;
	return 0;
}

static int report_syscalls_on_call(void *data, const struct ky_call *call)
{
	struct run *run = data;

	run->outcomes[call->outcome]++;
	if (call->outcome != KY_CALL_DONE)
		return count_unmeasured(run, call);
	if (ky_syscall_counts_add(&run->usages, call) < 0)
		return KYMO_E_MEMORY;
	return ky_calls_add(&run->calls, call);
}

static void *report_syscalls_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.call = report_syscalls_on_call};
	struct run *run;

	/* What files the calls are about takes time to follow. */
	if (ky_report_wants(options, &ky_report_syscalls, TABLE_TOP) ||
	    ky_report_wants(options, &ky_report_syscalls, TABLE_LOG)) {
		listener.files = true;
		listener.arguments = true;
	}
	run = ky_report_run(model, sizeof(*run), &listener);

	if (run)
		ky_calls_init(&run->calls, options, &ky_report_syscalls, TABLE_TOP, TABLE_LOG,
			      TABLE_FREQ);
	return run;
}

static void report_syscalls_free_run(void *data)
{
	struct run *run = data;

	ky_syscall_counts_fini(&run->usages);
	ky_calls_fini(&run->calls);
	ky_vec_fini(&run->unmeasured);
	free(run);
}

/* ---- the tables ------------------------------------------------------------------------ */

/* The columns that all tables of calls have. */
static void report_syscalls_fill_call(const struct run *run, struct ky_table *table,
				      struct ky_cell *row, const struct ky_syscall_count *usage)
{
	ky_cell_text(table, &row[CALL_SYSCALL], ky_model_syscall_name(run->model, usage->syscall));
	ky_cell_u64(&row[CALL_COUNT], usage->stats.count);
	ky_cell_u64(&row[CALL_ERRORS], usage->failed);
	ky_fill_times(&row[CALL_TIME], &usage->stats);
}

static uint64_t unmeasured_of(const struct run *run, uint32_t syscall)
{
	uint64_t sum = 0;

	for (int i = 0; syscall < run->unmeasured.len && i < KY_CALL_OUTCOMES; i++)
		sum += i == KY_CALL_BIRTH ? 0 : run->unmeasured.data[syscall].counts[i];
	return sum;
}

static int fill_syscall(const struct run *run, struct ky_table *table,
			const struct ky_syscall_count *usage)
{
	uint64_t unmeasured = unmeasured_of(run, usage->syscall);
	struct ky_cell *row;

	if (!usage->stats.count && !unmeasured)
		return 0;
	row = ky_table_row(table);
	report_syscalls_fill_call(run, table, row, usage);
	ky_cell_u64(&row[SYSCALL_UNMEASURED], unmeasured);
	return ky_cell_errors(table, &row[SYSCALL_TALLY], usage);
}

/* All calls of the whole system: also those of which none was measured. */
static int fill_syscalls(struct run *run, struct ky_table *table)
{
	size_t n = ky_model_n_syscalls(run->model);
	struct ky_syscall_counts all = {0};
	const struct ky_syscall_count **by_call = calloc(n + 1, sizeof(*by_call));
	int status = by_call ? ky_syscall_counts_group(&all, &run->usages, KY_BY_NOTHING)
			     : KYMO_E_MEMORY;

	for (size_t i = 0; !status && i < all.list.len; i++)
		by_call[all.list.data[i]->syscall] = all.list.data[i];
	for (size_t i = 0; !status && i < n; i++) {
		const struct ky_syscall_count none = {.syscall = (uint32_t)i};

		status = fill_syscall(run, table, by_call[i] ? by_call[i] : &none);
	}
	ky_syscall_counts_fini(&all);
	free(by_call);
	ky_table_sort_then(table, CALL_COUNT, false, CALL_SYSCALL, true);
	return status;
}

static int report_syscalls_fill_threads(struct run *run, struct ky_table *table, enum ky_by by)
{
	struct ky_syscall_counts groups = {0};
	int status = ky_syscall_counts_group(&groups, &run->usages, by);

	ky_syscall_counts_rank(&groups);
	for (size_t i = 0; i < groups.list.len && !status; i++) {
		const struct ky_syscall_count *usage = groups.list.data[i];
		struct ky_cell *row;

		if (ky_table_is_full(table)) {
			table->n_omitted += groups.list.len - i;
			break;
		}
		row = ky_table_row(table);
		ky_cell_who(table, &row[THREAD_PROCESS], run->model, usage->thread, by);
		report_syscalls_fill_call(run, table, row + THREAD_CALLS, usage);
		status = ky_cell_errors(table, &row[THREAD_TALLY], usage);
	}
	ky_syscall_counts_fini(&groups);
	return status;
}

/* What threads add up to. */
struct thread_sum {
	const struct ky_thread *thread;
	uint64_t count, failed, threads;
	unsigned __int128 ns;
};

static void report_syscalls_fill_process(const struct run *run, struct ky_table *table,
					 const struct thread_sum *sum)
{
	const struct ky_thread *thread = sum->thread;
	struct ky_cell *row = ky_table_row(table);
	const char *host = ky_report_host(run->model, thread->host);
	const char *comm = thread->comm;
	struct ky_thread *first;

	if (thread->pid >= 0) {
		first = ky_map_get(&thread->host->threads, (uint32_t)thread->pid);
		if (first && first->comm[0])
			comm = first->comm;
		ky_cell_process(table, &row[PROCESS_ID], thread->pid, thread->pid, comm, host);
	} else {
		ky_cell_process(table, &row[PROCESS_ID], thread->tid, -1, comm, host);
	}
	ky_cell_u64(&row[PROCESS_THREADS], sum->threads);
	ky_cell_u64(&row[PROCESS_COUNT], sum->count);
	ky_cell_u64(&row[PROCESS_FAILED], sum->failed);
	ky_cell_f64(&row[PROCESS_TIME], (double)sum->ns);
	if (sum->ns <= UINT64_MAX)
		ky_cell_u64(&row[PROCESS_TIME], (uint64_t)sum->ns);
	ky_cell_f64(&row[PROCESS_SHARE], (double)sum->count / (double)run->outcomes[KY_CALL_DONE]);
}

/* Threads of one process next to each other. */
static int compare_processes(const void *a, const void *b)
{
	const struct thread_sum *left = a, *right = b;
	uint32_t left_host = left->thread->host->index, right_host = right->thread->host->index;

	if (left_host != right_host)
		return left_host < right_host ? -1 : 1;
	if (left->thread->pid != right->thread->pid)
		return left->thread->pid < right->thread->pid ? -1 : 1;
	return left->thread->index < right->thread->index
		       ? -1
		       : left->thread->index > right->thread->index;
}

static bool same_process(const struct ky_thread *a, const struct ky_thread *b)
{
	return a->host == b->host && a->pid >= 0 && a->pid == b->pid;
}

/* @sums is used up: sorted by process, and added up. */
static void report_syscalls_fill_processes(const struct run *run, struct ky_table *table,
					   struct thread_sum *sums, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (sums[i].thread)
			sums[used++] = sums[i];
	}
	qsort(sums, used, sizeof(*sums), compare_processes);
	for (size_t i = 0; i < used; i++) {
		if (i + 1 < used && same_process(sums[i].thread, sums[i + 1].thread)) {
			sums[i + 1].count += sums[i].count;
			sums[i + 1].failed += sums[i].failed;
			sums[i + 1].threads += sums[i].threads;
			sums[i + 1].ns += sums[i].ns;
			continue;
		}
		report_syscalls_fill_process(run, table, &sums[i]);
	}
	ky_table_sort_then(table, PROCESS_COUNT, false, PROCESS_ID, true);
}

static void report_syscalls_add_usage(const struct ky_syscall_count *usage, struct thread_sum *sums)
{
	struct thread_sum *sum = &sums[usage->thread->index];

	sum->thread = usage->thread;
	sum->threads = 1;
	sum->count += usage->stats.count;
	sum->failed += usage->failed;
	sum->ns += ky_stats_moments(&usage->stats).sum;
}

static struct thread_sum *sum_threads(const struct run *run)
{
	struct thread_sum *sums = calloc(ky_model_n_threads(run->model) + 1, sizeof(*sums));

	for (size_t i = 0; sums && i < run->usages.list.len; i++)
		report_syscalls_add_usage(run->usages.list.data[i], sums);
	return sums;
}

static void fill_outcomes(const struct run *run, struct ky_table *table)
{
	for (int i = 0; i < KY_CALL_OUTCOMES; i++) {
		struct ky_cell *row = ky_table_row(table);

		ky_cell_text(table, &row[OUTCOME_TEXT], outcome_texts[i]);
		ky_cell_u64(&row[OUTCOME_COUNT], run->outcomes[i]);
	}
}

static int report_syscalls_finish(void *data, const struct ky_report_options *options,
				  struct ky_report_result *result)
{
	struct run *run = data;
	struct thread_sum *sums = sum_threads(run);
	int status = sums ? 0 : KYMO_E_MEMORY;

	if (!status)
		status = fill_syscalls(run, &result->tables[TABLE_SYSCALLS]);
	if (!status)
		status = report_syscalls_fill_threads(run, &result->tables[TABLE_THREADS],
						      ky_report_by(options, KY_BY_THREAD));
	if (!status)
		report_syscalls_fill_processes(run, &result->tables[TABLE_PROCESSES], sums,
					       ky_model_n_threads(run->model));
	free(sums);
	ky_calls_fill(&run->calls, run->model, &result->tables[TABLE_TOP],
		      &result->tables[TABLE_LOG]);
	if (!status)
		status = ky_calls_fill_freq(&run->calls, run->model, &result->tables[TABLE_FREQ],
					    ky_report_limit(options, KY_TABLE_RANK));
	fill_outcomes(run, &result->tables[TABLE_OUTCOMES]);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_syscalls = {
	.name = "syscalls",
	.summary = "system calls: how many, how long, which failed",
	.description =
		"Pairs the entry of each system call with its exit, and measures the time between "
		"them. The report pairs them by thread, so it also measures calls that move to "
		"another CPU.\n"
		"\n"
		"The report measures calls with both events in the trace. It counts other calls "
		"separately, by reason: the call was active when the trace began or ended, never "
		"returned, or events were lost in between.",
	.events =
		"syscall_entry_NAME and syscall_exit_NAME (compat_ forms too; perf's sys_enter and "
		"sys_exit). The tid context field names the thread of a call, else sched_switch "
		"does: without both, the report cannot pair calls. Process IDs and names come from "
		"the context fields, sched events and the state dump.",
	.reading =
		"A long mean with a short median means that a few calls waited: look at p99 and "
		"max, at the distribution (two peaks: cache hits and misses), and at the times of "
		"the longest calls (-t log has every call). Time in read, futex, poll, epoll_wait, "
		"nanosleep or wait4 is mostly waiting, not work. EAGAIN is the normal answer of "
		"non-blocking files; many ENOENT errors often come from a search path. ERESTARTSYS "
		"and similar errors are calls that a signal interrupted: the program never sees "
		"them.",
	.example = "$ kymo report syscalls -n 3 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "System calls\n"
		   "  System call  Calls  Failed      Mean       Max       p50       p99  "
		   "Errors\n"
		   "  newfstatat    2058       9  14.46 us  1.286 ms  10.69 us  64.77 us  "
		   "ENOENT 9\n"
		   "  write          897       0  128.4 us  30.07 ms  40.19 us  708.6 us\n"
		   "  read           654       0  175.8 us  15.41 ms  71.17 us  2.114 ms\n"
		   "  59 more rows: --limit 0 shows all\n"
		   "  --wide shows: p99.9, Unmeasured, Stdev, p90, Min, Time\n"
		   "\n"
		   "The longest calls\n"
		   "                 End  Duration  System call      TID  PID  Name\n"
		   "  05:30:42.615125610  3.675 s   epoll_wait       250  240  Client mana"
		   "geme\n"
		   "  05:30:42.552413680  3.008 s   wait4              1    1  init\n"
		   "  05:30:42.550452220  3.001 s   clock_nanosleep  363  363  sleep\n"
		   "  5861 more rows: --limit 0 shows all\n"
		   "  --wide shows: CPU, Begin, Result\n"
		   "\n"
		   "Outcomes of the calls\n"
		   "  Outcome                         Calls\n"
		   "  measured                         5864\n"
		   "  began before the trace              7\n"
		   "  return of a new thread             45\n"
		   "  events lost in between              0\n"
		   "  never returned, thread went on     10\n"
		   "  thread ended in it                 45\n"
		   "  under way at the end                7\n"
		   "\n"
		   "More:  -t processes, -t threads, -t freq, -t log\n"
		   "Next:  kymo report syscalls -t threads my-trace   which threads made t"
		   "hese calls\n"
		   "       kymo report breakdown --of syscall:NAME my-trace   where the ti"
		   "me of a call goes\n",
	.next = "report syscalls -t threads|which threads made these calls\n"
		"report breakdown --of syscall:NAME|where the time of a call goes",
	.tables = tables,
	KY_NEEDS_SYSCALLS,
	.begin = report_syscalls_begin,
	.finish = report_syscalls_finish,
	.free = report_syscalls_free_run,
};
