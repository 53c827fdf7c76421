/* SPDX-License-Identifier: MIT */
/* The table of report locks on locks of the kernel. Threads: one at a time per object. */
#ifndef KY_ANALYSIS_RESOURCES_LOCKS_KERNEL_H
#define KY_ANALYSIS_RESOURCES_LOCKS_KERNEL_H

#include "analysis/reports/report.h"

struct ky_kernel_lock;

/* All zero is empty. */
struct ky_kernel_locks {
	struct ky_aggregation waits;   /* what: the lock's index */
	struct ky_aggregation holders; /* the same; sums[0]: how long others waited */
	struct ky_map by_lock;	       /* -> its index + 1 */
	KY_VEC(struct ky_kernel_lock) list;
};

extern const struct ky_table_def ky_kernel_locks_table;

/* 0 or KYMO_E_MEMORY. */
int ky_kernel_locks_add(struct ky_kernel_locks *locks, const struct ky_contention *wait);
int ky_kernel_locks_fill(struct ky_kernel_locks *locks, const struct ky_model *model,
			 struct ky_table *table);
void ky_kernel_locks_fini(struct ky_kernel_locks *locks);

#endif
