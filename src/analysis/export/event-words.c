/* SPDX-License-Identifier: MIT */
#include "analysis/export/event-words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/state/model-internal.h"

void ky_event_words_find(struct ky_event_words *own, const struct ky_host *host,
			 const struct ky_event_class *cls)
{
	const struct ky_class_info *info = &host->classes[cls->index];

	own->is_kernel = ky_host_is_kernel(host);
	own->is_sample = info->is_sample;
	own->has_names = info->has_names;
	/* perf script shows no threads and mappings, either. */
	own->is_dump = info->of_before || strncmp(cls->name, "lttng_statedump_", 16) == 0;
	own->prio_offset = info->prio_offset + 100;
	ky_kernel_words(&own->words, cls->name);
	if (!own->is_kernel)
		ky_event_thread_find(&own->thread, cls);
	own->is_switch = own->is_kernel && info->whole == ky_on_switch;
	if (strcmp(own->words.event, "sched_switch") == 0) {
		own->is_switch = true;
		ky_handle_find(&own->prev_tid, cls, KY_SCOPE_PAYLOAD, "prev_tid");
		ky_handle_find(&own->prev_comm, cls, KY_SCOPE_PAYLOAD, "prev_comm");
	}
}

static void event_words_copy(char *comm, const char *text, size_t len)
{
	size_t n = 0;

	for (; n < len && n < KY_EVENT_COMM_BYTES - 1 && text[n]; n++)
		comm[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? '?' : text[n];
	comm[n] = '\0';
}

void ky_event_who(struct ky_event_who *who, const struct ky_model *model,
		  const struct ky_stream *stream, const struct ky_event *event,
		  const struct ky_event_words *cls)
{
	const struct ky_host *host = model->streams[stream->index].host;
	const struct ky_class_info *info = &host->classes[event->cls->index];
	const struct ky_cpu *cpu = model->streams[stream->index].cpu;
	const struct ky_thread *thread = NULL;
	const char *text;
	size_t len;

	who->tid = 0;
	event_words_copy(who->comm, "swapper", 7);
	if (cls->is_switch && cls->prev_tid.cls) {
		who->tid = ky_get_i64(event, &cls->prev_tid, 0);
		text = ky_get_text(event, &cls->prev_comm, &len);
		event_words_copy(who->comm, text, len);
		return;
	}
	if (!cls->is_kernel) {
		who->tid = ky_get_i64(event, &cls->thread.tid, 0);
		text = ky_get_text(event, &cls->thread.comm, &len);
		event_words_copy(who->comm, len ? text : ":-1", len ? len : 3);
		return;
	}
	if (info->tid.cls)
		who->tid = ky_get_i64(event, &info->tid, 0);
	else if (cpu && cpu->state == KY_CPU_BUSY && cpu->current)
		who->tid = cpu->current->tid;
	if (who->tid > 0)
		thread = ky_map_get(&host->threads, (uint32_t)who->tid);
	text = ky_get_text(event, &info->comm, &len);
	if (who->tid && strnlen(text, len))
		event_words_copy(who->comm, text, len);
	else if (thread && thread->comm[0])
		event_words_copy(who->comm, thread->comm, strlen(thread->comm));
	else if (who->tid)
		snprintf(who->comm, sizeof(who->comm), ":%" PRId64, who->tid);
}
