/* SPDX-License-Identifier: MIT */
/* The state model: call stacks of events, and samples. */
#include "analysis/state/model-internal.h"

#include <string.h>

static const char *const names[] = {"callstack_kernel", "callstack_user"};

void ky_stacks_find(struct ky_class_info *info, const struct ky_event_class *cls)
{
	for (size_t i = 0; i < 2; i++) {
		if (ky_handle_find(&info->callstacks[i], cls, KY_SCOPE_STREAM_CONTEXT, names[i]) ||
		    ky_handle_find(&info->callstacks[i], cls, KY_SCOPE_EVENT_CONTEXT, names[i]))
			info->has_stacks = true;
	}
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

static const char *stacks_source(const struct ky_event *event, const struct ky_class_info *info)
{
	const struct ky_handle *source = &info->fields[KY_SAMPLE_SOURCE];
	uint64_t value;

	return source->cls && ky_get_number(event, source, &value)
		       ? ky_enum_label(source->cls, value)
		       : NULL;
}

int ky_stacks_see(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	uint64_t kernel[KY_STACK_FRAMES_MAX], user[KY_STACK_FRAMES_MAX];
	struct ky_stack_seen seen = {
		.thread = ky_feed_thread(feed, event, info),
		.host = feed->host,
		.cpu_id = event->cpu_id,
		.event = event,
		.weight = 1,
		.kernel = kernel,
		.user = user,
	};
	int status = stacks_read(&feed->model->values, event, &info->callstacks[0], kernel,
				 &seen.n_kernel);

	if (!status)
		status = stacks_read(&feed->model->values, event, &info->callstacks[1], user,
				     &seen.n_user);
	if (status < 0)
		return status;
	if (info->is_sample) {
		seen.source = stacks_source(event, info);
		seen.weight = ky_get_u64(event, &info->fields[KY_SAMPLE_PERIOD], 1);
		if (seen.thread)
			ky_stacks_rename(seen.thread, event, info);
	}
	if (!ky_model_tells(feed->model, seen.thread, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, stack, &seen);
}
