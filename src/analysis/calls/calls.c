/* SPDX-License-Identifier: MIT */
#include "analysis/calls/calls.h"

#include <stdlib.h>

#include "analysis/addresses/trace-symbols.h"
#include "analysis/calls/stack-groups.h"
#include "analysis/stacks/stack-names.h"

/* ---- names --------------------------------------------------------------------------------- */

static int calls_open_symbols(struct ky_calls *calls)
{
	const struct ky_trace_symbols_options options = {
		.dirs = calls->options->symbol_dirs,
		.n_dirs = calls->options->n_symbol_dirs,
		.is_over = calls->options->is_over,
		.over_data = calls->options->over_data,
	};

	if (calls->has_symbols)
		return KYMO_OK;
	calls->has_symbols = true;
	return ky_trace_symbols_open(ky_model_traces(calls->model), &options, &calls->symbols,
				     &calls->err) == KYMO_E_MEMORY
		       ? KYMO_E_MEMORY
		       : KYMO_OK;
}

static uint32_t calls_frame(struct ky_calls *calls, const struct ky_event *event, uint64_t address)
{
	const struct ky_symbols_frame *frames = NULL;
	size_t n = calls->symbols ? ky_trace_symbols_resolve(calls->symbols, event, address, false,
							     &frames)
				  : 0;

	/* The last one is the function; others are inlined at its begin. */
	return ky_stack_tree_symbol(calls->tree, n ? &frames[n - 1] : NULL, false);
}

static bool calls_is_in(const struct ky_calls *calls, uint32_t path, uint32_t frame)
{
	for (; path; path = calls->paths.data[path].parent)
		if (calls->paths.data[path].frame == frame)
			return true;
	return false;
}

static int calls_on_path(void *data, uint32_t number, const struct ky_function_path *path,
			 const struct ky_event *event)
{
	struct ky_calls *calls = data;
	struct ky_calls_path own = {.parent = path->parent};

	if (calls_open_symbols(calls) < 0)
		return KYMO_E_MEMORY;
	own.frame = calls_frame(calls, event, path->address);
	if (own.frame == KY_STACK_TREE_NONE)
		return KYMO_E_MEMORY;
	own.is_recursive = calls_is_in(calls, path->parent, own.frame);
	while (calls->paths.len <= number)
		if (ky_vec_push(&calls->paths, (struct ky_calls_path){0}) < 0)
			return KYMO_E_MEMORY;
	calls->paths.data[number] = own;
	return KYMO_OK;
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* Without --group-by, the functions of all threads are one tree. */
static uint32_t calls_group(struct ky_calls *calls, const struct ky_thread *thread)
{
	enum ky_by by = ky_report_by(calls->options, KY_BY_NOTHING);
	uint32_t frame;

	if (by == KY_BY_NOTHING)
		return KY_STACK_TREE_ROOT;
	frame = ky_stack_group_frame(calls->tree, thread, by);
	return frame == KY_STACK_TREE_NONE
		       ? frame
		       : ky_stack_tree_child(calls->tree, KY_STACK_TREE_ROOT, frame);
}

/* Too many different ways to functions: they have a frame of their own. */
static uint32_t calls_others(struct ky_calls *calls, uint32_t group)
{
	uint32_t frame = ky_stack_tree_frame(calls->tree, KY_STACK_FRAME_STATE, "other calls", "");

	return frame == KY_STACK_TREE_NONE ? frame : ky_stack_tree_child(calls->tree, group, frame);
}

static uint64_t calls_node_key(uint32_t group, uint32_t path)
{
	return (uint64_t)group << 32 | path;
}

/* The nodes from the nearest known one to that of @path are made, callers first. */
static uint32_t calls_make_node(struct ky_calls *calls, uint32_t group, uint32_t path)
{
	KY_VEC(uint32_t) way = KY_VEC_INIT;
	uint32_t node = group;
	void *known = NULL;
	bool failed = false;

	while (path && !failed &&
	       !(known = ky_map_get(&calls->nodes, calls_node_key(group, path)))) {
		failed = ky_vec_push(&way, path) < 0;
		path = calls->paths.data[path].parent;
	}
	if (path && known)
		node = (uint32_t)(uintptr_t)known - 1;
	for (size_t i = way.len; i-- > 0 && !failed;) {
		uint64_t key = calls_node_key(group, way.data[i]);

		node = ky_stack_tree_child(calls->tree, node, calls->paths.data[way.data[i]].frame);
		failed = node == KY_STACK_TREE_NONE ||
			 ky_map_set(&calls->nodes, key, (void *)(uintptr_t)(node + 1ull)) < 0;
	}
	ky_vec_fini(&way);
	return failed ? KY_STACK_TREE_NONE : node;
}

static uint32_t calls_node(struct ky_calls *calls, const struct ky_function_call *call)
{
	uint32_t group = calls_group(calls, call->thread);
	void *known;

	if (group == KY_STACK_TREE_NONE)
		return group;
	if (!call->path)
		return calls_others(calls, group);
	known = ky_map_get(&calls->nodes, calls_node_key(group, call->path));
	return known ? (uint32_t)(uintptr_t)known - 1 : calls_make_node(calls, group, call->path);
}

/* ---- single calls -------------------------------------------------------------------------- */

/* The number of the call's thread among those that have calls. */
static int calls_thread(struct ky_calls *calls, const struct ky_thread *thread, uint32_t *number)
{
	uintptr_t known = (uintptr_t)ky_map_get(&calls->threads, thread->index);
	struct ky_chart_thread own = {.tid = thread->tid, .pid = thread->pid};

	if (!known) {
		own.name = ky_arena_strdup(&calls->tree->arena, thread->comm);
		known = calls->chart->threads.len + 1;
		if (!own.name || ky_vec_push(&calls->chart->threads, own) < 0 ||
		    ky_map_set(&calls->threads, thread->index, (void *)known) < 0)
			return KYMO_E_MEMORY;
	}
	*number = (uint32_t)known - 1;
	return KYMO_OK;
}

static int calls_add_single(struct ky_calls *calls, const struct ky_function_call *call,
			    uint32_t frame)
{
	struct ky_chart_call one = {
		.begin_ns = call->begin_ns,
		.end_ns = call->end_ns,
		.self_ns = call->self_ns,
		.number = call->number,
		.frame = frame,
		.depth = call->depth,
		.is_cut = call->end != KY_FUNCTION_RETURNED,
	};
	int status = calls_thread(calls, call->thread, &one.thread);

	if (!status && calls->wants_top)
		status = ky_records_add(&calls->top, ky_ns_between(one.begin_ns, one.end_ns), &one);
	if (!status && calls->wants_chart)
		status = ky_call_chart_add(calls->chart, &one);
	return status;
}

/* ---- hooks --------------------------------------------------------------------------------- */

static bool calls_has_cpu(const struct ky_focus *focus, uint32_t cpu)
{
	for (size_t i = 0; i < focus->cpus.len; i++)
		if (focus->cpus.data[i] == cpu)
			return true;
	return !focus->cpus.len;
}

/* A call belongs to its end. */
static bool calls_chooses(const struct ky_calls *calls, const struct ky_function_call *call)
{
	const struct ky_focus *focus = &calls->options->focus;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns);

	/* It goes on behind the range, whose end is the end of the pass. */
	if (call->end == KY_FUNCTION_OPEN && focus->end_ns != INT64_MAX)
		return false;
	return ky_focus_has_thread(focus, call->thread) && calls_has_cpu(focus, call->cpu_id) &&
	       call->end_ns >= focus->begin_ns && call->end_ns <= focus->end_ns &&
	       ns >= focus->min_ns && ns <= focus->max_ns;
}

static int calls_count(struct ky_calls *calls, const struct ky_function_call *call, uint32_t frame)
{
	struct ky_entry *entry = ky_aggregation_get(&calls->functions, call->thread, frame);
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[KY_CALLS_ALL]++;
	entry->sums[KY_CALLS_SELF] += call->self_ns;
	if (!call->path || !calls->paths.data[call->path].is_recursive)
		entry->sums[KY_CALLS_TOTAL] += ns;
	if (call->end == KY_FUNCTION_RETURNED)
		return ky_stats_add(&entry->stats, ns);
	entry->sums[KY_CALLS_CUT]++;
	return KYMO_OK;
}

static int calls_on_call(void *data, const struct ky_function_call *call)
{
	struct ky_calls *calls = data;
	uint32_t node, frame;
	int status;

	if (!calls_chooses(calls, call))
		return 0;
	node = calls_node(calls, call);
	if (node == KY_STACK_TREE_NONE)
		return KYMO_E_MEMORY;
	/* The frame of the path, not of the node: a full tree has nodes that stand for several. */
	frame = call->path ? calls->paths.data[call->path].frame
			   : calls->tree->nodes.data[node].frame;
	calls->n_calls++;
	ky_stack_tree_add(calls->tree, node, call->self_ns, 0);
	status = calls_count(calls, call, frame);
	if (status < 0 || !(calls->wants_top || calls->wants_chart))
		return status;
	return calls_add_single(calls, call, frame);
}

/* ---- the run ------------------------------------------------------------------------------- */

static int calls_init(struct ky_calls *calls)
{
	const struct ky_listener listener = {
		.data = calls,
		.function_path = calls_on_path,
		.function_call = calls_on_call,
	};

	ky_map_init(&calls->nodes);
	ky_map_init(&calls->threads);
	calls->chart = calloc(1, sizeof(*calls->chart));
	calls->tree = malloc(sizeof(*calls->tree));
	if (calls->tree && ky_stack_tree_init(calls->tree) < 0) {
		free(calls->tree);
		calls->tree = NULL;
	}
	if (!calls->chart || !calls->tree)
		return KYMO_E_MEMORY;
	calls->tree->is_time = true;
	calls->tree->what = "calls";
	return ky_model_listen(calls->model, &listener);
}

struct ky_calls *ky_calls_begin(struct ky_model *model, const struct ky_report_options *options,
				bool wants_top, uint64_t top, bool wants_chart)
{
	struct ky_calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	calls->model = model;
	calls->options = options;
	calls->wants_top = wants_top;
	calls->wants_chart = wants_chart;
	ky_records_init(&calls->top, sizeof(struct ky_chart_call), top, true);
	if (calls_init(calls) < 0) {
		ky_calls_free(calls);
		return NULL;
	}
	return calls;
}

void ky_calls_free(struct ky_calls *calls)
{
	if (!calls)
		return;
	if (calls->tree)
		ky_stack_tree_fini(calls->tree);
	free(calls->tree);
	if (calls->chart)
		ky_call_chart_fini(calls->chart);
	free(calls->chart);
	ky_trace_symbols_close(calls->symbols);
	ky_aggregation_fini(&calls->functions);
	ky_records_fini(&calls->top);
	ky_map_fini(&calls->nodes);
	ky_map_fini(&calls->threads);
	ky_vec_fini(&calls->paths);
	free(calls);
}
