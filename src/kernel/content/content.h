/* SPDX-License-Identifier: MIT */
/*
 * What system calls' arguments point at: paths, socket addresses, buffers.
 *
 * The kernel's ring has the calls, with addresses as arguments. BPF programs at the same two
 * tracepoints read what is there, and leave it, with thread and time, in memory of ours; the converter
 * asks for it when it writes the call. docs/design/syscall-content.md says why this way, and why what it
 * gets is what belongs to the call.
 *
 *	ky_content_new()	nothing yet
 *	ky_content_select()	for each event that is recorded
 *	ky_content_load()	maps and programs; may fail where the kernel has no BPF
 *	ky_content_plan()	for each event again, with its fields (the converter does)
 *	ky_content_attach()	before the events are switched on: so content comes before its call
 *	ky_content_drain()	before events are converted
 *	ky_content_take()	for each event, in the order of time
 *
 * Threads: one at a time.
 */
#ifndef KY_KERNEL_CONTENT_CONTENT_H
#define KY_KERNEL_CONTENT_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "ctf/model/model.h"
#include "kernel/bpf/content-layout.h"
#include "kernel/events/content-calls.h"
#include "kernel/events/events.h"
#include "kernel/process/thread-ids.h"

struct ky_content;

/* Of one event: what of its call's content it has. */
struct ky_content_plan {
	const struct ky_content_call *call;
	bool is_exit;
	uint8_t in_texts; /* the places whose text stands in the place of its address: bits */
	uint8_t places;	  /* those that are appended: bits */
	bool buffers;	  /* contents of buffers too */
	bool ids;	  /* the identity of the thread after the call */
	uint16_t n_args;  /* of the call's record */
};

static inline bool ky_content_plan_has_fields(const struct ky_content_plan *plan)
{
	return plan->in_texts || plan->places;
}

/*
 * @fields: what arguments point at becomes fields of the events. @limit_bytes: of buffers; 0: none of them.
 * @ids: ky_content_ids() gives the identity of a thread after the calls of ky_content_call_of_ids().
 * @buffer_bytes: of the kernel's ring on each CPU; BPF's are half of that, but 2 MiB, up to 64 MiB.
 * @own_pid's calls are left out. NULL: out of memory.
 */
struct ky_content *ky_content_new(bool fields, uint32_t limit_bytes, bool ids,
				  uint64_t buffer_bytes, uint32_t own_pid);
bool ky_content_has_fields(const struct ky_content *content);
bool ky_content_has_ids(const struct ky_content *content);
bool ky_content_has_buffers(const struct ky_content *content);
/* NULL is fine. */
void ky_content_free(struct ky_content *content);

/* Event @event of tracefs's system `syscalls` is recorded. While recording: before the event is switched on. */
void ky_content_select(struct ky_content *content, const char *event);
/*
 * 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (the kernel lacks something, or the build had no clang), KYMO_E_MEMORY,
 * KYMO_E_IO.
 */
int ky_content_load(struct ky_content *content, struct kymo_error *err);
int ky_content_attach(struct ky_content *content, struct kymo_error *err);
void ky_content_detach(struct ky_content *content);

/*
 * Calls of 32-bit programs (compat-calls.h), too: before ky_content_load(). The programs' records are
 * then the events; with ky_content_new()'s @fields, their content is behind them. The same of 64-bit calls that the
 * kernel has no event for: of @unknown numbers.
 */
void ky_content_want_compat(struct ky_content *content);
void ky_content_want_unknown(struct ky_content *content, const bool unknown[KY_CONTENT_MAX_CALLS]);
/* Such an event, of @system, is recorded from now on, or (@on false) no more. */
void ky_content_select_call(struct ky_content *content, const char *system, const char *event,
			    bool on);
/* What content @event has: the 64-bit call's. NULL: none. */
const struct ky_content_call *ky_content_call_find_compat(const char *event, bool *is_exit);
/* The recording begins: calls before @from_ns are left out. */
void ky_content_begin(struct ky_content *content, uint64_t from_ns);
/* Of those that were fetched, the time of @cpu's next; UINT64_MAX: none exists. */
uint64_t ky_content_next_call(const struct ky_content *content, uint32_t cpu);
/* Take it. Valid until the next call of this, or of ky_content_take(). */
const struct ky_content_record *ky_content_take_call(struct ky_content *content, uint32_t cpu);
/* How many calls @cpu has lost. */
uint64_t ky_content_lost_calls(const struct ky_content *content, uint32_t cpu);

/*
 * The content's part of event @system/@event: texts among @fields are marked KY_HOW_CONTENT, with their
 * place in @elements. *plan: in @arena, or NULL when the event has none. @src_bytes: of its record.
 * 0 or KYMO_E_MEMORY.
 */
int ky_content_plan(const struct ky_content *content, struct ky_arena *arena, const char *system,
		    const char *event, struct ky_event_field *fields, int n_fields,
		    uint16_t src_bytes, const struct ky_content_plan **plan);
/* Append the fields behind the others. 0 or KYMO_E_MEMORY. */
int ky_content_add_classes(const struct ky_content_plan *plan, struct ky_trace_class *trace,
			   struct ky_field_class *payload);

/* Fetch what the programs have left until now. */
void ky_content_drain(struct ky_content *content);

/*
 * All events up to @time_ns were converted: what is older by more than it may take from a program's
 * stamp to the event's belongs to calls that are not recorded.
 */
void ky_content_expire(struct ky_content *content, uint64_t time_ns);

/*
 * The content of the event with @record (as in the kernel's ring) of thread @tid at @time_ns. Calls must come in
 * the order of time. NULL: none exists, which is counted where there should be. Valid until the next call.
 */
const struct ky_content_record *ky_content_take(struct ky_content *content,
						const struct ky_content_plan *plan,
						const uint8_t *record, uint32_t tid,
						uint64_t time_ns);

/* The text at @place without its NUL, or NULL. */
const char *ky_content_text(const struct ky_content_record *record, unsigned int place,
			    uint32_t *len);

/* The identity of the thread after the call, or NULL. */
const struct ky_thread_ids *ky_content_ids(const struct ky_content_record *record);

/* The appended fields: how many bytes, and the bytes. @record may be NULL. */
uint32_t ky_content_tail_bytes(const struct ky_content_plan *plan,
			       const struct ky_content_record *record);
uint8_t *ky_content_put_tail(const struct ky_content_plan *plan,
			     const struct ky_content_record *record, uint8_t *out);

struct ky_content_stats {
	uint64_t found;	    /* calls whose content is in the trace */
	uint64_t missing;   /* calls that have none, but should */
	uint64_t lost;	    /* counted by the programs: no room */
	uint64_t unclaimed; /* contents that no recorded call asked for */
};

void ky_content_stats(const struct ky_content *content, struct ky_content_stats *stats);

#endif
