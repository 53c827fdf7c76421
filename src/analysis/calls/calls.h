/* SPDX-License-Identifier: MIT */
/* Calls of functions of a pass: by function, as a tree, one by one; for report calls. */
#ifndef KY_ANALYSIS_CALLS_CALLS_H
#define KY_ANALYSIS_CALLS_CALLS_H

#include "analysis/reports/report.h"

/* Of an entry of ky_calls.functions: its own sums. */
enum {
	KY_CALLS_ALL,	/* all of them; entry->stats has those that returned */
	KY_CALLS_SELF,	/* ns, without the calls in them */
	KY_CALLS_TOTAL, /* ns, of those that are in no other call of the same function */
	KY_CALLS_CUT,	/* calls with an unknown end */
};

struct ky_trace_symbols;

struct ky_calls_path {
	uint32_t frame; /* of the tree */
	uint32_t parent;
	bool is_recursive; /* a call around it is of the same function */
};

struct ky_calls {
	struct ky_model *model;
	const struct ky_report_options *options;
	struct ky_stack_tree *tree;
	struct ky_trace_symbols *symbols;
	bool has_symbols;		    /* they were asked for */
	struct kymo_error err;		    /* why there are none */
	KY_VEC(struct ky_calls_path) paths; /* by the model's numbers */
	struct ky_map nodes;		    /* path and group -> node + 1 */
	struct ky_map threads;		    /* thread -> number in the chart + 1 */
	struct ky_aggregation functions;    /* what: a frame of the tree */
	struct ky_records top;		    /* struct ky_chart_call */
	struct ky_call_chart *chart;
	bool wants_top, wants_chart;
	uint64_t n_calls; /* that were chosen */
};

/* Subscribes to @model. NULL: out of memory. @options outlive it. @top: how many of the longest calls are kept; 0: all. */
struct ky_calls *ky_calls_begin(struct ky_model *model, const struct ky_report_options *options,
				bool wants_top, uint64_t top, bool wants_chart);
void ky_calls_free(struct ky_calls *calls);

#endif
