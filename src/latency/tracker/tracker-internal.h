/* SPDX-License-Identifier: MIT */
#ifndef KY_LATENCY_TRACKER_INTERNAL_H
#define KY_LATENCY_TRACKER_INTERNAL_H

#include "base/hash.h"
#include "kernel/condition/condition.h"
#include "latency/tracker/tracker.h"
#include "record/triggers/trigger-rule.h"

/* Where a probe is in programs' files. */
struct ky_tracker_probe {
	size_t n;
	bool is_return;
	struct {
		char *path;
		uint64_t offset, semaphore; /* in the file; semaphore 0: none */
	} places[KY_TRACKER_PLACES];
};

/* An event of tracefs: "sched", "sched_switch"; or a probe, then these are "". */
struct ky_tracker_event {
	char system[64], event[96];
	struct ky_tracker_probe probe;
};

struct ky_tracker_definition {
	char name[KY_TRACKER_NAME_BYTES];
	struct ky_tracker_event begin, end;
	char *key_names[KY_TRACKER_KEYS];
	struct ky_tracker_config config; /* for BPF programs */
	bool of_programs;		 /* both are events of programs: only `rule` says which */
	struct ky_trigger_rule rule;
	size_t rule_at; /* where its condition begins in the definition's text */
};

/* Parse and bind @text to this kernel's events. Errors as of ky_tracker_open(). fini in every case. */
int ky_tracker_define(const char *text, const struct ky_log *log,
		      struct ky_tracker_definition *definition, struct kymo_error *err);
void ky_tracker_definition_fini(struct ky_tracker_definition *definition);

struct ky_arena;
struct ky_format;
struct ky_log;

/* ---- tracker-probe.c ---------------------------------------------------------------------- */

/* Does @pattern name a probe: "uprobe:...", "uretprobe:...", "sdt:..."? */
bool ky_tracker_is_probe(const char *pattern);
/*
 * Find the probe, and say how @side fetches its fields, which @format describes as if the kernel had a record of them.
 * Errors as of ky_probes_add_function(). @event is to be cleaned up in every case.
 */
int ky_tracker_probe_find(const char *pattern, const struct ky_log *log, struct ky_arena *arena,
			  struct ky_tracker_event *event, struct ky_tracker_side *side,
			  struct ky_format *format, struct kymo_error *err);
void ky_tracker_event_fini(struct ky_tracker_event *event);
/* When @side has its keys and its condition: which fetches they need. */
void ky_tracker_probe_settle(struct ky_tracker_side *side);

struct ky_format_field;

/*
 * tracker-fetch.c: a fetch argument of the kernel's, "+8(%di):s32" of @len bytes. @field: only its kind, size and sign are
 * set. KYMO_E_UNSUPPORTED: a tracker cannot fetch that.
 */
int ky_tracker_fetch(const char *text, size_t len, struct ky_tracker_fetch *fetch,
		     struct ky_format_field *field, struct kymo_error *err);

/*
 * tracker-key.c: one more key of @side, an expression that is a name of @event's. KYMO_E_INVALID with the column in @text,
 * KYMO_E_MEMORY.
 */
int ky_tracker_key(const char *text, const struct ky_condition_event *event, struct ky_arena *arena,
		   struct ky_tracker_side *side, struct kymo_error *err);

#endif
