/* SPDX-License-Identifier: MIT */
/* Stages that select.c combines. Each takes its input over, on failure too. */
#ifndef KY_FLOW_GRAPH_STAGES_H
#define KY_FLOW_GRAPH_STAGES_H

#include "flow/graph/flow.h"
#include "query/filter.h"

/*
 * Delivers the events of one stream that match @filter (borrowed); its trace has number @trace in
 * the filter. @input is the stream's source.
 */
int ky_filter_stage_open(struct ky_flow *input, const struct ky_filter *filter, size_t trace,
			 struct ky_flow **flow, struct kymo_error *err);

/*
 * An input of a merge without events. Before @trace is complete, nothing after trace->live.until_ns
 * is certain.
 */
int ky_bound_open(const struct ky_trace *trace, struct ky_flow **flow, struct kymo_error *err);

/*
 * After a merge, or a single stream: drops the first @skip events, and delivers at most @head. A
 * seek restarts the counts.
 */
int ky_limit_open(struct ky_flow *input, uint64_t skip, uint64_t head, struct ky_flow **flow,
		  struct kymo_error *err);

#endif
