/* SPDX-License-Identifier: MIT */
/* Report threads: what processes and threads spent their time with. */
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

enum {
	WHO_PROCESS,
	WHO_THREADS,
	WHO_TIME,
	WHO_USAGE,
	WHO_READY,
	WHO_SLEEP,
	WHO_DISK,
	WHO_OTHER,
	WHO_RUNS,
	WHO_MIGRATIONS,
	WHO_PRIO,
	WHO_PARENT,
	WHO_BORN,
	WHO_ENDED,
};

static const struct ky_column columns[] = {
	[WHO_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "Process ID, and the name of its first thread; with --group-by, the thread, or "
		 "the common name of threads."},
	[WHO_THREADS] = {"threads", "Threads", KY_CELL_COUNT,
			 "How many of its threads have events in the trace.", .spare = 1},
	[WHO_TIME] = {"cpu_time", "CPU time", KY_CELL_DURATION,
		      "How long they were on a CPU, with the interrupts during that time."},
	[WHO_USAGE] =
		{"usage", "Usage", KY_CELL_RATIO,
		 "CPU time divided by the range: 100 % is one whole CPU. The longest bar is the "
		 "largest value.",
		 .bar = KY_BAR_MOST},
	[WHO_READY] =
		{"ready", "Ready", KY_CELL_DURATION,
		 "How long they were ready and waited for a CPU: after a wake-up or a preemption."},
	[WHO_SLEEP] = {"sleep", "Asleep", KY_CELL_DURATION,
		       "How long they waited in a state that signals can end: for input, timers, "
		       "locks of user space, other processes."},
	[WHO_DISK] =
		{"disk", "Disk", KY_CELL_DURATION,
		 "How long they waited in a state that signals cannot end: mostly for a disk or "
		 "for a lock in the kernel."},
	[WHO_OTHER] =
		{"other", "Other", KY_CELL_DURATION,
		 "How long they were stopped, traced or parked, or, for kernel threads, idle.",
		 .spare = 5},
	[WHO_RUNS] = {"runs", "Runs", KY_CELL_COUNT, "How often they got a CPU.", .spare = 3},
	[WHO_MIGRATIONS] = {"migrations", "Migrations", KY_CELL_COUNT,
			    "How often they moved to another CPU, as in report cpu.", .spare = 2},
	[WHO_PRIO] =
		{"prio", "Prio", KY_CELL_NUMBER,
		 "With --group-by thread: the last priority seen, on LTTng's scale: 20 is nice 0, "
		 "negative ones are real-time.",
		 .spare = 6},
	[WHO_PARENT] = {"parent", "Parent", KY_CELL_NUMBER,
			"With --group-by thread or process: the ID of the parent process.",
			.spare = 4},
	[WHO_BORN] = {"born", "Born", KY_CELL_COUNT,
		      "How many of the threads started in the range.", .spare = 7},
	[WHO_ENDED] = {"ended", "Ended", KY_CELL_COUNT,
		       "How many of the threads ended in the "
		       "range.",
		       .spare = 8},
};

static const struct ky_table_def who_table = KY_TABLE_DEF(
	"processes", "Times of each process",
	"One row for each process, the largest CPU time first.", columns, KY_TABLE_RANK);

static const struct ky_table_def *const tables[] = {&who_table, NULL};

/* ---- the run --------------------------------------------------------------------------- */

/* KY_OFF_KINDS of them for the times off the CPU. */
enum { SUM_OFF, SUM_CPU = SUM_OFF + KY_OFF_KINDS, SUM_RUNS, SUM_MIGRATIONS, SUM_BORN, SUM_ENDED };

struct run {
	struct ky_model *model;
	struct ky_aggregation threads;
};

static int report_threads_add(void *data, const struct ky_thread *thread, int sum, uint64_t value)
{
	struct run *run = data;

	return ky_aggregation_add(&run->threads, thread, sum, value);
}

static int report_threads_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
				 struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct run *run = data;

	(void)cpu;
	if (state != KY_CPU_BUSY || !ky_model_in_focus(run->model, thread))
		return 0;
	return ky_aggregation_add(&run->threads, thread, SUM_CPU, ky_ns_between(begin_ns, end_ns));
}

static int report_threads_on_off(void *data, const struct ky_time_off *time)
{
	return report_threads_add(data, time->thread, SUM_OFF + (int)time->kind,
				  ky_ns_between(time->begin_ns, time->end_ns));
}

static int on_switched(void *data, struct ky_thread *thread, int64_t ns)
{
	(void)ns;
	return report_threads_add(data, thread, SUM_RUNS, 1);
}

static int report_threads_on_migrated(void *data, struct ky_thread *thread, int64_t ns)
{
	(void)ns;
	return report_threads_add(data, thread, SUM_MIGRATIONS, 1);
}

static int on_born(void *data, struct ky_thread *thread, int64_t ns)
{
	(void)ns;
	return report_threads_add(data, thread, SUM_BORN, 1);
}

static int on_exit_of(void *data, struct ky_thread *thread, int64_t ns)
{
	(void)ns;
	return report_threads_add(data, thread, SUM_ENDED, 1);
}

static void report_threads_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->threads);
	free(run);
}

static void *report_threads_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {
		.ran = report_threads_on_ran,
		.off = report_threads_on_off,
		.switched = on_switched,
		.migrated = report_threads_on_migrated,
		.thread_born = on_born,
		.thread_exit = on_exit_of,
	};

	(void)options;
	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- the table ------------------------------------------------------------------------- */

static void report_threads_fill(const void *data, struct ky_table *table,
				const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	if (by != KY_BY_THREAD)
		ky_cell_u64(&row[WHO_THREADS], entry->n_threads);
	ky_cell_u64(&row[WHO_TIME], entry->sums[SUM_CPU]);
	ky_cell_f64(&row[WHO_USAGE], ky_part(entry->sums[SUM_CPU], ky_report_range_ns(run->model)));
	ky_cell_u64(&row[WHO_READY], entry->sums[SUM_OFF + KY_OFF_READY]);
	ky_cell_u64(&row[WHO_SLEEP], entry->sums[SUM_OFF + KY_OFF_SLEEP]);
	ky_cell_u64(&row[WHO_DISK], entry->sums[SUM_OFF + KY_OFF_DISK]);
	ky_cell_u64(&row[WHO_OTHER], entry->sums[SUM_OFF + KY_OFF_OTHER]);
	ky_cell_u64(&row[WHO_RUNS], entry->sums[SUM_RUNS]);
	ky_cell_u64(&row[WHO_MIGRATIONS], entry->sums[SUM_MIGRATIONS]);
	if (by == KY_BY_THREAD && entry->thread->prio != KY_UNKNOWN)
		ky_cell_i64(&row[WHO_PRIO], entry->thread->prio);
	if ((by == KY_BY_THREAD || by == KY_BY_PROCESS) && entry->thread->ppid >= 0)
		ky_cell_i64(&row[WHO_PARENT], entry->thread->ppid);
	ky_cell_u64(&row[WHO_BORN], entry->sums[SUM_BORN]);
	ky_cell_u64(&row[WHO_ENDED], entry->sums[SUM_ENDED]);
}

static int report_threads_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	struct run *run = data;
	int status = ky_fill_groups(&result->tables[0], &run->threads,
				    ky_report_by(options, KY_BY_PROCESS), false,
				    report_threads_fill, run);

	ky_table_sort_then(&result->tables[0], WHO_TIME, false, WHO_PROCESS, true);
	if (status >= 0)
		status = ky_report_note_losses(result);
	if (status >= 0)
		status = ky_report_note_switches(result);
	return status < 0 ? status : ky_report_note_cpu_time(result);
}

const struct ky_report ky_report_threads = {
	.name = "threads",
	.summary = "times of processes by state: running, ready, waiting",
	.description =
		"Divides the time of each thread by state: the thread ran; it was ready and waited "
		"for a CPU; or it waited for something else, by its state when it left the CPU. "
		"The rows add up threads by process, or by --group-by.\n"
		"\n"
		"A thread's state is unknown before its first event, in gaps of lost events, and "
		"after a switch that is not in the trace: these times are in no column. Times of "
		"parallel threads add up, so they can exceed the range.",
	.events =
		"sched_switch with its prev_state; sched_waking or sched_wakeup for the end of a "
		"sleep; sched_migrate_task for migrations of waiting threads; sched_process_fork, "
		"task_newtask and sched_process_exit for the start and end of threads; process IDs "
		"and names as in report cpu.",
	.reading =
		"A slow process with most of its time in 'Ready' needs more CPU time: see reports "
		"cpu and sched. In 'Disk', it waits for a device (io-latency, block). In 'Asleep', "
		"it waits for another process or thread: report syscalls shows the call, report "
		"locks shows locks. Many runs with little CPU time mean that the process wakes "
		"often for little work.",
	.example = "$ kymo report threads -n 5 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Times of each process\n"
		   "  PID  Name             Threads  CPU time    Usage     Ready    Asleep"
		   "      Disk\n"
		   "  323  work                   6  679.4 ms  18.11 %  359.9 ms  420.6 ms"
		   "  90.43 ms\n"
		   "  240  lttng-sessiond         2  61.25 ms   1.63 %  2.336 ms  6.467 s "
		   "  16.47 ms\n"
		   "  364  lttng                  1  52.96 ms   1.41 %  565.4 us  732.4 us"
		   "      0 ns\n"
		   "    1  init                   1  46.87 ms   1.25 %  4.665 ms  3.620 s "
		   "      0 ns\n"
		   "  268  lttng-consumerd        3  23.66 ms   0.63 %  22.11 ms  10.15 s "
		   "      0 ns\n"
		   "  51 more rows: --limit 0 shows all\n"
		   "  --wide shows: Ended, Born, Other, Parent, Runs, Migrations\n"
		   "\n"
		   "Next:  kymo report sched my-trace   the waits for a CPU\n"
		   "       kymo report locks my-trace   the waits at locks\n"
		   "       kymo report io-latency my-trace   the waits for files\n",
	.next = "report sched|the waits for a CPU\n"
		"report locks|the waits at locks\n"
		"report io-latency|the waits for files",
	.tables = tables,
	.needs = KY_CAN_SWITCH,
	.needs_text = "sched_switch events",
	.needs_hint = "record them with: kymo record -k 'sched_*'",
	.ignores = KY_IGNORES_DURATION,
	.begin = report_threads_begin,
	.finish = report_threads_finish,
	.free = report_threads_free_run,
};
