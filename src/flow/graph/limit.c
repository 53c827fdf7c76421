/* SPDX-License-Identifier: MIT */
/* The stage behind the merge that begins late and ends early, by count. */
#include "flow/graph/stages.h"

#include <stdlib.h>

#include "base/error.h"

struct limit {
	struct ky_stage base;
	uint64_t skip, left;
	uint64_t first_skip, first_left;
};

/* Leave out the first events; false when the whole batch goes. */
static bool skip_first(struct limit *l, struct ky_batch *batch)
{
	size_t n = l->skip < batch->n_events ? (size_t)l->skip : batch->n_events;

	if (!n)
		return true;
	l->skip -= n;
	batch->events += n;
	batch->n_events -= n;
	/* Damage passes at any place. */
	if (batch->loss && !batch->loss->damage)
		batch->loss = NULL;
	return batch->n_events > 0 || batch->loss;
}

static int limit_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct limit *l = (struct limit *)flow;
	int ret;

	if (!l->left)
		return 0;
	do {
		ret = ky_flow_next(l->base.input, batch, err);
		if (ret <= 0)
			return ret;
	} while (!skip_first(l, batch));
	if (batch->n_events > l->left)
		batch->n_events = (size_t)l->left;
	if (l->left != UINT64_MAX)
		l->left -= batch->n_events;
	return 1;
}

static int limit_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct limit *l = (struct limit *)flow;

	l->skip = l->first_skip;
	l->left = l->first_left;
	return ky_flow_seek(l->base.input, ns, err);
}

static const struct ky_flow_ops limit_ops = {
	.next = limit_next,
	.seek = limit_seek,
	.close = ky_stage_close,
};

int ky_limit_open(struct ky_flow *input, uint64_t skip, uint64_t head, struct ky_flow **flow,
		  struct kymo_error *err)
{
	struct limit *l = calloc(1, sizeof(*l));

	if (!l) {
		ky_flow_close(input);
		return ky_error_nomem(err);
	}
	l->base.flow.ops = &limit_ops;
	l->base.input = input;
	l->skip = l->first_skip = skip;
	l->left = l->first_left = head;
	*flow = &l->base.flow;
	return KYMO_OK;
}
