/* SPDX-License-Identifier: MIT */
/* Sums of parts: by cause, by whom and in which call. Threads: one at a time per object. */
#ifndef KY_ANALYSIS_CAUSES_PART_SUMS_H
#define KY_ANALYSIS_CAUSES_PART_SUMS_H

#include "analysis/causes/causes.h"

struct ky_part_sum {
	struct ky_part like; /* without times, and without what the sums do not distinguish */
	uint64_t total_ns, count, longest_ns;
	uint64_t slow_ns;     /* in the slow members */
	uint64_t doubtful_ns; /* of parts that are doubtful */
	uint64_t n_members;   /* that have one */
	uint64_t last_member; /* + 1 */
	uint32_t next;	      /* with the same hash, + 1 */
};

/* What the sums distinguish, beside the cause. */
enum ky_part_detail {
	KY_PART_WHOSE = 1, /* the thread that has the part */
	KY_PART_WHO = 2,   /* the thread, the interrupt, the device, the futex that made it wait */
	KY_PART_CALL = 4,  /* the call that the thread is in, and its file */
};

struct ky_part_sums {
	unsigned int details; /* enum ky_part_detail */
	/* Threads of a group count as its first one, by their index; NULL: each for itself. */
	const struct ky_thread *const *groups;
	struct ky_map by_hash;
	KY_VEC(struct ky_part_sum) list;
	uint64_t total_ns;
};

/* All zero but for @details and @groups is empty. */
void ky_part_sums_fini(struct ky_part_sums *sums);
/* Add a part of member number @member. 0 or KYMO_E_MEMORY. */
int ky_part_sums_add(struct ky_part_sums *sums, const struct ky_part *part, uint64_t member,
		     bool slow);
/* The largest first. */
void ky_part_sums_sort(struct ky_part_sums *sums);

#endif
