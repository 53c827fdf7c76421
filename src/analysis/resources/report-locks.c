/* SPDX-License-Identifier: MIT */
/* Report locks: the waits of threads at futexes, and the threads that woke them. */
#include "analysis/resources/locks-kernel.h"
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

static const struct ky_table_def who_table = KY_DETAIL_TABLE_DEF(
	"threads", "Waits of each thread",
	"One row for each thread, the largest sum of waits first.", who_columns, KY_TABLE_RANK);

static const struct ky_column pair_columns[] = {
	[KY_PAIR_THREAD] = {"waiter", "Waited", KY_CELL_PROCESS, "The thread that waited.",
			    .second = true},
	[KY_PAIR_OTHER] =
		{"waker", "Woken by", KY_CELL_PROCESS,
		 "The thread that ran at the waiter's wake-up: of a lock, the last holder. Table "
		 "holders has those that held it for long.",
		 .second = true},
	KY_STATS_COLUMN_DEFS(KY_PAIR_STATS, "waits that it ended"),
};

static const struct ky_table_def pair_table = KY_DETAIL_TABLE_DEF(
	"pairs", "Waits by waiter and waker",
	"One row for each pair of threads, the largest sum of waits first. Waits that a timeout or "
	"an interrupt ended are not included.",
	pair_columns, KY_TABLE_RANK);

enum {
	HOLDER_PROCESS,
	HOLDER_ADDRESS,
	HOLDER_WAITS,
	HOLDER_DELAY,
	HOLDER_RAN,
	HOLDER_READY,
	HOLDER_BLOCKED,
	HOLDER_STATS
};

static const struct ky_column holder_columns[] = {
	[HOLDER_PROCESS] = {"holder", "Holder", KY_CELL_PROCESS, "The thread that held the lock."},
	[HOLDER_ADDRESS] = {"address", "Futex", KY_CELL_ADDRESS, LOCK_HELP},
	[HOLDER_WAITS] =
		{"waits", "Waits", KY_CELL_COUNT,
		 "Waits of other threads that its holds delayed more than other holds did."},
	[HOLDER_DELAY] =
		{"delay", "Delay", KY_CELL_DURATION,
		 "How long other threads waited for these holds, summed over the threads."},
	[HOLDER_RAN] = {"ran", "Ran", KY_CELL_DURATION,
			"The time of its holds in which it ran, or in which its state is unknown.",
			.spare = 3},
	[HOLDER_READY] = {"ready", "No CPU", KY_CELL_DURATION,
			  "The time of its holds in which it could run and waited for a CPU.",
			  .spare = 3},
	[HOLDER_BLOCKED] =
		{"blocked", "Blocked", KY_CELL_DURATION,
		 "The time of its holds in which it slept or waited for something else."},
	KY_STATS_COLUMN_DEFS(HOLDER_STATS, "holds that others waited for"),
};

static const struct ky_table_def holder_table =
	KY_SHORT_TABLE_DEF("holders", "Who held the locks that others waited for",
			   "One row for each thread and lock, the largest delay of others first.",
			   holder_columns, KY_TABLE_RANK);

enum {
	HOLD_BEGIN,
	HOLD_END,
	HOLD_PROCESS,
	HOLD_ADDRESS,
	HOLD_HELD,
	HOLD_WHOLE,
	HOLD_WAITS,
	HOLD_WAIT,
	HOLD_DELAY,
	HOLD_DID
};

static const struct ky_column hold_columns[] = {
	[HOLD_BEGIN] =
		{"begin", "Begin", KY_CELL_TIMESTAMP,
		 "When the thread got the lock: the release before it, if others have waited "
		 "since then; else the begin of the first wait.",
		 .spare = 2},
	[HOLD_END] = {"end", "End", KY_CELL_TIMESTAMP,
		      "When it released the lock: the begin of its futex() call.", .spare = 3},
	[HOLD_PROCESS] = {"holder", "Holder", KY_CELL_PROCESS, "The thread that held the lock.",
			  .second = true},
	[HOLD_ADDRESS] = {"address", "Futex", KY_CELL_ADDRESS, LOCK_HELP, .spare = 1},
	[HOLD_HELD] = {"held", "Held", KY_CELL_DURATION, "From begin to end."},
	[HOLD_WHOLE] =
		{"whole", "Begin known", KY_CELL_TEXT,
		 "'yes', or 'no': the thread took the free lock at an unknown time before the "
		 "first wait.",
		 .spare = 9},
	[HOLD_WAITS] = {"waits", "Threads", KY_CELL_COUNT,
			"Threads with a wait that this hold delayed more than other holds did."},
	[HOLD_WAIT] = {"wait", "Waits", KY_CELL_DURATION,
		       "The sum of these waits, with what came after the hold.", .spare = 2},
	[HOLD_DELAY] = {"delay", "Delay", KY_CELL_DURATION,
			"How long all threads waited during this hold, summed over the threads."},
	[HOLD_DID] = {"did", "Holder meanwhile", KY_CELL_TEXT,
		      "What the holder did: ran, slept or was blocked in a system call, waited for "
		      "a CPU."},
};

static const struct ky_table_def hold_table = KY_SHORT_TABLE_DEF(
	"holds", "The holds that delayed others most (convoys)",
	"One row for each time that a thread held a lock and others waited, the largest delay "
	"first. With several threads, it is a convoy: they queue behind its first holder.",
	hold_columns, KY_TABLE_TOP);

enum {
	WAIT_BEGIN,
	WAIT_END,
	WAIT_DURATION,
	WAIT_PROCESS,
	WAIT_ADDRESS,
	WAIT_WAKER,
	WAIT_RESULT,
	WAIT_HOLDER,
	WAIT_HELD,
	WAIT_DID
};

static const struct ky_column wait_columns[] = {
	[WAIT_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the call began.", .spare = 1},
	[WAIT_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended."},
	[WAIT_DURATION] = {"duration", "Wait", KY_CELL_DURATION, "The duration."},
	[WAIT_PROCESS] = {"process", "Thread", KY_CELL_PROCESS, "The thread that waited."},
	[WAIT_ADDRESS] = {"address", "Futex", KY_CELL_ADDRESS, LOCK_HELP},
	[WAIT_HOLDER] =
		{"holder", "Held by", KY_CELL_PROCESS,
		 "The thread whose hold was the longest part of the wait; '-' if the futex is "
		 "not a lock, or the holder is unknown.",
		 .second = true},
	[WAIT_HELD] = {"held", "For", KY_CELL_DURATION, "How long that part was.", .spare = 4},
	[WAIT_WAKER] = {"waker", "Woken by", KY_CELL_PROCESS,
			"The thread that ran at the wake-up; '-' without a wake-up, or if the "
			"thread is unknown.",
			.second = true, .spare = 3},
	[WAIT_RESULT] =
		{"result", "Result", KY_CELL_TEXT,
		 "'woken', or the error: EAGAIN (the lock word had changed), ETIMEDOUT, an error "
		 "of a signal.",
		 .spare = 5},
	[WAIT_DID] = {"did", "Holder meanwhile", KY_CELL_TEXT,
		      "What the holder did during that hold.", .spare = 2},
};

static const struct ky_table_def top_table =
	KY_DETAIL_TABLE_DEF("top", "The longest waits", "One row for each wait, the longest first.",
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
	&lock_table, &holder_table, &hold_table,
	&who_table,  &pair_table,   &top_table,
	&freq_table, &log_table,    &ky_kernel_locks_table,
	NULL};

enum {
	TABLE_LOCKS,
	TABLE_HOLDERS,
	TABLE_HOLDS,
	TABLE_WHO,
	TABLE_PAIRS,
	TABLE_TOP,
	TABLE_FREQ,
	TABLE_LOG,
	TABLE_KERNEL
};

/* ---- the run --------------------------------------------------------------------------- */

enum { SUM_WOKEN, SUM_CHANGED, SUM_TIMED_OUT, SUM_FAILED };

enum { HOLDS_WAITS, HOLDS_DELAY, HOLDS_RAN, HOLDS_READY, HOLDS_BLOCKED };

struct wait_record {
	int64_t begin_ns, end_ns, ret;
	const struct ky_thread *thread, *waker, *holder;
	uint64_t address, held_ns;
	struct ky_did did;
};

struct run {
	struct ky_model *model;
	struct ky_aggregation locks; /* by thread; what: the address' index */
	struct ky_aggregation threads;
	struct ky_aggregation pairs;   /* what: the waker's index */
	struct ky_aggregation holders; /* what: the lock's index */
	struct ky_records holds;       /* struct ky_lock_hold */
	bool wants_holds;
	struct ky_map by_address; /* -> its index + 1 */
	KY_VEC(uint64_t) addresses;
	struct ky_freq freqs[2];
	struct ky_happenings single;
	struct ky_kernel_locks kernel;
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

/* Whom the wait was for, of locks. */
static void set_holder(struct wait_record *record, const struct ky_lock_wait *wait)
{
	if (!wait->hold || !ky_lock_is_lock(wait->lock))
		return;
	record->holder = wait->hold->thread;
	record->did = wait->hold->did;
	for (size_t i = 0; i < wait->n_parts; i++) {
		const struct ky_lock_part *part = &wait->parts[i];

		if (part->hold == wait->hold)
			record->held_ns = ky_ns_between(part->begin_ns, part->end_ns);
	}
}

static int report_locks_on_wait(void *data, const struct ky_lock_wait *wait)
{
	struct run *run = data;
	const struct ky_call *call = wait->call;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns), lock = 0;
	struct wait_record record = {
		.begin_ns = call->begin_ns,
		.end_ns = call->end_ns,
		.ret = call->ret,
		.thread = call->thread,
		.waker = waker_of(call),
		.address = (uint64_t)call->args[0],
	};

	set_holder(&record, wait);
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

/* Where no table names holders. */
static int report_locks_on_futex(void *data, const struct ky_call *call)
{
	const struct ky_lock_wait wait = {.call = call};

	return ky_futex_waits(call->args[1]) ? report_locks_on_wait(data, &wait) : 0;
}

static int report_locks_on_hold(void *data, const struct ky_lock_hold *hold)
{
	struct run *run = data;
	struct ky_entry *entry;

	if (!ky_lock_is_lock(hold->lock))
		return 0;
	entry = ky_aggregation_get(&run->holders, hold->thread, hold->lock->index);
	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[HOLDS_WAITS] += hold->n_waits;
	entry->sums[HOLDS_DELAY] += hold->delay_ns;
	entry->sums[HOLDS_RAN] += hold->did.rest_ns;
	entry->sums[HOLDS_READY] += hold->did.ready_ns;
	entry->sums[HOLDS_BLOCKED] += hold->did.blocked_ns;
	if (ky_stats_add(&entry->stats, ky_ns_between(hold->begin_ns, hold->end_ns)) < 0)
		return KYMO_E_MEMORY;
	return run->wants_holds ? ky_records_add(&run->holds, hold->delay_ns, hold) : 0;
}

static int report_locks_on_contention(void *data, const struct ky_contention *wait)
{
	struct run *run = data;

	return ky_kernel_locks_add(&run->kernel, wait);
}

static void report_locks_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->locks);
	ky_aggregation_fini(&run->threads);
	ky_aggregation_fini(&run->pairs);
	ky_aggregation_fini(&run->holders);
	ky_records_fini(&run->holds);
	ky_map_fini(&run->by_address);
	ky_vec_fini(&run->addresses);
	ky_happenings_fini(&run->single);
	ky_kernel_locks_fini(&run->kernel);
	free(run);
}

static void *report_locks_begin(struct ky_model *model, const struct ky_report_options *options)
{
	static const size_t with_holders[] = {TABLE_HOLDERS, TABLE_HOLDS, TABLE_TOP, TABLE_LOG};
	struct ky_listener listener = {.futex = report_locks_on_futex,
				       .contention = report_locks_on_contention};
	struct run *run;

	for (size_t i = 0; i < sizeof(with_holders) / sizeof(*with_holders); i++) {
		if (ky_report_wants(options, &ky_report_locks, with_holders[i]))
			listener = (struct ky_listener){.did = true,
							.lock_wait = report_locks_on_wait,
							.lock_hold = report_locks_on_hold,
							.contention = report_locks_on_contention};
	}
	run = ky_report_run(model, sizeof(*run), &listener);
	if (!run)
		return NULL;
	ky_happenings_init(&run->single, sizeof(struct wait_record), options, &ky_report_locks,
			   TABLE_TOP, TABLE_LOG);
	run->wants_holds = ky_report_wants(options, &ky_report_locks, TABLE_HOLDS);
	ky_records_init(&run->holds, sizeof(struct ky_lock_hold),
			ky_report_keep(options, &ky_report_locks, TABLE_HOLDS), true);
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

static void fill_holder(const void *data, struct ky_table *table, const struct ky_entry *entry,
			enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[HOLDER_PROCESS], run->model, entry->thread, by);
	ky_cell_u64(&row[HOLDER_ADDRESS], ky_model_lock(run->model, entry->what)->address);
	ky_cell_u64(&row[HOLDER_WAITS], entry->sums[HOLDS_WAITS]);
	ky_cell_u64(&row[HOLDER_DELAY], entry->sums[HOLDS_DELAY]);
	ky_cell_u64(&row[HOLDER_RAN], entry->sums[HOLDS_RAN]);
	ky_cell_u64(&row[HOLDER_READY], entry->sums[HOLDS_READY]);
	ky_cell_u64(&row[HOLDER_BLOCKED], entry->sums[HOLDS_BLOCKED]);
	ky_fill_stats(&row[HOLDER_STATS], &entry->stats);
}

static int fill_holders(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, &run->holders, by, true, fill_holder, run);

	ky_table_sort(table, HOLDER_DELAY, false);
	return status;
}

static void fill_hold(const void *data, struct ky_table *table, struct ky_cell *row,
		      const void *record)
{
	const struct run *run = data;
	const struct ky_lock_hold *hold = record;

	ky_cell_i64(&row[HOLD_BEGIN], hold->begin_ns);
	ky_cell_i64(&row[HOLD_END], hold->end_ns);
	ky_cell_thread(table, &row[HOLD_PROCESS], run->model, hold->thread);
	ky_cell_u64(&row[HOLD_ADDRESS], hold->lock->address);
	ky_cell_u64(&row[HOLD_HELD], ky_ns_between(hold->begin_ns, hold->end_ns));
	ky_cell_text(table, &row[HOLD_WHOLE], hold->is_whole ? "yes" : "no");
	ky_cell_u64(&row[HOLD_WAITS], hold->n_waits);
	ky_cell_u64(&row[HOLD_WAIT], hold->wait_ns);
	ky_cell_u64(&row[HOLD_DELAY], hold->delay_ns);
	ky_cell_did(table, &row[HOLD_DID], run->model, &hold->did);
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
	if (wait->holder) {
		ky_cell_thread(table, &row[WAIT_HOLDER], run->model, wait->holder);
		ky_cell_u64(&row[WAIT_HELD], wait->held_ns);
		ky_cell_did(table, &row[WAIT_DID], run->model, &wait->did);
	}
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
		status = ky_kernel_locks_fill(&run->kernel, run->model,
					      &result->tables[TABLE_KERNEL]);
	if (status >= 0)
		status = ky_fill_pairs(&result->tables[TABLE_PAIRS], &run->pairs, run->model,
				       ky_report_by(options, KY_BY_THREAD));
	if (status >= 0)
		status = fill_holders(run, &result->tables[TABLE_HOLDERS],
				      ky_report_by(options, KY_BY_THREAD));
	ky_fill_records(&result->tables[TABLE_HOLDS], &run->holds, fill_hold, run);
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
	.summary = "locks of programs and the kernel, with waiters and holders",
	.description =
		"Measures futex() calls that wait. Mutexes, condition variables, semaphores, "
		"barriers and joins of threads use futexes. A thread takes a free lock without a "
		"call, so the report shows only contended locks. An address and a process identify "
		"a futex; a futex in shared memory has a row for each process.\n"
		"\n"
		"The holder of a lock is the thread that wakes a waiter there: it held the lock up to "
		"this call, from the release before it, or from a time before the first wait. A "
		"wait that lasted for several holds belongs to the longest of them. A futex is a lock "
		"if its operations or values are those of a mutex, or if threads that were woken "
		"there wake others. For condition variables, semaphores, barriers and joins, the "
		"report tells the waker only. A lock in shared memory has no holder in another "
		"process.\n"
		"\n"
		"The waker is the thread that ran on the CPU where the waiter's wake-up happened "
		"during the call. The report measures calls with entry and exit in the trace. "
		"Report syscalls counts calls that wait for the whole trace as active.\n"
		"\n"
		"Locks of the kernel (table kernel) are those of its own code: a thread waits for them in "
		"the kernel, mostly in a system call or a page fault. Their events name the waiting thread, but "
		"not the release of a lock. So a holder is known only if it had waited as well: it got the lock "
		"while others went on waiting.",
	.events = "syscall_entry_futex and syscall_exit_futex with their arguments; for the wakers "
		  "sched_switch and sched_waking; for table kernel lock_contention_begin and "
		  "lock_contention_end (Linux 5.19 and later: kymo record -k default -k 'lock_*').",
	.reading =
		"Long waits of several threads at one futex are normal for an idle pool of "
		"threads: the threads wait for work. A problem shows as waits of busy threads at one "
		"address: the lock is contended. The table of holders shows which thread delayed the "
		"others, and the holds show what it did meanwhile. A holder that sleeps or reads a "
		"file with the lock held should release it before. A holder that waits for a CPU "
		"needs a higher priority, or fewer competitors (kymo report sched -t preempted). "
		"The last waker is often not the culprit: in a convoy, each thread wakes the next. 'EAGAIN' means that the lock changed while "
		"the thread went to sleep, which is also contention. A debugger shows the lock of "
		"an address: info symbol 0x....\n"
		"\n"
		"A lock of the kernel that many threads wait for belongs to something that they share: one "
		"directory, one file, one address space (rwsem of mmap, with many page faults or calls of mmap). "
		"The callers tell which: kymo record -k default -k 'lock_*' --callstack-kernel "
		"lock_contention_begin, then kymo report flame --of lock_contention_begin.",
	.example = "$ kymo report locks -n 3 -t locks -t holders -t holds my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Waits at each futex\n"
		   "  PID  Name           Futex  Waiters  Count      Time      Mean       "
		   "Max\n"
		   "  323  work  0x7f717ef67990        1      1  89.87 ms  89.87 ms  89.87"
		   " ms\n"
		   "  323  work        0x4cd400        1     24  19.66 ms  819.1 us  6.576"
		   " ms\n"
		   "  --wide shows: Woken, Changed, Timed out, Failed, p99.9, Stdev, Min, "
		   "p90, p50,\n"
		   "    p99\n"
		   "\n"
		   "Who held the locks that others waited for\n"
		   "  TID  Name       Futex  Waits     Delay   Blocked  Count      Mean   "
		   "    Max\n"
		   "  325  lock-b  0x4cd400     24  12.61 ms  8.725 ms     24  525.3 us  4"
		   ".399 ms\n"
		   "  --wide shows: p99.9, Stdev, Min, p90, Ran, No CPU, p50, p99, PID, Ti"
		   "me\n"
		   "\n"
		   "The holds that delayed others most (convoys)\n"
		   "  TID  Holder      Held  Threads     Delay  Holder meanwhile\n"
		   "  325  lock-b  4.399 ms        1  4.399 ms  waited 2.211 ms for a CPU,"
		   " slept ...\n"
		   "  325  lock-b  4.295 ms        1  4.295 ms  slept 3.459 ms in clock_na"
		   "nosleep...\n"
		   "  325  lock-b  2.329 ms        1  2.329 ms  slept 2.118 ms in clock_na"
		   "nosleep...\n"
		   "  21 more rows: --limit 0 shows all\n"
		   "  --wide shows: Begin known, End, Begin, Waits, Futex\n",
	.next = "report locks -t pairs|the waker of each waiter\n"
		"report sched|which holders waited for a CPU",
	.tables = tables,
	.needs = KY_CAN_SYSCALLS,
	.needs_text = "system call events",
	.needs_hint = "record them with: kymo record -k syscalls -k 'sched_*'",
	.begin = report_locks_begin,
	.finish = report_locks_finish,
	.free = report_locks_free_run,
};
