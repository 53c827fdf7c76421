/* SPDX-License-Identifier: MIT */
/* Stages that select.c puts together. Each takes its input over, on failure too. */
#ifndef KY_FLOW_GRAPH_STAGES_H
#define KY_FLOW_GRAPH_STAGES_H

#include "flow/graph/flow.h"
#include "query/filter.h"

/*
 * Events of one stream that match @filter (borrowed); its trace is number @trace of the filter's.
 * @input is the stream's source.
 */
int ky_filter_stage_open(struct ky_flow *input, const struct ky_filter *filter, size_t trace,
			 struct ky_flow **flow, struct kymo_error *err);

/* An input of a merge without events: nothing beyond trace->live.until_ns is certain before @trace is complete. */
int ky_bound_open(const struct ky_trace *trace, struct ky_flow **flow, struct kymo_error *err);

/*
 * Behind a merge, or a single stream: without the first @skip events, no more than @head.
 * Seeking counts anew.
 */
int ky_limit_open(struct ky_flow *input, uint64_t skip, uint64_t head, struct ky_flow **flow,
		  struct kymo_error *err);

#endif
