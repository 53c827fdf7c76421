/* SPDX-License-Identifier: MIT */
/* A read graph that ends when its answer is no longer wanted. */
#include <stdlib.h>

#include "base/error.h"
#include "view/traces/view-internal.h"

/* Asking costs a system call: once for so many events, or batches. */
#define ASK_EVENTS  65536
#define ASK_BATCHES 1024

struct stage {
	struct ky_stage base;
	const struct ky_view_stop *stop;
	size_t n_events, n_batches; /* since the last question */
};

static int view_flow_stage_next(struct ky_flow *flow, struct ky_batch *batch,
				struct kymo_error *err)
{
	struct stage *stage = (struct stage *)flow;
	int ret;

	if (stage->n_events >= ASK_EVENTS || ++stage->n_batches >= ASK_BATCHES) {
		stage->n_events = stage->n_batches = 0;
		if (stage->stop->is_over(stage->stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
	}
	ret = ky_flow_next(stage->base.input, batch, err);
	stage->n_events += ret > 0 ? batch->n_events : 0;
	return ret;
}

static const struct ky_flow_ops stage_ops = {
	.next = view_flow_stage_next,
	.seek = ky_stage_seek,
	.broken = ky_stage_broken,
	.close = ky_stage_close,
};

int ky_view_flow(const struct ky_view *view, const char *filter, int64_t begin_ns, int64_t end_ns,
		 const struct ky_view_stop *stop, struct ky_flow **flow, struct kymo_error *err)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct ky_strbuf expression = KY_STRBUF_INIT;
	struct ky_selection selection;
	int ret;

	if (!stage)
		return ky_error_nomem(err);
	ky_selection_init(&selection);
	selection.begin_ns = begin_ns;
	selection.end_ns = end_ns;
	ret = ky_view_expression(filter, &expression, &selection.filter, err);
	if (ret == KYMO_OK)
		ret = ky_flow_open_selected(view->set, &selection, &stage->base.input, err);
	ky_strbuf_fini(&expression);
	if (ret < 0) {
		free(stage);
		return ret;
	}
	stage->base.flow.ops = &stage_ops;
	stage->stop = stop;
	return ky_view_match(&stage->base.flow, filter, false, flow, err);
}
