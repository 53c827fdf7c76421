/* SPDX-License-Identifier: MIT */
/*
 * Members: the times that a report explains: each call of a name, each wait for a CPU, each request, interrupt or period,
 * or the time of each thread in the range. Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_CAUSES_MEMBERS_H
#define KY_ANALYSIS_CAUSES_MEMBERS_H

#include "analysis/causes/causes.h"

struct kymo_error;

enum ky_of_kind {
	KY_OF_THREADS, /* nothing else was asked for */
	KY_OF_SYSCALL,
	KY_OF_WAKEUP,
	KY_OF_PREEMPTION,
	KY_OF_BLOCK,
	KY_OF_IRQ,
	KY_OF_SOFTIRQ,
	KY_OF_PERIOD,
};

/* "syscall:read": what members are. */
struct ky_of {
	enum ky_of_kind kind;
	const char *name; /* a wildcard, borrowed; "*": any */
};

/* @text: "syscall:NAME", "wakeup", ...; NULL: threads. 0, or KYMO_E_INVALID with a message. */
int ky_of_parse(const char *text, struct ky_of *of, struct kymo_error *err);
/* "system call", "wait for a CPU"; static. */
const char *ky_of_text(enum ky_of_kind kind);

struct ky_cause_member {
	int64_t begin_ns, end_ns;
	const struct ky_thread *thread; /* NULL: none */
	union {
		uint32_t syscall;
		const struct ky_period_def *period;
		struct {
			const struct ky_irq_line *line;
			const struct ky_cpu *cpu;
			int64_t handler_ns; /* where it began to run */
		} irq;
		struct {
			const struct ky_disk *disk;
			int64_t queue_ns, issue_ns;
		} block;
	};
};

struct ky_cause_members {
	struct ky_model *model;
	struct ky_causes *causes;
	bool borrows;		      /* the causes */
	const struct ky_focus *focus; /* that chooses them */
	struct ky_of of;
	KY_VEC(uint8_t)
	names; /* by system call: 1 + whether of.name matches; 0: not looked at yet */
	KY_VEC(struct ky_cause_member) list; /* in the order of their ends */
	uint64_t omitted;		     /* that memory had no room for */
	uint64_t unmeasured;		     /* calls without begin or end, or with losses */
};

/*
 * Listens to @model, as ky_causes_new() does. @causes of the model, @focus and what @of borrows outlive it; NULL: it has causes of its
 * own. NULL: out of memory.
 */
struct ky_cause_members *ky_cause_members_new(struct ky_model *model, struct ky_causes *causes,
					      const struct ky_of *of, const struct ky_focus *focus);
/* The pass is over: members that are threads have their times now. 0 or KYMO_E_MEMORY. */
int ky_cause_members_end(struct ky_cause_members *members);
void ky_cause_members_free(struct ky_cause_members *members); /* NULL is fine */

static inline uint64_t ky_cause_member_ns(const struct ky_cause_member *member)
{
	return (uint64_t)member->end_ns - (uint64_t)member->begin_ns;
}

/* As ky_causes_explain(). */
int ky_cause_member_explain(const struct ky_cause_members *members,
			    const struct ky_cause_member *member, ky_part_hook part, void *data);

#endif
