/* SPDX-License-Identifier: MIT */
/*
 * Calls of functions one by one, in the order of their ends: what a flame chart draws. Names are frames of a
 * ky_stack_tree.
 *
 * Memory: at most KY_CALL_CHART_MAX calls; more are counted. Threads: one at a time per chart.
 */
#ifndef KY_ANALYSIS_STACKS_CALL_CHART_H
#define KY_ANALYSIS_STACKS_CALL_CHART_H

#include "analysis/stacks/stack-tree.h"

#define KY_CALL_CHART_MAX (1u << 22)

struct ky_chart_call {
	int64_t begin_ns, end_ns;
	uint64_t self_ns;
	uint64_t number; /* in the order of begins */
	uint32_t thread; /* of ky_chart_thread */
	uint32_t frame;
	uint32_t depth;
	bool is_cut; /* its end is not known */
};

struct ky_chart_thread {
	int32_t tid, pid;
	const char *name; /* foreign text, in the tree's arena */
};

struct ky_call_chart {
	KY_VEC(struct ky_chart_call) calls;
	KY_VEC(struct ky_chart_thread) threads;
	uint64_t n_more; /* calls that found no room */
};

void ky_call_chart_fini(struct ky_call_chart *chart);
/* 0 or KYMO_E_MEMORY. */
int ky_call_chart_add(struct ky_call_chart *chart, const struct ky_chart_call *call);
/* By begins, callers first; @by_thread: one thread after the other. */
void ky_call_chart_sort(struct ky_call_chart *chart, bool by_thread);

#endif
