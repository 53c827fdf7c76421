/* SPDX-License-Identifier: MIT */
/* Report calls: functions of programs, who calls them, and how long they take. */
#include "analysis/reports/report-list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/calls/calls.h"

/* ---- documentation --------------------------------------------------------------------- */

enum {
	FUNCTION_NAME,
	FUNCTION_OBJECT,
	FUNCTION_WHO,
	FUNCTION_CALLS,
	FUNCTION_TOTAL,
	FUNCTION_SELF,
	FUNCTION_SHARE,
	FUNCTION_MIN,
	FUNCTION_AVG,
	FUNCTION_P50,
	FUNCTION_P99,
	FUNCTION_MAX,
	FUNCTION_CUT
};

static const struct ky_column function_columns[] = {
	[FUNCTION_NAME] = {"function", "Function", KY_CELL_TEXT,
			   "The function. '[shop]' is a function of that file without a name."},
	[FUNCTION_OBJECT] = {"object", "File", KY_CELL_PATH,
			     "The program or library that it is in.", .spare = 5},
	[FUNCTION_WHO] = {"process", "Process", KY_CELL_PROCESS, "Who called it; with --group-by."},
	[FUNCTION_CALLS] = {"calls", "Calls", KY_CELL_COUNT, "How many calls ended."},
	[FUNCTION_TOTAL] = {"total", "Total", KY_CELL_DURATION,
			    "The time in the function and in all that it called. Calls of the "
			    "function inside of itself count once."},
	[FUNCTION_SELF] = {"self", "Self", KY_CELL_DURATION,
			   "The time in the function alone; functions that were not compiled for "
			   "tracing belong to their callers."},
	[FUNCTION_SHARE] = {"share", "Share", KY_CELL_RATIO,
			    "'Self' as a part of the time of all functions.", .bar = KY_BAR_WHOLE,
			    .spare = 4},
	[FUNCTION_MIN] = {"min", "Min", KY_CELL_DURATION, "The shortest call.", .spare = 3},
	[FUNCTION_AVG] = {"avg", "Mean", KY_CELL_DURATION, "The mean duration of a call."},
	[FUNCTION_P50] = {"p50", "p50", KY_CELL_DURATION,
			  "Half of the calls are not longer. Percentiles are exact up to 32 calls, "
			  "else within 0.8 %.",
			  .spare = 2},
	[FUNCTION_P99] = {"p99", "p99", KY_CELL_DURATION, "99 % of the calls are not longer.",
			  .spare = 1},
	[FUNCTION_MAX] = {"max", "Max", KY_CELL_DURATION, "The longest call."},
	[FUNCTION_CUT] =
		{"cut", "Cut", KY_CELL_COUNT,
		 "Calls whose end is not known: left by longjmp(), unfinished, or in times "
		 "with lost events. 'Calls', 'Total' and 'Self' have them; the other columns "
		 "do not.",
		 .spare = 6},
};

static const struct ky_table_def function_table = KY_TABLE_DEF(
	"functions", "Functions", "One row for each function, the largest 'Self' first.",
	function_columns, KY_TABLE_RANK);

enum { TREE_TOTAL, TREE_SELF, TREE_CALLS, TREE_SHARE, TREE_DEPTH, TREE_FUNCTION };

static const struct ky_column tree_columns[] = {
	[TREE_TOTAL] = {"total", "Total", KY_CELL_DURATION,
			"The time in these calls of the function, and in all that they called."},
	[TREE_SELF] = {"self", "Self", KY_CELL_DURATION, "The time in the function alone."},
	[TREE_CALLS] = {"calls", "Calls", KY_CELL_COUNT, "How often it was called from there."},
	[TREE_SHARE] = {"share", "Share", KY_CELL_RATIO,
			"'Total' as a part of the time of all functions.", .bar = KY_BAR_WHOLE},
	[TREE_DEPTH] = {"depth", "Depth", KY_CELL_NUMBER, "How many functions are around it.",
			.spare = 1},
	[TREE_FUNCTION] =
		{"function", "Function", KY_CELL_TEXT,
		 "With --group-by, the threads; then functions, each a space further right "
		 "than its caller."},
};

static const struct ky_table_def tree_table = KY_TABLE_DEF(
	"tree", "Call graph, from the outermost function inwards",
	"One row for each function below each caller, callers first, the most time first. Text "
	"leaves out what is less than a hundredth of everything, JSON, CSV and HTML what is less "
	"than a thousandth; --limit 0 shows it.",
	tree_columns, KY_TABLE_FIXED);

enum { EDGE_CALLER, EDGE_FUNCTION, EDGE_CALLS, EDGE_TOTAL, EDGE_SELF };

static const struct ky_column edge_columns[] = {
	[EDGE_CALLER] = {"caller", "Caller", KY_CELL_TEXT,
			 "The calling function; '-': the first function of a thread."},
	[EDGE_FUNCTION] = {"function", "Function", KY_CELL_TEXT, "The function that it called."},
	[EDGE_CALLS] = {"calls", "Calls", KY_CELL_COUNT, "How often."},
	[EDGE_TOTAL] =
		{"total", "Total", KY_CELL_DURATION,
		 "The time of these calls, with all that they called. The same call inside of "
		 "itself counts once."},
	[EDGE_SELF] = {"self", "Self", KY_CELL_DURATION, "The time of the function alone."},
};

static const struct ky_table_def edge_table =
	KY_TABLE_DEF("callers", "Callers and their callees",
		     "One row for each pair of a caller and a function, the largest 'Total' first.",
		     edge_columns, KY_TABLE_RANK);

enum { CALL_BEGIN, CALL_DURATION, CALL_SELF, CALL_PROCESS, CALL_DEPTH, CALL_CUT, CALL_FUNCTION };

static const struct ky_column call_columns[] = {
	[CALL_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When it began."},
	[CALL_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "How long it took."},
	[CALL_SELF] = {"self", "Self", KY_CELL_DURATION, "Without the calls in it.", .spare = 1},
	[CALL_PROCESS] = {"process", "Process", KY_CELL_PROCESS, "The thread that called."},
	[CALL_DEPTH] = {"depth", "Depth", KY_CELL_NUMBER, "How many functions are around it.",
			.spare = 2},
	[CALL_CUT] = {"cut", "Cut", KY_CELL_NUMBER,
		      "1: its end is not known, and the duration is a guess.", .spare = 3},
	[CALL_FUNCTION] = {"function", "Function", KY_CELL_TEXT, "The function."},
};

static const struct ky_table_def top_table =
	KY_DETAIL_TABLE_DEF("top", "The longest calls", "One row for each call, the longest first.",
			    call_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "All calls",
		     "One row for each call, in the order of their begins; in text, each function "
		     "stands a space further right than its caller.",
		     call_columns, KY_TABLE_LOG);

static const struct ky_table_def *const tables[] = {&function_table, &tree_table, &edge_table,
						    &top_table,	     &log_table,  NULL};

enum { TABLE_FUNCTIONS, TABLE_TREE, TABLE_EDGES, TABLE_TOP, TABLE_LOG };

/* ---- functions ----------------------------------------------------------------------------- */

static const char *report_calls_name(const struct ky_calls *calls, uint64_t frame)
{
	return calls->tree->frames.data[frame].function;
}

static void report_calls_fill_times(struct ky_cell *row, const struct ky_stats *stats)
{
	static const double percents[] = {50, 99};
	struct ky_moments moments = ky_stats_moments(stats);
	uint64_t values[2];

	if (!moments.count)
		return;
	ky_stats_percentiles(stats, percents, 2, values);
	ky_cell_u64(&row[FUNCTION_MIN], moments.min);
	ky_cell_f64(&row[FUNCTION_AVG], ky_moments_mean(&moments));
	ky_cell_u64(&row[FUNCTION_P50], values[0]);
	ky_cell_u64(&row[FUNCTION_P99], values[1]);
	ky_cell_u64(&row[FUNCTION_MAX], moments.max);
}

static void report_calls_fill_function(const void *run, struct ky_table *table,
				       const struct ky_entry *entry, enum ky_by by)
{
	const struct ky_calls *calls = run;
	const struct ky_stack_frame *frame = &calls->tree->frames.data[entry->what];
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[FUNCTION_NAME], frame->function);
	if (frame->object[0])
		ky_cell_text(table, &row[FUNCTION_OBJECT], frame->object);
	if (by != KY_BY_NOTHING)
		ky_cell_who(table, &row[FUNCTION_WHO], calls->model, entry->thread, by);
	ky_cell_u64(&row[FUNCTION_CALLS], entry->sums[KY_CALLS_ALL]);
	ky_cell_u64(&row[FUNCTION_TOTAL], entry->sums[KY_CALLS_TOTAL]);
	ky_cell_u64(&row[FUNCTION_SELF], entry->sums[KY_CALLS_SELF]);
	ky_cell_f64(&row[FUNCTION_SHARE],
		    ky_part(entry->sums[KY_CALLS_SELF],
			    calls->tree->nodes.data[KY_STACK_TREE_ROOT].total[0]));
	report_calls_fill_times(row, &entry->stats);
	ky_cell_u64(&row[FUNCTION_CUT], entry->sums[KY_CALLS_CUT]);
}

/* ---- the tree ------------------------------------------------------------------------------ */

#define PEOPLE_LEAST   0.01
#define MACHINES_LEAST 0.001
#define INDENT_MAX     200 /* deeper functions stand below each other */

static void report_calls_cell_function(struct ky_table *table, struct ky_cell *cell,
				       const char *function, uint32_t indent)
{
	struct ky_strbuf name = KY_STRBUF_INIT;

	for (uint32_t i = 0; i < indent && i < INDENT_MAX; i++)
		ky_strbuf_addc(&name, ' ');
	ky_strbuf_adds(&name, function);
	ky_cell_text(table, cell, ky_strbuf_text(&name));
	table->failed |= ky_strbuf_failed(&name);
	ky_strbuf_fini(&name);
}

static void report_calls_add_node(struct ky_table *table, const struct ky_stack_tree *tree,
				  const struct ky_stack_node *node, uint32_t depth, bool for_people)
{
	const struct ky_stack_frame *frame = ky_stack_node_frame(tree, node);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_u64(&row[TREE_TOTAL], node->total[0]);
	ky_cell_u64(&row[TREE_SELF], node->self[0]);
	if (frame->kind != KY_STACK_FRAME_GROUP)
		ky_cell_u64(&row[TREE_CALLS], node->count);
	ky_cell_f64(&row[TREE_SHARE],
		    ky_part(node->total[0], tree->nodes.data[KY_STACK_TREE_ROOT].total[0]));
	if (!for_people)
		ky_cell_u64(&row[TREE_DEPTH], depth);
	report_calls_cell_function(table, &row[TREE_FUNCTION], frame->function,
				   for_people ? depth : 0);
}

static void report_calls_fill_tree(struct ky_table *table, const struct ky_stack_tree *tree,
				   const struct ky_report_options *options)
{
	double least = options->limit == 0   ? 0
		       : options->for_people ? PEOPLE_LEAST
					     : MACHINES_LEAST;
	double all = (double)tree->nodes.data[KY_STACK_TREE_ROOT].total[0];
	uint32_t at = tree->nodes.data[KY_STACK_TREE_ROOT].first, depth = 0;

	while (at != KY_STACK_TREE_NONE && !table->failed) {
		const struct ky_stack_node *node = &tree->nodes.data[at];
		bool is_large = (double)node->total[0] >= least * all;

		if (is_large)
			report_calls_add_node(table, tree, node, depth, options->for_people);
		at = ky_stack_tree_next(tree, at, is_large, &depth);
	}
}

/* ---- callers ------------------------------------------------------------------------------- */

struct edge {
	uint32_t caller, frame; /* KY_STACK_TREE_NONE: none */
	uint64_t calls, total, self;
};

/* Is the same call around the one at @node? */
static bool report_calls_is_inner(const struct ky_stack_tree *tree,
				  const struct ky_stack_node *node)
{
	uint32_t caller = tree->nodes.data[node->parent].frame;
	uint32_t at = node->parent;

	while (at != KY_STACK_TREE_ROOT) {
		const struct ky_stack_node *above = &tree->nodes.data[at];

		if (above->frame == node->frame && above->parent != KY_STACK_TREE_ROOT &&
		    tree->nodes.data[above->parent].frame == caller)
			return true;
		at = above->parent;
	}
	return false;
}

static void report_calls_add_edge(struct ky_table *table, const struct ky_calls *calls,
				  const struct edge *edge)
{
	struct ky_cell *row = ky_table_row(table);

	if (edge->caller != KY_STACK_TREE_NONE)
		ky_cell_text(table, &row[EDGE_CALLER], report_calls_name(calls, edge->caller));
	ky_cell_text(table, &row[EDGE_FUNCTION], report_calls_name(calls, edge->frame));
	ky_cell_u64(&row[EDGE_CALLS], edge->calls);
	ky_cell_u64(&row[EDGE_TOTAL], edge->total);
	ky_cell_u64(&row[EDGE_SELF], edge->self);
}

static uint32_t report_calls_caller(const struct ky_stack_tree *tree,
				    const struct ky_stack_node *node)
{
	const struct ky_stack_node *above = &tree->nodes.data[node->parent];

	if (node->parent == KY_STACK_TREE_ROOT ||
	    ky_stack_node_frame(tree, above)->kind == KY_STACK_FRAME_GROUP)
		return KY_STACK_TREE_NONE;
	return above->frame;
}

static int report_calls_fill_edges(struct ky_table *table, const struct ky_calls *calls)
{
	const struct ky_stack_tree *tree = calls->tree;
	KY_VEC(struct edge) edges = KY_VEC_INIT;
	struct ky_map known;
	bool failed = false;

	ky_map_init(&known);
	for (size_t i = 1; i < tree->nodes.len && !failed; i++) {
		const struct ky_stack_node *node = &tree->nodes.data[i];
		struct edge edge = {.caller = report_calls_caller(tree, node),
				    .frame = node->frame};
		uint64_t key = (uint64_t)edge.caller << 32 | edge.frame;
		uintptr_t at = (uintptr_t)ky_map_get(&known, key);

		if (!node->count || ky_stack_node_frame(tree, node)->kind == KY_STACK_FRAME_GROUP)
			continue;
		if (!at) {
			at = edges.len + 1;
			failed = ky_vec_push(&edges, edge) < 0 ||
				 ky_map_set(&known, key, (void *)at) < 0;
		}
		if (failed)
			break;
		edges.data[at - 1].calls += node->count;
		edges.data[at - 1].self += node->self[0];
		if (!report_calls_is_inner(tree, node))
			edges.data[at - 1].total += node->total[0];
	}
	ky_vec_foreach(&edges, edge)
		report_calls_add_edge(table, calls, edge);
	ky_vec_fini(&edges);
	ky_map_fini(&known);
	ky_table_sort(table, EDGE_TOTAL, false);
	return failed ? KYMO_E_MEMORY : KYMO_OK;
}

/* ---- single calls -------------------------------------------------------------------------- */

struct call_rows {
	const struct ky_calls *calls;
	bool is_indented;
};

static void report_calls_fill_call(const void *data, struct ky_table *table, struct ky_cell *row,
				   const void *record)
{
	const struct call_rows *rows = data;
	const struct ky_chart_call *call = record;
	const struct ky_chart_thread *thread = &rows->calls->chart->threads.data[call->thread];

	ky_cell_i64(&row[CALL_BEGIN], call->begin_ns);
	ky_cell_u64(&row[CALL_DURATION], ky_ns_between(call->begin_ns, call->end_ns));
	ky_cell_u64(&row[CALL_SELF], call->self_ns);
	ky_cell_process(table, &row[CALL_PROCESS], thread->tid, thread->pid, thread->name, NULL);
	ky_cell_u64(&row[CALL_DEPTH], call->depth);
	if (call->is_cut)
		ky_cell_u64(&row[CALL_CUT], 1);
	report_calls_cell_function(table, &row[CALL_FUNCTION],
				   report_calls_name(rows->calls, call->frame),
				   rows->is_indented ? call->depth : 0);
}

static void report_calls_fill_log(struct ky_table *table, const struct ky_calls *calls,
				  bool for_people)
{
	const struct call_rows rows = {calls, for_people};
	size_t i;

	ky_call_chart_sort(calls->chart, false);
	for (i = 0; i < calls->chart->calls.len && !ky_table_is_full(table); i++)
		report_calls_fill_call(&rows, table, ky_table_row(table),
				       &calls->chart->calls.data[i]);
	table->n_omitted += calls->chart->calls.len - i;
}

/* ---- notes --------------------------------------------------------------------------------- */

static int report_calls_note_one(struct ky_report_result *result, uint64_t n, const char *what)
{
	return n ? ky_report_note(result, "%" PRIu64 " %s", n, what) : 0;
}

static int report_calls_note(const struct ky_calls *calls, struct ky_report_result *result)
{
	const struct ky_function_counts counts = ky_model_function_counts(calls->model);
	bool is_to_end = calls->options->focus.end_ns == INT64_MAX;
	int status = report_calls_note_one(
		result, counts.ends[KY_FUNCTION_LEFT],
		"calls were left without a return, as by longjmp(): their time ends with their callers'");

	if (!status)
		status = report_calls_note_one(
			result, is_to_end ? counts.ends[KY_FUNCTION_OPEN] : 0,
			"calls had not returned at the end; their time ends with the thread's last event");
	if (!status)
		status = report_calls_note_one(result, counts.ends[KY_FUNCTION_LOST],
					       "calls were cut where events were lost");
	if (!status)
		status = report_calls_note_one(
			result, counts.stray,
			"returns are of calls that the trace does not have; they do not count");
	if (!status)
		status = report_calls_note_one(
			result, counts.deeper,
			"calls are deeper than 65536 functions; they do not count");
	if (!status)
		status = report_calls_note_one(
			result, calls->chart->n_more,
			"calls are missing in the list of single calls, which has room for 4194304");
	if (!status && calls->err.message[0])
		status = ky_report_note(result, "the functions' names are not known: %s",
					calls->err.message);
	return status < 0 ? status : ky_report_note_losses(result);
}

/* ---- the report ---------------------------------------------------------------------------- */

extern const struct ky_report ky_report_calls;

static void *report_calls_begin(struct ky_model *model, const struct ky_report_options *options)
{
	return ky_calls_begin(model, options, ky_report_wants(options, &ky_report_calls, TABLE_TOP),
			      ky_report_keep(options, &ky_report_calls, TABLE_TOP),
			      options->chart ||
				      ky_report_wants(options, &ky_report_calls, TABLE_LOG));
}

static void report_calls_free(void *data)
{
	ky_calls_free(data);
}

/* What other formats are made of goes to the result. */
static void report_calls_give(struct ky_calls *calls, const struct ky_report_options *options,
			      struct ky_report_result *result)
{
	result->stacks = calls->tree;
	calls->tree = NULL;
	if (!options->chart)
		return;
	ky_call_chart_sort(calls->chart, true);
	result->chart = calls->chart;
	calls->chart = NULL;
}

static int report_calls_finish(void *data, const struct ky_report_options *options,
			       struct ky_report_result *result)
{
	struct ky_calls *calls = data;
	const struct call_rows rows = {calls, false};
	struct ky_table *functions = &result->tables[TABLE_FUNCTIONS];
	int status;

	ky_stack_tree_sum(calls->tree);
	status = ky_fill_groups(functions, &calls->functions, ky_report_by(options, KY_BY_NOTHING),
				true, report_calls_fill_function, calls);
	ky_table_sort_then(functions, FUNCTION_SELF, false, FUNCTION_CALLS, false);
	report_calls_fill_tree(&result->tables[TABLE_TREE], calls->tree, options);
	if (status >= 0)
		status = report_calls_fill_edges(&result->tables[TABLE_EDGES], calls);
	ky_fill_records(&result->tables[TABLE_TOP], &calls->top, report_calls_fill_call, &rows);
	if (ky_report_wants(options, &ky_report_calls, TABLE_LOG))
		report_calls_fill_log(&result->tables[TABLE_LOG], calls, options->for_people);
	if (status >= 0)
		status = report_calls_note(calls, result);
	report_calls_give(calls, options, result);
	return status;
}

const struct ky_report ky_report_calls = {
	.name = "calls",
	.summary = "functions of programs: calls, times, callers",
	.description =
		"Measures calls of functions in programs that were compiled for it, from the entry of a "
		"function to its return: how often each function was called, how long that took, and "
		"which function called which.\n"
		"\n"
		"gcc and clang compile programs so with -pg, -pg -mfentry, -fpatchable-function-entry=5 or "
		"-finstrument-functions; kymo record --calls then records the calls. docs/calls.md explains "
		"how.\n"
		"\n"
		"A call belongs to its end, as far as --begin and --end choose. Times are those of the "
		"clock: they contain the time in which the thread waited, and the time that the "
		"recording of the calls in it took.\n"
		"\n"
		"--html writes a flame graph of the calls. --to speedscope and --to chrome write a flame "
		"chart: each call in its place in time, for speedscope.app, and for chrome://tracing or "
		"ui.perfetto.dev. --to folded and --to pprof write the stacks with their times.",
	.events =
		"func_entry and func_exit of the providers lttng_ust_cyg_profile and "
		"lttng_ust_cyg_profile_fast, with context vtid, and vpid for the names of functions; "
		"procname for those of threads. Names of functions come from the files that the trace "
		"names; docs/symbols.md explains where Kymo looks for them.",
	.reading =
		"A function with a large 'Self' takes time itself: its code, and functions that are not "
		"recorded, such as those of libc. A large 'Total' with a small 'Self' comes from "
		"functions below it: table tree shows which. Recording costs each call some tens of "
		"nanoseconds, which counts as time of the caller; so functions with very many short "
		"calls look worse than they are.",
	.example = "$ kymo report calls -t functions my-trace\n"
		   "Trace  my-trace/ust\n"
		   "Range  2026-11-26 18:30:27.283518358 to 2026-11-26 18:30:27.805483575\n"
		   "       522.0 ms, 16400 events\n"
		   "\n"
		   "Functions\n"
		   "  Function  Calls     Total      Self     Mean      Max\n"
		   "  tree       8190  1.024 ms  1.021 ms  1.53 us  251 us\n"
		   "  main          1  1.203 ms  179.0 us  1.203 ms 1.203 ms\n",
	.next = "report calls --html|a flame graph, for a browser\n"
		"report flame|the same from samples, of all programs",
	.tables = tables,
	.needs = KY_CAN_FUNCTIONS,
	.needs_text = "function calls with context vtid",
	.needs_hint = "record them with: kymo record --calls '*' -- ./program",
	.whole = true,
	.begin = report_calls_begin,
	.finish = report_calls_finish,
	.free = report_calls_free,
};
