/* SPDX-License-Identifier: MIT */
/* What threads and CPUs do: closed intervals of the state model. */
#include <string.h>

#include "analysis/causes/causes-pass.h"
#include "base/error.h"
#include "sql/sql-sources.h"

void ky_sql_put_thread(struct ky_sql_rows *rows, struct ky_sql_cell *cells,
		       const struct ky_thread *thread)
{
	if (!thread)
		return;
	ky_sql_put(&cells[0], thread->tid);
	if (thread->pid != KY_UNKNOWN)
		ky_sql_put(&cells[1], thread->pid);
	/* Names change while the rows wait. */
	if (thread->comm[0])
		ky_sql_put_text(rows, &cells[2], thread->comm, strlen(thread->comm));
}

void ky_sql_put_host(struct ky_sql_cell *cell, const struct ky_host *host)
{
	*cell = (struct ky_sql_cell){.type = KY_SQL_TEXT, .is_borrowed = true};
	cell->len = (uint32_t)strlen(host->name);
	cell->text = host->name;
}

static void sql_states_put_times(struct ky_sql_cell *row, int64_t begin_ns, int64_t end_ns)
{
	ky_sql_put(&row[0], begin_ns);
	ky_sql_put(&row[1], end_ns);
	ky_sql_put(&row[2], (int64_t)((uint64_t)end_ns - (uint64_t)begin_ns));
}

/* ---- thread_state --------------------------------------------------------------------- */

enum {
	STATE_TIME,
	STATE_END,
	STATE_DURATION,
	STATE_TID,
	STATE_PID,
	STATE_COMM,
	STATE_STATE,
	STATE_CPU,
	STATE_SYSCALL,
	STATE_WOKEN,
	STATE_WAKER_TID,
	STATE_WAKER_PID,
	STATE_WAKER_COMM,
	STATE_IRQ,
	STATE_CAUSE,
	STATE_WHO_TID,
	STATE_WHO_PID,
	STATE_WHO_COMM,
	STATE_HOST,
};

static const struct ky_sql_column state_columns[] = {
	KY_SQL_BEGIN_COL("when the state began, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it ended, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_THREAD_COLS("", "the thread"),
	KY_SQL_COL("state", "TEXT",
		   "'running', 'ready' (waits for a CPU), 'sleep', 'disk', 'other'"),
	KY_SQL_COL("cpu", "INTEGER", "running: the CPU; ready: the CPU that it waits for"),
	KY_SQL_COL("syscall", "TEXT", "not running: the system call that the thread is in"),
	KY_SQL_COL("woken", "INTEGER", "when the thread was woken, ns since 1970"),
	KY_SQL_THREAD_COLS("waker_", "the thread that woke it"),
	KY_SQL_COL("irq", "TEXT", "the interrupt that woke it"),
	KY_SQL_COL("cause", "TEXT", "the largest part of the time: see docs/reports/breakdown.md"),
	KY_SQL_THREAD_COLS("who_", "who preempted it, held the lock, or was before it at the disk"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static const char *const off_texts[KY_OFF_KINDS] = {
	[KY_OFF_UNKNOWN] = "unknown", [KY_OFF_READY] = "ready", [KY_OFF_SLEEP] = "sleep",
	[KY_OFF_DISK] = "disk",	      [KY_OFF_OTHER] = "other",
};

static bool sql_states_wants_causes(const struct ky_sql_pass *pass)
{
	for (uint32_t i = STATE_CAUSE; i <= STATE_WHO_COMM; i++)
		if (ky_sql_rows_uses(&pass->rows, i))
			return true;
	return false;
}

static int sql_states_longest(void *data, const struct ky_part *part)
{
	struct ky_part *longest = data;

	if (part->end_ns - part->begin_ns > longest->end_ns - longest->begin_ns)
		*longest = *part;
	return 0;
}

static int sql_states_put_cause(struct ky_sql_pass *pass, struct ky_sql_cell *row,
				const struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_causes *causes = pass->before ? pass->before->causes : NULL;
	struct ky_part longest = {.cause = KY_CAUSE_UNKNOWN};
	int ret;

	if (!causes)
		return 0;
	thread = ky_causes_thread(causes, thread->host->index, thread->tid, begin_ns, end_ns);
	if (!thread)
		return 0;
	ret = ky_causes_explain(causes, thread, begin_ns, end_ns, sql_states_longest, &longest);
	if (ret < 0)
		return ret;
	ky_sql_put_name(&row[STATE_CAUSE], ky_cause_key(longest.cause));
	ky_sql_put_thread(&pass->rows, &row[STATE_WHO_TID], longest.who);
	return 0;
}

static int sql_states_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
			     struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row;

	if (state != KY_CPU_BUSY || !thread)
		return 0;
	row = ky_sql_rows_new(&pass->rows);
	if (!row)
		return KYMO_E_MEMORY;
	sql_states_put_times(row, begin_ns, end_ns);
	ky_sql_put_thread(&pass->rows, &row[STATE_TID], thread);
	ky_sql_put_name(&row[STATE_STATE], "running");
	ky_sql_put(&row[STATE_CPU], cpu->id);
	ky_sql_put_host(&row[STATE_HOST], cpu->host);
	if (sql_states_put_cause(pass, row, thread, begin_ns, end_ns) < 0)
		return KYMO_E_MEMORY;
	return ky_sql_rows_keep(&pass->rows);
}

static void sql_states_put_waking(struct ky_sql_pass *pass, struct ky_sql_cell *row,
				  const struct ky_wait *woken)
{
	ky_sql_put_time(&row[STATE_WOKEN], woken->begin_ns);
	ky_sql_put_thread(&pass->rows, &row[STATE_WAKER_TID], woken->irq ? NULL : woken->waker);
	if (woken->irq)
		ky_sql_put_name(&row[STATE_IRQ], woken->irq->name);
}

static int sql_states_on_off(void *data, const struct ky_time_off *off)
{
	struct ky_sql_pass *pass = data;
	const struct ky_thread *thread = off->thread;
	const struct ky_wait *woken = off->woken;
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	sql_states_put_times(row, off->begin_ns, off->end_ns);
	ky_sql_put_thread(&pass->rows, &row[STATE_TID], thread);
	ky_sql_put_name(&row[STATE_STATE], off_texts[off->kind]);
	ky_sql_put_host(&row[STATE_HOST], thread->host);
	if (off->kind == KY_OFF_READY && thread->cpu >= 0)
		ky_sql_put(&row[STATE_CPU], thread->cpu);
	if (thread->syscall.id != KY_NO_SYSCALL)
		ky_sql_put_name(&row[STATE_SYSCALL],
				ky_model_syscall_name(pass->model, thread->syscall.id));
	/* It became ready by that. */
	if (off->kind == KY_OFF_READY && thread->woken.begin_ns == off->begin_ns)
		woken = &thread->woken;
	if (woken && woken->kind == KY_WAIT_WOKEN)
		sql_states_put_waking(pass, row, woken);
	if (sql_states_put_cause(pass, row, thread, off->begin_ns, off->end_ns) < 0)
		return KYMO_E_MEMORY;
	return ky_sql_rows_keep(&pass->rows);
}

/* Who woke is known only with interrupts. */
static int sql_states_no_irq(void *data, const struct ky_irq *irq)
{
	(void)data;
	(void)irq;
	return 0;
}

static int sql_states_listen(struct ky_sql_pass *pass, struct ky_listener *listener,
			     struct kymo_error *err)
{
	listener->ran = sql_states_on_ran;
	listener->off = sql_states_on_off;
	listener->calls = true;
	for (uint32_t i = STATE_WOKEN; i <= STATE_IRQ; i++)
		if (ky_sql_rows_uses(&pass->rows, i))
			listener->irq = sql_states_no_irq;
	return sql_states_wants_causes(pass) ? ky_sql_pass_before(pass, true, false, err) : 0;
}

const struct ky_sql_source ky_sql_source_thread_state = {
	.name = "thread_state",
	.about = "what threads do, as closed intervals, in the order of their ends",
	.columns = state_columns,
	.n_columns = sizeof(state_columns) / sizeof(*state_columns),
	.listen = sql_states_listen,
	.by_end = true,
};

/* ---- cpu_state ------------------------------------------------------------------------ */

enum { CPU_TIME, CPU_END, CPU_DURATION, CPU_CPU, CPU_STATE, CPU_TID, CPU_PID, CPU_COMM, CPU_HOST };

static const struct ky_sql_column cpu_columns[] = {
	KY_SQL_BEGIN_COL("when the state began, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it ended, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_COL("cpu", "INTEGER", "the CPU"),
	KY_SQL_COL("state", "TEXT", "'busy' or 'idle'; there is no row for an unknown state"),
	KY_SQL_THREAD_COLS("", "the thread that ran"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static int sql_states_on_cpu(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
			     struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row;

	if (state == KY_CPU_UNKNOWN)
		return 0;
	row = ky_sql_rows_new(&pass->rows);
	if (!row)
		return KYMO_E_MEMORY;
	sql_states_put_times(row, begin_ns, end_ns);
	ky_sql_put(&row[CPU_CPU], cpu->id);
	ky_sql_put_name(&row[CPU_STATE], state == KY_CPU_IDLE ? "idle" : "busy");
	ky_sql_put_thread(&pass->rows, &row[CPU_TID], thread);
	ky_sql_put_host(&row[CPU_HOST], cpu->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_states_listen_cpus(struct ky_sql_pass *pass, struct ky_listener *listener,
				  struct kymo_error *err)
{
	(void)pass;
	(void)err;
	listener->ran = sql_states_on_cpu;
	return 0;
}

const struct ky_sql_source ky_sql_source_cpu_state = {
	.name = "cpu_state",
	.about = "what CPUs do, as closed intervals, in the order of their ends",
	.columns = cpu_columns,
	.n_columns = sizeof(cpu_columns) / sizeof(*cpu_columns),
	.listen = sql_states_listen_cpus,
	.by_end = true,
};
