/* SPDX-License-Identifier: MIT */
/* Report periods: how long it takes from one event to another, as the user defines them. */
#include "analysis/reports/report-list.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/state/periods.h"

/* ---- documentation --------------------------------------------------------------------- */

#define NAME_HELP     "The period's name in --period."
#define CAPTURED_HELP "The captured values, as NAME=VALUE; '-' if the event has no such field."

enum {
	PERIOD_NAME,
	PERIOD_STATS,
	PERIOD_HEADLESS = PERIOD_STATS + KY_STATS_COLUMNS,
	PERIOD_TORN,
	PERIOD_OUTLIVED,
	PERIOD_UNENDED,
	PERIOD_FORGOTTEN
};

static const struct ky_column period_columns[] = {
	[PERIOD_NAME] = {"period", "Period", KY_CELL_TEXT, NAME_HELP},
	KY_STATS_COLUMN_DEFS(PERIOD_STATS, "periods"),
	[PERIOD_HEADLESS] = {"headless", "No begin", KY_CELL_COUNT,
			     "Ends without a begin: the begin was before the trace, or the keys "
			     "differ. Not counted for periods within others.",
			     .spare = 3},
	[PERIOD_TORN] = {"torn", "Torn", KY_CELL_COUNT,
			 "Not measured, because events were lost between begin and end.",
			 .spare = 9},
	[PERIOD_OUTLIVED] = {"outlived", "Outlived", KY_CELL_COUNT,
			     "Not measured, because the parent period ended first.", .spare = 9},
	[PERIOD_UNENDED] = {"unended", "No end", KY_CELL_COUNT, "Open at the end of the trace.",
			    .spare = 3},
	[PERIOD_FORGOTTEN] = {"forgotten", "Forgotten", KY_CELL_COUNT,
			      "Dropped: more than 100,000 periods were open, and the oldest of "
			      "them had no end yet.",
			      .spare = 9},
};

static const struct ky_table_def period_table = KY_TABLE_DEF(
	"periods", "Periods", "One row for each definition, in the order of the command line.",
	period_columns, KY_TABLE_FIXED);

enum { WHO_PROCESS, WHO_NAME, WHO_STATS };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,
			 "The thread of the begin; with --group-by, the process or the name. '-' "
			 "when the CPU was idle or its thread is unknown."},
	[WHO_NAME] = {"period", "Period", KY_CELL_TEXT, NAME_HELP},
	KY_STATS_COLUMN_DEFS(WHO_STATS, "periods"),
};

static const struct ky_table_def who_table =
	KY_TABLE_DEF("threads", "Periods of each thread",
		     "One row for each thread and period, the largest sum of durations first.",
		     who_columns, KY_TABLE_RANK);

enum { CAPTURE_NAME, CAPTURE_TEXT, CAPTURE_STATS };

static const struct ky_column capture_columns[] = {
	[CAPTURE_NAME] = {"period", "Period", KY_CELL_TEXT, NAME_HELP},
	[CAPTURE_TEXT] = {"captured", "Captured", KY_CELL_TEXT, CAPTURED_HELP},
	KY_STATS_COLUMN_DEFS(CAPTURE_STATS, "periods"),
};

static const struct ky_table_def capture_table = KY_TABLE_DEF(
	"captured", "Periods by captured values",
	"One row for each period and set of captured values, the largest sum of durations first. "
	"Definitions without captures have no row.",
	capture_columns, KY_TABLE_RANK);

enum { WITHIN_PARENT, WITHIN_NAME, WITHIN_COUNT, WITHIN_EACH, WITHIN_TOTAL, WITHIN_SHARE };

static const struct ky_column within_columns[] = {
	[WITHIN_PARENT] = {"within", "Within", KY_CELL_TEXT, "The parent period."},
	[WITHIN_NAME] = {"period", "Period", KY_CELL_TEXT, "The periods within it."},
	[WITHIN_COUNT] = {"count", "Count", KY_CELL_COUNT,
			  "How many of these periods were "
			  "measured."},
	[WITHIN_EACH] = {"each", "In each", KY_CELL_NUMBER,
			 "Their number for each measured parent period."},
	[WITHIN_TOTAL] = {"total", "Time", KY_CELL_DURATION, "The sum of their durations."},
	[WITHIN_SHARE] =
		{"share", "Share", KY_CELL_RATIO,
		 "Their time divided by the time of the parent periods; above 100 % if several are "
		 "open at a time.",
		 .bar = KY_BAR_WHOLE},
};

static const struct ky_table_def within_table =
	KY_TABLE_DEF("within", "Periods within others",
		     "One row for each definition with a parent, in the order of the command line.",
		     within_columns, KY_TABLE_FIXED);

enum { LOG_BEGIN, LOG_END, LOG_DURATION, LOG_NAME, LOG_PROCESS, LOG_CPU, LOG_CAPTURED, LOG_WITHIN };

static const struct ky_column log_columns[] = {
	[LOG_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When it began.", .spare = 1},
	[LOG_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended."},
	[LOG_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "The duration."},
	[LOG_NAME] = {"period", "Period", KY_CELL_TEXT, NAME_HELP},
	[LOG_PROCESS] = {"process", "Thread", KY_CELL_PROCESS, "The thread of the begin."},
	[LOG_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The CPU on which it ended.", .spare = 3},
	[LOG_CAPTURED] = {"captured", "Captured", KY_CELL_TEXT, CAPTURED_HELP},
	[LOG_WITHIN] = {"within", "Within", KY_CELL_TIMESTAMP,
			"The begin of the parent period; empty without a parent.", .spare = 2},
};

static const struct ky_table_def top_table =
	KY_TABLE_DEF("top", "The longest periods", "One row for each period, the longest first.",
		     log_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "The periods", "One row for each period, in the order of their ends.",
		     log_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("period", "Period", KY_CELL_TEXT, NAME_HELP),
};

static const struct ky_table_def freq_table =
	KY_TABLE_DEF("freq", "Distribution of periods",
		     "One row for each step of duration, for each definition, from the shortest.",
		     freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def *const tables[] = {&period_table, &who_table, &capture_table,
						    &within_table, &top_table, &freq_table,
						    &log_table,	   NULL};

enum { TABLE_PERIODS, TABLE_WHO, TABLE_CAPTURED, TABLE_WITHIN, TABLE_TOP, TABLE_FREQ, TABLE_LOG };

/* ---- the run --------------------------------------------------------------------------- */

/* More different values than anybody reads, and they take memory. */
#define MAX_CAPTURED 100000

struct sum {
	struct ky_stats stats;
	struct ky_freq freq;
	uint64_t outcomes[KY_PERIOD_OUTCOMES];
};

struct captured {
	const struct ky_period_def *def;
	const char *text;
	struct ky_stats stats;
};

struct period_record {
	int64_t begin_ns, end_ns, parent_ns;
	const struct ky_period_def *def;
	const struct ky_thread *thread;
	uint32_t cpu_id;
	const char *captured;
};

struct run {
	struct ky_model *model;
	const struct ky_periods *periods; /* NULL: none are defined */
	struct sum *sums;		  /* by definition */
	struct ky_aggregation threads;	  /* what: the definition's index */
	struct ky_arena arena;
	struct ky_strbuf key;
	struct ky_names by_text; /* "INDEX text" -> struct captured * */
	KY_VEC(struct captured *) captured;
	uint64_t n_left_out; /* periods beyond MAX_CAPTURED */
	struct ky_happenings single;
};

/* The sum of @period's captured values; NULL with status 0: one too many. */
static int find_captured(struct run *run, const struct ky_period *period, struct captured **found)
{
	const char *key;

	ky_strbuf_clear(&run->key);
	ky_strbuf_addf(&run->key, "%u %s", period->def->index, period->captured);
	if (ky_strbuf_failed(&run->key))
		return KYMO_E_MEMORY;
	*found = ky_names_get(&run->by_text, ky_strbuf_text(&run->key));
	if (*found)
		return 0;
	if (run->captured.len >= MAX_CAPTURED) {
		run->n_left_out++;
		return 0;
	}
	*found = ky_arena_new(&run->arena, struct captured);
	key = ky_arena_strdup(&run->arena, ky_strbuf_text(&run->key));
	if (!*found || !key)
		return KYMO_E_MEMORY;
	**found = (struct captured){.def = period->def, .text = strchr(key, ' ') + 1};
	if (ky_names_set(&run->by_text, key, *found) < 0)
		return KYMO_E_MEMORY;
	return ky_vec_push(&run->captured, *found) < 0 ? KYMO_E_MEMORY : 0;
}

static int on_period(void *data, const struct ky_period *period)
{
	struct run *run = data;
	struct sum *sum = &run->sums[period->def->index];
	uint64_t ns = ky_ns_between(period->begin_ns, period->end_ns);
	struct period_record record = {period->begin_ns, period->end_ns, period->parent_ns,
				       period->def,	 period->thread, period->cpu_id,
				       "(not kept)"};
	struct captured *captured;
	struct ky_entry *entry;

	sum->outcomes[period->outcome]++;
	if (period->outcome != KY_PERIOD_DONE)
		return 0;
	entry = ky_aggregation_get(&run->threads, period->thread, period->def->index);
	if (!entry || ky_stats_add(&entry->stats, ns) < 0 || ky_stats_add(&sum->stats, ns) < 0 ||
	    find_captured(run, period, &captured) < 0)
		return KYMO_E_MEMORY;
	if (captured && ky_stats_add(&captured->stats, ns) < 0)
		return KYMO_E_MEMORY;
	if (captured)
		record.captured = captured->text;
	ky_freq_add(&sum->freq, ns);
	return ky_happenings_add(&run->single, ns, &record);
}

static void report_periods_free_run(void *data)
{
	struct run *run = data;

	for (size_t i = 0; run->sums && run->periods && i < run->periods->defs.len; i++)
		ky_stats_fini(&run->sums[i].stats);
	ky_vec_foreach(&run->captured, captured)
		ky_stats_fini(&(*captured)->stats);
	free(run->sums);
	ky_aggregation_fini(&run->threads);
	ky_names_fini(&run->by_text);
	ky_vec_fini(&run->captured);
	ky_strbuf_fini(&run->key);
	ky_arena_fini(&run->arena);
	ky_happenings_fini(&run->single);
	free(run);
}

static void *report_periods_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.period = on_period};
	struct run *run = ky_report_run(model, sizeof(*run), &listener);

	if (!run)
		return NULL;
	run->periods = options->periods;
	run->sums = calloc(run->periods ? run->periods->defs.len + 1 : 1, sizeof(*run->sums));
	ky_arena_init(&run->arena);
	ky_names_init(&run->by_text);
	ky_strbuf_init(&run->key);
	ky_happenings_init(&run->single, sizeof(struct period_record), options, &ky_report_periods,
			   TABLE_TOP, TABLE_LOG);
	if (!run->sums) {
		report_periods_free_run(run);
		return NULL;
	}
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

static void fill_period(struct ky_table *table, const struct ky_period_def *def,
			const struct sum *sum)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[PERIOD_NAME], def->name);
	ky_fill_stats(&row[PERIOD_STATS], &sum->stats);
	if (!def->parent)
		ky_cell_u64(&row[PERIOD_HEADLESS], sum->outcomes[KY_PERIOD_HEADLESS]);
	ky_cell_u64(&row[PERIOD_TORN], sum->outcomes[KY_PERIOD_TORN]);
	if (def->parent)
		ky_cell_u64(&row[PERIOD_OUTLIVED], sum->outcomes[KY_PERIOD_OUTLIVED]);
	ky_cell_u64(&row[PERIOD_UNENDED], sum->outcomes[KY_PERIOD_UNENDED]);
	ky_cell_u64(&row[PERIOD_FORGOTTEN], sum->outcomes[KY_PERIOD_FORGOTTEN]);
}

static void fill_within(struct ky_table *table, const struct ky_period_def *def,
			const struct sum *sum, const struct sum *parent)
{
	const struct ky_moments all = ky_stats_moments(&sum->stats);
	const struct ky_moments outer = ky_stats_moments(&parent->stats);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[WITHIN_PARENT], def->parent->name);
	ky_cell_text(table, &row[WITHIN_NAME], def->name);
	ky_cell_u64(&row[WITHIN_COUNT], all.count);
	ky_cell_sum(&row[WITHIN_TOTAL], all.sum);
	if (outer.count)
		ky_cell_f64(&row[WITHIN_EACH], (double)all.count / (double)outer.count);
	if (outer.sum)
		ky_cell_f64(&row[WITHIN_SHARE],
			    (double)((long double)all.sum / (long double)outer.sum));
}

static void report_periods_fill_thread(const void *data, struct ky_table *table,
				       const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	if (entry->thread)
		ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	ky_cell_text(table, &row[WHO_NAME], run->periods->defs.data[entry->what]->name);
	ky_fill_stats(&row[WHO_STATS], &entry->stats);
}

static int report_periods_fill_threads(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status =
		ky_fill_groups(table, &run->threads, by, true, report_periods_fill_thread, run);

	ky_table_sort(table, WHO_STATS + KY_STATS_TOTAL, false);
	return status;
}

static void fill_capture(struct ky_table *table, const struct captured *captured)
{
	struct ky_cell *row;

	if (!captured->def->captures.len)
		return;
	row = ky_table_row(table);
	ky_cell_text(table, &row[CAPTURE_NAME], captured->def->name);
	ky_cell_text(table, &row[CAPTURE_TEXT], captured->text);
	ky_fill_stats(&row[CAPTURE_STATS], &captured->stats);
}

static void fill_captured(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->captured, it)
		fill_capture(table, *it);
	ky_table_sort(table, CAPTURE_STATS + KY_STATS_TOTAL, false);
}

static void report_periods_fill_single(const void *data, struct ky_table *table,
				       struct ky_cell *row, const void *record)
{
	const struct run *run = data;
	const struct period_record *period = record;

	ky_cell_i64(&row[LOG_BEGIN], period->begin_ns);
	ky_cell_i64(&row[LOG_END], period->end_ns);
	ky_cell_u64(&row[LOG_DURATION], ky_ns_between(period->begin_ns, period->end_ns));
	ky_cell_text(table, &row[LOG_NAME], period->def->name);
	if (period->thread)
		ky_cell_thread(table, &row[LOG_PROCESS], run->model, period->thread);
	if (period->cpu_id != UINT32_MAX)
		ky_cell_u64(&row[LOG_CPU], period->cpu_id);
	if (period->def->captures.len)
		ky_cell_text(table, &row[LOG_CAPTURED], period->captured);
	if (period->parent_ns != INT64_MIN)
		ky_cell_i64(&row[LOG_WITHIN], period->parent_ns);
}

static int report_periods_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	struct run *run = data;
	int status;

	if (!run->periods)
		return ky_report_note(result, "no period is defined: --period defines them");
	ky_vec_foreach(&run->periods->defs, it) {
		const struct ky_period_def *def = *it;
		const struct sum *sum = &run->sums[def->index];
		struct ky_cell what = {0};

		fill_period(&result->tables[TABLE_PERIODS], def, sum);
		if (def->parent)
			fill_within(&result->tables[TABLE_WITHIN], def, sum,
				    &run->sums[def->parent->index]);
		ky_cell_text(&result->tables[TABLE_FREQ], &what, def->name);
		ky_fill_freq(&result->tables[TABLE_FREQ], &sum->freq, &what);
	}
	status = report_periods_fill_threads(run, &result->tables[TABLE_WHO],
					     ky_report_by(options, KY_BY_THREAD));
	fill_captured(run, &result->tables[TABLE_CAPTURED]);
	ky_fill_records(&result->tables[TABLE_TOP], &run->single.top, report_periods_fill_single,
			run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->single.log, report_periods_fill_single,
			run);
	if (status >= 0 && run->n_left_out)
		status = ky_report_note(result,
					"%" PRIu64 " periods have captured values beyond the first "
					"%d different ones: they are not in the table of those",
					run->n_left_out, MAX_CAPTURED);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_periods = {
	.name = "periods",
	.summary = "the time from one event to another, by your definitions",
	.description =
		"Measures the periods that one or several --period options define:\n"
		"\n"
		"--period 'NAME : BEGIN : END'\n"
		"\n"
		"BEGIN and END are expressions as for --filter (docs/filter.md); each matches "
		"events. A period lasts from an event that matches BEGIN to the next event that "
		"matches END in the same thread. When a second period begins before the end, "
		"periods nest: an end ends the period that began last. An event that matches both "
		"ends one period and begins the next.\n"
		"\n"
		"--period 'NAME : BEGIN : END : by KEY, KEY'\n"
		"\n"
		"With keys, begin and end belong together if their keys have the same values: 'by "
		"irq, $cpu'. KEY is an expression; 'by tid=next_tid' has a different field for the "
		"end. $thread is the thread of the event, or the CPU if it is idle or its thread "
		"is unknown. With 'by 0', any begin and end belong together. A definition has up "
		"to four keys. Events without these fields do not count.\n"
		"\n"
		"--period 'NAME : BEGIN : END : CAPTURE, CAPTURE : CAPTURE'\n"
		"\n"
		"Captures, after the keys if there are any, are values that the report stores with "
		"each period: first those of the begin, then those of the end. CAPTURE is an "
		"expression, or NAME=EXPR to give it a name. A table adds up periods with the same "
		"values, so capture fields that group periods (a file's name, a device), not "
		"fields with a different value each time. The report cuts texts at 256 bytes.\n"
		"\n"
		"--period 'NAME(PARENT) : BEGIN : END'\n"
		"\n"
		"Such a period counts only while a period of PARENT is open, with the same keys if "
		"PARENT has keys. When the parent ends first, the report does not measure the "
		"period. The definition of PARENT comes first.\n"
		"\n"
		"--min and --max select by duration; --tid, --pid and --comm select by the thread "
		"of the begin. A period belongs to the range, or the interval, in which it ends.",
	.events =
		"The events in the definitions. The report warns about events and fields that no "
		"trace has, if a definition uses them as fields; it does not check names in texts "
		"($event == \"...\").",
	.reading =
		"Look at the counts first: 'No begin' and 'No end' should be small compared with "
		"Count, because only the borders of the trace cut periods. When they are large, "
		"the keys do not fit, or BEGIN and END match the wrong events: kymo print --filter "
		"shows the events. Then compare Mean with p99 and Max: for a long tail, look at "
		"the longest periods (-t top) and at their common captured values. Report sched "
		"and report syscalls, with --begin, --end and --tid, show what the thread did in "
		"such a period.",
	.example = "$ kymo report periods -n 3 -t periods -t captured -t within -t top \\\n"
		   "  --period 'fsync : $event == \"syscall_entry_fsync\" :\n"
		   "            $event == \"syscall_exit_fsync\" : by $ctx.tid : fd' \\\n"
		   "  --period 'off(fsync) : $event == \"sched_switch\" :\n"
		   "            $event == \"sched_switch\" : by prev_tid=next_tid' my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Periods\n"
		   "  Period  Count      Mean       Max       p50       p99  No begin  No end\n"
		   "  fsync       9  8.659 ms  17.41 ms  8.298 ms  17.41 ms         0       0\n"
		   "  off        41  1.435 ms  8.863 ms  325.6 us  8.863 ms         -       0\n"
		   "  columns that do not fit: Torn, Outlived, Forgotten, p99.9, Stdev, p90, Min, "
		   "Time\n"
		   "\n"
		   "Periods by captured values\n"
		   "  Period  Captured  Count      Time      Mean       Max       p50       p99\n"
		   "  fsync   fd=4          8  60.52 ms  7.565 ms  13.51 ms  5.802 ms  13.51 ms\n"
		   "  fsync   fd=6          1  17.41 ms  17.41 ms  17.41 ms  17.41 ms  17.41 ms\n"
		   "  columns that do not fit: p99.9, Stdev, p90, Min\n"
		   "\n"
		   "Periods within others\n"
		   "  Within  Period  Count  In each      Time    Share\n"
		   "  fsync   off        41    4.556  58.84 ms  75.50 %  ████████████████████▍\n"
		   "\n"
		   "The longest periods\n"
		   "                 End  Duration  Period  TID  PID  Name     Captured\n"
		   "  05:30:39.056711540  17.41 ms  fsync   327  323  disk-io  fd=6\n"
		   "  05:30:39.201407610  13.51 ms  fsync   327  323  disk-io  fd=4\n"
		   "  05:30:39.169485830  10.00 ms  fsync   327  323  disk-io  fd=4\n"
		   "  47 more rows: --limit 0 shows all\n"
		   "  columns that do not fit: CPU, Begin\n",
	.next = "report breakdown --of PERIOD|where the time of a period goes",
	.tables = tables,
	.wants_periods = true,
	.begin = report_periods_begin,
	.finish = report_periods_finish,
	.free = report_periods_free_run,
};
