/* SPDX-License-Identifier: MIT */
/*
 * Filter expressions over events. The compiler parses and checks an expression against the metadata
 * once, then compiles it for every event class, so that it can decide most events without decoding
 * them.
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
 *	$cpu		its CPU, where the packet has it
 *	$stream		the stream class's id
 *
 * Operators, weakest first: ||  &&  == != < <= > >= =~ in  |  ^  &  << >>  + -  * / %  ! - ~
 * Numbers are 64-bit integers (signed against unsigned compares by value) or reals; text is in
 * double or single quotes; =~ matches a text against a wildcard pattern ('*', '?').
 * An enumeration compares with a number, or with a text: one of its labels.
 *
 * A comparison with a field that the event does not have is false (so its negation is true);
 * has(field) tests for the field. A name that no event class has is an error, not a filter that
 * never matches.
 *
 * Threads: a compiled filter is immutable; any number of threads may evaluate it.
 */
#ifndef KY_QUERY_FILTER_H
#define KY_QUERY_FILTER_H

#include "ctf/decode/decode.h"

struct ky_filter;
struct ky_operand; /* query/program.h */

/* The result of a filter that is known for a whole event class. */
enum ky_verdict {
	KY_NEVER,  /* no event of the class matches */
	KY_ALWAYS, /* every event of the class matches */
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
 * Whether @text compares a context field ($ctx.NAME) that no event of @traces has. If so, the
 * function writes NAME to @name, of @size bytes. A caller that knows how a recording gets such a
 * field can suggest it.
 */
bool ky_filter_missing_context(const char *text, const struct ky_trace_class *const *traces,
			       size_t n_traces, char *name, size_t size);

/*
 * Whether @text compares something with a text that has '*' or '?' by ==, != or in, which take
 * these characters literally. If so, the function writes that text to @pattern, of @size bytes, and
 * its place to @column.
 */
bool ky_filter_literal_glob(const char *text, char *pattern, size_t size, uint32_t *column);

/* @cls belongs to traces[@trace] of the call above. */
enum ky_verdict ky_filter_verdict(const struct ky_filter *filter, size_t trace,
				  const struct ky_event_class *cls);

struct ky_code;

/* The program for @cls (query/program.h) when its verdict is DEPENDS; else NULL. */
const struct ky_code *ky_filter_code(const struct ky_filter *filter, size_t trace,
				     const struct ky_event_class *cls);

/*
 * The value of the expression for @event of traces[@trace], of any type; its text is borrowed from
 * the event.
 */
struct ky_operand ky_filter_value(const struct ky_filter *filter, size_t trace,
				  const struct ky_event *event);

/* Does @event match? Damaged fields make their comparison false. */
bool ky_filter_match(const struct ky_filter *filter, size_t trace, const struct ky_event *event);

#endif
