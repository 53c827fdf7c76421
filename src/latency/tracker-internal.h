/* SPDX-License-Identifier: MIT */
#ifndef KY_LATENCY_TRACKER_INTERNAL_H
#define KY_LATENCY_TRACKER_INTERNAL_H

#include "base/hash.h"
#include "latency/tracker.h"

/* An event of tracefs: "sched", "sched_switch". */
struct ky_tracker_event {
	char system[64], event[96];
};

struct ky_tracker_definition {
	char name[KY_TRACKER_NAME_BYTES];
	struct ky_tracker_event begin, end;
	char *key_names[KY_TRACKER_KEYS];
	struct ky_tracker_config config;
};

/* Parse and bind @text to this kernel's events. Errors as of ky_tracker_open(). fini in every case. */
int ky_tracker_define(const char *text, struct ky_tracker_definition *definition,
		      struct kymo_error *err);
void ky_tracker_definition_fini(struct ky_tracker_definition *definition);

struct ky_format;

/*
 * tracker-filter.c: the steps of filter @text, over the event that @format describes. KYMO_E_INVALID with the column in
 * @text, KYMO_E_MEMORY.
 */
int ky_tracker_filter(const char *text, const struct ky_format *format,
		      struct ky_tracker_side *side, struct kymo_error *err);
/* One more key, an expression that is a name. Errors as above. */
int ky_tracker_key(const char *text, const struct ky_format *format, struct ky_tracker_side *side,
		   struct kymo_error *err);

#endif
