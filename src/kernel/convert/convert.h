/* SPDX-License-Identifier: MIT */
/*
 * Pages of the kernel's ring -> CTF event records.
 *
 * Each event's format is compiled once into a flat list of operations; runs of fields that lie in
 * the trace as in the record become one copy. Converting looks at no text. Everything that the
 * record says about itself (its length, where its dynamic fields are) is checked against the page.
 *
 * Threads: the plans are immutable once all events are added; one thread at a time per CPU, and,
 * where `threads` is set, one thread at a time for all of them.
 */
#ifndef KY_KERNEL_CONVERT_CONVERT_H
#define KY_KERNEL_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/hash.h"
#include "ctf/model/model.h"
#include "ctf/encode/packet-writer.h"
#include "kernel/content/content.h"
#include "kernel/switches/switches.h"
#include "kernel/counters/counters.h"
#include "kernel/events/events.h"
#include "kernel/tracefs/format.h"
#include "kernel/tracefs/page.h"
#include "kernel/process/stacks.h"
#include "kernel/process/threads.h"

/*
 * The recorder's own threads: the first, which reads the kernel's rings; the state dump's; the one that writes blocks; the
 * guard of raw pages; those of programs' recordings.
 */
#define KY_OWN_PROGRAMS_MAX 35
enum {
	KY_OWN_MAIN,
	KY_OWN_DUMP,
	KY_OWN_WRITER,
	KY_OWN_GUARD,
	KY_OWN_PROGRAMS,
	KY_CONVERT_OWN_TIDS = KY_OWN_PROGRAMS + KY_OWN_PROGRAMS_MAX,
};

/* Event context fields, in the order in which they lie in the trace; the tid always comes first. */
enum ky_context {
	KY_CONTEXT_PID = 1,
	KY_CONTEXT_PPID = 2,
	KY_CONTEXT_PROCNAME = 4,
	KY_CONTEXT_PRIO = 8,
	/* One byte each, from the record itself: may it be interrupted, preempted, is a switch due,
	 * may it move to another CPU? 1, 0; -1: the kernel does not tell. */
	KY_CONTEXT_INTERRUPTIBLE = 16,
	KY_CONTEXT_PREEMPTIBLE = 32,
	KY_CONTEXT_NEED_RESCHEDULE = 64,
	KY_CONTEXT_MIGRATABLE = 128,
	/* The identity of the thread, and its namespaces: struct ky_thread_ids. */
	KY_CONTEXT_UID = 0x100,
	KY_CONTEXT_EUID = 0x200,
	KY_CONTEXT_SUID = 0x400,
	KY_CONTEXT_FSUID = 0x800,
	KY_CONTEXT_GID = 0x1000,
	KY_CONTEXT_EGID = 0x2000,
	KY_CONTEXT_SGID = 0x4000,
	KY_CONTEXT_FSGID = 0x8000,
	KY_CONTEXT_CGROUP_NS = 0x10000,
	KY_CONTEXT_IPC_NS = 0x20000,
	KY_CONTEXT_MNT_NS = 0x40000,
	KY_CONTEXT_NET_NS = 0x80000,
	KY_CONTEXT_PID_NS = 0x100000,
	KY_CONTEXT_TIME_NS = 0x200000,
	KY_CONTEXT_USER_NS = 0x400000,
	KY_CONTEXT_UTS_NS = 0x800000,
	KY_CONTEXT_CGROUP = 0x1000000,
	/* Call stacks, of some events; of others they are empty. */
	KY_CONTEXT_CALLSTACK_KERNEL = 0x2000000,
	KY_CONTEXT_CALLSTACK_USER = 0x4000000,
	/* What its pid namespace calls a thread, its process, and the parent: of struct ky_thread_ids, too. */
	KY_CONTEXT_VTID = 0x8000000,
	KY_CONTEXT_VPID = 0x10000000,
	KY_CONTEXT_VPPID = 0x20000000,
	KY_CONTEXT_NICE = 0x40000000,
};

#define KY_CONTEXT_OF_STACKS (KY_CONTEXT_CALLSTACK_KERNEL | KY_CONTEXT_CALLSTACK_USER)

#define KY_CONTEXT_OF_IDS 0x39ffff00u

/* Those that are known of a thread only, and so need a table of threads. */
#define KY_CONTEXT_OF_THREADS                                                       \
	(KY_CONTEXT_PID | KY_CONTEXT_PPID | KY_CONTEXT_PROCNAME | KY_CONTEXT_PRIO | \
	 KY_CONTEXT_NICE | KY_CONTEXT_OF_IDS)
#define KY_CONTEXT_OF_RECORDS                                                             \
	(KY_CONTEXT_INTERRUPTIBLE | KY_CONTEXT_PREEMPTIBLE | KY_CONTEXT_NEED_RESCHEDULE | \
	 KY_CONTEXT_MIGRATABLE)

#define KY_CONTEXT_MAX_BYTES 192

struct ky_convert_plan; /* convert-plan.h */
struct ky_filter;
struct ky_convert_cpu;

struct ky_convert {
	struct ky_arena arena;
	struct ky_convert_plan **plans; /* by common_type; NULL: not ours */
	uint32_t n_plans;
	unsigned int context; /* KY_CONTEXT_* */
	uint32_t context_bytes,
		thread_bytes; /* of the whole context, and of what tells of threads */
	uint32_t
		stacks_at; /* where the lengths of call stacks stand in it: the last that there is */
	/* The process whose system calls are left out: the recorder. 0: none. */
	int32_t own_tids[KY_CONVERT_OWN_TIDS];
	struct ky_content *content;   /* of system calls. NULL: their arguments alone; not owned */
	struct ky_counters *counters; /* NULL: none; not owned */
	struct ky_switches *switches; /* from idle, that no page has. NULL: none; not owned */
	uint16_t switch_id;	      /* of sched_switch, in records */
	struct ky_threads *threads;   /* NULL: nothing needs them; not owned */
	/*
	 * Whose 32-bit calls are written, where the kernel does not choose: tids. NULL: everybody's; not
	 * owned.
	 */
	struct ky_map *chosen;
	bool chosen_follow; /* with what they start */
	/*
	 * A packet is full: close it and send it (ky_convert_flush() calls it). The packet
	 * writer is cpu->writer; @end_cycles is where it ends.
	 */
	int (*packet)(struct ky_convert_cpu *cpu, uint64_t end_cycles, struct kymo_error *err);
	/*
	 * How many events the kernel has lost on this CPU until now. A page that is full to
	 * its last bytes says that events were lost before it, but not how many. NULL: unknown.
	 */
	uint64_t (*lost_until_now)(struct ky_convert_cpu *cpu);
};

struct ky_convert_cpu {
	struct ky_convert *convert;
	uint32_t cpu;
	bool of_group; /* another one of this CPU has its 32-bit calls and switches */
	void *data;    /* the owner's */
	struct ky_packet_writer writer;
	/* The page in hand. */
	const uint8_t *records;
	uint32_t at, end;
	uint64_t cycles;      /* of the record before `at`, or of the page */
	uint64_t next_cycles; /* of the record at `at`, or of the page: not after it */
	uint32_t context_tid, context_generation;
	bool has_context;
	uint32_t
		checked_tid; /* the thread that was looked for last among the recorder's own, in this page; 0: none */
	bool checked_is_own;
	struct ky_stacks *stacks; /* NULL: none yet */
	uint8_t context[KY_CONTEXT_MAX_BYTES];
	/* Counted: */
	uint64_t events;   /* written */
	uint64_t filtered; /* not written, because the event's filter was not true */
	uint64_t own;	   /* not written: system calls of the recorder's own threads */
	uint64_t hidden;   /* not written: only learnt from, or call stacks of those that are */
	uint64_t lost;	   /* overwritten in the ring before they were read */
	uint64_t bad;	   /* records that did not fit their format */
};

/* @context: KY_CONTEXT_* or 0. */
int ky_convert_init(struct ky_convert *convert, unsigned int context, struct kymo_error *err);
/* Before events are added: the context has these too. @counters must outlive it. */
void ky_convert_set_counters(struct ky_convert *convert, struct ky_counters *counters);
void ky_convert_fini(struct ky_convert *convert);

/*
 * Add an event. @event: its class, whose payload is filled in here; NULL: it is not recorded,
 * only learnt from. 0, KYMO_E_MEMORY, KYMO_E_FORMAT.
 */
int ky_convert_add(struct ky_convert *convert, const char *system, const struct ky_format *format,
		   struct ky_event_class *event, struct kymo_error *err);

/*
 * The event with common_type @id is no longer recorded; @learns: but still learnt from. Before any of its
 * records came.
 */
void ky_convert_forget(struct ky_convert *convert, uint16_t id, bool learns);

/*
 * The event with common_type @id has call stacks: KY_STACK_*, which must be contexts. Added must be
 * ftrace's kernel_stack and user_stack, too, to be learnt from.
 */
void ky_convert_set_stacks(struct ky_convert *convert, uint16_t id, unsigned int stacks);

/* There are readings of counters of kind @key for the event with common_type @id; 0: there are none. */
void ky_convert_set_counters_key(struct ky_convert *convert, uint16_t id, uint32_t key);

/* The fields of the event whose records have common_type @id; *n is how many. */
const struct ky_event_field *ky_convert_fields(const struct ky_convert *convert, uint16_t id,
					       size_t *n);

/*
 * Write only events with common_type @id for which @filter is true; they are of class @event, which
 * is of the filter's traces[0]. Both must outlive @convert; learning from them goes on.
 */
void ky_convert_set_filter(struct ky_convert *convert, uint16_t id, const struct ky_filter *filter,
			   const struct ky_event_class *event);

/*
 * Switches from idle come from @switches, too, as records with common_type @id (sched_switch). False: its records are not as
 * expected. @switches must outlive @convert; NULL: no more.
 */
bool ky_convert_set_switches(struct ky_convert *convert, uint16_t id, struct ky_switches *switches);

/* Has each event what people call @name, asked for or not? */
bool ky_convert_context_is_always(const char *name, size_t len);
/* The bit of the context field that people call @name; 0: none exists. */
unsigned int ky_convert_context_find(const char *name, size_t len);
/* What people call the @i-th of them; NULL: there are not so many. */
const char *ky_convert_context_name(size_t i);

/* The event context's class for @convert, for stream.event.context. NULL: out of memory. */
struct ky_field_class *ky_convert_context_class(const struct ky_convert *convert,
						struct ky_trace_class *trace);

/* The context of @thread as bytes; returns their number. */
uint32_t ky_convert_context(const struct ky_convert *convert, const struct ky_thread *thread,
			    uint8_t bytes[KY_CONTEXT_MAX_BYTES]);

/*
 * Hand over the next page, or part of one; its bytes must live until ky_convert_run() has used them
 * up. Events that were lost before it are counted, and end the current packet.
 * 0, or what `packet` returned.
 */
int ky_convert_page(struct ky_convert_cpu *cpu, const struct ky_page *page, struct kymo_error *err);

/*
 * Convert the records of the page up to and including time @until.
 * Returns 1: there are more, the first at cpu->next_cycles; 0: the page is used up; or negative.
 */
int ky_convert_run(struct ky_convert_cpu *cpu, uint64_t until_cycles, struct kymo_error *err);

/*
 * Convert a record alone, of no page, as an event of @type, whatever its own bytes say; @len is at least 8. @cycles is not before that of
 * the record before. ky_convert_page() came once.
 */
int ky_convert_one(struct ky_convert_cpu *cpu, uint64_t cycles, uint16_t type, const uint8_t *data,
		   uint32_t len, struct kymo_error *err);

/*
 * 32-bit calls and switches of this CPU, which are in no page but in `content` and `switches`. ky_convert_run() writes those before its
 * records; where there is no page, write them up to and including @until_cycles. 0, or what `packet` returned.
 */
int ky_convert_calls(struct ky_convert_cpu *cpu, uint64_t until_cycles, struct kymo_error *err);
/* When the next of them was; UINT64_MAX: none exists. */
uint64_t ky_convert_next_call(const struct ky_convert_cpu *cpu);

/* Close the packet at @end_cycles, send it, begin the next one there. */
int ky_convert_flush(struct ky_convert_cpu *cpu, uint64_t end_cycles, struct kymo_error *err);

#endif
