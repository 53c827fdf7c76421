/* SPDX-License-Identifier: MIT */
#include "analysis/calls/flame.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/addresses/trace-symbols.h"
#include "analysis/calls/stack-groups.h"
#include "analysis/stacks/stack-names.h"
#include "base/error.h"

/* Stacks that were looked up already; beyond, all are looked up again. */
#define KNOWN_MAX (1u << 20)

/* Where a thread left the CPU last. */
struct flame_left {
	uint32_t node; /* KY_STACK_TREE_NONE: not known */
};

struct ky_flame {
	struct ky_model *model;
	const struct ky_report_options *options;
	enum ky_flame_of of;
	struct ky_stack_tree *tree;
	struct ky_trace_symbols *symbols;
	bool has_symbols;		/* they were asked for */
	struct kymo_error err;		/* why there are none */
	struct ky_map known;		/* hash of a stack -> its node + 1 */
	KY_VEC(struct flame_left) left; /* by thread->index */
	struct ky_strbuf name;		/* of a function, for its NUL */
	const char *source;		/* the first that was seen of those that were chosen */
	const char *other;		/* the same of those that were not */
	bool has_many_sources;
	bool is_counted; /* a sample does not tell its weight */
	uint64_t n_stacks, n_others;
};

enum ky_flame_of ky_flame_of(const char *text)
{
	static const char *const names[] = {
		[KY_FLAME_OF_CPU] = "cpu",
		[KY_FLAME_OF_OFF_CPU] = "off-cpu",
		[KY_FLAME_OF_WAKEUP] = "wakeup",
		[KY_FLAME_OF_FAULTS] = "page-faults",
		[KY_FLAME_OF_MEMORY] = "allocations",
	};

	for (size_t i = 0; text && i < KY_FLAME_OF_EVENTS; i++) {
		if (strcmp(text, names[i]) == 0)
			return (enum ky_flame_of)i;
	}
	return text ? KY_FLAME_OF_EVENTS : KY_FLAME_OF_CPU;
}

/* ---- which stacks -------------------------------------------------------------------------- */

/* "cycles", "cycles:P", "cpu_core/cycles/u": perf's names have modifiers, and may have a PMU. */
static bool flame_is_source(const char *source, const char *name)
{
	const char *slash = strchr(source, '/');
	size_t len = strlen(name);

	if (slash)
		source = slash + 1;
	return strncmp(source, name, len) == 0 &&
	       (!source[len] || source[len] == ':' || source[len] == '/');
}

static bool flame_is_clock(const char *source)
{
	return flame_is_source(source, "cpu-clock") || flame_is_source(source, "task-clock");
}

static bool flame_is_cycles(const char *source)
{
	return flame_is_source(source, "cycles") || flame_is_source(source, "cpu-cycles");
}

/* "sched_switch" of the kernel's event, "sched:sched_switch" of a sample at it. */
static bool flame_is_event(const struct ky_stack_seen *seen, const char *name)
{
	const char *is = seen->source ? seen->source : seen->event->cls->name;
	const char *colon = strrchr(is, ':');

	return strcmp(colon ? colon + 1 : is, name) == 0;
}

static bool flame_matches(const struct ky_stack_seen *seen, const char *pattern)
{
	if (seen->source)
		return fnmatch(pattern, seen->source, 0) == 0;
	return fnmatch(pattern, seen->event->cls->name, 0) == 0;
}

static bool flame_is_allocation(const struct ky_stack_seen *seen)
{
	static const char provider[] = "lttng_ust_libc:";
	const char *name = seen->event->cls->name;

	return !seen->source && strncmp(name, provider, sizeof(provider) - 1) == 0 &&
	       (strstr(name, "alloc") || strstr(name, "memalign"));
}

static uint64_t flame_field(const struct ky_stack_seen *seen, const char *name, uint64_t other)
{
	struct ky_handle handle;
	uint64_t value;

	return ky_handle_find(&handle, seen->event->cls, KY_SCOPE_PAYLOAD, name) &&
			       ky_get_number(seen->event, &handle, &value)
		       ? value
		       : other;
}

/* What a stack stands for. */
static uint64_t flame_weight(const struct ky_flame *flame, const struct ky_stack_seen *seen)
{
	uint64_t bytes;

	if (flame->of != KY_FLAME_OF_MEMORY)
		return seen->weight;
	return __builtin_mul_overflow(flame_field(seen, "size", 0), flame_field(seen, "nmemb", 1),
				      &bytes)
		       ? 0
		       : bytes;
}

static bool flame_chooses(const struct ky_flame *flame, const struct ky_stack_seen *seen)
{
	switch (flame->of) {
	case KY_FLAME_OF_CPU:
		return seen->source &&
		       (flame_is_clock(seen->source) || flame_is_cycles(seen->source));
	case KY_FLAME_OF_OFF_CPU:
		return flame_is_event(seen, "sched_switch") ||
		       flame_is_event(seen, "context-switches");
	case KY_FLAME_OF_WAKEUP:
		return flame_is_event(seen, "sched_waking");
	case KY_FLAME_OF_FAULTS:
		return flame_matches(seen, "*page_fault*") || flame_matches(seen, "*-faults");
	case KY_FLAME_OF_MEMORY:
		return flame_is_allocation(seen);
	case KY_FLAME_OF_EVENTS:
		break;
	}
	return flame_matches(seen, flame->options->of);
}

static bool flame_has_cpu(const struct ky_focus *focus, uint32_t cpu)
{
	for (size_t i = 0; i < focus->cpus.len; i++) {
		if (focus->cpus.data[i] == cpu)
			return true;
	}
	return !focus->cpus.len;
}

static bool flame_in_focus(const struct ky_flame *flame, const struct ky_thread *thread,
			   uint32_t cpu)
{
	const struct ky_focus *focus = &flame->options->focus;

	return ky_focus_has_thread(focus, thread) && flame_has_cpu(focus, cpu);
}

static bool flame_in_range(const struct ky_flame *flame, int64_t ns)
{
	return ns >= flame->options->focus.begin_ns && ns <= flame->options->focus.end_ns;
}

/* The first trace, or the second one of two that are compared. */
static unsigned int flame_side(const struct ky_flame *flame, const struct ky_host *host)
{
	return flame->options->sides[1] &&
	       ky_report_side(flame->options->sides, flame->model, host) == 1;
}

/* ---- frames -------------------------------------------------------------------------------- */

static int flame_open_symbols(struct ky_flame *flame)
{
	const struct ky_trace_symbols_options options = {
		.dirs = flame->options->symbol_dirs,
		.n_dirs = flame->options->n_symbol_dirs,
		.is_over = flame->options->is_over,
		.over_data = flame->options->over_data,
		.want_lines = flame->options->inlines,
	};

	if (flame->has_symbols)
		return KYMO_OK;
	flame->has_symbols = true;
	return ky_trace_symbols_open(ky_model_traces(flame->model), &options, &flame->symbols,
				     &flame->err) == KYMO_E_MEMORY
		       ? KYMO_E_MEMORY
		       : KYMO_OK;
}

/* The frames at @address, the outermost first, below *@node. */
static int flame_put_address(struct ky_flame *flame, const struct ky_stack_seen *seen,
			     uint64_t address, bool is_return, bool is_kernel, uint32_t *node)
{
	const struct ky_symbols_frame *frames = NULL;
	size_t n = flame->symbols ? ky_trace_symbols_resolve(flame->symbols, seen->event, address,
							     is_return, &frames)
				  : 0;

	do {
		uint32_t frame =
			ky_stack_tree_symbol(flame->tree, n ? &frames[n - 1] : NULL, is_kernel);

		if (frame == KY_STACK_TREE_NONE)
			return KYMO_E_MEMORY;
		*node = ky_stack_tree_child(flame->tree, *node, frame);
		if (*node == KY_STACK_TREE_NONE)
			return KYMO_E_MEMORY;
	} while (n-- > 1);
	return KYMO_OK;
}

static int flame_put_name(struct ky_flame *flame, const struct ky_stack_name *name, uint32_t *node)
{
	uint32_t frame;

	ky_strbuf_clear(&flame->name);
	ky_strbuf_add(&flame->name, name->text, name->len);
	if (ky_strbuf_failed(&flame->name))
		return KYMO_E_MEMORY;
	frame = ky_stack_tree_frame(flame->tree,
				    name->is_kernel ? KY_STACK_FRAME_KERNEL : KY_STACK_FRAME_USER,
				    ky_strbuf_text(&flame->name), "");
	if (frame == KY_STACK_TREE_NONE)
		return KYMO_E_MEMORY;
	*node = ky_stack_tree_child(flame->tree, *node, frame);
	return *node == KY_STACK_TREE_NONE ? KYMO_E_MEMORY : KYMO_OK;
}

static int flame_put_stack(struct ky_flame *flame, const struct ky_stack_seen *seen, uint32_t *node)
{
	int status = seen->n_names ? KYMO_OK : flame_open_symbols(flame);

	for (uint32_t i = seen->n_names; i-- > 0 && !status;)
		status = flame_put_name(flame, &seen->names[i], node);
	for (uint32_t i = seen->n_user; i-- > 0 && !status;)
		status = flame_put_address(flame, seen, seen->user[i], i > 0, false, node);
	for (uint32_t i = seen->n_kernel; i-- > 0 && !status;)
		status = flame_put_address(flame, seen, seen->kernel[i], i > 0, true, node);
	return status;
}

/* ---- groups -------------------------------------------------------------------------------- */

static uint32_t flame_group_frame(struct ky_flame *flame, const struct ky_stack_seen *seen)
{
	enum ky_by by = ky_report_by(flame->options, KY_BY_NAME);
	char name[KY_STACK_GROUP_BYTES];

	if (by != KY_BY_CPU)
		return ky_stack_group_frame(flame->tree, seen->thread, by);
	snprintf(name, sizeof(name), "CPU %" PRIu32, seen->cpu_id);
	return ky_stack_tree_frame(flame->tree, KY_STACK_FRAME_GROUP, name, "");
}

/* The node of the group that the stack is of. */
static uint32_t flame_group(struct ky_flame *flame, const struct ky_stack_seen *seen)
{
	uint32_t frame = flame_group_frame(flame, seen);

	return frame == KY_STACK_TREE_NONE
		       ? frame
		       : ky_stack_tree_child(flame->tree, KY_STACK_TREE_ROOT, frame);
}

static uint64_t flame_hash(const struct ky_stack_seen *seen, uint32_t group)
{
	uint64_t hash = ky_hash_u64((uint64_t)seen->host->index << 32 | group);

	hash = ky_hash_u64(hash ^ (seen->thread ? (uint32_t)seen->thread->pid : 0));
	for (uint32_t i = 0; i < seen->n_names; i++)
		hash = ky_hash_u64(hash ^ ky_hash_bytes(seen->names[i].text, seen->names[i].len) ^
				   seen->names[i].is_kernel);
	hash = ky_hash_u64(hash ^ ky_hash_bytes(seen->kernel, seen->n_kernel * sizeof(uint64_t)));
	return ky_hash_u64(hash ^ ky_hash_bytes(seen->user, seen->n_user * sizeof(uint64_t)) ^
			   (uint64_t)seen->n_user << 48);
}

/* The node at which the stack ends. */
static int flame_node(struct ky_flame *flame, const struct ky_stack_seen *seen, uint32_t *node)
{
	uint32_t group = flame_group(flame, seen);
	uint64_t hash;
	void *known;
	int status;

	if (group == KY_STACK_TREE_NONE)
		return KYMO_E_MEMORY;
	hash = flame_hash(seen, group);
	known = ky_map_get(&flame->known, hash);
	if (known) {
		*node = (uint32_t)(uintptr_t)known - 1;
		return KYMO_OK;
	}
	*node = group;
	status = flame_put_stack(flame, seen, node);
	if (status < 0 || flame->known.len >= KNOWN_MAX)
		return status;
	return ky_map_set(&flame->known, hash, (void *)(uintptr_t)(*node + 1ull));
}

/* ---- hooks --------------------------------------------------------------------------------- */

static int flame_leave(struct ky_flame *flame, const struct ky_thread *thread, uint32_t node)
{
	while (flame->left.len <= thread->index)
		if (ky_vec_push(&flame->left, (struct flame_left){KY_STACK_TREE_NONE}) < 0)
			return KYMO_E_MEMORY;
	flame->left.data[thread->index].node = node;
	return KYMO_OK;
}

static void flame_note_source(struct ky_flame *flame, const struct ky_stack_seen *seen)
{
	const char *source = seen->source ? seen->source : seen->event->cls->name;

	if (!flame->source)
		flame->source = source;
	else if (strcmp(flame->source, source) != 0)
		flame->has_many_sources = true;
	flame->is_counted |= seen->is_counted;
	flame->n_stacks++;
}

static int flame_on_stack(void *data, const struct ky_stack_seen *seen)
{
	struct ky_flame *flame = data;
	bool is_off = flame->of == KY_FLAME_OF_OFF_CPU;
	uint32_t node;
	int status;

	if (!flame_chooses(flame, seen)) {
		if (!flame->other)
			flame->other = seen->source ? seen->source : seen->event->cls->name;
		flame->n_others++;
		return 0;
	}
	/* Where a thread is off the CPU tells its range; it may have left before that. */
	if (!flame_in_focus(flame, seen->thread, seen->cpu_id) ||
	    (!is_off && !flame_in_range(flame, seen->event->ns)))
		return 0;
	if (is_off && !seen->thread)
		return 0;
	status = flame_node(flame, seen, &node);
	if (status < 0)
		return status;
	flame_note_source(flame, seen);
	if (is_off)
		return flame_leave(flame, seen->thread, node);
	ky_stack_tree_add(flame->tree, node, flame_weight(flame, seen),
			  flame_side(flame, seen->host));
	return 0;
}

static int flame_on_off(void *data, const struct ky_time_off *off)
{
	struct ky_flame *flame = data;
	const struct ky_focus *focus = &flame->options->focus;
	int64_t begin = off->begin_ns > focus->begin_ns ? off->begin_ns : focus->begin_ns;
	int64_t end = off->end_ns < focus->end_ns ? off->end_ns : focus->end_ns;
	uint32_t node, frame;

	/* Threads that have ended, and those of the kernel that have nothing to do, wait for nothing. */
	if (off->thread->index >= flame->left.len || end <= begin || off->kind == KY_OFF_OTHER)
		return 0;
	node = flame->left.data[off->thread->index].node;
	if (node == KY_STACK_TREE_NONE)
		return 0;
	if (off->kind == KY_OFF_READY) {
		frame = ky_stack_tree_frame(flame->tree, KY_STACK_FRAME_STATE, "waits for a CPU",
					    "");
		node = frame == KY_STACK_TREE_NONE ? frame
						   : ky_stack_tree_child(flame->tree, node, frame);
		if (node == KY_STACK_TREE_NONE)
			return KYMO_E_MEMORY;
	}
	ky_stack_tree_add(flame->tree, node, (uint64_t)(end - begin),
			  flame_side(flame, off->thread->host));
	return 0;
}

/* ---- the run ------------------------------------------------------------------------------- */

struct ky_flame *ky_flame_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_flame *flame = calloc(1, sizeof(*flame));
	struct ky_listener listener = {.data = flame, .stack = flame_on_stack};

	if (!flame)
		return NULL;
	flame->model = model;
	flame->options = options;
	flame->of = ky_flame_of(options->of);
	ky_map_init(&flame->known);
	if (flame->of == KY_FLAME_OF_OFF_CPU)
		listener.off = flame_on_off;
	flame->tree = malloc(sizeof(*flame->tree));
	if (flame->tree && ky_stack_tree_init(flame->tree) < 0) {
		free(flame->tree);
		flame->tree = NULL;
	}
	if (!flame->tree || ky_model_listen(model, &listener) < 0) {
		ky_flame_free(flame);
		return NULL;
	}
	return flame;
}

void ky_flame_free(struct ky_flame *flame)
{
	if (!flame)
		return;
	if (flame->tree)
		ky_stack_tree_fini(flame->tree);
	free(flame->tree);
	ky_trace_symbols_close(flame->symbols);
	ky_map_fini(&flame->known);
	ky_vec_fini(&flame->left);
	ky_strbuf_fini(&flame->name);
	free(flame);
}

struct ky_stack_tree *ky_flame_take(struct ky_flame *flame)
{
	struct ky_stack_tree *tree = flame->tree;

	flame->tree = NULL;
	ky_stack_tree_sum(tree);
	tree->has_two = flame->options->sides[1] != NULL;
	tree->is_time = flame->of == KY_FLAME_OF_OFF_CPU ||
			(flame->source && !flame->has_many_sources && !flame->is_counted &&
			 flame_is_clock(flame->source));
	tree->what = flame->of == KY_FLAME_OF_MEMORY	? "bytes"
		     : flame->of == KY_FLAME_OF_OFF_CPU ? "off-cpu"
		     : !flame->source			? ""
		     : flame->has_many_sources		? "events"
							: flame->source;
	return tree;
}

uint64_t ky_flame_n_stacks(const struct ky_flame *flame)
{
	return flame->n_stacks;
}

uint64_t ky_flame_n_others(const struct ky_flame *flame)
{
	return flame->n_others;
}

const char *ky_flame_other(const struct ky_flame *flame)
{
	return flame->other;
}

const char *ky_flame_problem(const struct ky_flame *flame)
{
	return flame->err.message[0] ? flame->err.message : NULL;
}
