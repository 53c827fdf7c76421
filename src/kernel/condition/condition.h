/* SPDX-License-Identifier: MIT */
/*
 * A condition (docs/filter.md) that BPF programs evaluate at events of the kernel: kymo count EVENTS if EXPR, and both ends of
 * trackers. Names and values are those of the trace that kymo record would write.
 *
 *	condition-fields.c   where the value of a name is
 *	condition-compile.c  from the expression to steps
 *	condition.bpf.h      the steps in the kernel
 *
 * Threads: any.
 */
#ifndef KY_KERNEL_CONDITION_CONDITION_H
#define KY_KERNEL_CONDITION_CONDITION_H

#include "base/arena.h"
#include "kernel/condition/condition-layout.h"
#include "kernel/events/events.h"
#include "query/ast.h"

/* An event that the condition is for. */
struct ky_condition_event {
	const char *name; /* in a trace */
	const struct ky_event_field *fields;
	size_t n_fields;
	bool cuts_texts;	 /* the record has the begin of its texts only */
	struct ky_condition *to; /* filled in */
	bool is_never;		 /* filled in: it is true of no such event */
};

/*
 * Compile @text for each of @events. @arena: for what is needed meanwhile. A field that some of the events lack makes comparisons
 * false there. KYMO_E_INVALID with line and column in @text: a mistake, a field that no event has, or something that a program cannot
 * evaluate; KYMO_E_LIMIT, KYMO_E_MEMORY.
 */
int ky_condition_compile(const char *text, struct ky_condition_event *events, size_t n_events,
			 struct ky_arena *arena, struct kymo_error *err);

/*
 * Where @name's value is in an event; NULL @source: what the field is in the trace, if it is one of the record. False: the event
 * has no such field, or none that a program can use.
 */
bool ky_condition_find_field(const struct ky_condition_event *event, enum ky_name_kind kind,
			     const char *name, struct ky_condition_field *field,
			     const struct ky_event_field **source);

/* "event sched_switch has no field 'x'", and the nearest names. @node is a name. Returns KYMO_E_INVALID. */
int ky_condition_unknown(const struct ky_node *node, const struct ky_condition_event *events,
			 size_t n_events, struct kymo_error *err);

bool ky_condition_is_text(const struct ky_condition_field *field);

/* The program must see the record up to the end of @field. False: the field lies too far. */
bool ky_condition_reach(const struct ky_condition_field *field, uint32_t *record_bytes);

#endif
