/* SPDX-License-Identifier: MIT */
/* Events for formats of the kernel's own tools (perf script, trace.dat): their names there, and whose they are. */
#ifndef KY_ANALYSIS_EXPORT_EVENT_WORDS_H
#define KY_ANALYSIS_EXPORT_EVENT_WORDS_H

#include "analysis/export/event-kind.h"
#include "analysis/export/kernel-words.h"

#define KY_EVENT_COMM_BYTES 64

struct ky_event_words {
	struct ky_kernel_words words;
	struct ky_event_thread thread; /* of events of programs */
	bool is_kernel, is_sample, is_switch;
	bool has_names; /* its field "callstack" is the call stack */
	bool is_dump;	/* tells what was there before; those tools have no such events */
	struct ky_handle prev_tid, prev_comm;
	int32_t prio_offset; /* what takes its priorities to the kernel's scale */
};

void ky_event_words_find(struct ky_event_words *words, const struct ky_host *host,
			 const struct ky_event_class *cls);

struct ky_event_who {
	int64_t tid;			/* 0: idle, or not known */
	char comm[KY_EVENT_COMM_BYTES]; /* without characters that a terminal obeys */
};

/* Whose @event is. Ask before the model gets it, so that a switch is of the thread that leaves. */
void ky_event_who(struct ky_event_who *who, const struct ky_model *model,
		  const struct ky_stream *stream, const struct ky_event *event,
		  const struct ky_event_words *words);

#endif
