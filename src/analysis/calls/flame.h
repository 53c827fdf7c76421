/* SPDX-License-Identifier: MIT */
/* Stacks of a pass, collected to a tree; for report flame. */
#ifndef KY_ANALYSIS_CALLS_FLAME_H
#define KY_ANALYSIS_CALLS_FLAME_H

#include "analysis/reports/report.h"
#include "analysis/stacks/stack-tree.h"

/* What --of chooses. */
enum ky_flame_of {
	KY_FLAME_OF_CPU,     /* samples of clocks and cycles: what ran */
	KY_FLAME_OF_OFF_CPU, /* stacks of switches: how long threads were off the CPU from there */
	KY_FLAME_OF_WAKEUP,  /* stacks of wake-ups */
	KY_FLAME_OF_FAULTS,  /* page faults */
	KY_FLAME_OF_MEMORY,  /* allocations of libkymo-libc, by their bytes */
	KY_FLAME_OF_EVENTS,  /* events, or sources of samples, that match a pattern */
};

/* One of these, or a pattern: NULL is KY_FLAME_OF_CPU. */
enum ky_flame_of ky_flame_of(const char *text);

struct ky_flame;

/* Subscribes to @model. NULL: out of memory. @options outlive it. */
struct ky_flame *ky_flame_begin(struct ky_model *model, const struct ky_report_options *options);
void ky_flame_free(struct ky_flame *flame);

/* The tree, summed up, which the caller takes over and frees; NULL: out of memory. */
struct ky_stack_tree *ky_flame_take(struct ky_flame *flame);
uint64_t ky_flame_n_stacks(const struct ky_flame *flame); /* that were chosen */
uint64_t ky_flame_n_others(const struct ky_flame *flame); /* that --of left out */
/* The event or source of the first of those; NULL: there are none. */
const char *ky_flame_other(const struct ky_flame *flame);
/* Why names are missing; NULL: they are not. */
const char *ky_flame_problem(const struct ky_flame *flame);

#endif
