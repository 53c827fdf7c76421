/* SPDX-License-Identifier: MIT */
/*
 * System calls one by one, for report syscalls: the longest, all of them, and how long those of each
 * name took.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_CALLS_SINGLE_CALLS_H
#define KY_ANALYSIS_CALLS_SINGLE_CALLS_H

#include "analysis/reports/report.h"

extern const struct ky_table_def ky_calls_top, ky_calls_log, ky_calls_freq;

struct ky_calls {
	struct ky_happenings single;
	bool wants_freqs;	      /* else none are counted */
	KY_VEC(struct ky_freq) freqs; /* by system call */
};

/* @top, @log and @freq are numbers of tables of @report. */
void ky_calls_init(struct ky_calls *calls, const struct ky_report_options *options,
		   const struct ky_report *report, size_t top, size_t log, size_t freq);
void ky_calls_fini(struct ky_calls *calls);
/* A call that was measured. 0 or KYMO_E_MEMORY. */
int ky_calls_add(struct ky_calls *calls, const struct ky_call *call);

/* The rows of ky_calls_top and ky_calls_log; nothing may be added after it. */
void ky_calls_fill(struct ky_calls *calls, const struct ky_model *model, struct ky_table *top,
		   struct ky_table *log);
/* Those of ky_calls_freq, the most frequent calls first; @limit: of how many at most, 0: all. 0 or KYMO_E_MEMORY. */
int ky_calls_fill_freq(const struct ky_calls *calls, const struct ky_model *model,
		       struct ky_table *table, uint64_t limit);

#endif
