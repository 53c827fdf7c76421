/* SPDX-License-Identifier: MIT */
/*
 * The filter stage of one stream: has its input put the events where they shall go, and moves those
 * that match together.
 */
#include "flow/graph/stages.h"

#include <stdlib.h>

#include "base/error.h"

#define BATCH_EVENTS 64

struct filter_stage {
	struct ky_stage base;
	const struct ky_filter *filter;
	size_t trace;
	struct ky_event *room; /* where the next batch shall lie; NULL: in ->events */
	size_t n_room;
	int64_t until_ns;	 /* what is later may wait; INT64_MAX: nothing */
	struct ky_event *events; /* BATCH_EVENTS; NULL as long as there was always room */
};

/* How many of @batch match; they go to @to, which does not lie behind them. */
static size_t graph_filter_keep_matching(const struct filter_stage *f, const struct ky_batch *batch,
					 struct ky_event *to)
{
	size_t n = 0;

	for (size_t i = 0; i < batch->n_events; i++) {
		const struct ky_event *event = &batch->events[i];

		if (!ky_filter_match(f->filter, f->trace, event))
			continue;
		if (&to[n] != event)
			to[n] = *event;
		n++;
	}
	return n;
}

static int filter_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct filter_stage *f = (struct filter_stage *)flow;
	struct ky_event *to = f->room;
	size_t n_room = to ? f->n_room : BATCH_EVENTS;
	int64_t until_ns = to ? f->until_ns : INT64_MAX;
	int ret;

	f->room = NULL;
	if (!to && !f->events)
		f->events = malloc(BATCH_EVENTS * sizeof(*f->events));
	if (!to)
		to = f->events;
	if (!to)
		return ky_error_nomem(err);
	do {
		ky_flow_room(f->base.input, to, n_room, until_ns);
		/* One event has to be found, however late it is. */
		until_ns = INT64_MAX;
		ret = ky_flow_next(f->base.input, batch, err);
		if (ret <= 0)
			return ret;
		batch->n_events = graph_filter_keep_matching(f, batch, to);
		batch->events = to;
		/* A loss passes even when no event after it matches. */
	} while (!batch->n_events && !batch->loss);
	return 1;
}

static void filter_room(struct ky_flow *flow, struct ky_event *room, size_t n, int64_t until_ns)
{
	struct filter_stage *f = (struct filter_stage *)flow;

	f->room = room;
	f->n_room = n;
	f->until_ns = until_ns;
}

static void filter_fetch(const struct ky_flow *flow, size_t n_bytes)
{
	ky_flow_fetch(((const struct filter_stage *)flow)->base.input, n_bytes);
}

static void filter_close(struct ky_flow *flow)
{
	struct filter_stage *f = (struct filter_stage *)flow;

	free(f->events);
	ky_stage_close(flow);
}

static const struct ky_flow_ops filter_ops = {
	.next = filter_next,
	.seek = ky_stage_seek,
	.close = filter_close,
	.room = filter_room,
	.fetch = filter_fetch,
};

int ky_filter_stage_open(struct ky_flow *input, const struct ky_filter *filter, size_t trace,
			 struct ky_flow **flow, struct kymo_error *err)
{
	struct filter_stage *f = calloc(1, sizeof(*f));

	if (!f) {
		ky_flow_close(input);
		return ky_error_nomem(err);
	}
	f->base.flow.ops = &filter_ops;
	f->base.input = input;
	f->filter = filter;
	f->trace = trace;
	*flow = &f->base.flow;
	return KYMO_OK;
}
