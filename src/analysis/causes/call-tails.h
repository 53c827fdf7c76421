/* SPDX-License-Identifier: MIT */
/*
 * Tails of system calls: calls of a process that mostly are fast, and at times slow for a reason that is not the call's
 * purpose. Threads: one at a time.
 */
#ifndef KY_ANALYSIS_CAUSES_CALL_TAILS_H
#define KY_ANALYSIS_CAUSES_CALL_TAILS_H

#include "analysis/causes/part-sums.h"

struct ky_call_tail {
	const struct ky_thread *thread; /* one of the process */
	uint32_t syscall;
	uint64_t n, p50_ns, p99_ns, max_ns; /* percentiles are exact */
	uint64_t excess_ns;		    /* what those from p99 on take beyond the median */
	struct ky_part_sums slow;	    /* their parts, the largest first */
};

struct ky_call_tails {
	KY_VEC(struct ky_call_tail) list; /* the largest excess first */
};

/*
 * @chosen: waiting for a CPU is a reason as well; else it is one of the machine. At most @max of the calls that ended in the range and at the threads of @focus. 0 or KYMO_E_MEMORY; to be freed in any
 * case.
 */
int ky_call_tails_find(const struct ky_causes *causes, const struct ky_focus *focus, bool chosen,
		       size_t max, struct ky_call_tails *tails);
void ky_call_tails_fini(struct ky_call_tails *tails);

#endif
