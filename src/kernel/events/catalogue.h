/* SPDX-License-Identifier: MIT */
/*
 * The events that this kernel offers (catalogue.c), and choosing among them by name (catalogue-choose.c).
 * Threads: one at a time per catalogue.
 */
#ifndef KY_KERNEL_EVENTS_CATALOGUE_H
#define KY_KERNEL_EVENTS_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "ctf/model/model.h"
#include "kernel/tracefs/tracefs.h"

struct ky_event_source {
	const char *system, *event; /* tracefs: "sched", "sched_switch" */
	const char *name;	    /* in the trace: "sched_switch", "syscall_entry_openat" */
	bool selected, added;	    /* added: while recording */
	bool of_bpf; /* a call that tracefs does not have, of 32 bits or unknown: compat-calls.h */
	unsigned int stacks; /* KY_STACK_* */
	unsigned int group;  /* the session's group of buffers; 0: the main buffers */
	const char *format;  /* its description, @format_len bytes; NULL: tracefs has it */
	size_t format_len;
	const char *filter; /* an expression (docs/filter.md): only those; NULL: all */
	/* Filled in by the session, once formats are read: */
	uint16_t id;				  /* its records' common_type */
	const struct ky_event_class *event_class; /* NULL when hidden */
	const char *own_filter;	   /* what was asked for, without what the choice by name adds */
	const char *kernel_filter; /* what the kernel evaluates of the filter */
	bool never;		   /* the filter is true of none */
	bool off;		   /* switched off while recording */
	bool hidden; /* recorded by the kernel, but only to learn from: not in the trace */
};

struct ky_catalogue {
	struct ky_arena arena;
	KY_VEC(struct ky_event_source) events; /* sorted by system, then event */
};

/* List all events; formats are not read. 0, KYMO_E_IO or KYMO_E_MEMORY; fini after failure too. */
int ky_catalogue_load(struct ky_catalogue *catalogue, const struct ky_tracefs *fs,
		      struct kymo_error *err);
/* One more, before any is selected: an event of a probe. 0 or KYMO_E_MEMORY. */
int ky_catalogue_add(struct ky_catalogue *catalogue, const char *system, const char *event,
		     const char *name, bool selected);
/*
 * The calls of 32-bit programs and those that the kernel does not know, once its own events are there.
 * 0 or KYMO_E_MEMORY.
 */
int ky_catalogue_add_calls(struct ky_catalogue *catalogue);
void ky_catalogue_fini(struct ky_catalogue *catalogue);

/*
 * Select (@on) or deselect what @pattern matches: a glob over the trace's name, tracefs's
 * "event", "system:event" or "system/event"; or a system's name, for all of it. "syscall:" and a glob:
 * the system calls of these names, entry and exit.
 * Returns how many events matched, or KYMO_E_NOT_FOUND with the nearest names in the hint.
 */
int ky_catalogue_select(struct ky_catalogue *catalogue, const char *pattern, bool on,
			struct kymo_error *err);

/*
 * Select by a rule: patterns between commas, applied in order; '!' before one takes its events out
 * again; "default" stands for the default set. " if EXPR" behind them: only events for which that is
 * true, or what an earlier rule says of the same event. 0, KYMO_E_NOT_FOUND as above.
 */
int ky_catalogue_select_rule(struct ky_catalogue *catalogue, const char *rule,
			     struct kymo_error *err);

/*
 * Of which events ky_catalogue_select_rule() would speak, and with which filter, without selecting them.
 * @chosen: one for each of catalogue->events, false before; *filter: NULL: none. 0, KYMO_E_NOT_FOUND.
 */
int ky_catalogue_match_rule(struct ky_catalogue *catalogue, const char *rule, bool *chosen,
			    const char **filter, struct kymo_error *err);

/*
 * Does a pattern of @rule choose calls that tracefs does not have? Those of 32 bits begin with "compat_", and in those
 * of unknown 64-bit ones is the word "unknown"; others match none of them.
 */
bool ky_catalogue_rule_is_of_bpf(const char *rule);

/* The event's description, as in tracefs's format files. 0, KYMO_E_IO ..., KYMO_E_MEMORY. */
int ky_event_source_format(const struct ky_event_source *source, const struct ky_tracefs *fs,
			   struct ky_strbuf *text, struct kymo_error *err);

/* Does @pattern (as above) match the event? */
bool ky_catalogue_matches(const struct ky_event_source *source, const char *pattern);

/* The event, or NULL. */
struct ky_event_source *ky_catalogue_find(struct ky_catalogue *catalogue, const char *system,
					  const char *event);

/* The events that are recorded by default: those that the reports need. Events this kernel lacks are left out. */
void ky_catalogue_select_default(struct ky_catalogue *catalogue);

/* The default as a text, for the help. */
extern const char ky_catalogue_default_text[];

/* What tracefs's events of system calls begin with: entry, exit. */
extern const char *const ky_catalogue_call_prefixes[2];

#endif
