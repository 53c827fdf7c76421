/* SPDX-License-Identifier: MIT */
/* Threads and processes, with the times of their states: what report threads has. */
#include <stdlib.h>
#include <string.h>

#include "analysis/reports/aggregation.h"
#include "analysis/reports/report.h"
#include "base/error.h"
#include "sql/sql-sources.h"

enum {
	THREAD_TID,
	THREAD_PID,
	THREAD_COMM,
	THREAD_PPID,
	THREAD_BEGIN,
	THREAD_END,
	THREAD_RUNNING,
	THREAD_READY,
	THREAD_SLEEP,
	THREAD_DISK,
	THREAD_OTHER,
	THREAD_RUNS,
	THREAD_MIGRATIONS,
	THREAD_PRIO,
	THREAD_CGROUP,
	THREAD_HOST,
};

enum {
	PROCESS_PID,
	PROCESS_COMM,
	PROCESS_PPID,
	PROCESS_THREADS,
	PROCESS_RUNNING,
	PROCESS_HOST = PROCESS_RUNNING + 7,
};

/* clang-format off */
#define TIME_COLS                                                                        \
	KY_SQL_COL("running", "INTEGER", "the time on CPUs, ns"),                        \
	KY_SQL_COL("ready", "INTEGER", "the time of waiting for a CPU, ns"),             \
	KY_SQL_COL("sleep", "INTEGER", "the time of interruptible waits, ns"),           \
	KY_SQL_COL("disk", "INTEGER", "the time of uninterruptible waits, ns"),          \
	KY_SQL_COL("other", "INTEGER", "the time of other states: stopped, parked, ns"), \
	KY_SQL_COL("runs", "INTEGER", "how often it came to a CPU"),                     \
	KY_SQL_COL("migrations", "INTEGER", "how often it moved to another CPU")
/* clang-format on */

static const struct ky_sql_column thread_columns[] = {
	KY_SQL_THREAD_COLS("", "the thread"),
	KY_SQL_COL("ppid", "INTEGER", "the id of the parent process"),
	KY_SQL_COL("time", "INTEGER", "when it began, ns since 1970; NULL: before the trace"),
	KY_SQL_COL("end", "INTEGER", "when it ended, ns since 1970; NULL: it did not"),
	TIME_COLS,
	KY_SQL_COL("prio", "INTEGER", "the last priority, as LTTng counts: 20 is nice 0"),
	KY_SQL_COL("cgroup", "TEXT", "the path of its control group"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static const struct ky_sql_column process_columns[] = {
	KY_SQL_COL("pid", "INTEGER", "the process' id; NULL: no event tells it"),
	KY_SQL_COL("comm", "TEXT", "the name of its first thread"),
	KY_SQL_COL("ppid", "INTEGER", "the id of the parent process"),
	KY_SQL_COL("threads", "INTEGER", "how many threads were seen"),
	TIME_COLS,
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

enum { SUM_RUNNING, SUM_OFF, SUM_RUNS = SUM_OFF + KY_OFF_KINDS, SUM_MIGRATIONS };

struct threads_life {
	int64_t begin_ns, end_ns;
};

struct threads {
	struct ky_aggregation times;
	KY_VEC(struct threads_life) lives; /* by index of the thread */
};

/* ---- the pass ------------------------------------------------------------------------- */

static int sql_threads_add(struct ky_sql_pass *pass, const struct ky_thread *thread, int sum,
			   uint64_t value)
{
	struct threads *threads = pass->own;
	struct ky_entry *entry = ky_aggregation_get(&threads->times, thread, 0);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[sum] += value;
	return 0;
}

static int sql_threads_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
			      struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	(void)cpu;
	return state == KY_CPU_BUSY && thread
		       ? sql_threads_add(data, thread, SUM_RUNNING, ky_ns_between(begin_ns, end_ns))
		       : 0;
}

static int sql_threads_on_off(void *data, const struct ky_time_off *off)
{
	return sql_threads_add(data, off->thread, SUM_OFF + (int)off->kind,
			       ky_ns_between(off->begin_ns, off->end_ns));
}

static int sql_threads_on_switched(void *data, struct ky_thread *thread, int64_t ns)
{
	(void)ns;
	return sql_threads_add(data, thread, SUM_RUNS, 1);
}

static int sql_threads_on_migrated(void *data, struct ky_thread *thread, int64_t ns)
{
	(void)ns;
	return sql_threads_add(data, thread, SUM_MIGRATIONS, 1);
}

static struct threads_life *sql_threads_life(struct threads *threads,
					     const struct ky_thread *thread)
{
	while (threads->lives.len <= thread->index)
		if (ky_vec_push(&threads->lives, (struct threads_life){INT64_MIN, INT64_MIN}) < 0)
			return NULL;
	return &threads->lives.data[thread->index];
}

static int sql_threads_on_born(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_sql_pass *pass = data;
	struct threads_life *life = sql_threads_life(pass->own, thread);

	if (!life)
		return KYMO_E_MEMORY;
	life->begin_ns = ns;
	return sql_threads_add(pass, thread, SUM_RUNS, 0);
}

static int sql_threads_on_exit(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_sql_pass *pass = data;
	struct threads_life *life = sql_threads_life(pass->own, thread);

	if (!life)
		return KYMO_E_MEMORY;
	life->end_ns = ns;
	return 0;
}

static int sql_threads_listen(struct ky_sql_pass *pass, struct ky_listener *listener,
			      struct kymo_error *err)
{
	pass->own = calloc(1, sizeof(struct threads));
	if (!pass->own)
		return ky_error_nomem(err);
	listener->ran = sql_threads_on_ran;
	listener->off = sql_threads_on_off;
	listener->switched = sql_threads_on_switched;
	listener->migrated = sql_threads_on_migrated;
	listener->thread_born = sql_threads_on_born;
	listener->thread_exit = sql_threads_on_exit;
	return 0;
}

static void sql_threads_close(struct ky_sql_pass *pass)
{
	struct threads *threads = pass->own;

	if (!threads)
		return;
	ky_aggregation_fini(&threads->times);
	ky_vec_fini(&threads->lives);
	free(threads);
}

/* ---- rows ----------------------------------------------------------------------------- */

static void sql_threads_put_sums(struct ky_sql_cell *cells, const struct ky_entry *entry)
{
	const uint64_t *sums = entry ? entry->sums : (const uint64_t[KY_ENTRY_SUMS]){0};

	ky_sql_put(&cells[0], (int64_t)sums[SUM_RUNNING]);
	ky_sql_put(&cells[1], (int64_t)sums[SUM_OFF + KY_OFF_READY]);
	ky_sql_put(&cells[2], (int64_t)sums[SUM_OFF + KY_OFF_SLEEP]);
	ky_sql_put(&cells[3], (int64_t)sums[SUM_OFF + KY_OFF_DISK]);
	ky_sql_put(&cells[4], (int64_t)sums[SUM_OFF + KY_OFF_OTHER]);
	ky_sql_put(&cells[5], (int64_t)sums[SUM_RUNS]);
	ky_sql_put(&cells[6], (int64_t)sums[SUM_MIGRATIONS]);
}

static int sql_threads_put_thread(struct ky_sql_pass *pass, const struct ky_thread *thread)
{
	struct threads *threads = pass->own;
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_thread(&pass->rows, &row[THREAD_TID], thread);
	if (thread->ppid != KY_UNKNOWN)
		ky_sql_put(&row[THREAD_PPID], thread->ppid);
	if (thread->index < threads->lives.len) {
		ky_sql_put_time(&row[THREAD_BEGIN], threads->lives.data[thread->index].begin_ns);
		ky_sql_put_time(&row[THREAD_END], threads->lives.data[thread->index].end_ns);
	}
	sql_threads_put_sums(&row[THREAD_RUNNING], ky_aggregation_find(&threads->times, thread, 0));
	if (thread->prio != KY_UNKNOWN)
		ky_sql_put(&row[THREAD_PRIO], thread->prio);
	ky_sql_put_name(&row[THREAD_CGROUP], ky_model_cgroup_path(thread));
	ky_sql_put_host(&row[THREAD_HOST], thread->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_threads_finish(struct ky_sql_pass *pass, struct kymo_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < ky_model_n_threads(pass->model) && ret >= 0; i++)
		ret = sql_threads_put_thread(pass, ky_model_thread(pass->model, i));
	return ret < 0 ? ky_error_nomem(err) : 0;
}

static int sql_threads_put_process(struct ky_sql_pass *pass, const struct ky_entry *entry)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);
	const struct ky_thread *thread = entry->thread, *leader;

	if (!row || !thread)
		return row ? 0 : KYMO_E_MEMORY;
	leader = ky_map_get(&thread->host->threads, (uint32_t)thread->pid);
	if (!leader || !leader->comm[0])
		leader = thread;
	if (thread->pid != KY_UNKNOWN)
		ky_sql_put(&row[PROCESS_PID], thread->pid);
	ky_sql_put_text(&pass->rows, &row[PROCESS_COMM], leader->comm, strlen(leader->comm));
	if (thread->ppid != KY_UNKNOWN)
		ky_sql_put(&row[PROCESS_PPID], thread->ppid);
	ky_sql_put(&row[PROCESS_THREADS], (int64_t)entry->n_threads);
	sql_threads_put_sums(&row[PROCESS_RUNNING], entry);
	ky_sql_put_host(&row[PROCESS_HOST], thread->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_threads_finish_processes(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct threads *threads = pass->own;
	struct ky_aggregation groups = {0};
	int ret = ky_aggregation_group(&groups, &threads->times, KY_BY_PROCESS, false);

	for (size_t i = 0; i < groups.entries.len && ret >= 0; i++)
		ret = sql_threads_put_process(pass, groups.entries.data[i]);
	ky_aggregation_fini(&groups);
	return ret < 0 ? ky_error_nomem(err) : 0;
}

const struct ky_sql_source ky_sql_source_thread = {
	.name = "thread",
	.about = "threads, with the times of their states",
	.columns = thread_columns,
	.n_columns = sizeof(thread_columns) / sizeof(*thread_columns),
	.listen = sql_threads_listen,
	.finish = sql_threads_finish,
	.close = sql_threads_close,
};

const struct ky_sql_source ky_sql_source_process = {
	.name = "process",
	.about = "processes, with the times of their threads' states",
	.columns = process_columns,
	.n_columns = sizeof(process_columns) / sizeof(*process_columns),
	.listen = sql_threads_listen,
	.finish = sql_threads_finish_processes,
	.close = sql_threads_close,
};
