/* SPDX-License-Identifier: MIT */
/* Reports irq and softirq: how long interrupts took, and how late softirqs came. */
#include "analysis/reports/report-list.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { LINE_IRQ, LINE_HOST, LINE_KIND, LINE_CPUS, LINE_STATS };

#define LINE_COLUMN_DEFS(what)                                                                     \
	[LINE_IRQ] = {"irq", "Interrupt", KY_CELL_IRQ, what},                                      \
	[LINE_HOST] = {"host", "Host", KY_CELL_TEXT,                                               \
		       "The trace's host, when the report reads several traces; else empty."},     \
	[LINE_KIND] = {"kind", "Kind", KY_CELL_TEXT,                                               \
		       "'hard': a device's handler; 'soft': a softirq; 'vector': a vector of the " \
		       "CPU itself, such as the local timer."},                                    \
	[LINE_CPUS] = {"cpus", "CPUs", KY_CELL_TALLY,                                              \
		       "The CPUs that handled it, each with its count, the most frequent first.",  \
		       .spare = 9}

#define IRQ_HELP                                                                             \
	"The interrupt's number and the name of its handler, as in /proc/interrupts; for a " \
	"vector, its name."
#define SOFTIRQ_HELP "The softirq's number and name, as in /proc/softirqs."

static const struct ky_column irq_columns[] = {
	LINE_COLUMN_DEFS(IRQ_HELP),
	KY_STATS_COLUMN_DEFS(LINE_STATS, "runs of the handler"),
};

static const struct ky_table_def irq_table =
	KY_TABLE_DEF("irqs", "Durations of interrupt handlers",
		     "One row for each interrupt, the largest sum of durations first.", irq_columns,
		     KY_TABLE_RANK);

static const struct ky_column softirq_columns[] = {
	LINE_COLUMN_DEFS(SOFTIRQ_HELP),
	KY_STATS_COLUMN_DEFS(LINE_STATS, "runs"),
};

static const struct ky_table_def softirq_table =
	KY_TABLE_DEF("softirqs", "Durations of softirqs",
		     "One row for each softirq, the largest sum of durations first.",
		     softirq_columns, KY_TABLE_RANK);

static const struct ky_column latency_columns[] = {
	LINE_COLUMN_DEFS(SOFTIRQ_HELP),
	KY_STATS_COLUMN_DEFS(LINE_STATS, "runs whose raise was seen"),
};

static const struct ky_table_def latency_table = KY_TABLE_DEF(
	"latency", "From raise to entry",
	"One row for each softirq, the largest sum of latencies first. A latency is the time from "
	"the first raise since the last entry on a CPU to the next entry on this CPU.",
	latency_columns, KY_TABLE_RANK);

enum { CPU_ID, CPU_HOST, CPU_COUNT, CPU_TIME, CPU_SHARE };

static const struct ky_column cpu_columns[] = {
	[CPU_ID] = {"cpu", "CPU", KY_CELL_CPU, "The CPU's number."},
	[CPU_HOST] = {"host", "Host", KY_CELL_TEXT,
		      "The trace's host, when the report reads several traces; else empty."},
	[CPU_COUNT] = {"count", "Count", KY_CELL_COUNT,
		       "How many interrupts were measured on the "
		       "CPU."},
	[CPU_TIME] = {"total", "Time", KY_CELL_DURATION,
		      "The time in interrupts. Of nested interrupts in this report, only the outer "
		      "one counts."},
	[CPU_SHARE] = {"share", "Share", KY_CELL_RATIO,
		       "That time divided by the range. The bar is full at 100 %.",
		       .bar = KY_BAR_WHOLE},
};

static const struct ky_table_def cpu_table = KY_TABLE_DEF(
	"cpus", "Time in interrupts on each CPU",
	"One row for each CPU with interrupts, by number.", cpu_columns, KY_TABLE_FIXED);

enum {
	RUN_RAISE,
	RUN_BEGIN,
	RUN_END,
	RUN_LATENCY,
	RUN_DURATION,
	RUN_CPU,
	RUN_KIND,
	RUN_IRQ,
	RUN_THREAD
};

static const struct ky_column run_columns[] = {
	[RUN_RAISE] = {"raise", "Raise", KY_CELL_TIMESTAMP,
		       "When the softirq was raised, if the trace has the raise.", .spare = 4},
	[RUN_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the handler began.", .spare = 2},
	[RUN_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended."},
	[RUN_LATENCY] = {"latency", "Latency", KY_CELL_DURATION,
			 "The time from the softirq's raise to the begin, if the trace has the "
			 "raise."},
	[RUN_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "The time from begin to end."},
	[RUN_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The CPU on which it ran."},
	[RUN_KIND] = {"kind", "Kind", KY_CELL_TEXT, "'hard', 'soft' or 'vector'.", .spare = 1},
	[RUN_IRQ] = {"irq", "Interrupt", KY_CELL_IRQ, "The interrupt's number and name."},
	[RUN_THREAD] =
		{"thread", "On top of", KY_CELL_PROCESS,
		 "The interrupted thread; '-' when the CPU was idle or its thread is unknown.",
		 .second = true, .spare = 3},
};

static const struct ky_table_def top_table =
	KY_TABLE_DEF("top", "The longest runs", "One row for each run, the longest first.",
		     run_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "All runs", "One row for each run, in the order of their ends.",
		     run_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("irq", "Interrupt", KY_CELL_IRQ, "The interrupt's number and name."),
};

static const struct ky_table_def freq_table =
	KY_TABLE_DEF("freq", "Distribution of durations",
		     "One row for each step of duration, for each interrupt, from the shortest.",
		     freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def latency_freq_table = KY_TABLE_DEF(
	"latency_freq", "Distribution of latencies",
	"One row for each step of the latency from raise to entry, for each softirq, from the "
	"shortest.",
	freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def *const irq_tables[] = {&irq_table,  &cpu_table, &top_table,
							&freq_table, &log_table, NULL};
static const struct ky_table_def *const softirq_tables[] = {
	&softirq_table, &cpu_table,	&top_table,	     &freq_table,
	&log_table,	&latency_table, &latency_freq_table, NULL};

/* Both reports' tables; the last two of softirq alone. */
enum {
	TABLE_LINES,
	TABLE_CPUS,
	TABLE_TOP,
	TABLE_FREQ,
	TABLE_LOG,
	TABLE_LATENCY,
	TABLE_LATENCY_FREQ
};

/* ---- the run --------------------------------------------------------------------------- */

struct cpu_time {
	uint64_t count, ns;
};

KY_VEC_TYPE(counts, uint64_t); /* by the CPU's index */

struct line_state {
	struct ky_freq freq, latency_freq;
	struct counts by_cpu, late_by_cpu; /* runs; those whose latency is known */
};

struct irq_record {
	struct ky_irq irq;
	uint32_t cpu;
};

struct run {
	struct ky_model *model;
	bool soft;
	uint64_t timers_ns, timers;		/* runs of high-resolution timers */
	struct ky_aggregation lines, latencies; /* what: the line's index */
	KY_VEC(struct line_state *) states;
	KY_VEC(struct cpu_time) cpus;
	struct ky_happenings single;
	uint64_t unmeasured; /* whose beginning was not seen */
};

static struct line_state *report_irq_state_of(struct run *run, uint32_t line)
{
	while (run->states.len <= line) {
		if (ky_vec_push(&run->states, NULL) < 0)
			return NULL;
	}
	if (!run->states.data[line])
		run->states.data[line] = calloc(1, sizeof(struct line_state));
	return run->states.data[line];
}

static int count_one(struct counts *counts, uint32_t cpu)
{
	while (counts->len <= cpu) {
		if (ky_vec_push(counts, 0) < 0)
			return KYMO_E_MEMORY;
	}
	counts->data[cpu]++;
	return 0;
}

static int count_cpu(struct run *run, struct line_state *state, const struct ky_irq *irq,
		     uint64_t ns)
{
	uint32_t cpu = irq->cpu->index;

	if (count_one(&state->by_cpu, cpu) < 0)
		return KYMO_E_MEMORY;
	while (run->cpus.len <= cpu) {
		if (ky_vec_push(&run->cpus, (struct cpu_time){0}) < 0)
			return KYMO_E_MEMORY;
	}
	run->cpus.data[cpu].count++;
	if (!irq->nested)
		run->cpus.data[cpu].ns += ns;
	return 0;
}

static int add_latency(struct run *run, struct line_state *state, const struct ky_irq *irq)
{
	uint64_t ns = ky_ns_between(irq->raise_ns, irq->begin_ns);
	struct ky_entry *entry;

	if (irq->raise_ns == INT64_MIN)
		return 0;
	entry = ky_aggregation_get(&run->latencies, NULL, irq->line->index);
	if (!entry || count_one(&state->late_by_cpu, irq->cpu->index) < 0)
		return KYMO_E_MEMORY;
	ky_freq_add(&state->latency_freq, ns);
	return ky_stats_add(&entry->stats, ns);
}

static int report_irq_on_irq(void *data, const struct ky_irq *irq)
{
	struct run *run = data;
	struct line_state *state;
	struct ky_entry *entry;
	uint64_t ns;

	if ((irq->line->kind == KY_IRQ_SOFT) != run->soft)
		return 0;
	if (irq->begin_ns == INT64_MIN) {
		run->unmeasured++;
		return 0;
	}
	ns = ky_ns_between(irq->begin_ns, irq->end_ns);
	entry = ky_aggregation_get(&run->lines, NULL, irq->line->index);
	state = report_irq_state_of(run, irq->line->index);
	if (!entry || !state || ky_stats_add(&entry->stats, ns) < 0 ||
	    count_cpu(run, state, irq, ns) < 0 || add_latency(run, state, irq) < 0)
		return KYMO_E_MEMORY;
	ky_freq_add(&state->freq, ns);
	if (ky_happenings_wants(&run->single, ns)) {
		struct irq_record record = {*irq, irq->cpu->id};

		return ky_happenings_add(&run->single, ns, &record);
	}
	ky_happenings_skip(&run->single);
	return 0;
}

static void report_irq_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->lines);
	ky_aggregation_fini(&run->latencies);
	ky_vec_foreach(&run->states, state) {
		if (*state) {
			ky_vec_fini(&(*state)->by_cpu);
			ky_vec_fini(&(*state)->late_by_cpu);
		}
		free(*state);
	}
	ky_vec_fini(&run->states);
	ky_vec_fini(&run->cpus);
	ky_happenings_fini(&run->single);
	free(run);
}

/* Timers of high resolution run in the local timer's interrupt, also where nothing tells of it. */
static int report_irq_on_timer(void *data, const struct ky_timer *timer)
{
	struct run *run = data;

	if (!timer->is_high)
		return 0;
	run->timers++;
	run->timers_ns += ky_ns_between(timer->begin_ns, timer->end_ns);
	return 0;
}

static struct run *report_irq_begin_run(struct ky_model *model,
					const struct ky_report_options *options,
					const struct ky_report *report)
{
	struct ky_listener listener = {.irq = report_irq_on_irq, .timer = report_irq_on_timer};
	struct run *run = ky_report_run(model, sizeof(*run), &listener);

	if (!run)
		return NULL;
	run->soft = report == &ky_report_softirq;
	ky_happenings_init(&run->single, sizeof(struct irq_record), options, report, TABLE_TOP,
			   TABLE_LOG);
	return run;
}

/* What the figures lack without events of vectors. */
static int note_vectors(const struct run *run, struct ky_report_result *result)
{
	char text[32];

	if (ky_model_abilities(run->model) & KY_CAN_VECTORS)
		return 0;
	if (!run->timers)
		return ky_report_note(
			result,
			"nothing is recorded of the local timer and other vectors of the "
			"CPU: their time is unknown, and is in that of the threads that they "
			"interrupted (kymo record -k 'x86_irq_vectors_*', if the kernel has "
			"them; -k 'timer_*' for an estimate)");
	return ky_report_note(
		result,
		"nothing is recorded of the local timer and other vectors of the CPU: their time "
		"is in that of the threads that they interrupted; the %" PRIu64
		" runs of high-resolution timers took %s of it (kymo report timers)",
		run->timers, ky_format_duration(text, run->timers_ns));
}

static void *begin_irq(struct ky_model *model, const struct ky_report_options *options)
{
	return report_irq_begin_run(model, options, &ky_report_irq);
}

static void *begin_softirq(struct ky_model *model, const struct ky_report_options *options)
{
	return report_irq_begin_run(model, options, &ky_report_softirq);
}

/* ---- the tables ------------------------------------------------------------------------ */

static int compare_items(const void *a, const void *b)
{
	const struct ky_tally_item *left = a, *right = b;

	return left->count > right->count ? -1 : left->count < right->count;
}

static int fill_cpus_of(const struct run *run, struct ky_table *table, struct ky_cell *cell,
			const struct counts *counts)
{
	struct ky_tally_item *items = calloc(counts->len + 1, sizeof(*items));
	char(*names)[12] = calloc(counts->len + 1, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; items && names && i < counts->len; i++) {
		if (!counts->data[i])
			continue;
		snprintf(names[n], sizeof(*names), "%" PRIu32, ky_model_cpu(run->model, i)->id);
		items[n] = (struct ky_tally_item){names[n], counts->data[i]};
		n++;
	}
	if (items && names) {
		qsort(items, n, sizeof(*items), compare_items);
		ky_cell_tally(table, cell, items, n);
	}
	free(items);
	free(names);
	return items && names ? 0 : KYMO_E_MEMORY;
}

static int fill_lines(const struct run *run, struct ky_table *table,
		      const struct ky_aggregation *aggregation, bool late)
{
	int status = 0;

	for (size_t i = 0; i < aggregation->entries.len && status >= 0; i++) {
		const struct ky_entry *entry = aggregation->entries.data[i];
		const struct ky_irq_line *line = ky_model_irq_line(run->model, entry->what);
		const struct line_state *state = run->states.data[entry->what];
		struct ky_cell *row = ky_table_row(table);

		ky_cell_line(table, &row[LINE_IRQ], line);
		ky_cell_host(table, &row[LINE_HOST], run->model, line->host);
		ky_cell_text(table, &row[LINE_KIND], ky_irq_kind_text(line->kind));
		ky_fill_stats(&row[LINE_STATS], &entry->stats);
		status = fill_cpus_of(run, table, &row[LINE_CPUS],
				      late ? &state->late_by_cpu : &state->by_cpu);
	}
	ky_table_sort_then(table, LINE_STATS + KY_STATS_TOTAL, false, LINE_IRQ, true);
	return status;
}

static void fill_freqs(const struct run *run, struct ky_table *table, bool latency)
{
	for (size_t i = 0; i < run->states.len; i++) {
		const struct line_state *state = run->states.data[i];
		struct ky_cell what = {0};

		if (!state || !(latency ? state->latency_freq.n : state->freq.n))
			continue;
		ky_cell_line(table, &what, ky_model_irq_line(run->model, i));
		ky_fill_freq(table, latency ? &state->latency_freq : &state->freq, &what);
	}
}

static void report_irq_fill_cpus(const struct run *run, struct ky_table *table)
{
	uint64_t range_ns = ky_report_range_ns(run->model);

	for (size_t i = 0; i < run->cpus.len; i++) {
		const struct ky_cpu *cpu = ky_model_cpu(run->model, i);
		struct ky_cell *row;

		if (!run->cpus.data[i].count)
			continue;
		row = ky_table_row(table);
		ky_cell_u64(&row[CPU_ID], cpu->id);
		ky_cell_host(table, &row[CPU_HOST], run->model, cpu->host);
		ky_cell_u64(&row[CPU_COUNT], run->cpus.data[i].count);
		ky_cell_u64(&row[CPU_TIME], run->cpus.data[i].ns);
		ky_cell_f64(&row[CPU_SHARE], ky_part(run->cpus.data[i].ns, range_ns));
	}
	ky_table_sort_then(table, CPU_HOST, true, CPU_ID, true);
}

static void report_irq_fill_single(const void *data, struct ky_table *table, struct ky_cell *row,
				   const void *record)
{
	const struct run *run = data;
	const struct irq_record *single = record;
	const struct ky_irq *irq = &single->irq;

	if (irq->raise_ns != INT64_MIN) {
		ky_cell_i64(&row[RUN_RAISE], irq->raise_ns);
		ky_cell_u64(&row[RUN_LATENCY], ky_ns_between(irq->raise_ns, irq->begin_ns));
	}
	ky_cell_i64(&row[RUN_BEGIN], irq->begin_ns);
	ky_cell_i64(&row[RUN_END], irq->end_ns);
	ky_cell_u64(&row[RUN_DURATION], ky_ns_between(irq->begin_ns, irq->end_ns));
	ky_cell_u64(&row[RUN_CPU], single->cpu);
	ky_cell_text(table, &row[RUN_KIND], ky_irq_kind_text(irq->line->kind));
	ky_cell_line(table, &row[RUN_IRQ], irq->line);
	if (irq->thread)
		ky_cell_thread(table, &row[RUN_THREAD], run->model, irq->thread);
}

static int report_irq_finish(void *data, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	struct run *run = data;
	int status = fill_lines(run, &result->tables[TABLE_LINES], &run->lines, false);

	(void)options;
	if (status >= 0 && run->soft) {
		status = fill_lines(run, &result->tables[TABLE_LATENCY], &run->latencies, true);
		fill_freqs(run, &result->tables[TABLE_LATENCY_FREQ], true);
	}
	fill_freqs(run, &result->tables[TABLE_FREQ], false);
	report_irq_fill_cpus(run, &result->tables[TABLE_CPUS]);
	ky_fill_records(&result->tables[TABLE_TOP], &run->single.top, report_irq_fill_single, run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->single.log, report_irq_fill_single, run);
	if (status >= 0 && run->unmeasured)
		status = ky_report_note(result,
					"%" PRIu64
					" ended whose beginning is not in the trace: they "
					"are in no figure",
					run->unmeasured);
	if (status >= 0)
		status = note_vectors(run, result);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_irq = {
	.name = "irq",
	.summary = "interrupt handlers: how many, how long, on which CPU",
	.description =
		"Measures how long the handlers of hardware interrupts ran, from their entry to "
		"their exit. Interrupts nest: each CPU has a stack of running handlers, and an "
		"exit belongs to the topmost entry of its interrupt. A duration includes nested "
		"interrupts. The tables also list vectors of the CPU itself (local timer, "
		"reschedule, function calls), if the trace has them.\n"
		"\n"
		"Lost events empty the stack of their CPU: the report does not measure the "
		"handlers that ran at that time.",
	.events =
		"irq_handler_entry and irq_handler_exit; x86_irq_vectors_* (in perf: "
		"irq_vectors:*) for vectors. Names come from the entries and from the state dump.",
	.reading =
		"Handlers should take microseconds. A handler that takes a millisecond blocks its "
		"CPU for that time: threads there wait (report sched), and softirqs are late "
		"(report softirq). The table of CPUs shows whether all interrupts go to one CPU: "
		"/proc/irq/NR/smp_affinity spreads them. In a virtual machine, a handler may be "
		"long because the host used the CPU.",
	.example = "$ kymo report irq -n 3 -t irqs -t cpus -t top my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Durations of interrupt handlers\n"
		   "  Interrupt         Kind    Count      Time      Mean       Max       "
		   "p99\n"
		   "  local_timer       vector    495  50.92 ms  102.9 us  5.642 ms  518.1"
		   " us\n"
		   "  26 virtio0-req.1  hard       85  11.00 ms  129.4 us  1.638 ms  1.638"
		   " ms\n"
		   "  25 virtio0-req.0  hard       75  6.002 ms  80.02 us  275.4 us  275.4"
		   " us\n"
		   "  2 more rows: --limit 0 shows all\n"
		   "  --wide shows: CPUs, p99.9, Stdev, Min, p90, p50\n"
		   "\n"
		   "Time in interrupts on each CPU\n"
		   "  CPU  Count      Time   Share\n"
		   "    0    341  35.85 ms  0.96 %  ▍\n"
		   "    1    369  32.66 ms  0.87 %  ▍\n"
		   "\n"
		   "The longest runs\n"
		   "                 End  Duration  CPU  Kind    Interrupt\n"
		   "  05:30:38.934996510  5.642 ms    0  vector  local_timer\n"
		   "  05:30:42.557322440  4.212 ms    0  vector  local_timer\n"
		   "  05:30:39.018845230  1.638 ms    1  hard    26 virtio0-req.1\n"
		   "  707 more rows: --limit 0 shows all\n"
		   "  --wide shows: TID, On top of, Begin\n",
	.next = "report softirq|what the handlers left to do\n"
		"report irq -t log --min 1ms|the long ones, in their order",
	.tables = irq_tables,
	.needs = KY_CAN_IRQ,
	.needs_text = "interrupt events",
	.needs_hint = "record them with: kymo record -k 'irq_handler_*'",
	.ignores = KY_IGNORES_BY,
	.begin = begin_irq,
	.finish = report_irq_finish,
	.free = report_irq_free_run,
};

const struct ky_report ky_report_softirq = {
	.name = "softirq",
	.summary = "softirqs: how many, how long, how late after their raise",
	.description =
		"Measures softirqs: the bottom halves of interrupts, which run after the handler, "
		"or in ksoftirqd under high load. Their duration is the time from entry to exit, "
		"with nested interrupts. Their latency is the time from the first raise since the "
		"last entry, on the same CPU, to the entry.\n"
		"\n"
		"A raise while the same softirq runs causes another run: it belongs to the next "
		"entry.",
	.events = "irq_softirq_raise, irq_softirq_entry and irq_softirq_exit; in the kernel and in "
		  "LTTng before 2.7: softirq_*. Without raise events there are no latencies.",
	.reading =
		"Latencies of some microseconds are normal: the handler that raised the softirq "
		"ends first. Longer latencies mean that interrupts were off, or that the kernel "
		"left the work to ksoftirqd, which waits for the CPU like any thread (report "
		"sched). NET_RX that runs for milliseconds is network load; RCU and SCHED on all "
		"CPUs are housekeeping. Late TIMER and HRTIMER softirqs make sleeps longer than "
		"requested.",
	.example = "$ kymo report softirq -n 3 -t softirqs -t latency -t top my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Durations of softirqs\n"
		   "  Interrupt  Kind  Count      Time      Mean       Max       p50      "
		   " p99\n"
		   "  3 NET_RX   soft    604  17.86 ms  29.57 us  2.160 ms  16.77 us  162."
		   "8 us\n"
		   "  9 RCU      soft    325  17.14 ms  52.74 us  3.869 ms  29.57 us  224."
		   "3 us\n"
		   "  7 SCHED    soft    251  11.87 ms  47.30 us  3.983 ms  22.66 us  179."
		   "2 us\n"
		   "  1 more rows: --limit 0 shows all\n"
		   "  --wide shows: CPUs, p99.9, Stdev, Min, p90\n"
		   "\n"
		   "The longest runs\n"
		   "                 End   Latency  Duration  CPU  Kind  Interrupt\n"
		   "  05:30:42.557416910  36.75 us  3.983 ms    1  soft  7 SCHED\n"
		   "  05:30:42.593109750  18.46 us  3.869 ms    1  soft  9 RCU\n"
		   "  05:30:38.992547970  177.9 us  2.160 ms    0  soft  3 NET_RX\n"
		   "  1340 more rows: --limit 0 shows all\n"
		   "  --wide shows: Raise, TID, On top of, Begin\n"
		   "\n"
		   "From raise to entry\n"
		   "  Interrupt  Kind  Count      Time      Mean       Max       p50      "
		   " p99\n"
		   "  9 RCU      soft    323  39.23 ms  121.5 us  4.445 ms  61.18 us  1.64"
		   "7 ms\n"
		   "  7 SCHED    soft    250  23.53 ms  94.11 us  4.401 ms  56.06 us  626."
		   "7 us\n"
		   "  1 TIMER    soft    162  15.68 ms  96.81 us  4.358 ms  54.53 us  700."
		   "4 us\n"
		   "  1 more rows: --limit 0 shows all\n"
		   "  --wide shows: CPUs, p99.9, Stdev, Min, p90\n",
	.next = "report irq|the handlers that raised them\n"
		"report net|the packets of the network",
	.tables = softirq_tables,
	.needs = KY_CAN_SOFTIRQ,
	.needs_text = "softirq events",
	.needs_hint = "record them with: kymo record -k 'irq_softirq_*'",
	.ignores = KY_IGNORES_BY,
	.begin = begin_softirq,
	.finish = report_irq_finish,
	.free = report_irq_free_run,
};
