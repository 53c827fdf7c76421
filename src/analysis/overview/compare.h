/* SPDX-License-Identifier: MIT */
/* Report compare: what two traces have of each thing, in slices of time, and whether that differs beyond noise. */
#ifndef KY_ANALYSIS_OVERVIEW_COMPARE_H
#define KY_ANALYSIS_OVERVIEW_COMPARE_H

#include "analysis/reports/report-parts.h"
#include "base/hash.h"

/* Each trace is so many slices of equal length: how much they differ is the noise. */
#define KY_COMPARE_SLICES 8

struct ky_compare_values {
	double values[KY_COMPARE_SLICES];
};

/* Of one side. */
struct ky_compare_side {
	const char *path;
	int64_t from_ns, until_ns; /* what of the trace is compared */
	int64_t begin_ns, end_ns;  /* of this, what it has events of; INT64_MAX, INT64_MIN: none */
	uint64_t n_calls;
};

/* Something that both sides may have: a cause, or a system call, of all threads of a name. */
struct ky_compare_item {
	const char *name;
	enum ky_cause cause;		    /* of times */
	uint32_t syscall;		    /* of calls; KY_NO_SYSCALL: it is a time */
	struct ky_compare_values times[2];  /* ns in each second */
	struct ky_compare_values counts[2]; /* calls in each second */
	struct ky_stats stats[2];	    /* of the calls' durations */
};

struct ky_compare {
	struct ky_model *model;
	struct ky_causes *causes;
	const struct ky_focus *focus;
	struct ky_compare_side sides[2];
	struct ky_names names;	    /* of threads -> number + 1 */
	struct ky_map items_by_key; /* -> place + 1 */
	uint32_t n_names;
	KY_VEC(struct ky_compare_item) items;
};

/* Fill sides and items from what @compare->causes has. 0, KYMO_E_INVALID (a trace is of no side), or KYMO_E_MEMORY. */
int ky_compare_find(struct ky_compare *compare);
void ky_compare_fini(struct ky_compare *compare);

double ky_compare_mean(const struct ky_compare_values *values);
/*
 * Do the means differ by more than the slices of each trace among themselves (t of Yuen's test, which leaves out the
 * smallest and the largest slice, above 4.5), and by a twentieth?
 */
bool ky_compare_differs(const struct ky_compare_values *a, const struct ky_compare_values *b);

#endif
