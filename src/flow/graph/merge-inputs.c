/* SPDX-License-Identifier: MIT */
#include "flow/graph/merge-inputs.h"

#include <stdlib.h>

#include "base/error.h"

/*
 * How many events of all inputs may wait. What they and the window take should stay in the second-level
 * cache; but of many inputs each may be read further ahead than their share of that, since in each round other
 * ones have many events.
 */
#define AHEAD_TOTAL	 4096
#define AHEAD_INPUT	 128
#define AHEAD_TOTAL_MANY 65536
/* So many events of all inputs, and so many of each, should be in a round. */
#define ROUND_EVENTS	   2048
#define ROUND_INPUT_EVENTS 32
/* One that was planned, and had so many times fewer, was planned badly: the next one is not planned at all. */
#define ROUND_FEWER 8

static size_t most_ahead(size_t n_inputs)
{
	size_t n = n_inputs * AHEAD_INPUT, least = n_inputs * KY_PREFETCH_MIN + KY_PREFETCH_MAX;

	n = n < AHEAD_TOTAL_MANY ? n : AHEAD_TOTAL_MANY;
	n = n > least ? n : least;
	return n > AHEAD_TOTAL ? n : AHEAD_TOTAL;
}

static void inputs_init_one(struct ky_inputs *in, struct ky_flow **flows, size_t i)
{
	ky_queue_init(&in->inputs[i].queue, flows[i]);
	in->inputs[i].ahead = KY_PREFETCH_MIN;
	in->inputs[i].number = i;
}

int ky_inputs_init(struct ky_inputs *in, struct ky_flow **flows, size_t n)
{
	*in = (struct ky_inputs){.ahead_total = n * KY_PREFETCH_MIN, .ahead_most = most_ahead(n)};
	in->inputs = calloc(n + 1, sizeof(*in->inputs));
	in->live = calloc(n + 1, sizeof(*in->live));
	if (!in->inputs || !in->live)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++)
		inputs_init_one(in, flows, i);
	in->n = n;
	return KYMO_OK;
}

void ky_inputs_fini(struct ky_inputs *in, struct ky_windows *windows)
{
	for (size_t i = 0; i < in->n; i++)
		ky_queue_fini(&in->inputs[i].queue, windows);
	free((void *)in->live);
	free(in->inputs);
}

void ky_inputs_restart(struct ky_inputs *in, struct ky_windows *windows)
{
	in->n_live = in->n;
	for (size_t i = 0; i < in->n; i++) {
		in->live[i] = &in->inputs[i];
		in->inputs[i].n_collected = 0;
		ky_queue_reset(&in->inputs[i].queue, windows);
	}
	in->round_ns = INT64_MIN;
	in->until_ns = INT64_MAX;
	in->code = KYMO_OK;
}

int ky_inputs_seek(struct ky_inputs *in, int64_t ns, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < in->n && ret >= 0; i++)
		ret = ky_flow_seek(in->inputs[i].queue.input, ns, err);
	return ret;
}

int ky_inputs_broken(const struct ky_inputs *in, size_t i, int64_t *ns, struct kymo_error *err)
{
	for (size_t k = 0; k < in->n; k++) {
		const struct ky_queue *q = &in->inputs[k].queue;

		if (q->code >= 0 || i-- > 0)
			continue;
		*ns = q->end_ns;
		if (err)
			*err = q->err;
		return q->code;
	}
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* An input has ended and nothing of it waits. Its error counts when it ended before the others. */
static void merge_inputs_note_end(struct ky_inputs *in, const struct ky_input *input)
{
	const struct ky_queue *q = &input->queue;

	if (q->code >= 0 ||
	    (in->code < 0 && (in->code_ns < q->end_ns ||
			      (in->code_ns == q->end_ns && in->code_number < input->number))))
		return;
	in->code = q->code;
	in->first = q->err;
	in->code_ns = q->end_ns;
	in->code_number = input->number;
}

/* Does it take more of @input to reach the round's end? */
static bool is_short(const struct ky_inputs *in, const struct ky_input *input)
{
	const struct ky_queue *q = &input->queue;
	size_t n = ky_queue_length(q);

	return !q->ended && n <= input->ahead / 2 && (!n || ky_queue_is_short(q, in->until_ns));
}

/* Not for slices: the next one has as many events as this one. */
static int narrow(const struct ky_inputs *in, struct ky_input *input, size_t cap)
{
	if (in->is_prefilled || !ky_queue_is_wide(&input->queue, cap))
		return KYMO_OK;
	return ky_queue_narrow(&input->queue, cap);
}

int ky_inputs_fill(struct ky_inputs *in, struct ky_windows *windows)
{
	size_t n_live = 0;

	for (size_t i = 0; i < in->n_live; i++) {
		struct ky_input *input = in->live[i];

		if (i + 1 < in->n_live && is_short(in, in->live[i + 1]))
			ky_queue_prefetch(&in->live[i + 1]->queue);
		if (is_short(in, input)) {
			if (ky_queue_fill(&input->queue, windows, input->ahead, in->until_ns) < 0)
				return KYMO_E_MEMORY;
		} else if (narrow(in, input, input->ahead) < 0) {
			return KYMO_E_MEMORY;
		}
		if (ky_queue_length(&input->queue) || input->queue.waits) {
			in->live[n_live++] = input;
			continue;
		}
		merge_inputs_note_end(in, input);
		if (narrow(in, input, KY_PREFETCH_MIN) < 0)
			return KYMO_E_MEMORY;
	}
	in->n_live = n_live;
	return KYMO_OK;
}

ssize_t ky_inputs_prefill(struct ky_inputs *in, struct ky_windows *windows, size_t max)
{
	size_t n = 0;

	in->is_prefilled = true;
	for (size_t i = 0; i < in->n; i++) {
		struct ky_queue *q = &in->inputs[i].queue;

		if (i + 1 < in->n)
			ky_queue_prefetch(&in->inputs[i + 1].queue);
		for (size_t cap = KY_PREFETCH_MIN; !q->ended; cap = ky_queue_length(q) * 2) {
			cap = cap > q->cap ? cap : q->cap;
			if (n + ky_queue_length(q) > max)
				return KYMO_E_LIMIT;
			if (ky_queue_fill(q, windows, cap, INT64_MAX) < 0)
				return KYMO_E_MEMORY;
		}
		n += ky_queue_length(q);
	}
	return (ssize_t)n;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct ky_input_limit ky_inputs_limit(const struct ky_inputs *in, uint64_t span_ns)
{
	struct ky_input_limit limit = {INT64_MAX, SIZE_MAX, NULL, INT64_MAX};

	for (size_t i = 0; i < in->n_live; i++) {
		const struct ky_queue *q = &in->live[i]->queue;

		if (ky_queue_length(q) && q->keys[q->first] < limit.first_ns)
			limit.first_ns = q->keys[q->first];
		if (q->ended || (limit.input && ky_queue_reach(q) >= limit.ns))
			continue;
		limit.ns = ky_queue_reach(q);
		limit.number = in->live[i]->number;
		limit.input = in->live[i];
	}
	if (limit.ns >= limit.first_ns && (uint64_t)limit.ns - (uint64_t)limit.first_ns > span_ns) {
		limit.ns = (int64_t)((uint64_t)limit.first_ns + span_ns);
		limit.number = SIZE_MAX;
	}
	return limit;
}

/* Who makes rounds short reads further ahead, at the cost of others when there is no room. */
static void adapt(struct ky_inputs *in, struct ky_input *input)
{
	struct ky_input *other;

	if (!input || input->ahead >= KY_PREFETCH_MAX)
		return;
	if (in->ahead_total + input->ahead <= in->ahead_most) {
		in->ahead_total += input->ahead;
		input->ahead *= 2;
		return;
	}
	other = &in->inputs[in->next_to_shrink++ % in->n];
	if (other != input && other->ahead > KY_PREFETCH_MIN) {
		other->ahead /= 2;
		in->ahead_total -= other->ahead;
	}
}

void ky_inputs_plan(struct ky_inputs *in, size_t n, const struct ky_input_limit *limit,
		    uint64_t span_ns)
{
	size_t wanted = in->n_live * ROUND_INPUT_EVENTS;
	double next_ns = (double)((uint64_t)limit->ns - (uint64_t)in->round_ns);
	bool badly;

	if (limit->ns < in->until_ns)
		adapt(in, limit->input);
	wanted = wanted > ROUND_EVENTS ? wanted : ROUND_EVENTS;
	next_ns = next_ns * (double)wanted / (double)n;
	badly = limit->ns >= in->until_ns && n < wanted / ROUND_FEWER;
	next_ns = next_ns < (double)span_ns ? next_ns : (double)span_ns;
	if (badly || next_ns < 1 || !limit->input ||
	    __builtin_add_overflow(limit->ns, (int64_t)next_ns, &in->until_ns))
		in->until_ns = INT64_MAX;
	in->round_ns = limit->ns;
}
