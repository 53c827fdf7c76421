/* SPDX-License-Identifier: MIT */
/* Report locks: the waits of threads at futexes, and the threads that woke them. */
#include "analysis/reports/report-list.h"

#include "analysis/state/errno-name.h"

/* ---- documentation --------------------------------------------------------------------- */

#define LOCK_HELP "The futex's address in the process: the address of the lock word."

enum {
	LOCK_PROCESS,
	LOCK_ADDRESS,
	LOCK_WAITERS,
	LOCK_WOKEN,
	LOCK_CHANGED,
	LOCK_TIMED_OUT,
	LOCK_FAILED,
	LOCK_STATS
};

static const struct ky_column lock_columns[] = {
	[LOCK_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "The process of the waiting threads: its ID, and the name of its first thread."},
	[LOCK_ADDRESS] = {"address", "Futex", KY_CELL_ADDRESS, LOCK_HELP},
	[LOCK_WAITERS] = {"waiters", "Waiters", KY_CELL_COUNT, "How many threads waited there."},
	[LOCK_WOKEN] = {"woken", "Woken", KY_CELL_COUNT, "Waits that a wake-up ended.", .spare = 9},
	[LOCK_CHANGED] = {"changed", "Changed", KY_CELL_COUNT,
			  "Calls that did not wait, because the lock word had changed (EAGAIN).",
			  .spare = 9},
	[LOCK_TIMED_OUT] = {"timed_out", "Timed out", KY_CELL_COUNT, "Waits that a timeout ended.",
			    .spare = 9},
	[LOCK_FAILED] = {"failed", "Failed", KY_CELL_COUNT,
			 "Waits that ended with another error, mostly a signal.", .spare = 9},
	KY_STATS_COLUMN_DEFS(LOCK_STATS, "calls that wait"),
};

static const struct ky_table_def lock_table =
	KY_TABLE_DEF("locks", "Waits at each futex",
		     "One row for each futex of each process, the largest sum of waits first.",
		     lock_columns, KY_TABLE_RANK);

enum { WHO_PROCESS, WHO_STATS };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			 "The waiting thread; with --group-by, the process or the name."},
	KY_STATS_COLUMN_DEFS(WHO_STATS, "calls that wait"),
};

static const struct ky_table_def who_table = KY_TABLE_DEF(
	"threads", "Waits of each thread",
	"One row for each thread, the largest sum of waits first.", who_columns, KY_TABLE_RANK);

enum { PAIR_WAITER, PAIR_WAKER, PAIR_STATS };

static const struct ky_column pair_columns[] = {
	[PAIR_WAITER] = {"waiter", "Waited", KY_CELL_PROCESS, "The thread that waited.",
			 .second = true},
	[PAIR_WAKER] = {"waker", "Woken by", KY_CELL_PROCESS,
			"The thread that ran at the waiter's wake-up: for a lock, the thread that "
			"released it.",
			.second = true},
	KY_STATS_COLUMN_DEFS(PAIR_STATS, "waits that it ended"),
};

static const struct ky_table_def pair_table = KY_TABLE_DEF(
	"pairs", "Waits by waiter and waker",
	"One row for each pair of threads, the largest sum of waits first. Waits that a timeout or "
	"an interrupt ended are not included.",
	pair_columns, KY_TABLE_RANK);

enum { WAIT_BEGIN, WAIT_END, WAIT_DURATION, WAIT_PROCESS, WAIT_ADDRESS, WAIT_WAKER, WAIT_RESULT };

static const struct ky_column wait_columns[] = {
	[WAIT_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the call began.", .spare = 1},
	[WAIT_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended."},
	[WAIT_DURATION] = {"duration", "Wait", KY_CELL_DURATION, "The duration."},
	[WAIT_PROCESS] = {"process", "Thread", KY_CELL_PROCESS, "The thread that waited."},
	[WAIT_ADDRESS] = {"address", "Futex", KY_CELL_ADDRESS, LOCK_HELP},
	[WAIT_WAKER] = {"waker", "Woken by", KY_CELL_PROCESS,
			"The thread that ran at the wake-up; '-' without a wake-up, or if the "
			"thread is unknown.",
			.second = true},
	[WAIT_RESULT] =
		{"result", "Result", KY_CELL_TEXT,
		 "'woken', or the error: EAGAIN (the lock word had changed), ETIMEDOUT, an error "
		 "of a signal.",
		 .spare = 2},
};

static const struct ky_table_def top_table =
	KY_TABLE_DEF("top", "The longest waits", "One row for each wait, the longest first.",
		     wait_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "Waits", "One row for each wait, in the order of their ends.",
		     wait_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("result", "Result", KY_CELL_TEXT,
			    "'woken', or any error as 'not woken'."),
};

static const struct ky_table_def freq_table = KY_TABLE_DEF(
	"freq", "Distribution of waits",
	"One row for each step of duration, for each of the two results, from the shortest.",
	freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def *const tables[] = {
	&lock_table, &who_table, &pair_table, &top_table, &freq_table, &log_table, NULL};

enum { TABLE_LOCKS, TABLE_WHO, TABLE_PAIRS, TABLE_TOP, TABLE_FREQ, TABLE_LOG };

/* ---- the run --------------------------------------------------------------------------- */

enum { SUM_WOKEN, SUM_CHANGED, SUM_TIMED_OUT, SUM_FAILED };

struct wait_record {
	int64_t begin_ns, end_ns, ret;
	const struct ky_thread *thread, *waker;
	uint64_t address;
};

struct run {
	struct ky_model *model;
	struct ky_aggregation locks; /* by thread; what: the address' index */
	struct ky_aggregation threads;
	struct ky_aggregation pairs; /* what: the waker's index */
	struct ky_map by_address;    /* -> its index + 1 */
	KY_VEC(uint64_t) addresses;
	struct ky_freq freqs[2];
	struct ky_happenings single;
};

/* The index of an address, in whatever process. */
static int find_address(struct run *run, uint64_t address, uint64_t *index)
{
	uintptr_t found = (uintptr_t)ky_map_get(&run->by_address, address);

	*index = found - 1;
	if (found)
		return 0;
	*index = run->addresses.len;
	if (ky_vec_push(&run->addresses, address) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&run->by_address, address, (void *)(uintptr_t)(*index + 1));
}

/* Who ended a wait, by the last wake-up of the thread during the call. */
static const struct ky_thread *waker_of(const struct ky_call *call)
{
	const struct ky_wait *woken = &call->thread->woken;

	if (call->ret < 0 || !woken->kind || woken->irq || woken->begin_ns < call->begin_ns)
		return NULL;
	return woken->waker;
}

static int report_locks_sum_of(int64_t ret)
{
	if (ret >= 0)
		return SUM_WOKEN;
	return ret == -11 ? SUM_CHANGED : ret == -110 ? SUM_TIMED_OUT : SUM_FAILED;
}

static int report_locks_add(struct ky_aggregation *aggregation, const struct ky_thread *thread,
			    uint64_t what, int64_t ret, uint64_t ns)
{
	struct ky_entry *entry = ky_aggregation_get(aggregation, thread, what);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[report_locks_sum_of(ret)]++;
	return ky_stats_add(&entry->stats, ns);
}

static int report_locks_on_futex(void *data, const struct ky_call *call)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns), lock = 0;
	struct wait_record record = {call->begin_ns, call->end_ns,   call->ret,
				     call->thread,   waker_of(call), (uint64_t)call->args[0]};

	if (!ky_futex_waits(call->args[1]))
		return 0;
	if (find_address(run, record.address, &lock) < 0 ||
	    report_locks_add(&run->locks, call->thread, lock, call->ret, ns) < 0 ||
	    report_locks_add(&run->threads, call->thread, 0, call->ret, ns) < 0)
		return KYMO_E_MEMORY;
	if (record.waker &&
	    report_locks_add(&run->pairs, call->thread, record.waker->index, call->ret, ns) < 0)
		return KYMO_E_MEMORY;
	ky_freq_add(&run->freqs[call->ret < 0], ns);
	return ky_happenings_add(&run->single, ns, &record);
}

static void report_locks_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->locks);
	ky_aggregation_fini(&run->threads);
	ky_aggregation_fini(&run->pairs);
	ky_map_fini(&run->by_address);
	ky_vec_fini(&run->addresses);
	ky_happenings_fini(&run->single);
	free(run);
}

static void *report_locks_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.futex = report_locks_on_futex};
	struct run *run = ky_report_run(model, sizeof(*run), &listener);

	if (!run)
		return NULL;
	ky_happenings_init(&run->single, sizeof(struct wait_record), options, &ky_report_locks,
			   TABLE_TOP, TABLE_LOG);
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

/* The process of a thread may become known after its waits: so this adds them up at the end. */
static void fill_lock(const void *data, struct ky_table *table, const struct ky_entry *entry,
		      enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[LOCK_PROCESS], run->model, entry->thread, by);
	ky_cell_u64(&row[LOCK_ADDRESS], run->addresses.data[entry->what]);
	ky_cell_u64(&row[LOCK_WAITERS], entry->n_threads);
	ky_cell_u64(&row[LOCK_WOKEN], entry->sums[SUM_WOKEN]);
	ky_cell_u64(&row[LOCK_CHANGED], entry->sums[SUM_CHANGED]);
	ky_cell_u64(&row[LOCK_TIMED_OUT], entry->sums[SUM_TIMED_OUT]);
	ky_cell_u64(&row[LOCK_FAILED], entry->sums[SUM_FAILED]);
	ky_fill_stats(&row[LOCK_STATS], &entry->stats);
}

static int fill_locks(struct run *run, struct ky_table *table)
{
	int status = ky_fill_groups(table, &run->locks, KY_BY_PROCESS, true, fill_lock, run);

	ky_table_sort(table, LOCK_STATS + KY_STATS_TOTAL, false);
	return status;
}

static void report_locks_fill_thread(const void *data, struct ky_table *table,
				     const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	ky_fill_stats(&row[WHO_STATS], &entry->stats);
}

static int report_locks_fill_threads(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, &run->threads, by, false, report_locks_fill_thread, run);

	ky_table_sort(table, WHO_STATS + KY_STATS_TOTAL, false);
	return status;
}

static void fill_pair(const void *data, struct ky_table *table, const struct ky_entry *entry,
		      enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[PAIR_WAITER], run->model, entry->thread, by);
	ky_cell_who(table, &row[PAIR_WAKER], run->model, ky_model_thread(run->model, entry->what),
		    by);
	ky_fill_stats(&row[PAIR_STATS], &entry->stats);
}

struct wakers {
	const struct ky_model *model;
	enum ky_by by;
};

static int compare_wakers(const void *a, const void *b, void *data)
{
	const struct ky_entry *left = *(struct ky_entry *const *)a;
	const struct ky_entry *right = *(struct ky_entry *const *)b;
	const struct wakers *wakers = data;

	return ky_threads_compare(ky_model_thread(wakers->model, left->what),
				  ky_model_thread(wakers->model, right->what), wakers->by);
}

/* Of the wakers of one group, one stands for all. */
static void unite_wakers(struct run *run, enum ky_by by)
{
	struct wakers wakers = {run->model, by};
	struct ky_entry **pairs = run->pairs.entries.data;
	size_t n = run->pairs.entries.len;

	if (n)
		qsort_r(pairs, n, sizeof(*pairs), compare_wakers, &wakers);
	for (size_t i = 1; i < n; i++)
		if (compare_wakers(&pairs[i - 1], &pairs[i], &wakers) == 0)
			pairs[i]->what = pairs[i - 1]->what;
}

static int fill_pairs(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status;

	unite_wakers(run, by);
	status = ky_fill_groups(table, &run->pairs, by, true, fill_pair, run);
	ky_table_sort(table, PAIR_STATS + KY_STATS_TOTAL, false);
	return status;
}

static void report_locks_fill_wait(const void *data, struct ky_table *table, struct ky_cell *row,
				   const void *record)
{
	const struct run *run = data;
	const struct wait_record *wait = record;

	ky_cell_i64(&row[WAIT_BEGIN], wait->begin_ns);
	ky_cell_i64(&row[WAIT_END], wait->end_ns);
	ky_cell_u64(&row[WAIT_DURATION], ky_ns_between(wait->begin_ns, wait->end_ns));
	ky_cell_thread(table, &row[WAIT_PROCESS], run->model, wait->thread);
	ky_cell_u64(&row[WAIT_ADDRESS], wait->address);
	if (wait->waker)
		ky_cell_thread(table, &row[WAIT_WAKER], run->model, wait->waker);
	if (wait->ret < 0)
		ky_cell_errno(table, &row[WAIT_RESULT], (int)-wait->ret);
	else
		ky_cell_text(table, &row[WAIT_RESULT], "woken");
}

static int report_locks_finish(void *data, const struct ky_report_options *options,
			       struct ky_report_result *result)
{
	static const char *const results[] = {"woken", "not woken"};
	struct run *run = data;
	int status = report_locks_fill_threads(run, &result->tables[TABLE_WHO],
					       ky_report_by(options, KY_BY_THREAD));

	if (status >= 0)
		status = fill_locks(run, &result->tables[TABLE_LOCKS]);
	if (status >= 0)
		status = fill_pairs(run, &result->tables[TABLE_PAIRS],
				    ky_report_by(options, KY_BY_THREAD));
	for (int i = 0; i < 2; i++) {
		struct ky_cell what = {0};

		ky_cell_text(&result->tables[TABLE_FREQ], &what, results[i]);
		ky_fill_freq(&result->tables[TABLE_FREQ], &run->freqs[i], &what);
	}
	ky_fill_records(&result->tables[TABLE_TOP], &run->single.top, report_locks_fill_wait, run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->single.log, report_locks_fill_wait, run);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_locks = {
	.name = "locks",
	.summary = "locks of programs: waits at futexes, with waiters and wakers",
	.description =
		"Measures futex() calls that wait. Mutexes, condition variables, semaphores, "
		"barriers and joins of threads use futexes. A thread takes a free lock without a "
		"call, so the report shows only contended locks. An address and a process identify "
		"a futex; a futex in shared memory has a row for each process.\n"
		"\n"
		"The waker is the thread that ran on the CPU where the waiter's wake-up happened "
		"during the call. The report measures calls with entry and exit in the trace. "
		"Report syscalls counts calls that wait for the whole trace as active.",
	.events = "syscall_entry_futex and syscall_exit_futex with their arguments; for the wakers "
		  "sched_switch and sched_waking.",
	.reading =
		"Long waits of several threads at one futex are normal for an idle pool of "
		"threads: the threads wait for work. A problem shows as many short waits at one "
		"address by busy threads: the lock is contended, and the table of waiters and "
		"wakers shows the thread that holds it. 'EAGAIN' means that the lock changed while "
		"the thread went to sleep, which is also contention. A debugger shows the lock of "
		"an address: info symbol 0x....",
	.example =
		"$ kymo report locks -n 3 -t locks -t pairs -t top my-trace\n"
		"Trace  my-trace\n"
		"Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		"       3.751 s, 24723 events\n"
		"\n"
		"Waits at each futex\n"
		"  PID  Name           Futex  Waiters  Count      Mean       Max       p99\n"
		"  323  work  0x7f717ef67990        1      1  89.87 ms  89.87 ms  89.87 ms\n"
		"  323  work        0x4cd400        1     24  819.1 us  6.576 ms  6.576 ms\n"
		"  columns that do not fit: Woken, Changed, Timed out, Failed, p99.9, Stdev, p90, "
		"Min, Time, p50\n"
		"\n"
		"Waits by waiter and waker\n"
		"  TID  Waited  TID  Woken by  Count      Mean       Max       p50       p99\n"
		"  323  work    328  mem           1  89.87 ms  89.87 ms  89.87 ms  89.87 ms\n"
		"  324  lock-a  325  lock-b       24  819.1 us  6.576 ms  86.27 us  6.576 ms\n"
		"  columns that do not fit: p99.9, Stdev, p90, Min, Time\n"
		"\n"
		"The longest waits\n"
		"                 End      Wait  TID  PID  Name             Futex  TID  Woken by\n"
		"  05:30:39.452668250  89.87 ms  323  323  work    0x7f717ef67990  328  mem\n"
		"  05:30:39.009317450  6.576 ms  324  323  lock-a        0x4cd400  325  lock-b\n"
		"  05:30:39.014423590  4.471 ms  324  323  lock-a        0x4cd400  325  lock-b\n"
		"  22 more rows: --limit 0 shows all\n"
		"  columns that do not fit: Result, Begin\n",
	.tables = tables,
	.needs = KY_CAN_SYSCALLS,
	.needs_text = "system call events",
	.needs_hint = "record them with: kymo record -k syscalls -k 'sched_*'",
	.begin = report_locks_begin,
	.finish = report_locks_finish,
	.free = report_locks_free_run,
};
