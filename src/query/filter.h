/* SPDX-License-Identifier: MIT */
/*
 * Filter expressions over events: parsed and checked against the metadata once, then
 * compiled for every event class, so that most events are decided without being decoded.
 *
 *	prev_tid == 42 && prev_comm =~ "ngin*"
 *	$event in ("sched_switch", "sched_waking") || $ctx.procname == "redis"
 *	ret < 0 && has(fd) && (flags & 0x80000) != 0
 *
 * Names
 *	field		a top-level field of the event's payload, its contexts, or the packet
 *			context, searched in this order; "field.with blanks" in backquotes
 *	$payload.f, $ctx.f, $packet.f
 *			a field of that scope only ($ctx: of the event, then of the stream)
 *	$event		the event's name (text)
 *	$time		its time in ns from the clock's origin
 *	$cpu		its CPU, where the packet tells it
 *	$stream		the stream class' id
 *
 * Operators, weakest first: ||  &&  == != < <= > >= =~ in  |  ^  &  << >>  + -  * / %  ! - ~
 * Numbers are 64-bit integers (signed against unsigned compares by value) or reals; text is in
 * double or single quotes; =~ matches a text against a wildcard pattern ('*', '?').
 * An enumeration compares with a number, or with a text: one of its labels.
 *
 * A comparison of a field that the event does not have is false (so its negation is true);
 * has(field) asks. A name that no event class has is an error, not a filter that never matches.
 *
 * Threads: a compiled filter is immutable; any number of threads may evaluate it.
 */
#ifndef KY_QUERY_FILTER_H
#define KY_QUERY_FILTER_H

#include "ctf/decode/decode.h"

struct ky_filter;
struct ky_operand; /* query/program.h */

/* What is known of an event class before looking at an event. */
enum ky_verdict {
	KY_NEVER,  /* no event of it matches */
	KY_ALWAYS, /* every one does */
	KY_DEPENDS,
};

/*
 * Compile @text for the events of @traces (borrowed; they must outlive the filter).
 *
 * On failure KYMO_E_INVALID: err->line is 1, err->column the place in @text; or KYMO_E_MEMORY.
 */
int ky_filter_compile(const char *text, const struct ky_trace_class *const *traces, size_t n_traces,
		      struct ky_filter **filter, struct kymo_error *err);
void ky_filter_free(struct ky_filter *filter); /* NULL is fine */

/*
 * Does @text compare a context field ($ctx.NAME) that no event of @traces has? Then NAME is written to @name, of
 * @size bytes: a caller that knows how a recording gets such a field can say so.
 */
bool ky_filter_missing_context(const char *text, const struct ky_trace_class *const *traces,
			       size_t n_traces, char *name, size_t size);

/*
 * Does @text compare something with a text that has '*' or '?' by == != or in, which take these as they are? Then that text is
 * written to @pattern, of @size bytes, and its place to @column.
 */
bool ky_filter_literal_glob(const char *text, char *pattern, size_t size, uint32_t *column);

/* @cls belongs to traces[@trace] of the call above. */
enum ky_verdict ky_filter_verdict(const struct ky_filter *filter, size_t trace,
				  const struct ky_event_class *cls);

struct ky_code;

/* What is evaluated for @cls (query/program.h) when its verdict DEPENDS; else NULL. */
const struct ky_code *ky_filter_code(const struct ky_filter *filter, size_t trace,
				     const struct ky_event_class *cls);

/* What the expression is for @event of traces[@trace], of any type; text is borrowed from it. */
struct ky_operand ky_filter_value(const struct ky_filter *filter, size_t trace,
				  const struct ky_event *event);

/* Does @event match? Damaged fields make their comparison false. */
bool ky_filter_match(const struct ky_filter *filter, size_t trace, const struct ky_event *event);

#endif
