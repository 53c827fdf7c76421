/* SPDX-License-Identifier: MIT */
/* The stage behind the merge that begins late and ends early: by time, by count. */
#include "flow/stages.h"

#include <stdlib.h>

#include "base/error.h"

struct limit {
	struct ky_flow flow;
	struct ky_flow *input;
	int64_t end_ns;
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
	/* Damage is told wherever it is. */
	if (batch->loss && !batch->loss->damage)
		batch->loss = NULL;
	return batch->n_events > 0 || batch->loss;
}

static size_t until(const struct ky_batch *batch, int64_t end_ns)
{
	size_t n = 0;

	while (n < batch->n_events && batch->events[n].ns <= end_ns)
		n++;
	return n;
}

/* The merge is in order: nothing that follows the first event beyond the end is earlier. */
static void end_batch(struct limit *l, struct ky_batch *batch)
{
	size_t n = until(batch, l->end_ns);

	if (n < batch->n_events)
		l->left = 0;
	batch->n_events = n;
}

static int limit_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct limit *l = (struct limit *)flow;
	bool had_events;
	int ret;

	if (!l->left)
		return 0;
	do {
		ret = ky_flow_next(l->input, batch, err);
		if (ret <= 0)
			return ret;
	} while (!skip_first(l, batch));
	had_events = batch->n_events > 0;
	if (batch->n_events > l->left)
		batch->n_events = (size_t)l->left;
	if (l->left != UINT64_MAX)
		l->left -= batch->n_events;
	if (l->end_ns != INT64_MAX)
		end_batch(l, batch);
	return !had_events || batch->n_events;
}

static int limit_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct limit *l = (struct limit *)flow;

	l->skip = l->first_skip;
	l->left = l->first_left;
	return ky_flow_seek(l->input, ns, err);
}

static void limit_close(struct ky_flow *flow)
{
	struct limit *l = (struct limit *)flow;

	ky_flow_close(l->input);
	free(l);
}

static const struct ky_flow_ops limit_ops = {
	.next = limit_next,
	.seek = limit_seek,
	.close = limit_close,
};

int ky_limit_open(struct ky_flow *input, int64_t end_ns, uint64_t skip, uint64_t head,
		  struct ky_flow **flow, struct kymo_error *err)
{
	struct limit *l = calloc(1, sizeof(*l));

	if (!l) {
		ky_flow_close(input);
		return ky_error_nomem(err);
	}
	l->flow.ops = &limit_ops;
	l->input = input;
	l->end_ns = end_ns;
	l->skip = l->first_skip = skip;
	l->left = l->first_left = head;
	*flow = &l->flow;
	return KYMO_OK;
}
