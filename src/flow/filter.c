/* SPDX-License-Identifier: MIT */
/*
 * The filter stage of one stream: passes on runs of events that match, as slices of the batch
 * that came in, so that nothing is copied.
 */
#include "flow/stages.h"

#include <stdlib.h>

#include "base/error.h"

struct filter_stage {
	struct ky_flow flow;
	struct ky_flow *input;
	const struct ky_filter *filter;
	size_t trace;
	struct ky_batch batch; /* what is left of the input's batch */
};

/* Cut the next run of matching events off the batch at hand. */
static size_t next_run(struct filter_stage *f)
{
	struct ky_batch *b = &f->batch;
	size_t n;

	while (b->n_events && !ky_filter_match(f->filter, f->trace, b->events)) {
		b->events++;
		b->n_events--;
	}
	for (n = 0; n < b->n_events; n++) {
		if (n && !ky_filter_match(f->filter, f->trace, &b->events[n]))
			break;
	}
	return n;
}

static int filter_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct filter_stage *f = (struct filter_stage *)flow;
	size_t n;
	int ret;

	for (;;) {
		n = next_run(f);
		/* A loss is told even when no event behind it matches. */
		if (n || f->batch.loss) {
			*batch = f->batch;
			batch->n_events = n;
			f->batch.events += n;
			f->batch.n_events -= n;
			f->batch.loss = NULL;
			return 1;
		}
		ret = ky_flow_next(f->input, &f->batch, err);
		if (ret <= 0) {
			f->batch = (struct ky_batch){.n_events = 0};
			return ret;
		}
	}
}

static int filter_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct filter_stage *f = (struct filter_stage *)flow;

	f->batch = (struct ky_batch){.n_events = 0};
	return ky_flow_seek(f->input, ns, err);
}

static void filter_close(struct ky_flow *flow)
{
	struct filter_stage *f = (struct filter_stage *)flow;

	ky_flow_close(f->input);
	free(f);
}

static const struct ky_flow_ops filter_ops = {
	.next = filter_next,
	.seek = filter_seek,
	.close = filter_close,
};

int ky_filter_stage_open(struct ky_flow *input, const struct ky_filter *filter, size_t trace,
			 struct ky_flow **flow, struct kymo_error *err)
{
	struct filter_stage *f = calloc(1, sizeof(*f));

	if (!f) {
		ky_flow_close(input);
		return ky_error_nomem(err);
	}
	f->flow.ops = &filter_ops;
	f->input = input;
	f->filter = filter;
	f->trace = trace;
	*flow = &f->flow;
	return KYMO_OK;
}
