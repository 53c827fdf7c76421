/* SPDX-License-Identifier: MIT */
/*
 * The merge: a binary heap of inputs by (time of their next event, stream index).
 *
 * The input at the root yields a run: those events of its batch that come before the next
 * event of every other input. Runs are slices of the input's batch, so nothing is copied; an
 * event costs a comparison, a run costs the heap's logarithm. Keys lie in the heap
 * itself, so that sifting touches no batch.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/flow.h"

struct input {
	struct ky_flow *flow;
	struct ky_batch batch; /* what has not been delivered yet of its current batch */
};

struct node {
	int64_t ns;
	uint32_t index; /* of the stream */
	uint32_t input;
};

struct merge {
	struct ky_flow flow;
	struct input *inputs;
	struct node *heap;
	size_t n_inputs, n_heap;
	bool started;
	size_t n_taken; /* events of the root's batch that were delivered last */
	int code;	/* the first error of an input, kept until the others have ended */
	struct kymo_error first;
};

static struct merge *merge_of(struct ky_flow *flow)
{
	return (struct merge *)flow;
}

static inline bool before(const struct node *a, const struct node *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->index < b->index;
}

static void sift_down(struct merge *m, size_t at)
{
	struct node node = m->heap[at];
	size_t child;

	while ((child = 2 * at + 1) < m->n_heap) {
		if (child + 1 < m->n_heap && before(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!before(&m->heap[child], &node))
			break;
		m->heap[at] = m->heap[child];
		at = child;
	}
	m->heap[at] = node;
}

static void set_key(struct merge *m, struct node *node)
{
	const struct ky_batch *batch = &m->inputs[node->input].batch;

	/* A loss without events after it is told as soon as its turn could have come. */
	node->ns = batch->n_events ? batch->events[0].ns : batch->loss->begin_ns;
	node->index = batch->stream->index;
}

/* Get @input's next batch. 1, 0 at its end; an error is kept for later and is an end too. */
static int pull(struct merge *m, uint32_t input)
{
	struct kymo_error err = {.code = KYMO_OK};
	struct ky_batch *batch = &m->inputs[input].batch;
	int ret;

	do
		ret = ky_flow_next(m->inputs[input].flow, batch, &err);
	while (ret > 0 && !batch->n_events && !batch->loss);
	if (ret < 0 && m->code == KYMO_OK) {
		m->code = ret;
		m->first = err;
	}
	return ret > 0;
}

static void start(struct merge *m)
{
	m->started = true;
	m->n_taken = 0;
	m->n_heap = 0;
	for (size_t i = 0; i < m->n_inputs; i++) {
		if (!pull(m, (uint32_t)i))
			continue;
		m->heap[m->n_heap].input = (uint32_t)i;
		set_key(m, &m->heap[m->n_heap++]);
	}
	for (size_t i = m->n_heap / 2; i-- > 0;)
		sift_down(m, i);
}

/* Drop what was delivered last, and put its input where it belongs now. */
static void advance(struct merge *m)
{
	struct ky_batch *batch = &m->inputs[m->heap[0].input].batch;

	batch->events += m->n_taken;
	batch->n_events -= m->n_taken;
	batch->loss = NULL;
	if (!batch->n_events && !pull(m, m->heap[0].input))
		m->heap[0] = m->heap[--m->n_heap];
	else
		set_key(m, &m->heap[0]);
	sift_down(m, 0);
}

/* How many of the root's events come before the next event of any other input: at least one. */
static size_t run_length(const struct merge *m, const struct ky_batch *batch)
{
	const struct node *second = &m->heap[1];
	int64_t limit;
	size_t n;

	if (m->n_heap < 2)
		return batch->n_events;
	if (m->n_heap > 2 && before(&m->heap[2], second))
		second = &m->heap[2];
	if (m->heap[0].index > second->index && second->ns == INT64_MIN)
		return batch->n_events ? 1 : 0;
	/* Events at the limit itself come first when their stream does. */
	limit = m->heap[0].index < second->index ? second->ns : second->ns - 1;
	for (n = 1; n < batch->n_events; n++) {
		if (batch->events[n].ns > limit)
			break;
	}
	return batch->n_events ? n : 0;
}

static int merge_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct merge *m = merge_of(flow);
	int ret;

	if (!m->started)
		start(m);
	else if (m->n_heap)
		advance(m);
	if (m->n_heap) {
		*batch = m->inputs[m->heap[0].input].batch;
		m->n_taken = batch->n_events = run_length(m, batch);
		return 1;
	}
	ret = m->code;
	m->code = KYMO_OK;
	if (ret < 0 && err)
		*err = m->first;
	return ret;
}

static int merge_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct merge *m = merge_of(flow);
	int ret;

	m->started = false;
	m->code = KYMO_OK;
	for (size_t i = 0; i < m->n_inputs; i++) {
		ret = ky_flow_seek(m->inputs[i].flow, ns, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static void merge_close(struct ky_flow *flow)
{
	struct merge *m = merge_of(flow);

	for (size_t i = 0; i < m->n_inputs; i++)
		ky_flow_close(m->inputs[i].flow);
	free(m->inputs);
	free(m->heap);
	free(m);
}

static const struct ky_flow_ops merge_ops = {
	.next = merge_next,
	.seek = merge_seek,
	.close = merge_close,
};

int ky_merge_open(struct ky_flow **inputs, size_t n_inputs, struct ky_flow **flow,
		  struct kymo_error *err)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (m) {
		m->inputs = calloc(n_inputs + 1, sizeof(*m->inputs));
		m->heap = calloc(n_inputs + 1, sizeof(*m->heap));
	}
	if (!m || !m->inputs || !m->heap) {
		for (size_t i = 0; i < n_inputs; i++)
			ky_flow_close(inputs[i]);
		if (m) {
			free(m->inputs);
			free(m->heap);
		}
		free(m);
		return ky_error_nomem(err);
	}
	m->flow.ops = &merge_ops;
	m->n_inputs = n_inputs;
	for (size_t i = 0; i < n_inputs; i++)
		m->inputs[i].flow = inputs[i];
	*flow = &m->flow;
	return KYMO_OK;
}
