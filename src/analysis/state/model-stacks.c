/* SPDX-License-Identifier: MIT */
/* The state model: call stacks of events, and samples. */
#include "analysis/state/model-internal.h"

#include <string.h>

/* Of the sources that texts tell: what is beyond is cut, or has no name. */
#define SOURCES_MAX	 4096
#define SOURCE_MAX_BYTES 256
/* What the names of the kernel's functions end with in texts. */
#define KERNEL_MARK "_[k]"

static const char *const names[] = {"callstack_kernel", "callstack_user"};

void ky_stacks_find(struct ky_class_info *info, const struct ky_event_class *cls, bool is_text)
{
	for (size_t i = 0; i < 2; i++) {
		if (ky_handle_find(&info->callstacks[i], cls, KY_SCOPE_STREAM_CONTEXT, names[i]) ||
		    ky_handle_find(&info->callstacks[i], cls, KY_SCOPE_EVENT_CONTEXT, names[i]))
			info->has_stacks = true;
	}
	if (is_text && !info->has_stacks)
		info->has_stacks = info->has_names =
			ky_handle_find(&info->callstacks[0], cls, KY_SCOPE_PAYLOAD, "callstack") ||
			strcmp(cls->name, "sample") == 0; /* one without a stack */
}

void ky_stacks_find_sample(struct ky_class_info *info, const struct ky_event_class *cls)
{
	ky_handle_find(&info->fields[KY_SAMPLE_SOURCE], cls, KY_SCOPE_PAYLOAD,
		       info->has_names ? "event" : "source");
	ky_handle_find(&info->fields[KY_SAMPLE_PERIOD], cls, KY_SCOPE_PAYLOAD, "period");
}

/* The addresses of one stack; *n is 0 where it has none. */
static int stacks_read(struct ky_values *values, const struct ky_event *event,
		       const struct ky_handle *handle, uint64_t *addresses, uint32_t *n)
{
	const struct ky_value *list;
	int status = handle->cls ? ky_handle_decode(values, event, handle, NULL) : 0;

	*n = 0;
	if (status == KYMO_E_MEMORY)
		return status;
	list = values->list.data;
	if (status <= 0 || list->n_below != list->n_children)
		return 0;
	for (uint32_t i = 0; i < list->n_below && *n < KY_STACK_FRAMES_MAX; i++)
		addresses[(*n)++] = list[1 + i].u;
	return 0;
}

/* A sample's stream has no other events that could tell a new name. */
void ky_stacks_rename(struct ky_thread *thread, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	size_t len;
	const char *comm = info->comm.cls ? ky_get_text(event, &info->comm, &len) : NULL;

	if (!comm || !len)
		return;
	len = strnlen(comm, len);
	if (len && (strncmp(thread->comm, comm, len) != 0 || thread->comm[len < 15 ? len : 15]))
		ky_thread_name(thread, comm, len);
}

/* A text that lives as long as the model. NULL: out of memory. */
static const char *stacks_keep_source(struct ky_model *model, const char *text, size_t len)
{
	char *known;

	len = strnlen(text, len < SOURCE_MAX_BYTES ? len : SOURCE_MAX_BYTES);
	known = ky_names_getn(&model->sample_sources, text, len);
	if (known)
		return known;
	if (model->sample_sources.len >= SOURCES_MAX)
		return "";
	known = ky_arena_strndup(&model->arena, text, len);
	return known && ky_names_set(&model->sample_sources, known, known) == 0 ? known : NULL;
}

/* 0 or KYMO_E_MEMORY. */
static int stacks_find_source(struct ky_model *model, const struct ky_event *event,
			      const struct ky_class_info *info, struct ky_stack_seen *seen)
{
	const struct ky_handle *source = &info->fields[KY_SAMPLE_SOURCE];
	const char *text;
	uint64_t value;
	size_t len;

	if (!source->cls)
		return 0;
	if (!info->has_names) {
		seen->source = ky_get_number(event, source, &value)
				       ? ky_enum_label(source->cls, value)
				       : NULL;
		return 0;
	}
	text = ky_get_text(event, source, &len);
	seen->source = stacks_keep_source(model, text, len);
	return seen->source ? 0 : KYMO_E_MEMORY;
}

static void stacks_read_sample(const struct ky_event *event, const struct ky_class_info *info,
			       struct ky_stack_seen *seen)
{
	const struct ky_handle *period = &info->fields[KY_SAMPLE_PERIOD];

	seen->weight = ky_get_u64(event, period, 1);
	seen->is_counted = info->has_names && !period->cls;
	if (seen->thread)
		ky_stacks_rename(seen->thread, event, info);
}

/* "main;read;vfs_read_[k]", the outermost first: the functions, the innermost first. Returns their number. */
static uint32_t stacks_split(const char *text, size_t len,
			     struct ky_stack_name into[KY_STACK_NAMES_MAX])
{
	const size_t mark = sizeof(KERNEL_MARK) - 1;
	uint32_t n = 0;

	while (len && n < KY_STACK_NAMES_MAX) {
		const char *before = memrchr(text, ';', len);
		size_t at = before ? (size_t)(before + 1 - text) : 0;
		struct ky_stack_name *name = &into[n++];

		*name = (struct ky_stack_name){.text = text + at, .len = len - at};
		name->is_kernel = name->len > mark &&
				  memcmp(name->text + name->len - mark, KERNEL_MARK, mark) == 0;
		if (name->is_kernel)
			name->len -= mark;
		len = before ? at - 1 : 0;
	}
	return n;
}

/* What all kinds of stacks have in common; the frames of @seen are known. */
static int stacks_tell(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info, struct ky_stack_seen *seen)
{
	int status = info->is_sample ? stacks_find_source(feed->model, event, info, seen) : 0;

	if (status < 0)
		return status;
	if (info->is_sample)
		stacks_read_sample(event, info, seen);
	if (!ky_model_tells(feed->model, seen->thread, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, stack, seen);
}

union stack_room {
	struct ky_stack_name names[KY_STACK_NAMES_MAX];
	uint64_t addresses[2][KY_STACK_FRAMES_MAX];
};

/* Gives @seen its frames, which are in @room. 0 or KYMO_E_MEMORY. */
static int stacks_take(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info, union stack_room *room,
		       struct ky_stack_seen *seen)
{
	struct ky_values *values = &feed->model->values;
	const char *text;
	size_t len;
	int status;

	if (info->has_names) {
		text = ky_get_text(event, &info->callstacks[0], &len);
		seen->names = room->names;
		seen->n_names = stacks_split(text, len, room->names);
		return 0;
	}
	seen->kernel = room->addresses[0];
	seen->user = room->addresses[1];
	status = stacks_read(values, event, &info->callstacks[0], room->addresses[0],
			     &seen->n_kernel);
	return status < 0 ? status
			  : stacks_read(values, event, &info->callstacks[1], room->addresses[1],
					&seen->n_user);
}

int ky_stacks_see(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	union stack_room room;
	struct ky_stack_seen seen = {
		.thread = ky_feed_thread(feed, event, info),
		.host = feed->host,
		.cpu_id = event->cpu_id,
		.event = event,
		.weight = 1,
	};
	int status = stacks_take(feed, event, info, &room, &seen);

	return status < 0 ? status : stacks_tell(feed, event, info, &seen);
}
