/* SPDX-License-Identifier: MIT */
/*
 * The pairs that are open for longer than a tracker's time-out, as its caller knows: found by key and begin in constant
 * time, for a tracker may have very many.
 *
 * Threads: one at a time per table.
 */
#ifndef KY_LATENCY_TRACKER_TOLD_H
#define KY_LATENCY_TRACKER_TOLD_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/vec.h"
#include "latency/bpf/tracker-layout.h"

struct ky_told;

struct ky_told_table {
	struct ky_map by_hash; /* -> struct ky_told, chained */
	KY_VEC(struct ky_told *) all;
	uint32_t look; /* the number of the present look */
};

/* All zero is an empty table. */
void ky_told_fini(struct ky_told_table *table);

/* A look at all open pairs begins. */
void ky_told_begin(struct ky_told_table *table);
/* The pair is open at this look. 1: the table has it; 0: it is new, and the table has it now; KYMO_E_MEMORY. */
int ky_told_see(struct ky_told_table *table, const struct ky_tracker_key *key, uint64_t begin_ns);
/* The pair has ended. True: it was in the table. */
bool ky_told_end(struct ky_told_table *table, const struct ky_tracker_key *key, uint64_t begin_ns);
/* Forget the pairs that the last look did not see. */
void ky_told_sweep(struct ky_told_table *table);

#endif
