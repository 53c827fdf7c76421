/* SPDX-License-Identifier: MIT */
/* A read graph that ends when its answer is no longer wanted. */
#include <stdlib.h>

#include "base/error.h"
#include "view/traces/view-internal.h"

/* Asking costs a system call: once for so many events, batches, or packets. */
#define ASK_EVENTS  65536
#define ASK_BATCHES 1024
#define ASK_PACKETS 64

struct stage {
	struct ky_stage base;
	const struct ky_view_stop *stop;
	bool is_over;
	size_t n_events, n_batches, n_packets; /* since the last question */
};

static bool view_flow_ask(struct stage *stage)
{
	stage->n_events = stage->n_batches = stage->n_packets = 0;
	stage->is_over |= stage->stop->is_over(stage->stop->data);
	return stage->is_over;
}

/* Sources ask before each packet: a filter that selects nothing gives this stage no batch. */
static bool view_flow_is_over(void *data)
{
	struct stage *stage = data;

	return stage->is_over || (++stage->n_packets >= ASK_PACKETS && view_flow_ask(stage));
}

static int view_flow_end(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_INTERRUPTED, "the client has closed the connection");
}

static int view_flow_stage_next(struct ky_flow *flow, struct ky_batch *batch,
				struct kymo_error *err)
{
	struct stage *stage = (struct stage *)flow;
	int ret;

	if ((stage->n_events >= ASK_EVENTS || ++stage->n_batches >= ASK_BATCHES) &&
	    view_flow_ask(stage))
		return view_flow_end(err);
	ret = ky_flow_next(stage->base.input, batch, err);
	if (stage->is_over)
		return view_flow_end(err);
	stage->n_events += ret > 0 ? batch->n_events : 0;
	return ret;
}

static const struct ky_flow_ops stage_ops = {
	.next = view_flow_stage_next,
	.seek = ky_stage_seek,
	.broken = ky_stage_broken,
	.close = ky_stage_close,
};

int ky_view_flow_only(const struct ky_view *view, const bool *only, const char *filter,
		      int64_t begin_ns, int64_t end_ns, const struct ky_view_stop *stop,
		      struct ky_flow **flow, struct kymo_error *err)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct ky_strbuf expression = KY_STRBUF_INIT;
	struct ky_selection selection;
	int ret;

	if (!stage)
		return ky_error_nomem(err);
	stage->base.flow.ops = &stage_ops;
	stage->stop = stop;
	ky_selection_init(&selection);
	selection.only = only;
	selection.begin_ns = begin_ns;
	selection.end_ns = end_ns;
	selection.is_over = view_flow_is_over;
	selection.over_data = stage;
	ret = ky_view_expression(filter, &expression, &selection.filter, err);
	if (ret == KYMO_OK)
		ret = ky_flow_open_selected(view->set, &selection, &stage->base.input, err);
	ky_strbuf_fini(&expression);
	if (ret < 0) {
		free(stage);
		return ret;
	}
	return ky_view_match(&stage->base.flow, filter, flow, err);
}

int ky_view_flow(const struct ky_view *view, const char *filter, int64_t begin_ns, int64_t end_ns,
		 const struct ky_view_stop *stop, struct ky_flow **flow, struct kymo_error *err)
{
	return ky_view_flow_only(view, NULL, filter, begin_ns, end_ns, stop, flow, err);
}
