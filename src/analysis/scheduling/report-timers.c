/* SPDX-License-Identifier: MIT */
/* Report timers: whose timers run, how often, and the threads below them. */
#include "analysis/reports/report-list.h"

#include "analysis/scheduling/kernel-names.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { OWNER_PROCESS, OWNER_KIND, OWNER_NAME, OWNER_FUNCTION, OWNER_RATE, OWNER_STATS };

static const struct ky_column owner_columns[] = {
	[OWNER_PROCESS] =
		{"owner", "Owner", KY_CELL_PROCESS,
		 "The thread that started the timer; '-' for the kernel's own timers and for "
		 "those that were started before the trace."},
	[OWNER_KIND] =
		{"kind", "Kind", KY_CELL_TEXT,
		 "'high': a high-resolution timer (sleeps, timeouts of calls, interval timers, "
		 "the tick), which runs in the interrupt; 'wheel': a coarse one (network, "
		 "devices), which runs in a softirq."},
	[OWNER_NAME] =
		{"name", "Function", KY_CELL_TEXT,
		 "The kernel's function that runs; empty where its name is not known: the trace is of "
		 "another boot and has no symbols (kymo record --symbols, kymo symbols add)."},
	[OWNER_FUNCTION] = {"function", "Address", KY_CELL_ADDRESS, "The function's address.",
			    .spare = 9},
	[OWNER_RATE] = {"rate", "Per second", KY_CELL_RATE, "Runs per second of the range."},
	KY_STATS_COLUMN_DEFS(OWNER_STATS, "runs"),
};

static const struct ky_table_def owner_table =
	KY_TABLE_DEF("timers", "Timers by owner and function",
		     "One row for each owner, kind and function, the most runs first.",
		     owner_columns, KY_TABLE_RANK);

enum { TOP_PROCESS, TOP_STATS };

static const struct ky_column on_top_columns[] = {
	[TOP_PROCESS] = {"process", "On top of", KY_CELL_PROCESS,
			 "The thread that the timer interrupted; '-' for idle CPUs."},
	KY_STATS_COLUMN_DEFS(TOP_STATS, "runs"),
};

static const struct ky_table_def on_top_table =
	KY_TABLE_DEF("interrupted", "Threads that timers interrupted",
		     "One row for each thread that ran when timers ran, the most time first. That "
		     "time is in its CPU time in other reports.",
		     on_top_columns, KY_TABLE_RANK);

static const struct ky_table_def *const tables[] = {&owner_table, &on_top_table, NULL};

enum { TABLE_OWNERS, TABLE_ON_TOP };

/* ---- the run --------------------------------------------------------------------------- */

struct run {
	struct ky_model *model;
	struct ky_aggregation owners, on_top; /* what: the function's index * 2 + is_high; 0 */
	struct ky_map by_function;	      /* -> index + 1 */
	KY_VEC(uint64_t) functions;
};

static int report_timers_on_timer(void *data, const struct ky_timer *timer)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(timer->begin_ns, timer->end_ns);
	uintptr_t found = (uintptr_t)ky_map_get(&run->by_function, timer->function);
	struct ky_entry *owner, *on_top;

	if (!found) {
		found = run->functions.len + 1;
		if (ky_vec_push(&run->functions, timer->function) < 0 ||
		    ky_map_set(&run->by_function, timer->function, (void *)found) < 0)
			return KYMO_E_MEMORY;
	}
	owner = ky_aggregation_get(&run->owners, timer->owner, (found - 1) * 2 + timer->is_high);
	on_top = ky_aggregation_get(&run->on_top, timer->thread, 0);
	if (!owner || !on_top || ky_stats_add(&owner->stats, ns) < 0)
		return KYMO_E_MEMORY;
	return ky_stats_add(&on_top->stats, ns);
}

static void report_timers_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->owners);
	ky_aggregation_fini(&run->on_top);
	ky_map_fini(&run->by_function);
	ky_vec_fini(&run->functions);
	free(run);
}

static void *report_timers_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.timer = report_timers_on_timer};

	(void)options;
	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- the tables ------------------------------------------------------------------------ */

static void report_timers_fill_owner(const void *data, struct ky_table *table,
				     const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	uint64_t range_ns = ky_report_range_ns(run->model), count = entry->stats.count;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[OWNER_PROCESS], run->model, entry->thread, by);
	ky_cell_text(table, &row[OWNER_KIND], entry->what % 2 ? "high" : "wheel");
	ky_cell_kernel_function(table, &row[OWNER_NAME], run->model,
				run->functions.data[entry->what / 2]);
	ky_cell_u64(&row[OWNER_FUNCTION], run->functions.data[entry->what / 2]);
	if (range_ns)
		ky_cell_f64(&row[OWNER_RATE], (double)count * 1e9 / (double)range_ns);
	ky_fill_stats(&row[OWNER_STATS], &entry->stats);
}

static void fill_on_top(const void *data, struct ky_table *table, const struct ky_entry *entry,
			enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[TOP_PROCESS], run->model, entry->thread, by);
	ky_fill_stats(&row[TOP_STATS], &entry->stats);
}

static int report_timers_finish(void *data, const struct ky_report_options *options,
				struct ky_report_result *result)
{
	struct run *run = data;
	enum ky_by by = ky_report_by(options, KY_BY_THREAD);
	struct ky_table *owners = &result->tables[TABLE_OWNERS];
	struct ky_table *on_top = &result->tables[TABLE_ON_TOP];
	int status = ky_fill_groups(owners, &run->owners, by, true, report_timers_fill_owner, run);

	if (status >= 0)
		status = ky_fill_groups(on_top, &run->on_top, by, false, fill_on_top, run);
	ky_table_sort(owners, OWNER_STATS + KY_STATS_COUNT, false);
	ky_table_sort(on_top, TOP_STATS + KY_STATS_TOTAL, false);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_timers = {
	.name = "timers",
	.summary = "timers of the kernel: owners, rates, interrupted threads",
	.description =
		"Measures the functions of the kernel's timers, from the begin of each run to its "
		"end. The owner of a timer is the thread that started it last outside of an "
		"interrupt: it sleeps, or waits with a timeout, or has an interval timer. A timer "
		"that its own function starts again keeps its owner.\n"
		"\n"
		"A timer runs on top of any thread of its CPU. Its time is in the CPU time of that "
		"thread, as the kernel counts it, too.",
	.events = "timer_hrtimer_expire_entry and timer_hrtimer_expire_exit, timer_expire_entry "
		  "and timer_expire_exit; timer_hrtimer_start and timer_start for the owners. The "
		  "default of kymo record has none of them: kymo record -k default -k 'timer_*'.",
	.reading =
		"A thread with hundreds of runs per second of a timer looks for work by the clock "
		"(report syscalls shows the call), or has an interval timer (report signals). The "
		"most frequent rows without an owner are the tick: 100 to 1000 per second on each "
		"busy CPU.",
	.example = "$ kymo report timers -n 2 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-26 15:41:21.252891084 to 2026-11-26 15:41:21.583890001\n"
		   "       331.0 ms, 44076 events\n"
		   "\n"
		   "Timers by owner and function\n"
		   "  TID  PID  Name  Kind  Function           Per second  Count      Time\n"
		   "    -    -  -     high  tick_nohz_handler      498.49    165  1.204 ms\n"
		   "  724  724  sshd  high  hrtimer_wakeup          24.17      8  38.11 us\n",
	.next = "report signals|signals of timers\n"
		"report irq|the time of interrupts",
	.tables = tables,
	.needs = KY_CAN_TIMERS,
	.needs_text = "timer expire events",
	.needs_hint = "record them with: kymo record -k default -k 'timer_*'",
	.begin = report_timers_begin,
	.finish = report_timers_finish,
	.free = report_timers_free_run,
};
