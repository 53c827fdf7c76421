/* SPDX-License-Identifier: MIT */
/*
 * An input of a merge that has no events: it holds the others back where a trace that is being written may still get streams
 * with earlier ones.
 */
#include <stdlib.h>

#include "base/error.h"
#include "flow/graph/stages.h"

struct bound {
	struct ky_flow flow;
	const struct ky_trace *trace;
};

static int bound_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	const struct ky_trace *trace = ((struct bound *)flow)->trace;

	(void)err;
	*batch = (struct ky_batch){.has_next = true, .next_ns = ky_trace_live_until(trace)};
	return trace->live.is_written ? KYMO_E_AGAIN : 0;
}

static void bound_close(struct ky_flow *flow)
{
	free(flow);
}

static const struct ky_flow_ops bound_ops = {
	.next = bound_next,
	.close = bound_close,
};

int ky_bound_open(const struct ky_trace *trace, struct ky_flow **flow, struct kymo_error *err)
{
	struct bound *bound = calloc(1, sizeof(*bound));

	if (!bound)
		return ky_error_nomem(err);
	bound->flow.ops = &bound_ops;
	bound->trace = trace;
	*flow = &bound->flow;
	return KYMO_OK;
}
