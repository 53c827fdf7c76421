/* SPDX-License-Identifier: MIT */
/* Report sched: who waited for a CPU, and how long. */
#include "analysis/scheduling/migrations.h"
#include "analysis/reports/report-list.h"

#include <inttypes.h>

/* ---- documentation --------------------------------------------------------------------- */

enum {
	THREAD_PROCESS,
	THREAD_THREADS,
	THREAD_STATS,
	THREAD_PREEMPTED = THREAD_STATS + KY_STATS_COLUMNS,
	THREAD_PREEMPTED_TIME,
	THREAD_PRIO,
	THREAD_BOUNDED,
	THREAD_AT_MOST,
};

static const struct ky_column thread_columns[] = {
	[THREAD_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			    "Thread ID, process ID and last name; with --group-by, the process or "
			    "the common name of threads."},
	[THREAD_THREADS] = {"threads", "Threads", KY_CELL_COUNT,
			    "With --group-by: how many threads waited.", .spare = 3},
	KY_STATS_COLUMN_DEFS(THREAD_STATS, "waits after a wake-up"),
	[THREAD_PREEMPTED] = {"preempted", "Preempted", KY_CELL_COUNT,
			      "How often the thread was preempted and got a CPU again."},
	[THREAD_PREEMPTED_TIME] = {"preempted_time", "Off", KY_CELL_DURATION,
				   "How long it waited after preemptions, in total."},
	[THREAD_PRIO] =
		{"prio", "Prio", KY_CELL_NUMBER,
		 "The last priority seen, on LTTng's scale: 20 is nice 0, negative ones are "
		 "real-time. Empty for groups.",
		 .spare = 9},
	[THREAD_BOUNDED] = {"unmeasured", "Unmeasured", KY_CELL_COUNT,
			    "How many waits, of both kinds, ended without a recorded switch to the "
			    "thread. The other columns leave them out.",
			    .spare = 10},
	[THREAD_AT_MOST] = {"unmeasured_at_most", "At most", KY_CELL_DURATION,
			    "How long the unmeasured waits lasted at most, in total: each until "
			    "the first event that shows the thread on a CPU.",
			    .spare = 11},
};

static const struct ky_table_def thread_table = KY_TABLE_DEF(
	"threads", "Wake-up latency of each thread",
	"One row for each thread that waited for a CPU, the largest sum of waits first.",
	thread_columns, KY_TABLE_RANK);

enum { CPU_ID, CPU_HOST, CPU_WAITS, CPU_TIME, CPU_MEAN, CPU_MAX, CPU_PREEMPTIONS };

static const struct ky_column cpu_columns[] = {
	[CPU_ID] = {"cpu", "CPU", KY_CELL_CPU, "The CPU's number."},
	[CPU_HOST] = {"host", "Host", KY_CELL_TEXT,
		      "The trace's host, when the report reads several traces; else empty."},
	[CPU_WAITS] = {"waits", "Waits", KY_CELL_COUNT,
		       "How many waits, of both kinds, ended with a run on this CPU."},
	[CPU_TIME] = {"total", "Time", KY_CELL_DURATION, "The sum of their durations."},
	[CPU_MEAN] =
		{"mean_queue", "Mean queue", KY_CELL_RATE,
		 "How many threads waited for it, on average over the range: the time that threads "
		 "waited in its queue, divided by the range. Running threads do not count."},
	[CPU_MAX] = {"max_queue", "Max queue", KY_CELL_COUNT,
		     "The largest number of threads that waited for it at one time."},
	[CPU_PREEMPTIONS] = {"preempted", "Preempted", KY_CELL_COUNT,
			     "How many of the waits began with a preemption."},
};

static const struct ky_table_def cpu_table =
	KY_TABLE_DEF("cpus", "Run queue of each CPU", "One row for each CPU, by number.",
		     cpu_columns, KY_TABLE_FIXED);

enum {
	KIND_TEXT,
	KIND_STATS,
	KIND_BOUNDED = KIND_STATS + KY_STATS_COLUMNS,
	KIND_LONGEST,
	KIND_P50_LEAST,
	KIND_P50_MOST,
	KIND_P99_LEAST,
	KIND_P99_MOST,
};

static const struct ky_column kind_columns[] = {
	[KIND_TEXT] = {"kind", "Wait", KY_CELL_TEXT,
		       "'woken': from the first wake-up since the thread last ran to the switch to "
		       "it. 'preempted': from the switch that preempted the thread to the next "
		       "switch to it."},
	KY_STATS_COLUMN_DEFS(KIND_STATS, "waits"),
	[KIND_BOUNDED] = {"unmeasured", "Unmeasured", KY_CELL_COUNT,
			  "How many waits ended without a recorded switch to the thread. The "
			  "columns before leave them out."},
	[KIND_LONGEST] = {"unmeasured_longest", "Each at most", KY_CELL_DURATION,
			  "The longest time from the begin of an unmeasured wait to the first "
			  "event that shows the thread on a CPU.",
			  .spare = 10},
	[KIND_P50_LEAST] = {"p50_least", "p50 from", KY_CELL_DURATION,
			    "The median of all waits if each unmeasured wait lasted 0 ns.",
			    .spare = 12},
	[KIND_P50_MOST] = {"p50_most", "p50 to", KY_CELL_DURATION,
			   "The median of all waits if each unmeasured wait lasted until that "
			   "event.",
			   .spare = 11},
	[KIND_P99_LEAST] = {"p99_least", "p99 from", KY_CELL_DURATION,
			    "The same as 'p50 from' for the 99th percentile."},
	[KIND_P99_MOST] = {"p99_most", "p99 to", KY_CELL_DURATION,
			   "The same as 'p50 to' for the 99th percentile."},
};

static const struct ky_table_def kind_table = KY_TABLE_DEF(
	"total", "Waits by kind", "One row for each kind of wait.", kind_columns, KY_TABLE_FIXED);

static const struct ky_column pair_columns[] = {
	[KY_PAIR_THREAD] =
		{"process", "Preempted", KY_CELL_PROCESS,
		 "The thread that was taken off the CPU; with --group-by, the process or "
		 "the name."},
	[KY_PAIR_OTHER] = {"by", "By", KY_CELL_PROCESS, "The thread that got the CPU instead.",
			   .second = true},
	KY_STATS_COLUMN_DEFS(KY_PAIR_STATS, "waits after these preemptions"),
};

static const struct ky_table_def pair_table =
	KY_DETAIL_TABLE_DEF("preempted", "Preempted threads and their preemptors",
			    "One row for each pair of threads, the largest sum of waits first.",
			    pair_columns, KY_TABLE_RANK);

enum {
	WAIT_BEGIN,
	WAIT_END,
	WAIT_DURATION,
	WAIT_KIND,
	WAIT_CPU,
	WAIT_PRIO,
	WAIT_PROCESS,
	WAIT_WAKER,
	WAIT_IRQ,
	WAIT_RUNNER,
	WAIT_RUNNER_NS,
	WAIT_BY,
};

static const struct ky_column wait_columns[] = {
	[WAIT_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP,
			"The first wake-up since the thread last ran, or the switch that preempted "
			"it.",
			.spare = 2},
	[WAIT_END] = {"end", "End", KY_CELL_TIMESTAMP, "The switch to it."},
	[WAIT_DURATION] = {"duration", "Wait", KY_CELL_DURATION, "The duration of the wait."},
	[WAIT_KIND] = {"kind", "Kind", KY_CELL_TEXT, "'woken' or 'preempted'."},
	[WAIT_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The CPU on which it then ran."},
	[WAIT_PRIO] = {"prio", "Prio", KY_CELL_NUMBER,
		       "Its priority at that time, on LTTng's "
		       "scale.",
		       .spare = 3},
	[WAIT_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			  "The thread that waited, with its last name.", .second = true},
	[WAIT_RUNNER] = {"runner", "Ran meanwhile", KY_CELL_PROCESS,
			 "The thread that ran longest during the wait, on the CPU for which the "
			 "thread waited first; '-' if no other thread ran there.",
			 .second = true},
	[WAIT_RUNNER_NS] = {"runner_time", "For", KY_CELL_DURATION,
			    "How long that thread ran during the wait, in its last 128 runs there.",
			    .spare = 1},
	[WAIT_BY] = {"by", "Preempted by", KY_CELL_PROCESS,
		     "The thread that got the CPU at the preemption; '-' after a wake-up.",
		     .second = true, .spare = 2},
	[WAIT_WAKER] = {"waker", "Woken by", KY_CELL_PROCESS,
			"The thread that ran on the CPU of the wake-up; '-' when the CPU was idle "
			"or its thread is unknown.",
			.second = true, .spare = 3},
	[WAIT_IRQ] = {"irq", "In", KY_CELL_IRQ,
		      "The interrupt that woke it; empty without an interrupt, or without events "
		      "of interrupts.",
		      .spare = 4},
};

static const struct ky_table_def top_table =
	KY_TABLE_DEF("top", "The longest waits", "One row for each wait, the longest first.",
		     wait_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "Waits", "One row for each wait, in the order of their ends.",
		     wait_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("kind", "Wait", KY_CELL_TEXT, "'woken' or 'preempted'."),
};

static const struct ky_table_def freq_table =
	KY_TABLE_DEF("freq", "Distribution of waits",
		     "One row for each step of duration, for each kind of wait, from the shortest.",
		     freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def *const tables[] = {
	&thread_table, &cpu_table,  &kind_table, &pair_table, &ky_migrations_table,
	&top_table,    &freq_table, &log_table,	 NULL};

enum {
	TABLE_THREADS,
	TABLE_CPUS,
	TABLE_TOTAL,
	TABLE_PAIRS,
	TABLE_MIGRATIONS,
	TABLE_TOP,
	TABLE_FREQ,
	TABLE_LOG
};

/* ---- the run --------------------------------------------------------------------------- */

enum { WOKEN, PREEMPTED, N_KINDS };

static const char *const kind_texts[] = {[WOKEN] = "woken", [PREEMPTED] = "preempted"};

/* Sums of entries: what was preempted is no sample of wake-up latency. */
enum { SUM_PREEMPTED, SUM_PREEMPTED_NS, SUM_BOUNDED, SUM_BOUNDED_NS };

struct cpu_queue {
	uint64_t waits, preempted, ns, max;
};

struct wait_record {
	int64_t begin_ns, end_ns;
	const struct ky_thread *thread, *waker, *by, *runner;
	uint64_t runner_ns;
	const struct ky_irq_line *irq;
	uint32_t cpu;
	int32_t prio;
	int kind;
};

struct run {
	struct ky_model *model;
	struct ky_aggregation threads;
	struct ky_stats stats[N_KINDS];
	struct ky_stats at_most[N_KINDS]; /* of waits without a recorded switch to the thread */
	struct ky_freq freqs[N_KINDS];
	KY_VEC(struct cpu_queue) cpus; /* by index */
	struct ky_aggregation pairs;   /* what: the index of the thread that got the CPU, + 1 */
	struct ky_aggregation migrations;
	struct ky_happenings single;
	bool wants_pairs, wants_freq; /* these tables take time, and are seldom shown */
};

static struct cpu_queue *report_sched_queue_of(struct run *run, const struct ky_cpu *cpu)
{
	while (run->cpus.len <= cpu->index) {
		if (ky_vec_push(&run->cpus, (struct cpu_queue){0}) < 0)
			return NULL;
	}
	return &run->cpus.data[cpu->index];
}

/* Who ran longest on the CPU while the thread waited for it. */
static void find_runner(const struct ky_waited *waited, struct wait_record *record)
{
	const struct ky_cpu *cpu = ky_map_get(&waited->thread->host->cpus, waited->wait.cpu_id);

	if (cpu)
		record->runner = ky_cpu_ran_most(cpu, record->thread, record->begin_ns,
						 record->end_ns, &record->runner_ns);
}

static int report_sched_on_migration(void *data, const struct ky_migration *migration)
{
	struct run *run = data;

	return ky_migrations_add(&run->migrations, migration);
}

static int report_sched_keep(struct run *run, const struct ky_waited *waited, int kind, uint64_t ns)
{
	struct wait_record record = {
		.begin_ns = waited->wait.begin_ns,
		.end_ns = waited->end_ns,
		.thread = waited->thread,
		.waker = waited->wait.waker,
		.by = waited->wait.by,
		.irq = waited->wait.irq,
		.cpu = waited->cpu->id,
		.prio = waited->thread->prio,
		.kind = kind,
	};

	find_runner(waited, &record);
	return ky_happenings_add(&run->single, ns, &record);
}

static int kind_of(const struct ky_waited *waited)
{
	return waited->wait.kind == KY_WAIT_WOKEN ? WOKEN : PREEMPTED;
}

static int add_pair(struct run *run, const struct ky_waited *waited, uint64_t ns)
{
	struct ky_entry *entry;

	if (!waited->wait.by || !run->wants_pairs)
		return 0;
	entry = ky_aggregation_get(&run->pairs, waited->thread, waited->wait.by->index);
	return entry ? ky_stats_add(&entry->stats, ns) : KYMO_E_MEMORY;
}

static int report_sched_on_waited(void *data, const struct ky_waited *waited)
{
	struct run *run = data;
	int kind = kind_of(waited);
	uint64_t ns = ky_ns_between(waited->wait.begin_ns, waited->end_ns);
	struct ky_entry *entry = ky_aggregation_get(&run->threads, waited->thread, 0);
	struct cpu_queue *queue = report_sched_queue_of(run, waited->cpu);

	if (!entry || !queue)
		return KYMO_E_MEMORY;
	queue->waits++;
	queue->ns += ns;
	if (kind == PREEMPTED) {
		queue->preempted++;
		entry->sums[SUM_PREEMPTED]++;
		entry->sums[SUM_PREEMPTED_NS] += ns;
		if (add_pair(run, waited, ns) < 0)
			return KYMO_E_MEMORY;
	} else if (ky_stats_add(&entry->stats, ns) < 0) {
		return KYMO_E_MEMORY;
	}
	if (run->wants_freq)
		ky_freq_add(&run->freqs[kind], ns);
	if (ky_stats_add(&run->stats[kind], ns) < 0)
		return KYMO_E_MEMORY;
	if (ky_happenings_wants(&run->single, ns))
		return report_sched_keep(run, waited, kind, ns);
	ky_happenings_skip(&run->single);
	return 0;
}

static int on_wait_bounded(void *data, const struct ky_waited *waited)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(waited->wait.begin_ns, waited->end_ns);
	struct ky_entry *entry = ky_aggregation_get(&run->threads, waited->thread, 0);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[SUM_BOUNDED]++;
	entry->sums[SUM_BOUNDED_NS] += ns;
	return ky_stats_add(&run->at_most[kind_of(waited)], ns);
}

static int report_sched_on_queued(void *data, const struct ky_cpu *cpu, int64_t ns)
{
	struct cpu_queue *queue = report_sched_queue_of(data, cpu);

	(void)ns;
	if (!queue)
		return KYMO_E_MEMORY;
	if (cpu->n_waiting > queue->max)
		queue->max = cpu->n_waiting;
	return 0;
}

static void report_sched_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->threads);
	for (int i = 0; i < N_KINDS; i++) {
		ky_stats_fini(&run->stats[i]);
		ky_stats_fini(&run->at_most[i]);
	}
	ky_vec_fini(&run->cpus);
	ky_aggregation_fini(&run->pairs);
	ky_aggregation_fini(&run->migrations);
	ky_happenings_fini(&run->single);
	free(run);
}

static void *report_sched_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {
		.runs = ky_report_wants(options, &ky_report_sched, TABLE_TOP) ||
			ky_report_wants(options, &ky_report_sched, TABLE_LOG),
		.waited = report_sched_on_waited,
		.wait_bounded = on_wait_bounded,
		.queued = report_sched_on_queued,
	};
	struct run *run;

	if (ky_report_wants(options, &ky_report_sched, TABLE_MIGRATIONS))
		listener.migration = report_sched_on_migration;
	run = ky_report_run(model, sizeof(*run), &listener);
	if (!run)
		return NULL;
	run->wants_pairs = ky_report_wants(options, &ky_report_sched, TABLE_PAIRS);
	run->wants_freq = ky_report_wants(options, &ky_report_sched, TABLE_FREQ);
	ky_happenings_init(&run->single, sizeof(struct wait_record), options, &ky_report_sched,
			   TABLE_TOP, TABLE_LOG);
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

static void report_sched_fill_thread(const void *data, struct ky_table *table,
				     const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[THREAD_PROCESS], run->model, entry->thread, by);
	if (by != KY_BY_THREAD)
		ky_cell_u64(&row[THREAD_THREADS], entry->n_threads);
	ky_fill_stats(&row[THREAD_STATS], &entry->stats);
	ky_cell_u64(&row[THREAD_PREEMPTED], entry->sums[SUM_PREEMPTED]);
	ky_cell_u64(&row[THREAD_PREEMPTED_TIME], entry->sums[SUM_PREEMPTED_NS]);
	if (by == KY_BY_THREAD && entry->thread->prio != KY_UNKNOWN)
		ky_cell_i64(&row[THREAD_PRIO], entry->thread->prio);
	if (entry->sums[SUM_BOUNDED]) {
		ky_cell_u64(&row[THREAD_BOUNDED], entry->sums[SUM_BOUNDED]);
		ky_cell_u64(&row[THREAD_AT_MOST], entry->sums[SUM_BOUNDED_NS]);
	}
}

static int report_sched_fill_threads(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, &run->threads, by, false, report_sched_fill_thread, run);

	ky_table_sort_then(table, THREAD_STATS + KY_STATS_TOTAL, false, THREAD_PREEMPTED_TIME,
			   false);
	return status;
}

static void report_sched_fill_cpus(struct run *run, struct ky_table *table)
{
	uint64_t range_ns = ky_report_range_ns(run->model);

	for (size_t i = 0; i < run->cpus.len; i++) {
		const struct ky_cpu *cpu = ky_model_cpu(run->model, i);
		const struct cpu_queue *queue = &run->cpus.data[i];
		struct ky_cell *row;

		if (!queue->waits && !queue->max)
			continue;
		row = ky_table_row(table);
		ky_cell_u64(&row[CPU_ID], cpu->id);
		ky_cell_host(table, &row[CPU_HOST], run->model, cpu->host);
		ky_cell_u64(&row[CPU_WAITS], queue->waits);
		ky_cell_u64(&row[CPU_TIME], queue->ns);
		if (range_ns)
			ky_cell_f64(&row[CPU_MEAN], ky_part(queue->ns, range_ns));
		ky_cell_u64(&row[CPU_MAX], queue->max);
		ky_cell_u64(&row[CPU_PREEMPTIONS], queue->preempted);
	}
	ky_table_sort_then(table, CPU_HOST, true, CPU_ID, true);
}

/* The percentiles of @run's waits of @kind, with each unmeasured wait at one of its bounds. */
static int find_percentiles(const struct run *run, int kind, bool most, uint64_t *p50,
			    uint64_t *p99)
{
	struct ky_stats all = {0};
	int status = ky_stats_merge(&all, &run->stats[kind]);

	if (most && status >= 0)
		status = ky_stats_merge(&all, &run->at_most[kind]);
	for (uint64_t i = 0; !most && status >= 0 && i < run->at_most[kind].count; i++)
		status = ky_stats_add(&all, 0);
	*p50 = ky_stats_percentile(&all, 50);
	*p99 = ky_stats_percentile(&all, 99);
	ky_stats_fini(&all);
	return status;
}

static int fill_bounds(const struct run *run, struct ky_cell *row, int kind)
{
	struct ky_moments moments = ky_stats_moments(&run->at_most[kind]);
	uint64_t least[2], most[2];

	if (!moments.count)
		return 0;
	if (find_percentiles(run, kind, false, &least[0], &least[1]) < 0 ||
	    find_percentiles(run, kind, true, &most[0], &most[1]) < 0)
		return KYMO_E_MEMORY;
	ky_cell_u64(&row[KIND_BOUNDED], moments.count);
	ky_cell_u64(&row[KIND_LONGEST], moments.max);
	ky_cell_u64(&row[KIND_P50_LEAST], least[0]);
	ky_cell_u64(&row[KIND_P50_MOST], most[0]);
	ky_cell_u64(&row[KIND_P99_LEAST], least[1]);
	ky_cell_u64(&row[KIND_P99_MOST], most[1]);
	return 0;
}

static void report_sched_fill_wait(const void *data, struct ky_table *table, struct ky_cell *row,
				   const void *record)
{
	const struct run *run = data;
	const struct wait_record *wait = record;

	ky_cell_i64(&row[WAIT_BEGIN], wait->begin_ns);
	ky_cell_i64(&row[WAIT_END], wait->end_ns);
	ky_cell_u64(&row[WAIT_DURATION], ky_ns_between(wait->begin_ns, wait->end_ns));
	ky_cell_text(table, &row[WAIT_KIND], kind_texts[wait->kind]);
	ky_cell_u64(&row[WAIT_CPU], wait->cpu);
	if (wait->prio != KY_UNKNOWN)
		ky_cell_i64(&row[WAIT_PRIO], wait->prio);
	ky_cell_thread(table, &row[WAIT_PROCESS], run->model, wait->thread);
	if (wait->waker)
		ky_cell_thread(table, &row[WAIT_WAKER], run->model, wait->waker);
	if (wait->irq)
		ky_cell_line(table, &row[WAIT_IRQ], wait->irq);
	if (wait->by)
		ky_cell_thread(table, &row[WAIT_BY], run->model, wait->by);
	if (wait->runner) {
		ky_cell_thread(table, &row[WAIT_RUNNER], run->model, wait->runner);
		ky_cell_u64(&row[WAIT_RUNNER_NS], wait->runner_ns);
	}
}

static int report_sched_finish(void *data, const struct ky_report_options *options,
			       struct ky_report_result *result)
{
	struct run *run = data;
	int status = report_sched_fill_threads(run, &result->tables[TABLE_THREADS],
					       ky_report_by(options, KY_BY_THREAD));

	report_sched_fill_cpus(run, &result->tables[TABLE_CPUS]);
	for (int i = 0; i < N_KINDS; i++) {
		struct ky_table *table = &result->tables[TABLE_TOTAL];
		struct ky_cell *row = ky_table_row(table);
		struct ky_cell kind = {0};

		ky_cell_text(table, &row[KIND_TEXT], kind_texts[i]);
		ky_fill_stats(&row[KIND_STATS], &run->stats[i]);
		ky_cell_text(&result->tables[TABLE_FREQ], &kind, kind_texts[i]);
		ky_fill_freq(&result->tables[TABLE_FREQ], &run->freqs[i], &kind);
		if (status >= 0)
			status = fill_bounds(run, row, i);
	}
	ky_fill_records(&result->tables[TABLE_TOP], &run->single.top, report_sched_fill_wait, run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->single.log, report_sched_fill_wait, run);
	if (status >= 0)
		status = ky_fill_pairs(&result->tables[TABLE_PAIRS], &run->pairs, run->model,
				       ky_report_by(options, KY_BY_THREAD));
	if (status >= 0)
		status = ky_migrations_fill(&run->migrations, run->model,
					    &result->tables[TABLE_MIGRATIONS],
					    ky_report_by(options, KY_BY_THREAD));
	if (status >= 0)
		status = ky_report_note_losses(result);
	return status < 0 ? status : ky_report_note_waits(result);
}

const struct ky_report ky_report_sched = {
	.name = "sched",
	.summary = "waiting for a CPU: wake-up latency, preemption, run queues",
	.description =
		"Measures how long ready threads wait for a CPU. Wake-up latency is the time from "
		"the first wake-up (sched_waking, sched_wakeup or sched_wakeup_new) since the "
		"thread last ran to the switch to the thread. A preempted thread (by a thread of "
		"higher priority, or at the end of its time slice) waits from the switch away from "
		"it to the next switch to it.\n"
		"\n"
		"A wake-up of a running thread does not count, with one exception: another CPU may "
		"wake a thread that is on its way to sleep. This thread waits from the switch that "
		"took it off its CPU. The report does not measure a wait "
		"with lost events, because the thread may have run in between; nor a wait that "
		"began before the trace, or that has no sched_waking event in a trace with such "
		"events. A wait belongs to the range in which it ends.\n"
		"\n"
		"Some kernels leave out switches. A thread without a recorded switch to it ran at "
		"its wake-up at the earliest, and at the first event that shows it on a CPU at the "
		"latest. The report counts such a wait as unmeasured and gives its upper bound; "
		"the lower bound is 0 ns.",
	.events =
		"sched_switch, and for wake-up latency sched_waking (or sched_wakeup, which comes "
		"a little later) and sched_wakeup_new. The switch's prev_state shows whether a "
		"thread was preempted. irq_handler_*, irq_softirq_* and x86_irq_vectors_* events "
		"show the interrupt that woke a thread. sched_migrate_task moves a waiting thread "
		"from one CPU's queue to another.",
	.reading =
		"Latencies of some ten microseconds are normal: a sleeping CPU has to wake up. "
		"Milliseconds mean that the thread waited in a run queue: check whether the CPU "
		"was busy (report cpu) and which threads ran. A mean queue near or above 1 means "
		"more work than CPUs. A few long waits of a thread with normal priority come from "
		"the scheduler's time slices. Long waits of a real-time thread are a problem: look "
		"in the log for its waker, and for long interrupts (report irq, report softirq).\n"
		"\n"
		"Many preemptions of one thread mean that it computes while other threads wake up "
		"on its CPU.",
	.example = "$ kymo report sched -n 3 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Wake-up latency of each thread\n"
		   "  TID  PID  Name     Count      Time      Mean       Max  Preempted   "
		   "    Off\n"
		   "  327  323  disk-io     95  103.4 ms  1.088 ms  8.778 ms         33  2"
		   "1.23 ms\n"
		   "  328  323  mem         38  69.07 ms  1.818 ms  24.27 ms         55  4"
		   "8.10 ms\n"
		   "  324  323  lock-a      37  34.72 ms  938.5 us  27.05 ms          0   "
		   "   0 ns\n"
		   "  61 more rows: --limit 0 shows all\n"
		   "  --wide shows: Prio, p99.9, Stdev, Min, p90, p50, p99\n"
		   "\n"
		   "Run queue of each CPU\n"
		   "  CPU  Waits      Time  Mean queue  Max queue  Preempted\n"
		   "    0    907  342.4 ms        0.09          5        333\n"
		   "    1    342  203.7 ms        0.05          5         85\n"
		   "\n"
		   "Waits by kind\n"
		   "  Wait       Count      Time      Mean       Max       p50       p90  "
		   "     p99\n"
		   "  woken        831  369.4 ms  444.5 us  27.05 ms  45.31 us  481.3 us  "
		   "7.832 ms\n"
		   "  preempted    418  176.7 ms  422.7 us  14.45 ms  62.21 us  880.6 us  "
		   "7.242 ms\n"
		   "  --wide shows: p99.9, Stdev, Min\n"
		   "\n"
		   "The longest waits\n"
		   "                 End      Wait  Kind   CPU  TID  Thread           TID "
		   " Ran meanwhile\n"
		   "  05:30:39.002419650  27.05 ms  woken    0  324  lock-a           323 "
		   " work\n"
		   "  05:30:39.002828980  24.27 ms  woken    0  328  mem              323 "
		   " work\n"
		   "  05:30:38.918336490  21.26 ms  woken    0  275  lttng-consumerd    -\n"
		   "  1246 more rows: --limit 0 shows all\n"
		   "  --wide shows: Prio, TID, Woken by, Begin, For\n"
		   "\n"
		   "More:  -t preempted, -t migrations, -t freq, -t log\n"
		   "Next:  kymo report sched -t preempted -t migrations my-trace   who too"
		   "k the CPUs, and who moved threads\n"
		   "       kymo report breakdown --of wakeup my-trace   who ran while the "
		   "threads waited\n"
		   "       kymo report cpu my-trace   who uses the CPUs\n",
	.next = "report sched -t preempted -t migrations|who took the CPUs, and who moved threads"
		"\nreport breakdown --of wakeup|who ran while the threads waited\n"
		"report cpu|who uses the CPUs",
	.tables = tables,
	.needs = KY_CAN_SWITCH | KY_CAN_WAKE,
	.needs_text = "sched_switch and sched_waking events",
	.needs_hint = "record them with: kymo record -k 'sched_*'",
	.begin = report_sched_begin,
	.finish = report_sched_finish,
	.free = report_sched_free_run,
};
