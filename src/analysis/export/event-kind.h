/* SPDX-License-Identifier: MIT */
/* What events are for the exports: of which thread, and whether two of them are a span. */
#ifndef KY_ANALYSIS_EXPORT_EVENT_KIND_H
#define KY_ANALYSIS_EXPORT_EVENT_KIND_H

#include "analysis/state/model.h"

enum ky_span_part {
	KY_SPAN_NONE,
	KY_SPAN_BEGIN,
	KY_SPAN_END,
};

/*
 * Is @cls one of two events of its trace that are a span: NAME_begin and NAME_end, or NAME_entry and NAME_exit? Then
 * *len is the length of NAME; *per_cpu: what does not sleep in between.
 */
enum ky_span_part ky_span_part(const struct ky_event_class *cls, size_t *len, bool *per_cpu);

/* The context of an event of a program. */
struct ky_event_thread {
	struct ky_handle tid, pid, comm;
};

void ky_event_thread_find(struct ky_event_thread *thread, const struct ky_event_class *cls);

/* A kernel's trace says so, or has what only kernels tell. */
bool ky_host_is_kernel(const struct ky_host *host);

#endif
