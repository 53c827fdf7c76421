/* SPDX-License-Identifier: MIT */
/* What the files of the program's own trackers share: latency.c, latency-clock.c, latency-file.c. */
#ifndef KY_TRACER_LATENCY_H
#define KY_TRACER_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/latency-file.h"

struct ky_process;

/* A group is a cache line. A key is in its own group, or in one of the next ones if that was full. */
#define KY_LATENCY_GROUPS      4096u
#define KY_LATENCY_GROUP_SLOTS 4u

struct ky_latency_slot {
	uint64_t key, state;
};

struct ky_latency_group {
	struct ky_latency_slot slots[KY_LATENCY_GROUP_SLOTS];
} __attribute__((aligned(64)));

/*
 * What the process needs to know: private memory, so forked children have it as it was. It is made with the first tracker,
 * for programs without trackers are not to pay for it when they start.
 *
 * A tracker has the same number in the files of a process and its children. A name is written to a place of its own, and gets
 * its number with one store. Of two threads with the same name one comes first, and a place is wasted.
 */
struct ky_latency_table {
	struct ky_latency_group groups[KY_LATENCY_GROUPS];
	/* Pairs that are not in their own group. Raised before such a pair can be seen, lowered after it is gone. */
	uint32_t n_elsewhere;
	uint32_t n_places;
	const char *numbered[KY_LATENCY_TRACKERS_MAX];
	char places[2 * KY_LATENCY_TRACKERS_MAX][KY_LATENCY_NAME_BYTES];
};

/* NULL: no tracker was used so far. */
extern struct ky_latency_table *ky_latency_table __attribute__((visibility("hidden")));

/* The clock of durations: counts ticks, of which this is the rate. */
struct ky_latency_clock {
	bool is_ready, is_tsc; /* else ticks are ns */
	uint64_t rate;	       /* ns * 2^32 per tick */
	uint64_t next;	       /* when it is to be corrected, in ticks */
	ptrdiff_t rseq_area;   /* where threads have the number of their CPU; 0: nowhere */
};

extern struct ky_latency_clock ky_latency_clock __attribute__((visibility("hidden")));

/* Choose the clock, unless that was done. Takes some 20 us and system calls. Any thread; signal handlers. */
void ky_latency_clock_begin(struct ky_process *process);
/* Measure the rate anew. Any thread; signal handlers. */
void ky_latency_clock_correct(struct ky_process *process);

/*
 * The number of the tracker @name, in this process' file, which it makes if necessary. < 0: none. Any thread; signal
 * handlers.
 */
int ky_latency_tracker_find(struct ky_process *process, const char *name);

#endif
