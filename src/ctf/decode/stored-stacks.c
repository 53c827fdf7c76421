/* SPDX-License-Identifier: MIT */
#include "ctf/decode/stored-stacks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "ctf/decode/plan.h"

#define ADDRESS_BITS 64
/* A trace that grows for days has no more in memory. */
#define STACKS_MAX (1u << 20)

/* Its addresses do not change, and stay until the table goes. */
struct stack {
	uint32_t n;
	uint64_t addresses[];
};

struct ky_stored_stacks {
	ky_stored_stacks_load load;
	void *data;
	bool grows;
	atomic_bool
		is_loaded; /* released after the last change, acquired before a look without the lock */
	pthread_mutex_t load_lock; /* around lock */
	pthread_mutex_t lock;
	struct ky_map by_id;
};

struct ky_stored_stacks *ky_stored_stacks_new(ky_stored_stacks_load load, void *data, bool grows)
{
	struct ky_stored_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->load = load;
	stacks->data = data;
	stacks->grows = grows;
	pthread_mutex_init(&stacks->load_lock, NULL);
	pthread_mutex_init(&stacks->lock, NULL);
	ky_map_init(&stacks->by_id);
	return stacks;
}

void ky_stored_stacks_free(struct ky_stored_stacks *stacks)
{
	size_t at = 0;
	uint64_t id;
	void *stack;

	if (!stacks)
		return;
	while (ky_map_next(&stacks->by_id, &at, &id, &stack))
		free(stack);
	ky_map_fini(&stacks->by_id);
	pthread_mutex_destroy(&stacks->lock);
	pthread_mutex_destroy(&stacks->load_lock);
	free(stacks);
}

/* ---- fields ------------------------------------------------------------------------------- */

static bool stored_stacks_is_array(const struct ky_field_class *cls)
{
	return cls && cls->kind == KY_FIELD_ARRAY && cls->array.length_ref &&
	       cls->array.element->kind == KY_FIELD_UINT &&
	       cls->array.element->num.length_bits == ADDRESS_BITS;
}

int ky_stored_stacks_find(struct ky_trace_class *trace, const struct ky_stream_class *stream,
			  const struct ky_stack_fields **out)
{
	static const char *const names[2][2] = {
		{"callstack_kernel_id", "callstack_kernel"},
		{"callstack_user_id", "callstack_user"},
	};
	struct ky_stack_fields found = {0}, *fields;
	bool any = false;

	*out = NULL;
	for (size_t i = 0; i < 2 && stream->events.len; i++) {
		const struct ky_event_class *event = stream->events.data[0];

		if (ky_handle_find(&found.of[i].id, event, KY_SCOPE_STREAM_CONTEXT, names[i][0]) &&
		    ky_handle_find(&found.of[i].array, event, KY_SCOPE_STREAM_CONTEXT,
				   names[i][1]) &&
		    stored_stacks_is_array(found.of[i].array.cls))
			any = true;
		else
			memset(&found.of[i], 0, sizeof(found.of[i]));
	}
	if (!any)
		return KYMO_OK;
	fields = ky_arena_new(&trace->arena, struct ky_stack_fields);
	if (!fields)
		return KYMO_E_MEMORY;
	*fields = found;
	*out = fields;
	return KYMO_OK;
}

bool ky_stored_stacks_are_in(const struct ky_stream_class *stream)
{
	return stream->plan && stream->plan->stacks;
}

static uint64_t stored_stacks_id(const struct ky_event *event, const struct ky_stack_fields *fields,
				 size_t i)
{
	return fields->of[i].array.cls ? ky_get_u64(event, &fields->of[i].id, 0) : 0;
}

bool ky_stored_stacks_miss(const struct ky_event *event)
{
	const struct ky_stack_fields *fields = event->cls->stream->plan->stacks;
	struct ky_place place;

	for (size_t i = 0; fields && i < 2; i++)
		if (stored_stacks_id(event, fields, i) &&
		    ky_handle_place(event, &fields->of[i].array, &place) && !place.length)
			return true;
	return false;
}

bool ky_stored_stacks_are_elsewhere(const struct ky_event *event)
{
	const struct ky_stack_fields *fields = event->cls->stream->plan->stacks;
	struct ky_place place;

	for (size_t i = 0; fields && i < 2; i++)
		if (fields->of[i].array.cls &&
		    ky_handle_place(event, &fields->of[i].array, &place) && place.length)
			return false;
	return fields != NULL;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct stack *stored_stacks_get(struct ky_stored_stacks *stacks, uint64_t id)
{
	const struct stack *stack;

	if (!stacks->grows && atomic_load_explicit(&stacks->is_loaded, memory_order_acquire))
		return ky_map_get(&stacks->by_id, id);
	pthread_mutex_lock(&stacks->lock);
	stack = ky_map_get(&stacks->by_id, id);
	pthread_mutex_unlock(&stacks->lock);
	return stack;
}

static int stored_stacks_add(struct ky_stored_stacks *stacks, uint64_t id,
			     const struct ky_place *place, const struct ky_event *event)
{
	const struct ky_field_class *element = place->cls->array.element;
	uint64_t stride = ky_align_up(ADDRESS_BITS, element->align_bits);
	struct ky_place at = {.cls = element,
			      .at_bits = ky_align_up(place->at_bits, element->align_bits)};
	struct stack *stack = malloc(sizeof(*stack) + place->length * sizeof(uint64_t));
	int ret;

	if (!stack)
		return KYMO_E_MEMORY;
	for (stack->n = 0; stack->n < place->length; at.at_bits += stride)
		if (!ky_place_number(event, &at, &stack->addresses[stack->n++])) {
			free(stack);
			return KYMO_OK;
		}
	pthread_mutex_lock(&stacks->lock);
	ret = ky_map_get(&stacks->by_id, id) || stacks->by_id.len >= STACKS_MAX
		      ? 1
		      : ky_map_set(&stacks->by_id, id, stack);
	pthread_mutex_unlock(&stacks->lock);
	if (ret)
		free(stack);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_stored_stacks_take(struct ky_stored_stacks *stacks, const struct ky_event *event)
{
	const struct ky_stack_fields *fields = event->cls->stream->plan->stacks;
	int ret = KYMO_OK;

	for (size_t i = 0; fields && i < 2 && !ret; i++) {
		uint64_t id = stored_stacks_id(event, fields, i);
		struct ky_place place;

		if (id && ky_handle_place(event, &fields->of[i].array, &place) && place.length &&
		    place.length <= KY_STORED_STACKS_FRAMES_MAX && !stored_stacks_get(stacks, id))
			ret = stored_stacks_add(stacks, id, &place, event);
	}
	return ret;
}

static int stored_stacks_load(struct ky_stored_stacks *stacks)
{
	int ret = KYMO_OK;

	if (atomic_load_explicit(&stacks->is_loaded, memory_order_acquire))
		return KYMO_OK;
	pthread_mutex_lock(&stacks->load_lock);
	if (stacks->load && !atomic_load_explicit(&stacks->is_loaded, memory_order_relaxed))
		ret = stacks->load(stacks->data, stacks);
	if (!ret)
		atomic_store_explicit(&stacks->is_loaded, true, memory_order_release);
	pthread_mutex_unlock(&stacks->load_lock);
	return ret;
}

/* ---- values ------------------------------------------------------------------------------- */

/* The value at @at is an empty array; what contains it gets larger, too. */
static int stored_stacks_put(struct ky_values *values, size_t at, const struct stack *stack)
{
	const struct ky_field_class *array = values->list.data[at].cls;
	struct ky_value *list;

	if (ky_vec_reserve(&values->list, stack->n) < 0)
		return KYMO_E_MEMORY;
	list = values->list.data;
	for (size_t i = 0; i < at; i++) {
		if (i + list[i].n_below >= at)
			list[i].n_below += stack->n;
		if (list[i].cls == array->array.length_ref->target)
			list[i].u = stack->n;
	}
	memmove(&list[at + 1 + stack->n], &list[at + 1],
		(values->list.len - at - 1) * sizeof(*list));
	list[at].n_below = list[at].n_children = stack->n;
	for (uint32_t i = 0; i < stack->n; i++)
		list[at + 1 + i] =
			(struct ky_value){.cls = array->array.element, .u = stack->addresses[i]};
	values->list.len += stack->n;
	return KYMO_OK;
}

static int stored_stacks_fill_one(struct ky_values *values, const struct ky_event *event,
				  const struct ky_field_class *array, uint64_t id)
{
	struct ky_stored_stacks *stacks = event->cls->stream->trace->stacks;
	const struct stack *stack;
	size_t at = 0;

	while (at < values->list.len && values->list.data[at].cls != array)
		at++;
	if (at == values->list.len)
		return KYMO_OK;
	if (values->list.data[at].n_children)
		return stacks->grows ? ky_stored_stacks_take(stacks, event) : KYMO_OK;
	stack = stored_stacks_get(stacks, id);
	if (!stack && stored_stacks_load(stacks) < 0)
		return KYMO_E_MEMORY;
	stack = stack ? stack : stored_stacks_get(stacks, id);
	return stack ? stored_stacks_put(values, at, stack) : KYMO_OK;
}

int ky_stored_stacks_fill(struct ky_values *values, const struct ky_event *event)
{
	const struct ky_stack_fields *fields = event->cls->stream->plan->stacks;
	int ret = KYMO_OK;

	if (!event->cls->stream->trace->stacks)
		return KYMO_OK;
	for (size_t i = 0; i < 2 && !ret; i++) {
		uint64_t id = stored_stacks_id(event, fields, i);

		if (id)
			ret = stored_stacks_fill_one(values, event, fields->of[i].array.cls, id);
	}
	return ret;
}
