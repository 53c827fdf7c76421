/* SPDX-License-Identifier: MIT */
/*
 * A cell over time: what was added in the last period, and in the last 1, 5 and 15 minutes. The past is kept in slots
 * of five seconds, of which only buckets with something in them take memory.
 * Threads: one at a time per series.
 */
#ifndef KY_LATENCY_SERIES_H
#define KY_LATENCY_SERIES_H

#include <stdbool.h>

#include "base/vec.h"
#include "latency/series/histogram.h"

#define KY_SERIES_SLOT_NS 5000000000u
#define KY_SERIES_SLOTS	  180u /* 15 minutes */

enum ky_past {
	KY_PAST_NOW, /* the last period */
	KY_PAST_1_MIN,
	KY_PAST_5_MIN,
	KY_PAST_15_MIN,
	KY_PASTS,
};

/* Slots of a window that lie behind the present one. */
uint32_t ky_past_slots(enum ky_past window);
/* "now", "1m", "5m", "15m"; static. */
const char *ky_past_name(enum ky_past window);

struct ky_series_slot;

struct ky_series {
	struct ky_latency_key key;
	bool is_keyed; /* the kernel's cell is in the table */
	struct ky_series *next_of_hash;
	char *name;  /* of the sub-key: "read", "vda write", "timer"; foreign text */
	char *owner; /* of who: "postgres", "alice", "/system.slice"; foreign text; NULL: nobody's */
	struct ky_histogram now;     /* the last period */
	struct ky_histogram total;   /* since the beginning */
	struct ky_histogram present; /* the slot that is being filled */
	struct ky_latency_cell last; /* what the kernel had when it was last read */
	uint64_t changed_slot;	     /* the last one in which something was added */
	KY_VEC(struct ky_series_slot *) slots;
};

struct ky_series *ky_series_new(const struct ky_latency_key *key);
void ky_series_free(struct ky_series *series);

/* @cell is what the kernel has now; @max_ns of the period. */
void ky_series_take(struct ky_series *series, const struct ky_latency_cell *cell, uint64_t max_ns,
		    uint64_t slot);
/* The same of what was added, perhaps not all of the period. */
void ky_series_add(struct ky_series *series, const struct ky_histogram *added, uint64_t slot);
/* Slot @slot begins: put the present one away, forget what is too old. 0 or KYMO_E_MEMORY. */
int ky_series_turn(struct ky_series *series, uint64_t slot);
/* What was added in @window. @slot: the present one. */
void ky_series_past(const struct ky_series *series, enum ky_past window, uint64_t slot,
		    struct ky_histogram *histogram);

#endif
