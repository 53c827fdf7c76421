/* SPDX-License-Identifier: MIT */
/* Report flame: where the stacks of samples and events come from, as a tree. */
#include "analysis/reports/report-list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/flame.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { TREE_SHARE, TREE_SELF, TREE_CHANGE, TREE_TIME, TREE_COUNT, TREE_DEPTH, TREE_FUNCTION };

static const struct ky_column tree_columns[] = {
	[TREE_SHARE] = {"share", "Total", KY_CELL_RATIO,
			"The function with all that it called, as a part of everything.",
			.bar = KY_BAR_WHOLE},
	[TREE_SELF] = {"self", "Self", KY_CELL_RATIO, "The function alone.", .spare = 3},
	[TREE_CHANGE] = {"change", "Change", KY_CELL_RATIO,
			 "Of two traces: how much larger the part is in the second one. The other "
			 "columns are of both."},
	[TREE_TIME] = {"time", "Time", KY_CELL_DURATION,
		       "The time of the function with all that it called. A sample of a clock "
		       "stands for the time since the one before.",
		       .spare = 1},
	[TREE_COUNT] = {"count", "Count", KY_CELL_COUNT,
			"The same where stacks are of events that are counted; bytes with --of "
			"allocations.",
			.spare = 1},
	[TREE_DEPTH] =
		{"depth", "Depth", KY_CELL_NUMBER,
		 "How many functions are around it, the thread's row included; 0 for threads.",
		 .spare = 4},
	[TREE_FUNCTION] =
		{"function", "Function", KY_CELL_TEXT,
		 "The name of the threads at the left; then functions, each a space "
		 "further right than its caller. '[libc.so.6]' is a function of that file "
		 "without a name; '_[k]' follows functions of the kernel."},
};

static const struct ky_table_def tree_table = KY_TABLE_DEF(
	"tree", "Stacks, from the outermost function inwards",
	"One row for each function below each caller, callers first, the largest first. "
	"Text leaves out what is less than a hundredth of everything, JSON, CSV and HTML what "
	"is less than a thousandth; --limit 0 shows it.",
	tree_columns, KY_TABLE_FIXED);

enum {
	FUNCTION_NAME,
	FUNCTION_OBJECT,
	FUNCTION_SHARE,
	FUNCTION_SELF,
	FUNCTION_CHANGE,
	FUNCTION_TIME,
	FUNCTION_COUNT
};

static const struct ky_column function_columns[] = {
	[FUNCTION_NAME] = {"function", "Function", KY_CELL_TEXT, "The function."},
	[FUNCTION_OBJECT] = {"object", "File", KY_CELL_PATH,
			     "The program, library or module that it is in.", .spare = 1},
	[FUNCTION_SHARE] = {"share", "Total", KY_CELL_RATIO,
			    "The part of stacks that it is in, however often."},
	[FUNCTION_SELF] = {"self", "Self", KY_CELL_RATIO,
			   "The part of stacks whose innermost function it is.",
			   .bar = KY_BAR_WHOLE},
	[FUNCTION_CHANGE] = {"change", "Change", KY_CELL_RATIO,
			     "Of two traces: how much larger 'Self' is in the second one."},
	[FUNCTION_TIME] = {"self_time", "Self time", KY_CELL_DURATION,
			   "The time of the function alone.", .spare = 2},
	[FUNCTION_COUNT] = {"self_count", "Self count", KY_CELL_COUNT,
			    "The same where stacks are of events that are counted.", .spare = 2},
};

static const struct ky_table_def function_table = KY_TABLE_DEF(
	"functions", "Functions", "One row for each function, the largest 'Self' first.",
	function_columns, KY_TABLE_RANK);

static const struct ky_table_def *const tables[] = {&tree_table, &function_table, NULL};

enum { TABLE_TREE, TABLE_FUNCTIONS };

/* ---- the tree ------------------------------------------------------------------------------ */

#define PEOPLE_LEAST   0.01
#define MACHINES_LEAST 0.001

static uint64_t report_flame_both(const uint64_t weights[2])
{
	return weights[0] + weights[1];
}

/* As a part of everything; of two traces the mean of both parts. */
static double report_flame_share(const struct ky_stack_tree *tree, const uint64_t weights[2])
{
	const uint64_t *all = tree->nodes.data[KY_STACK_TREE_ROOT].total;

	if (!tree->has_two)
		return ky_part(report_flame_both(weights), report_flame_both(all));
	return (ky_part(weights[0], all[0]) + ky_part(weights[1], all[1])) / 2;
}

static double report_flame_change(const struct ky_stack_tree *tree, const uint64_t weights[2])
{
	const uint64_t *all = tree->nodes.data[KY_STACK_TREE_ROOT].total;

	return ky_part(weights[1], all[1]) - ky_part(weights[0], all[0]);
}

static void report_flame_name(struct ky_strbuf *out, const struct ky_stack_frame *frame,
			      uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		ky_strbuf_addc(out, ' ');
	ky_strbuf_adds(out, frame->function);
	if (frame->kind == KY_STACK_FRAME_KERNEL)
		ky_strbuf_adds(out, "_[k]");
}

static void report_flame_add_node(struct ky_table *table, const struct ky_stack_tree *tree,
				  const struct ky_stack_node *node, uint32_t depth, bool for_people)
{
	struct ky_cell *row = ky_table_row(table);
	struct ky_strbuf name = KY_STRBUF_INIT;

	report_flame_name(&name, ky_stack_node_frame(tree, node), for_people ? depth : 0);
	ky_cell_f64(&row[TREE_SHARE], report_flame_share(tree, node->total));
	ky_cell_f64(&row[TREE_SELF], report_flame_share(tree, node->self));
	if (tree->has_two)
		ky_cell_f64(&row[TREE_CHANGE], report_flame_change(tree, node->total));
	ky_cell_u64(&row[tree->is_time ? TREE_TIME : TREE_COUNT], report_flame_both(node->total));
	if (!for_people)
		ky_cell_u64(&row[TREE_DEPTH], depth);
	ky_cell_text(table, &row[TREE_FUNCTION], ky_strbuf_text(&name));
	if (ky_strbuf_failed(&name))
		table->failed = true;
	ky_strbuf_fini(&name);
}

static void report_flame_fill_tree(struct ky_table *table, const struct ky_stack_tree *tree,
				   const struct ky_report_options *options)
{
	double least = options->limit == 0   ? 0
		       : options->for_people ? PEOPLE_LEAST
					     : MACHINES_LEAST;
	uint32_t at = tree->nodes.data[KY_STACK_TREE_ROOT].first, depth = 0;

	while (at != KY_STACK_TREE_NONE && !table->failed) {
		const struct ky_stack_node *node = &tree->nodes.data[at];
		bool is_large = report_flame_share(tree, node->total) >= least;

		if (is_large)
			report_flame_add_node(table, tree, node, depth, options->for_people);
		at = ky_stack_tree_next(tree, at, is_large, &depth);
	}
}

/* ---- functions ----------------------------------------------------------------------------- */

struct function_sum {
	uint64_t self[2], total[2];
	uint32_t on_path; /* how often it is around the node at hand */
};

/* The totals of recursive functions count once. */
static void report_flame_sum(const struct ky_stack_tree *tree, struct function_sum *sums)
{
	uint32_t at = KY_STACK_TREE_ROOT;
	bool down = true;

	while (at != KY_STACK_TREE_NONE) {
		const struct ky_stack_node *node = &tree->nodes.data[at];
		struct function_sum *sum = &sums[node->frame];

		if (down) {
			for (int side = 0; side < 2; side++) {
				sum->self[side] += node->self[side];
				sum->total[side] += sum->on_path ? 0 : node->total[side];
			}
			sum->on_path++;
		}
		if (down && node->first != KY_STACK_TREE_NONE) {
			at = node->first;
			continue;
		}
		sum->on_path--;
		down = node->next != KY_STACK_TREE_NONE;
		at = down ? node->next : node->parent;
	}
}

static void report_flame_add_function(struct ky_table *table, const struct ky_stack_tree *tree,
				      const struct ky_stack_frame *frame,
				      const struct function_sum *sum)
{
	struct ky_cell *row = ky_table_row(table);
	struct ky_strbuf name = KY_STRBUF_INIT;

	report_flame_name(&name, frame, 0);
	ky_cell_text(table, &row[FUNCTION_NAME], ky_strbuf_text(&name));
	if (frame->object[0])
		ky_cell_text(table, &row[FUNCTION_OBJECT], frame->object);
	ky_cell_f64(&row[FUNCTION_SHARE], report_flame_share(tree, sum->total));
	ky_cell_f64(&row[FUNCTION_SELF], report_flame_share(tree, sum->self));
	if (tree->has_two)
		ky_cell_f64(&row[FUNCTION_CHANGE], report_flame_change(tree, sum->self));
	ky_cell_u64(&row[tree->is_time ? FUNCTION_TIME : FUNCTION_COUNT],
		    report_flame_both(sum->self));
	ky_strbuf_fini(&name);
}

static int report_flame_fill_functions(struct ky_table *table, const struct ky_stack_tree *tree)
{
	struct function_sum *sums = calloc(tree->frames.len, sizeof(*sums));

	if (!sums)
		return KYMO_E_MEMORY;
	report_flame_sum(tree, sums);
	for (size_t i = 0; i < tree->frames.len; i++) {
		const struct ky_stack_frame *frame = &tree->frames.data[i];

		if (frame->kind != KY_STACK_FRAME_GROUP && report_flame_both(sums[i].total))
			report_flame_add_function(table, tree, frame, &sums[i]);
	}
	free(sums);
	ky_table_sort_then(table, FUNCTION_SELF, false, FUNCTION_SHARE, false);
	return KYMO_OK;
}

/* ---- the report ---------------------------------------------------------------------------- */

static void *report_flame_begin(struct ky_model *model, const struct ky_report_options *options)
{
	return ky_flame_begin(model, options);
}

static void report_flame_free(void *data)
{
	ky_flame_free(data);
}

static int report_flame_note_none(const struct ky_flame *flame, struct ky_report_result *result,
				  const struct ky_report_options *options)
{
	static const char *const records[] = {
		[KY_FLAME_OF_CPU] = "--sample 99",
		[KY_FLAME_OF_OFF_CPU] = "--sample context-switches -k sched_switch,sched_waking",
		[KY_FLAME_OF_WAKEUP] = "--sample sched:sched_waking",
		[KY_FLAME_OF_FAULTS] = "--sample page-faults",
		[KY_FLAME_OF_MEMORY] = ("-u 'lttng_ust_libc:*' -c callstack-user -- env "
					"LD_PRELOAD=libkymo-libc.so PROGRAM"),
		[KY_FLAME_OF_EVENTS] = "--sample EVENT",
	};

	if (ky_flame_n_stacks(flame))
		return 0;
	if (ky_flame_other(flame))
		return ky_report_note(
			result,
			"no such stacks, only of other events, such as %s, which --of '%s' chooses",
			ky_flame_other(flame), ky_flame_other(flame));
	return ky_report_note(result, "no such stacks; %s with: kymo record %s",
			      ky_flame_of(options->of) == KY_FLAME_OF_OFF_CPU ? "record switches"
									      : "record them",
			      records[ky_flame_of(options->of)]);
}

/* Of two traces, one has nothing: the change would be the whole. The tree is then that of one trace. */
static int report_flame_join(struct ky_stack_tree *tree, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	const uint64_t *all = tree->nodes.data[KY_STACK_TREE_ROOT].total;
	bool has_first = all[0], has_second = all[1];

	if (!tree->has_two || has_first == has_second)
		return 0;
	ky_vec_foreach(&tree->nodes, node) {
		node->self[0] += node->self[1];
		node->total[0] += node->total[1];
		node->self[1] = node->total[1] = 0;
	}
	tree->has_two = false;
	return ky_report_note(
		result,
		"the %s trace, %s, has no such stacks, or is the other one: nothing is compared",
		has_first ? "second" : "first", options->sides[has_first]);
}

static int report_flame_finish(void *data, const struct ky_report_options *options,
			       struct ky_report_result *result)
{
	struct ky_flame *flame = data;
	const char *problem = ky_flame_problem(flame);
	int status = report_flame_note_none(flame, result, options);

	if (!status && problem)
		status = ky_report_note(result, "the functions' names are not known: %s", problem);
	if (status < 0)
		return status;
	result->stacks = ky_flame_take(flame);
	status = report_flame_join(result->stacks, options, result);
	if (status < 0)
		return status;
	report_flame_fill_tree(&result->tables[TABLE_TREE], result->stacks, options);
	status = report_flame_fill_functions(&result->tables[TABLE_FUNCTIONS], result->stacks);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_flame = {
	.name = "flame",
	.summary = "call stacks of samples and events, as a tree",
	.description =
		"Adds up call stacks to a tree: which function called which, and how much of "
		"everything that took. Without --of these are the samples of kymo record --sample "
		"99: what the CPUs ran.\n"
		"\n"
		"--of off-cpu: the time that threads were off the CPU, from where they left it; "
		"'waits for a CPU' is the part of that in which they could have run. --of wakeup: who "
		"wakes others, from where. --of page-faults: where pages are missing. --of "
		"allocations: from where libkymo-libc saw memory allocated, by bytes. --of with the "
		"name of an event or of a counter of samples, with wildcards: any event that has call "
		"stacks, each as often as it happened.\n"
		"\n"
		"--html writes a flame graph: a click zooms in, and a search marks functions. --to "
		"folded, speedscope and pprof write the stacks for other programs. With two traces, "
		"the tree is of both, and 'Change' tells what the second one has more of.",
	.events = "sample, of kymo record --sample; or any event with the context fields "
		  "callstack_kernel and callstack_user, of the kernel and of programs; with --of "
		  "off-cpu also sched_switch and sched_waking. Names of functions come from the "
		  "files that the trace names; docs/symbols.md explains where Kymo looks for them. "
		  "The texts of perf script and ftrace have the names themselves.",
	.reading =
		"'Total' is a function with all that it called, 'Self' is the function alone. Follow "
		"the largest 'Total' down to where it splits: that is where time goes. Table "
		"functions has each function once, whoever called it. Stacks that end early, or "
		"whose outer functions are missing, are of code without frame pointers.",
	"$ kymo report flame -t tree my-trace\n"
	"Trace  my-trace/kernel\n"
	"Range  2026-11-26 18:30:27.283518358 to 2026-11-26 18:30:27.805483575\n"
	"       522.0 ms, 110 events\n"
	"\n"
	"Stacks, from the outermost function inwards\n"
	"     Total     Self      Time  Function\n"
	"  100.00 %   0.00 %  522.6 ms  shop\n"
	"   66.35 %   0.00 %  346.7 ms   __libc_start_call_main\n"
	"   66.35 %   0.00 %  346.7 ms    main\n"
	"   51.92 %  50.96 %  271.4 ms     checksum\n"
	"   12.50 %   1.92 %  65.33 ms     __GI___libc_write\n"
	"   10.58 %   0.00 %  55.28 ms      entry_SYSCALL_64_after_hwframe_[k]\n"
	"   10.58 %   1.92 %  55.28 ms       do_syscall_64_[k]\n"
	"    3.85 %   0.96 %  20.10 ms        ksys_write_[k]\n",
	.next = "report flame --html|a flame graph, for a browser\n"
		"report cpu|CPU time by thread",
	.tables = tables,
	.needs = KY_CAN_STACKS,
	.needs_text = "events with call stacks",
	.needs_hint = "record them with: kymo record --sample 99",
	.ignores = KY_IGNORES_DURATION,
	.whole = true,
	.own_of = true,
	.has_cpu_groups = true,
	.begin = report_flame_begin,
	.finish = report_flame_finish,
	.free = report_flame_free,
};
