/* SPDX-License-Identifier: MIT */
/*
 * The state model: calls of functions in programs, from the events of libkymo-cyg-profile, libkymo-mcount and their
 * peers. Each thread has a stack of the functions that it is in.
 *
 * A return takes the call with the same address off, and the calls above it: those were left without a return (longjmp(),
 * exceptions, or a process that ends its thread there). A return that fits no call is counted and changes nothing. After a
 * loss, nobody knows in which functions the threads are: their stacks end there.
 */
#include "analysis/state/model-internal.h"

#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_DEPTH_MAX (1u << 16) /* deeper calls are only counted */
#define FUNCTIONS_PATH_MAX  1024u      /* deeper ones are below the call at this depth */
#define FUNCTIONS_LOOK_MAX  4096u      /* calls that a return looks at */

struct function_frame {
	uint64_t address, site;
	int64_t begin_ns;
	uint64_t inner_ns; /* of the calls in it that are over */
	uint64_t number;
	uint32_t path;
};

/* The functions that a thread is in. */
struct ky_function_stack {
	struct ky_thread *thread;
	int64_t last_ns;   /* of its last event */
	uint32_t cpu_id;   /* of that */
	uint32_t n_deeper; /* calls beyond FUNCTIONS_DEPTH_MAX */
	KY_VEC(struct function_frame) frames;
};

struct ky_functions {
	KY_VEC(struct ky_function_path) paths; /* the first one is that of nothing */
	struct ky_map children;		       /* parent, process and address -> path */
	KY_VEC(struct ky_function_stack *) stacks;
	struct ky_function_counts counts;
	uint64_t n_calls;
};

static struct ky_functions *model_functions(struct ky_model *model)
{
	struct ky_functions *functions = model->functions;

	if (functions)
		return functions;
	functions = calloc(1, sizeof(*functions));
	if (!functions || ky_vec_push(&functions->paths, (struct ky_function_path){0}) < 0) {
		free(functions);
		return NULL;
	}
	ky_map_init(&functions->children);
	model->functions = functions;
	return functions;
}

void ky_functions_fini(struct ky_model *model)
{
	struct ky_functions *functions = model->functions;

	if (!functions)
		return;
	ky_vec_foreach(&functions->stacks, stack) {
		ky_vec_fini(&(*stack)->frames);
		free(*stack);
	}
	ky_vec_fini(&functions->stacks);
	ky_vec_fini(&functions->paths);
	ky_map_fini(&functions->children);
	free(functions);
	model->functions = NULL;
}

struct ky_function_counts ky_model_function_counts(const struct ky_model *model)
{
	return model->functions ? model->functions->counts : (struct ky_function_counts){0};
}

static struct ky_function_stack *functions_stack(struct ky_functions *functions,
						 struct ky_thread *thread)
{
	struct ky_function_stack *stack = thread->functions;

	if (stack)
		return stack;
	stack = calloc(1, sizeof(*stack));
	if (!stack || ky_vec_push(&functions->stacks, stack) < 0) {
		free(stack);
		return NULL;
	}
	stack->thread = thread;
	thread->functions = stack;
	return stack;
}

/* ---- paths --------------------------------------------------------------------------------- */

static uint64_t functions_key(uint32_t parent, const struct ky_thread *thread, uint64_t address)
{
	uint64_t process = (uint64_t)thread->host->index << 32 | (uint32_t)thread->pid;

	return ky_hash_u64(address ^ ky_hash_u64(process ^ ky_hash_u64(parent)));
}

/* A new path, of which listeners hear at once: the event can tell its function's name. */
static int functions_add_path(struct ky_feed *feed, const struct ky_event *event, uint64_t key,
			      const struct ky_function_path *path, uint32_t *number)
{
	struct ky_functions *functions = feed->model->functions;

	*number = (uint32_t)functions->paths.len;
	if (ky_vec_push(&functions->paths, *path) < 0 ||
	    ky_map_set(&functions->children, key, (void *)(uintptr_t)*number) < 0)
		return KYMO_E_MEMORY;
	return ky_model_notify(feed->model, function_path, *number, path, event);
}

/* The path of a call of @address below @parent. With too many of them it is that of nothing. */
static int functions_path(struct ky_feed *feed, const struct ky_event *event,
			  const struct ky_thread *thread, uint32_t parent, uint64_t address,
			  uint32_t *number)
{
	struct ky_functions *functions = feed->model->functions;
	const struct ky_function_path *above = &functions->paths.data[parent];
	struct ky_function_path path = {.address = address};
	uint64_t key;

	path.parent = above->depth >= FUNCTIONS_PATH_MAX ? above->parent : parent;
	path.depth = functions->paths.data[path.parent].depth + 1;
	key = functions_key(path.parent, thread, address);
	*number = (uint32_t)(uintptr_t)ky_map_get(&functions->children, key);
	if (*number || functions->paths.len >= KY_FUNCTION_PATHS_MAX)
		return 0;
	return functions_add_path(feed, event, key, &path, number);
}

/* ---- calls and returns --------------------------------------------------------------------- */

/* The innermost call is over. */
static int functions_pop(struct ky_model *model, struct ky_function_stack *stack, int64_t end_ns,
			 enum ky_function_end end)
{
	const struct function_frame *frame = &stack->frames.data[--stack->frames.len];
	struct ky_function_call call = {
		.thread = stack->thread,
		.cpu_id = stack->cpu_id,
		.path = frame->path,
		.depth = (uint32_t)stack->frames.len,
		.begin_ns = frame->begin_ns,
		.end_ns = end_ns > frame->begin_ns ? end_ns : frame->begin_ns,
		.number = frame->number,
		.end = end,
	};
	uint64_t ns = (uint64_t)(call.end_ns - call.begin_ns);

	call.self_ns = ns > frame->inner_ns ? ns - frame->inner_ns : 0;
	if (stack->frames.len)
		stack->frames.data[stack->frames.len - 1].inner_ns += ns;
	if (end != KY_FUNCTION_RETURNED)
		model->functions->counts.ends[end]++;
	if (!ky_model_tells(model, stack->thread, stack->cpu_id) ||
	    !ky_model_tells_long(model, (int64_t)ns))
		return 0;
	return ky_model_notify(model, function_call, &call);
}

static int functions_cut(struct ky_model *model, struct ky_function_stack *stack,
			 enum ky_function_end end)
{
	int status = 0;

	stack->n_deeper = 0;
	while (stack->frames.len && status >= 0)
		status = functions_pop(model, stack, stack->last_ns, end);
	return status < 0 ? status : 0;
}

/* What contexts do not tell, the trace of a single process tells. */
static void functions_describe(const struct ky_feed *feed, struct ky_thread *thread)
{
	const struct ky_trace_class *cls = feed->host->trace->cls;
	const struct ky_env *name = thread->comm[0] ? NULL : ky_env_find(cls, "procname");
	const struct ky_env *pid = thread->pid == KY_UNKNOWN ? ky_env_find(cls, "vpid") : NULL;

	if (name && name->is_text)
		ky_thread_name(thread, name->text, strlen(name->text));
	if (pid && !pid->is_text && pid->number > 0 && pid->number <= INT32_MAX)
		thread->pid = (int32_t)pid->number;
}

/* The thread of the event; NULL: no context tells which. *status is negative when out of memory. */
static struct ky_function_stack *functions_of(struct ky_feed *feed, const struct ky_event *event,
					      const struct ky_class_info *info, int *status)
{
	struct ky_functions *functions = model_functions(feed->model);
	struct ky_thread *thread = info->tid.cls ? ky_feed_thread(feed, event, info) : NULL;
	struct ky_function_stack *stack;

	*status = functions ? 0 : KYMO_E_MEMORY;
	if (!functions || !thread)
		return NULL;
	ky_stacks_rename(thread, event, info);
	functions_describe(feed, thread);
	stack = functions_stack(functions, thread);
	if (!stack) {
		*status = KYMO_E_MEMORY;
		return NULL;
	}
	stack->last_ns = event->ns;
	stack->cpu_id = event->cpu_id;
	return stack;
}

int ky_on_function_entry(struct ky_feed *feed, const struct ky_event *event,
			 const struct ky_class_info *info)
{
	int status;
	struct ky_function_stack *stack = functions_of(feed, event, info, &status);
	struct function_frame frame = {.begin_ns = event->ns};
	uint32_t parent;

	if (!stack)
		return status;
	frame.number = feed->model->functions->n_calls++;
	frame.address = ky_get_u64(event, &info->fields[KY_FUNCTION_ADDRESS], 0);
	frame.site = ky_get_u64(event, &info->fields[KY_FUNCTION_SITE], 0);
	if (stack->frames.len >= FUNCTIONS_DEPTH_MAX) {
		stack->n_deeper++;
		feed->model->functions->counts.deeper++;
		return 0;
	}
	parent = stack->frames.len ? stack->frames.data[stack->frames.len - 1].path : 0;
	status = functions_path(feed, event, stack->thread, parent, frame.address, &frame.path);
	if (status < 0)
		return status;
	return ky_vec_push(&stack->frames, frame);
}

/* How many calls are above the one that returns; SIZE_MAX: the return fits no call. */
static size_t functions_find(const struct ky_function_stack *stack, const struct ky_event *event,
			     const struct ky_class_info *info)
{
	uint64_t address = ky_get_u64(event, &info->fields[KY_FUNCTION_ADDRESS], 0);
	uint64_t site = ky_get_u64(event, &info->fields[KY_FUNCTION_SITE], 0);
	size_t len = stack->frames.len, n = len < FUNCTIONS_LOOK_MAX ? len : FUNCTIONS_LOOK_MAX;

	/* Returns without fields: in order. */
	if (!info->fields[KY_FUNCTION_ADDRESS].cls)
		return len ? 0 : SIZE_MAX;
	for (size_t above = 0; above < n; above++) {
		const struct function_frame *frame = &stack->frames.data[len - 1 - above];

		if (frame->address == address && frame->site == site)
			return above;
	}
	return SIZE_MAX;
}

int ky_on_function_exit(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	int status;
	struct ky_function_stack *stack = functions_of(feed, event, info, &status);
	size_t above;

	if (!stack)
		return status;
	if (stack->n_deeper) {
		stack->n_deeper--;
		return 0;
	}
	above = functions_find(stack, event, info);
	if (above == SIZE_MAX) {
		feed->model->functions->counts.stray++;
		return 0;
	}
	while (above-- > 0 && status >= 0)
		status = functions_pop(feed->model, stack, event->ns, KY_FUNCTION_LEFT);
	if (status >= 0)
		status = functions_pop(feed->model, stack, event->ns, KY_FUNCTION_RETURNED);
	return status < 0 ? status : 0;
}

/* ---- ends ---------------------------------------------------------------------------------- */

int ky_functions_lose(struct ky_model *model, const struct ky_host *host)
{
	int status = 0;

	if (!model->functions)
		return 0;
	ky_vec_foreach(&model->functions->stacks, stack)
		if (status >= 0 && (*stack)->thread->host == host)
			status = functions_cut(model, *stack, KY_FUNCTION_LOST);
	return status;
}

int ky_functions_end(struct ky_model *model)
{
	int status = 0;

	if (!model->functions)
		return 0;
	ky_vec_foreach(&model->functions->stacks, stack)
		if (status >= 0)
			status = functions_cut(model, *stack, KY_FUNCTION_OPEN);
	return status;
}

/* ---- classes ------------------------------------------------------------------------------- */

bool ky_functions_find(struct ky_class_info *info, const struct ky_event_class *cls)
{
	static const struct {
		const char *name;
		ky_event_handler handle;
	} rows[] = {
		{"lttng_ust_cyg_profile:func_entry", ky_on_function_entry},
		{"lttng_ust_cyg_profile:func_exit", ky_on_function_exit},
		{"lttng_ust_cyg_profile_fast:func_entry", ky_on_function_entry},
		{"lttng_ust_cyg_profile_fast:func_exit", ky_on_function_exit},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!cls->name || strcmp(cls->name, rows[i].name) != 0)
			continue;
		info->whole = rows[i].handle;
		info->subject = KY_ABOUT_FUNCTIONS;
		ky_handle_find(&info->fields[KY_FUNCTION_ADDRESS], cls, KY_SCOPE_PAYLOAD, "addr");
		ky_handle_find(&info->fields[KY_FUNCTION_SITE], cls, KY_SCOPE_PAYLOAD, "call_site");
		return true;
	}
	return false;
}
