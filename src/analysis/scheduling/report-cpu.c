/* SPDX-License-Identifier: MIT */
/* Report cpu: who used the CPUs. */
#include "analysis/scheduling/migrations.h"
#include "analysis/reports/report-list.h"

#include <inttypes.h>

#include "base/text.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { CPU_ID, CPU_HOST, CPU_USAGE, CPU_BUSY, CPU_IDLE, CPU_UNKNOWN };

static const struct ky_column cpu_columns[] = {
	[CPU_ID] = {"cpu", "CPU", KY_CELL_CPU, "The CPU's number."},
	[CPU_HOST] = {"host", "Host", KY_CELL_TEXT,
		      "The trace's host, when the report reads several traces; else empty."},
	[CPU_USAGE] = {"usage", "Usage", KY_CELL_RATIO,
		       "Busy time divided by the time in which the CPU's state is known. The bar "
		       "is full at 100 %.",
		       .bar = KY_BAR_WHOLE},
	[CPU_BUSY] = {"busy", "Busy", KY_CELL_DURATION,
		      "How long threads ran, with the interrupts during that time."},
	[CPU_IDLE] = {"idle", "Idle", KY_CELL_DURATION,
		      "How long the idle thread (tid 0, swapper) ran, with the interrupts during "
		      "that time.",
		      .spare = 1},
	[CPU_UNKNOWN] = {"unknown", "Unknown", KY_CELL_DURATION,
			 "How long the CPU's state is unknown: before its first event, in gaps of "
			 "lost events, and where switches are missing.",
			 .spare = 2},
};

static const struct ky_table_def cpu_table = KY_TABLE_DEF(
	"cpus", "Usage of each CPU", "One row for each CPU that the trace covers, by number.",
	cpu_columns, KY_TABLE_FIXED);

enum { THREAD_PROCESS, THREAD_THREADS, THREAD_TIME, THREAD_USAGE, THREAD_MIGRATIONS, THREAD_PRIO };

static const struct ky_column thread_columns[] = {
	[THREAD_PROCESS] =
		{"process", "Thread", KY_CELL_PROCESS,
		 "Thread ID, process ID ('?' if no event has it) and name. The name is the last "
		 "name in the trace, so the name after exec. With --group-by, the process, or the "
		 "common name of threads."},
	[THREAD_THREADS] = {"threads", "Threads", KY_CELL_COUNT,
			    "With --group-by process or name, how many of the threads ran or "
			    "migrated.",
			    .spare = 3},
	[THREAD_TIME] = {"cpu_time", "CPU time", KY_CELL_DURATION,
			 "How long the thread was on a CPU, with the interrupts during that time."},
	[THREAD_USAGE] = {"usage", "Usage", KY_CELL_RATIO,
			  "CPU time divided by the trace's duration: 100 % is one whole CPU. The "
			  "longest bar is the largest value.",
			  .bar = KY_BAR_MOST},
	[THREAD_MIGRATIONS] = {"migrations", "Migrations", KY_CELL_COUNT,
			       "How often the thread moved to another CPU: sched_migrate_task "
			       "events to another CPU, and switches to the thread on another CPU "
			       "than before.",
			       .spare = 2},
	[THREAD_PRIO] = {"prio", "Prio", KY_CELL_NUMBER,
			 "The last priority seen, on LTTng's scale (the kernel's minus 100): 20 is "
			 "nice 0, 0 to 39 are normal threads, negative ones are real-time.",
			 .spare = 1},
};

static const struct ky_table_def thread_table = KY_TABLE_DEF(
	"threads", "CPU time of each thread",
	"One row for each thread that ran or migrated, the largest CPU time first. When the kernel "
	"uses a thread ID again, each thread has its own row.",
	thread_columns, KY_TABLE_RANK);

enum { TOTAL_USAGE, TOTAL_BUSY, TOTAL_KNOWN, TOTAL_CPUS, TOTAL_THREADS };

static const struct ky_column total_columns[] = {
	[TOTAL_USAGE] = {"usage", "Usage", KY_CELL_RATIO,
			 "Busy time of all CPUs divided by the time in which their state is known.",
			 .bar = KY_BAR_WHOLE},
	[TOTAL_BUSY] = {"busy", "Busy", KY_CELL_DURATION, "Busy time of all CPUs together."},
	[TOTAL_KNOWN] = {"known", "Known", KY_CELL_RATIO,
			 "How much of the CPUs' time is known: 100 % when nothing is missing."},
	[TOTAL_CPUS] = {"cpus", "CPUs", KY_CELL_COUNT, "How many CPUs the trace covers."},
	[TOTAL_THREADS] = {"threads", "Threads", KY_CELL_COUNT, "How many threads ran.",
			   .spare = 1},
};

static const struct ky_table_def total_table = KY_TABLE_DEF(
	"total", "All CPUs", "One row for the whole system.", total_columns, KY_TABLE_FIXED);

enum { QUIET_BEGIN, QUIET_END, QUIET_DURATION, QUIET_CPU, QUIET_THREAD };

static const struct ky_column quiet_columns[] = {
	[QUIET_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "The last event before."},
	[QUIET_END] = {"end", "End", KY_CELL_TIMESTAMP, "The next event on the CPU."},
	[QUIET_DURATION] = {"duration", "Quiet", KY_CELL_DURATION, "The time without an event."},
	[QUIET_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The CPU's number."},
	[QUIET_THREAD] = {"process", "Thread", KY_CELL_PROCESS, "The thread that ran."},
};

static const struct ky_table_def quiet_table = KY_DETAIL_TABLE_DEF(
	"quiet", "Busy CPUs without any event",
	"One row for each time of 20 ms or more, the longest first. Of a busy CPU, the tick's "
	"softirqs are events: without them, the host of a virtual machine or the firmware (SMI) had "
	"the CPU, or the tick was stopped (nohz_full).",
	quiet_columns, KY_TABLE_TOP);

static const struct ky_table_def *const tables[] = {
	&thread_table, &cpu_table, &total_table, &ky_migrations_table, &quiet_table, NULL};

enum { TABLE_THREADS, TABLE_CPUS, TABLE_TOTAL, TABLE_MIGRATIONS, TABLE_QUIET };

/* ---- the run --------------------------------------------------------------------------- */

struct cpu_time {
	uint64_t busy_ns, idle_ns;
};

struct thread_time {
	uint64_t ns, migrations;
};

struct quiet_record {
	const struct ky_cpu *cpu;
	const struct ky_thread *thread;
	int64_t begin_ns, end_ns;
};

struct run {
	struct ky_model *model;
	KY_VEC(struct cpu_time) cpus;	    /* by index */
	KY_VEC(struct thread_time) threads; /* by index */
	struct ky_aggregation migrations;
	struct ky_records quiet; /* struct quiet_record */
	uint64_t n_quiet, quiet_most_ns;
};

static int grow_threads(struct run *run, uint32_t index)
{
	while (run->threads.len <= index) {
		if (ky_vec_push(&run->threads, (struct thread_time){0}) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

static int report_cpu_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
			     struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct run *run = data;
	uint64_t ns = (uint64_t)end_ns - (uint64_t)begin_ns;

	while (run->cpus.len <= cpu->index) {
		if (ky_vec_push(&run->cpus, (struct cpu_time){0}) < 0)
			return KYMO_E_MEMORY;
	}
	if (state == KY_CPU_IDLE)
		run->cpus.data[cpu->index].idle_ns += ns;
	if (state != KY_CPU_BUSY)
		return 0;
	run->cpus.data[cpu->index].busy_ns += ns;
	if (!ky_model_in_focus(run->model, thread))
		return 0;
	if (thread->index >= run->threads.len && grow_threads(run, thread->index) < 0)
		return KYMO_E_MEMORY;
	run->threads.data[thread->index].ns += ns;
	return 0;
}

static int report_cpu_on_migrated(void *data, struct ky_thread *thread, int64_t ns)
{
	struct run *run = data;

	if (grow_threads(run, thread->index) < 0)
		return KYMO_E_MEMORY;
	run->threads.data[thread->index].migrations++;
	return 0;
}

static int report_cpu_on_migration(void *data, const struct ky_migration *migration)
{
	struct run *run = data;

	return ky_migrations_add(&run->migrations, migration);
}

static int report_cpu_on_quiet(void *data, const struct ky_cpu *cpu, struct ky_thread *thread,
			       int64_t begin_ns, int64_t end_ns)
{
	struct run *run = data;
	const struct quiet_record record = {cpu, thread, begin_ns, end_ns};
	uint64_t ns = ky_ns_between(begin_ns, end_ns);

	run->n_quiet++;
	run->quiet_most_ns = ns > run->quiet_most_ns ? ns : run->quiet_most_ns;
	return ky_records_add(&run->quiet, ns, &record);
}

static void fill_quiet(const void *data, struct ky_table *table, struct ky_cell *row,
		       const void *record)
{
	const struct run *run = data;
	const struct quiet_record *quiet = record;

	ky_cell_i64(&row[QUIET_BEGIN], quiet->begin_ns);
	ky_cell_i64(&row[QUIET_END], quiet->end_ns);
	ky_cell_u64(&row[QUIET_DURATION], ky_ns_between(quiet->begin_ns, quiet->end_ns));
	ky_cell_u64(&row[QUIET_CPU], quiet->cpu->id);
	ky_cell_thread(table, &row[QUIET_THREAD], run->model, quiet->thread);
}

static int note_quiet(const struct run *run, struct ky_report_result *result)
{
	char text[32];

	if (!run->n_quiet)
		return 0;
	return ky_report_note(result,
			      "busy CPUs showed no event for 20 ms or more, %" PRIu64
			      " times, up to %s (-t quiet): the host of a virtual machine or the "
			      "firmware had the CPU, or the tick was stopped",
			      run->n_quiet, ky_format_duration(text, run->quiet_most_ns));
}

static void *report_cpu_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.ran = report_cpu_on_ran,
				       .migrated = report_cpu_on_migrated};
	struct run *run;

	if (ky_report_wants(options, &ky_report_cpu, TABLE_MIGRATIONS))
		listener.migration = report_cpu_on_migration;
	/* It costs a look at each event, and its note leads to this table. */
	if (!options->n_tables || ky_report_wants(options, &ky_report_cpu, TABLE_QUIET))
		listener.quiet = report_cpu_on_quiet;
	run = ky_report_run(model, sizeof(*run), &listener);
	if (run)
		ky_records_init(&run->quiet, sizeof(struct quiet_record),
				ky_report_keep(options, &ky_report_cpu, TABLE_QUIET), true);
	return run;
}

static void report_cpu_free_run(void *data)
{
	struct run *run = data;

	ky_vec_fini(&run->cpus);
	ky_vec_fini(&run->threads);
	ky_aggregation_fini(&run->migrations);
	ky_records_fini(&run->quiet);
	free(run);
}

/* ---- the tables ------------------------------------------------------------------------ */

struct sums {
	uint64_t range_ns, busy_ns, known_ns;
	uint64_t n_cpus, n_threads;
};

/* Of the time of all CPUs, how much is known. */
static double known_part(const struct sums *sums)
{
	long double whole = (long double)sums->range_ns * (long double)sums->n_cpus;

	return whole > 0 ? (double)((long double)sums->known_ns / whole) : 0;
}

static void fill_cpu(const struct run *run, struct ky_table *table, const struct ky_cpu *cpu,
		     struct sums *sums)
{
	struct cpu_time time = {0};
	struct ky_cell *row = ky_table_row(table);
	uint64_t known;

	if (cpu->index < run->cpus.len)
		time = run->cpus.data[cpu->index];
	known = time.busy_ns + time.idle_ns;
	ky_cell_u64(&row[CPU_ID], cpu->id);
	ky_cell_host(table, &row[CPU_HOST], run->model, cpu->host);
	if (known)
		ky_cell_f64(&row[CPU_USAGE], ky_part(time.busy_ns, known));
	ky_cell_u64(&row[CPU_BUSY], time.busy_ns);
	ky_cell_u64(&row[CPU_IDLE], time.idle_ns);
	ky_cell_u64(&row[CPU_UNKNOWN], known < sums->range_ns ? sums->range_ns - known : 0);
	sums->busy_ns += time.busy_ns;
	sums->known_ns += known;
	sums->n_cpus++;
}

enum { SUM_NS, SUM_MIGRATIONS };

static void report_cpu_fill_thread(const void *data, struct ky_table *table,
				   const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	const struct ky_thread *thread = entry->thread;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[THREAD_PROCESS], run->model, thread, by);
	if (by != KY_BY_THREAD)
		ky_cell_u64(&row[THREAD_THREADS], entry->n_threads);
	ky_cell_u64(&row[THREAD_TIME], entry->sums[SUM_NS]);
	ky_cell_f64(&row[THREAD_USAGE],
		    ky_part(entry->sums[SUM_NS], ky_report_range_ns(run->model)));
	ky_cell_u64(&row[THREAD_MIGRATIONS], entry->sums[SUM_MIGRATIONS]);
	if (by == KY_BY_THREAD && thread->prio != KY_UNKNOWN)
		ky_cell_i64(&row[THREAD_PRIO], thread->prio);
}

static int report_cpu_fill_threads(const struct run *run, struct ky_table *table, enum ky_by by,
				   struct sums *sums)
{
	struct ky_aggregation threads = {0};
	int status = 0;

	for (size_t i = 0; i < run->threads.len && !status; i++) {
		const struct thread_time *time = &run->threads.data[i];
		struct ky_entry *entry;

		if (!time->ns && !time->migrations)
			continue;
		sums->n_threads += time->ns > 0;
		entry = ky_aggregation_get(&threads, ky_model_thread(run->model, i), 0);
		if (!entry) {
			status = KYMO_E_MEMORY;
			break;
		}
		entry->sums[SUM_NS] = time->ns;
		entry->sums[SUM_MIGRATIONS] = time->migrations;
	}
	if (!status)
		status = ky_fill_groups(table, &threads, by, false, report_cpu_fill_thread, run);
	ky_aggregation_fini(&threads);
	ky_table_sort_then(table, THREAD_TIME, false, THREAD_PROCESS, true);
	return status;
}

static void report_cpu_fill_total(struct ky_table *table, const struct sums *sums)
{
	struct ky_cell *row = ky_table_row(table);

	if (sums->known_ns)
		ky_cell_f64(&row[TOTAL_USAGE], ky_part(sums->busy_ns, sums->known_ns));
	ky_cell_u64(&row[TOTAL_BUSY], sums->busy_ns);
	ky_cell_f64(&row[TOTAL_KNOWN], known_part(sums));
	ky_cell_u64(&row[TOTAL_CPUS], sums->n_cpus);
	ky_cell_u64(&row[TOTAL_THREADS], sums->n_threads);
}

/* Say which part is known, when it is not all; a thousandth is no news. */
static int note_unknown(struct ky_report_result *result, const struct sums *sums)
{
	double known = known_part(sums);

	if (!sums->n_cpus || !sums->range_ns || known >= 0.999)
		return 0;
	return ky_report_note(result,
			      "only %.1f %% of the CPUs' time is known, so the CPU times of "
			      "threads are lower bounds",
			      known * 100);
}

static bool holds_cpu(const struct ky_report_options *options, uint32_t id)
{
	ky_vec_foreach(&options->focus.cpus, cpu) {
		if (*cpu == id)
			return true;
	}
	return !options->focus.cpus.len;
}

static int report_cpu_finish(void *data, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	struct run *run = data;
	struct sums sums = {0};
	int status;

	sums.range_ns = ky_report_range_ns(run->model);
	for (size_t i = 0; i < ky_model_n_cpus(run->model); i++) {
		const struct ky_cpu *cpu = ky_model_cpu(run->model, i);

		if (cpu->host->abilities & KY_CAN_SWITCH && holds_cpu(options, cpu->id))
			fill_cpu(run, &result->tables[TABLE_CPUS], cpu, &sums);
	}
	ky_table_sort_then(&result->tables[TABLE_CPUS], CPU_HOST, true, CPU_ID, true);
	status = report_cpu_fill_threads(run, &result->tables[TABLE_THREADS],
					 ky_report_by(options, KY_BY_THREAD), &sums);
	report_cpu_fill_total(&result->tables[TABLE_TOTAL], &sums);
	if (status >= 0)
		status = ky_migrations_fill(&run->migrations, run->model,
					    &result->tables[TABLE_MIGRATIONS],
					    ky_report_by(options, KY_BY_THREAD));
	ky_fill_records(&result->tables[TABLE_QUIET], &run->quiet, fill_quiet, run);
	if (status >= 0)
		status = note_quiet(run, result);
	if (status >= 0)
		status = ky_report_note_losses(result);
	if (status >= 0)
		status = ky_report_note_switches(result);
	return status < 0 ? status : note_unknown(result, &sums);
}

const struct ky_report ky_report_cpu = {
	.name = "cpu",
	.summary = "usage of each CPU, CPU time of each thread",
	.description =
		"Adds up the times between context switches, by CPU and thread. The range begins "
		"with the first event of the trace and ends with the last event, of any kind.\n"
		"\n"
		"A CPU's state is unknown until an event shows it. The first switch names the "
		"thread that ran before it. This thread ran since the CPU's first event, because "
		"the trace would contain an earlier switch. At the end of the trace, the running "
		"thread counts up to the last event.\n"
		"\n"
		"Some kernels do not record every switch, and filters drop switches. An event of a "
		"thread that should not run then shows that a switch is missing: the CPU's state "
		"is unknown from the last event of the thread before to this event. The report "
		"uses switches, system calls and starts of threads for that, and from the first "
		"missing switch on every event with its thread in the context fields.",
	.events =
		"The report needs only sched_switch. With sched_migrate_task, it also counts "
		"migrations of waiting threads. Process IDs come from the events' context fields, "
		"sched_process_fork, task_newtask and the state dump; names also from "
		"sched_process_exec, task_rename, sched_process_exit and wake-ups.",
	.reading =
		"Start with the total: near 100 %, threads wait for CPUs; far below, they wait for "
		"something else (report syscalls shows in which calls). A CPU that is much busier "
		"than its neighbours suggests pinned threads or interrupts. Many migrations with "
		"little CPU time suggest threads that wake each other across CPUs.\n"
		"\n"
		"CPU time includes the interrupts while a thread ran. When events were lost, the "
		"CPU's state is unknown during the gap: 'Unknown' and 'Known' show how long that "
		"is, usage refers to the known time, and threads' CPU times are lower bounds.",
	.example = "$ kymo report cpu -n 5 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "CPU time of each thread\n"
		   "  TID  PID  Name             CPU time   Usage  Migrations  Prio\n"
		   "  328  323  mem              331.5 ms  8.84 %           4    20  █████"
		   "██████████\n"
		   "  327  323  disk-io          171.4 ms  4.57 %           4    20  █████"
		   "██▊\n"
		   "  323  323  work             123.7 ms  3.30 %           5    20  █████"
		   "▋\n"
		   "  250  240  Client manageme  58.79 ms  1.57 %           1    20  ██▋\n"
		   "  364  364  lttng            52.96 ms  1.41 %           0    20  ██▍\n"
		   "  59 more rows: --limit 0 shows all\n"
		   "\n"
		   "Usage of each CPU\n"
		   "  CPU    Usage      Busy      Idle  Unknown\n"
		   "    0  15.98 %  599.3 ms  3.152 s      0 ns  █████▋\n"
		   "    1  13.93 %  522.4 ms  3.229 s      0 ns  ████▉\n"
		   "\n"
		   "All CPUs\n"
		   "    Usage      Busy     Known  CPUs  Threads\n"
		   "  14.95 %  1.122 s   100.00 %     2       64  █████▏\n"
		   "\n"
		   "More:  -t migrations, -t quiet\n"
		   "Next:  kymo report sched my-trace   who waited for these CPUs, and for"
		   " how long\n"
		   "       kymo report cpu -t migrations my-trace   who moved threads to o"
		   "ther CPUs, and why\n"
		   "       kymo report syscalls -t threads my-trace   what the threads cal"
		   "led\n",
	.next = "report sched|who waited for these CPUs, and for how long\n"
		"report cpu -t migrations|who moved threads to other CPUs, and why"
		"\nreport syscalls -t threads|what the threads called",
	.tables = tables,
	.needs = KY_CAN_SWITCH,
	.needs_text = "sched_switch events",
	.needs_hint = "record them with: kymo record -k sched_switch",
	.ignores = KY_IGNORES_DURATION,
	.begin = report_cpu_begin,
	.finish = report_cpu_finish,
	.free = report_cpu_free_run,
};
