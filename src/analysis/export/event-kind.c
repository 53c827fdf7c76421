/* SPDX-License-Identifier: MIT */
#include "analysis/export/event-kind.h"

#include <string.h>

/* Two events whose names end so are a span, where the trace has both. */
static const struct {
	const char *begin, *end;
	bool per_cpu;
} pairs[] = {
	{"_begin", "_end", false},
	{"_entry", "_exit", true},
};

static bool event_kind_ends_with(const char *name, const char *suffix, size_t *len)
{
	size_t name_len = strlen(name), suffix_len = strlen(suffix);

	if (name_len <= suffix_len || strcmp(name + name_len - suffix_len, suffix) != 0)
		return false;
	*len = name_len - suffix_len;
	return true;
}

/* Is there an event called as the first @len bytes of @name, with @suffix? */
static bool event_kind_has_event(const struct ky_trace_class *trace, const char *name, size_t len,
				 const char *suffix)
{
	ky_vec_foreach(&trace->events, cls) {
		if (strncmp((*cls)->name, name, len) == 0 &&
		    strcmp((*cls)->name + len, suffix) == 0)
			return true;
	}
	return false;
}

enum ky_span_part ky_span_part(const struct ky_event_class *cls, size_t *len, bool *per_cpu)
{
	const struct ky_trace_class *trace = cls->stream->trace;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		*per_cpu = pairs[i].per_cpu;
		if (event_kind_ends_with(cls->name, pairs[i].begin, len) &&
		    event_kind_has_event(trace, cls->name, *len, pairs[i].end))
			return KY_SPAN_BEGIN;
		if (event_kind_ends_with(cls->name, pairs[i].end, len) &&
		    event_kind_has_event(trace, cls->name, *len, pairs[i].begin))
			return KY_SPAN_END;
	}
	return KY_SPAN_NONE;
}

void ky_event_thread_find(struct ky_event_thread *thread, const struct ky_event_class *cls)
{
	static const char *const names[][3] = {
		{"vtid", "tid", "perf_tid"},
		{"vpid", "pid", "perf_pid"},
		{"procname", "comm", NULL},
	};
	static const enum ky_scope scopes[] = {KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_STREAM_CONTEXT};
	struct ky_handle *const handles[] = {&thread->tid, &thread->pid, &thread->comm};

	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 3 && names[i][j]; j++) {
			for (int k = 0; k < 2 && !handles[i]->cls; k++)
				ky_handle_find(handles[i], cls, scopes[k], names[i][j]);
		}
	}
}

bool ky_host_is_kernel(const struct ky_host *host)
{
	const struct ky_env *env = ky_env_find(host->trace->cls, "domain");

	if (env && env->is_text && strcmp(env->text, "kernel") == 0)
		return true;
	return host->abilities & (KY_CAN_SWITCH | KY_CAN_SYSCALLS | KY_CAN_MIGRATE);
}
