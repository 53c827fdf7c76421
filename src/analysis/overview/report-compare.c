/* SPDX-License-Identifier: MIT */
/* Report compare: what differs between two traces, beyond noise. */
#include "analysis/reports/report-list.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/overview/compare.h"
#include "analysis/reports/report-parts.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { SIDE_NAME, SIDE_PATH, SIDE_BEGIN, SIDE_DURATION, SIDE_CALLS };

static const struct ky_column side_columns[] = {
	[SIDE_NAME] = {"side", "Side", KY_CELL_TEXT, "'A' is the first trace, 'B' the second one."},
	[SIDE_PATH] = {"trace", "Trace", KY_CELL_PATH, "The trace, as the command names it."},
	[SIDE_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When its first CPU is known."},
	[SIDE_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "How long it lasts."},
	[SIDE_CALLS] = {"calls", "System calls", KY_CELL_COUNT,
			"The measured calls of the selected threads."},
};

static const struct ky_table_def side_table = KY_TABLE_DEF(
	"sides", "The two traces", "One row for each trace.", side_columns, KY_TABLE_FIXED);

enum { TIME_NAME, TIME_CAUSE, TIME_A, TIME_B, TIME_CHANGE, TIME_FACTOR };

static const struct ky_column time_columns[] = {
	[TIME_NAME] = {"name", "Threads", KY_CELL_TEXT, "All threads of this name."},
	[TIME_CAUSE] = {"cause", "Part", KY_CELL_TEXT,
			"What they did, or waited for, as in report breakdown."},
	[TIME_A] = {"a", "A", KY_CELL_DURATION,
		    "The time of all of them in each second of trace A, the mean."},
	[TIME_B] = {"b", "B", KY_CELL_DURATION, "The same of trace B."},
	[TIME_CHANGE] = {"change", "More in B", KY_CELL_DURATION,
			 "B minus A; a dash where B has less.", .spare = 1},
	[TIME_FACTOR] = {"factor", "B/A", KY_CELL_NUMBER,
			 "B divided by A; empty where A has none."},
};

static const struct ky_table_def time_table = KY_TABLE_DEF(
	"times", "Times that differ, in each second",
	"One row for each thread name and cause that differs beyond noise, the largest difference "
	"first.",
	time_columns, KY_TABLE_RANK);

enum {
	CALL_NAME,
	CALL_SYSCALL,
	CALL_RATE_A,
	CALL_RATE_B,
	CALL_MEAN_A,
	CALL_MEAN_B,
	CALL_P99_A,
	CALL_P99_B,
	CALL_TIME_A,
	CALL_TIME_B
};

static const struct ky_column call_columns[] = {
	[CALL_NAME] = {"name", "Threads", KY_CELL_TEXT, "All threads of this name."},
	[CALL_SYSCALL] = {"syscall", "System call", KY_CELL_SYSCALL, "The system call."},
	[CALL_RATE_A] = {"rate_a", "Calls/s A", KY_CELL_RATE, "Calls per second in trace A.",
			 .spare = 3},
	[CALL_RATE_B] = {"rate_b", "Calls/s B", KY_CELL_RATE, "The same in trace B.", .spare = 3},
	[CALL_MEAN_A] = {"mean_a", "Mean A", KY_CELL_DURATION, "The mean duration in trace A."},
	[CALL_MEAN_B] = {"mean_b", "Mean B", KY_CELL_DURATION, "The same in trace B."},
	[CALL_P99_A] = {"p99_a", "p99 A", KY_CELL_DURATION,
			"99 % of the calls of trace A take at most so long."},
	[CALL_P99_B] = {"p99_b", "p99 B", KY_CELL_DURATION, "The same in trace B."},
	[CALL_TIME_A] = {"time_a", "Time/s A", KY_CELL_DURATION,
			 "The time in these calls, of all threads, in each second of trace A.",
			 .spare = 2},
	[CALL_TIME_B] = {"time_b", "Time/s B", KY_CELL_DURATION, "The same in trace B.",
			 .spare = 2},
};

static const struct ky_table_def call_table = KY_TABLE_DEF(
	"calls", "System calls that differ",
	"One row for each thread name and system call, whose number or time in each second "
	"differs beyond noise, the largest difference of times first.",
	call_columns, KY_TABLE_RANK);

static const struct ky_table_def *const tables[] = {&side_table, &time_table, &call_table, NULL};

enum { COMPARE_SIDES, COMPARE_TIMES, COMPARE_CALLS };

/* ---- the tables ---------------------------------------------------------------------------- */

/* Rows with a smaller difference of times are not worth a look: 0.01 % of a CPU. */
#define LEAST_NS 100000.0

struct difference {
	const struct ky_compare_item *item;
	double ns;
};

static int report_compare_order(const void *a, const void *b)
{
	const struct difference *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? 1 : -1;
	return left->item < right->item ? -1 : 1;
}

static void report_compare_fill_time(struct ky_table *table, const struct ky_compare_item *item)
{
	double a = ky_compare_mean(&item->times[0]), b = ky_compare_mean(&item->times[1]);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[TIME_NAME], item->name);
	ky_cell_text(table, &row[TIME_CAUSE], ky_cause_text(item->cause));
	ky_cell_f64(&row[TIME_A], a);
	ky_cell_f64(&row[TIME_B], b);
	if (b > a)
		ky_cell_f64(&row[TIME_CHANGE], b - a);
	if (a > 0)
		ky_cell_f64(&row[TIME_FACTOR], b / a);
}

static void report_compare_fill_side(const struct ky_compare_item *item, struct ky_cell *row, int i)
{
	const struct ky_moments moments = ky_stats_moments(&item->stats[i]);

	ky_cell_f64(&row[CALL_RATE_A + i], ky_compare_mean(&item->counts[i]));
	ky_cell_f64(&row[CALL_TIME_A + i], ky_compare_mean(&item->times[i]));
	if (!moments.count)
		return;
	ky_cell_f64(&row[CALL_MEAN_A + i], ky_moments_mean(&moments));
	ky_cell_u64(&row[CALL_P99_A + i], ky_stats_percentile(&item->stats[i], 99));
}

static void report_compare_fill_call(const struct ky_compare *compare, struct ky_table *table,
				     const struct ky_compare_item *item)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[CALL_NAME], item->name);
	ky_cell_text(table, &row[CALL_SYSCALL],
		     ky_model_syscall_name(compare->model, item->syscall));
	for (int i = 0; i < 2; i++)
		report_compare_fill_side(item, row, i);
}

static bool report_compare_is_shown(const struct ky_compare_item *item)
{
	return ky_compare_differs(&item->times[0], &item->times[1]) ||
	       (item->syscall != KY_NO_SYSCALL &&
		ky_compare_differs(&item->counts[0], &item->counts[1]));
}

static int report_compare_fill(const struct ky_compare *compare, struct ky_report_result *result)
{
	struct difference *differences = calloc(compare->items.len + 1, sizeof(*differences));
	size_t n = 0;

	if (!differences)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&compare->items, item) {
		double ns =
			fabs(ky_compare_mean(&item->times[0]) - ky_compare_mean(&item->times[1]));

		if (ns >= LEAST_NS && report_compare_is_shown(item))
			differences[n++] = (struct difference){item, ns};
	}
	qsort(differences, n, sizeof(*differences), report_compare_order);
	for (size_t i = 0; i < n; i++) {
		if (differences[i].item->syscall == KY_NO_SYSCALL)
			report_compare_fill_time(&result->tables[COMPARE_TIMES],
						 differences[i].item);
		else
			report_compare_fill_call(compare, &result->tables[COMPARE_CALLS],
						 differences[i].item);
	}
	free(differences);
	return 0;
}

static void report_compare_fill_sides(const struct ky_compare *compare, struct ky_table *table)
{
	for (int i = 0; i < 2; i++) {
		const struct ky_compare_side *side = &compare->sides[i];
		struct ky_cell *row = ky_table_row(table);

		ky_cell_text(table, &row[SIDE_NAME], i ? "B" : "A");
		ky_cell_text(table, &row[SIDE_PATH], side->path);
		if (side->end_ns < side->begin_ns)
			continue;
		ky_cell_i64(&row[SIDE_BEGIN], side->begin_ns);
		ky_cell_u64(&row[SIDE_DURATION], ky_ns_between(side->begin_ns, side->end_ns));
		ky_cell_u64(&row[SIDE_CALLS], side->n_calls);
	}
}

/* ---- the run --------------------------------------------------------------------------- */

static void report_compare_free(void *data)
{
	ky_compare_fini(data);
	free(data);
}

static void *report_compare_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_compare *compare = calloc(1, sizeof(*compare));

	if (!compare)
		return NULL;
	compare->model = model;
	compare->focus = &options->focus;
	compare->sides[0].path = options->sides[0] ? options->sides[0] : "";
	compare->sides[1].path = options->sides[1] ? options->sides[1] : "";
	for (int i = 0; i < 2; i++) {
		compare->sides[i].from_ns = options->side_begin_ns[i];
		compare->sides[i].until_ns = options->side_end_ns[i];
	}
	compare->causes = ky_causes_new(model);
	if (compare->causes)
		return compare;
	report_compare_free(compare);
	return NULL;
}

static int report_compare_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	struct ky_compare *compare = data;
	int status = ky_compare_find(compare);

	(void)options;
	if (status == KYMO_E_INVALID)
		return ky_report_note(result, "which trace belongs to which side is not known");
	if (status < 0)
		return status;
	report_compare_fill_sides(compare, &result->tables[COMPARE_SIDES]);
	for (int i = 0; i < 2; i++) {
		if (compare->sides[i].end_ns <= compare->sides[i].begin_ns)
			return ky_report_note(result,
					      "trace %s tells nothing of CPUs, or is the "
					      "other one",
					      i ? "B" : "A");
	}
	status = report_compare_fill(compare, result);
	if (status >= 0 && !ky_table_n_rows(&result->tables[COMPARE_TIMES]) &&
	    !ky_table_n_rows(&result->tables[COMPARE_CALLS]))
		status = ky_report_note(result, "nothing differs beyond noise");
	return status < 0 ? status : ky_report_note_causes(result, compare->causes);
}

const struct ky_report ky_report_compare = {
	.name = "compare",
	.summary = "what differs between two traces, beyond noise",
	.description =
		"Compares two traces, A and B, such as before and after a change: kymo report compare A "
		"B. Threads with the same name belong together, whatever their IDs are. Times are "
		"those of report breakdown, in each second of the trace, so that traces of different "
		"lengths can be compared; calls have their rate, mean, p99 and total time. What a thread did before its last "
		"execve was another program, and does not count.\n"
		"\n"
		"The report shows what differs beyond noise. It divides each trace into 8 slices of time. "
		"A difference counts if it is more than 4.5 times as large as its standard error, which "
		"follows from how the slices of each trace differ (Yuen's test, without the smallest and the largest slice), and more than "
		"5 %. A program with phases differs between slices, so its differences must be larger to "
		"count. Differences below 0.1 ms in each second are left out. Without a selection (--comm, --pid), so "
		"are waits for other threads, data and times, and calls that only wait (futex, poll, "
		"nanosleep, and the like): most threads of a machine wait most of the time.",
	.events = "As report breakdown. Both traces should have the same events: a cause that only "
		  "one of them can show, such as interrupts, seems to differ.",
	.reading =
		"Begin with the largest difference. More 'running' of the same calls is slower code; more "
		"'waiting for a CPU' or 'preempted' is more competition; more 'blocked' has its author in "
		"report breakdown of trace B. The load must be the same in both traces: if the rate of "
		"calls differs, compare means and not times.",
	.example = "$ kymo report compare before after --comm kc-load\n"
		   "Trace  before\n"
		   "       after\n"
		   "Range  2026-11-26 15:33:05.333845931 to 2026-11-26 15:33:08.489566030\n"
		   "       3.156 s, 2021805 events\n"
		   "\n"
		   "The two traces\n"
		   "  Side  Trace               Begin  Duration  System calls\n"
		   "  A     before     15:33:05.333845931  1.297 s          56179\n"
		   "  B     after     15:33:07.189952258  1.300 s         383498\n"
		   "\n"
		   "Times that differ, in each second\n"
		   "  Threads  Part                          A         B  More in B       B/A\n"
		   "  kc-load  blocked: timer         781.9 ms  278.8 ms          -     0.357\n"
		   "  kc-load  preempted              41.95 us  224.2 ms   224.2 ms  5345.796\n"
		   "  kc-load  running in the kernel  26.78 ms  160.3 ms   133.6 ms     5.988\n"
		   "  kc-load  running in user space  17.90 ms  113.5 ms   95.59 ms     6.341\n"
		   "  kc-load  interrupted            46.15 us  1.391 ms   1.345 ms    30.147\n"
		   "\n"
		   "System calls that differ\n"
		   "  Threads  System call        Mean A    Mean B     p99 A     p99 B  Time/s B\n"
		   "  kc-load  clock_nanosleep  2.330 ms  3.241 ms  6.980 ms  8.159 ms  438.9 ms\n"
		   "  kc-load  clock_gettime    653.4 ns  669.4 ns  1.431 us    747 ns  98.80 ms\n"
		   "  kc-load  getppid          384.8 ns  404.6 ns    731 ns    449 ns  59.60 ms\n"
		   "  --wide shows: Calls/s A, Calls/s B, Time/s A\n",
	.next = "report why|what stands out in one of them",
	.tables = tables,
	KY_CAUSES_NEEDS,
	.ignores = KY_IGNORES_BY | KY_IGNORES_DURATION,
	.whole = true,
	.wants_two = true,
	.begin = report_compare_begin,
	.finish = report_compare_finish,
	.free = report_compare_free,
};
