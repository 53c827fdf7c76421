/* SPDX-License-Identifier: MIT */
/*
 * What reports count system calls with: usages by (thread, call), with their durations and errors,
 * which can be added up by process, by name or over everybody.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_CALLS_SYSCALL_COUNTS_H
#define KY_ANALYSIS_CALLS_SYSCALL_COUNTS_H

#include "analysis/reports/aggregation.h"

struct ky_error_count {
	int number; /* as in errno */
	uint64_t count;
};

/* One system call of one thread, or of a group of them. */
struct ky_syscall_count {
	const struct ky_thread *thread; /* of a group: its first one */
	uint32_t syscall;
	struct ky_stats stats;
	uint64_t failed;
	KY_VEC(struct ky_error_count) errors;
	uint64_t group_calls; /* of a group: all of its calls */
};

/* All zero is an empty object. */
struct ky_syscall_counts {
	struct ky_arena arena; /* what the list points to */
	struct ky_map by_key;
	/* Those asked for last, by a part of the key: a thread makes few different calls at a time. */
	struct ky_syscall_count *recent[KY_AGGREGATION_RECENT];
	KY_VEC(struct ky_syscall_count *) list;
};

void ky_syscall_counts_fini(struct ky_syscall_counts *usages);
/* A call that was measured. 0 or KYMO_E_MEMORY. */
int ky_syscall_counts_add(struct ky_syscall_counts *usages, const struct ky_call *call);
/* Add up @from into @to, which is empty: its threads @by. Sorts @from. 0 or KYMO_E_MEMORY. */
int ky_syscall_counts_group(struct ky_syscall_counts *to, struct ky_syscall_counts *from,
			    enum ky_by by);
/* Sort what ky_syscall_counts_group() made: groups with the most calls first, in each its most frequent ones. */
void ky_syscall_counts_rank(struct ky_syscall_counts *groups);

/* The cell of a usage's errors by name, the most frequent first. Sorts them. 0 or KYMO_E_MEMORY. */
int ky_cell_errors(struct ky_table *table, struct ky_cell *cell,
		   const struct ky_syscall_count *usage);

#endif
