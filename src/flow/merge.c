/* SPDX-License-Identifier: MIT */
/*
 * The merge: a tournament tree of inputs by (time of their next event, stream index).
 *
 * Each inner node keeps the loser of the match below it, so that a new key of the winner is
 * played against log2(inputs) nodes on the one path to the top. Where streams interleave finely
 * nobody can predict who wins: the matches are computed without branches, and one event is
 * delivered at a time, for a run of unpredictable length would cost the consumer's loop a
 * misprediction too. Only when an input has won several times in a row is its whole run
 * looked for. Runs are slices of the input's batch: nothing is copied.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/flow.h"

/* After so many wins in a row an input is taken to have a long run. */
#define RUN_WINS 4

struct input {
	struct ky_flow *flow;
	struct ky_batch batch; /* what has not been delivered yet of its current batch */
};

/* Where an input stands. */
struct key {
	int64_t ns;
	uint64_t rank; /* stream index, then number of the input; UINT64_MAX: it has ended */
};

struct merge {
	struct ky_flow flow;
	struct input *inputs;
	struct key *keys; /* of the inputs, before the first match */
	struct key *tree; /* [0] the winner, [1] to [n_inputs - 1] the losers */
	size_t n_inputs, n_live;
	bool started;
	size_t n_taken;	     /* events of the winner's batch that were delivered last */
	size_t last;	     /* who won last, */
	unsigned int n_wins; /* and how many times in a row before */
	int code;	     /* the first error of an input, kept until the others have ended */
	struct kymo_error first;
};

static struct merge *merge_of(struct ky_flow *flow)
{
	return (struct merge *)flow;
}

/* Does @a come first? Without a branch. */
static inline bool before(const struct key *a, const struct key *b)
{
	return (a->ns < b->ns) | ((a->ns == b->ns) & (a->rank < b->rank));
}

static inline size_t winner(const struct merge *m)
{
	return (uint32_t)m->tree[0].rank;
}

/* @key is what input @at has now: play it up to the top. */
static inline void play(struct merge *m, size_t at, struct key key)
{
	for (size_t node = (at + m->n_inputs) / 2; node; node /= 2) {
		struct key other = m->tree[node];
		uint64_t swap = 0 - (uint64_t)before(&other, &key);
		uint64_t ns = (uint64_t)(other.ns ^ key.ns) & swap;
		uint64_t rank = (other.rank ^ key.rank) & swap;

		m->tree[node].ns = other.ns ^ (int64_t)ns;
		m->tree[node].rank = other.rank ^ rank;
		key.ns ^= (int64_t)ns;
		key.rank ^= rank;
	}
	m->tree[0] = key;
}

/* Get @input's next batch. 1, 0 at its end; an error is kept for later and is an end too. */
static int pull(struct merge *m, size_t input)
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

/* The key of the batch that was just pulled for @input; it is not empty. */
static struct key key_of(const struct merge *m, size_t input)
{
	const struct ky_batch *batch = &m->inputs[input].batch;

	return (struct key){
		/* A loss without events after it is told as soon as its turn could have come. */
		.ns = batch->n_events ? batch->events[0].ns : batch->loss->begin_ns,
		.rank = (uint64_t)batch->stream->index << 32 | input,
	};
}

static struct key pull_key(struct merge *m, size_t input)
{
	if (pull(m, input))
		return key_of(m, input);
	m->n_live--;
	return (struct key){.ns = INT64_MAX, .rank = UINT64_MAX};
}

/* The winner below @node, whose losers are noted on the way. The inputs are the leaves. */
static struct key first_match(struct merge *m, const struct key *keys, size_t node)
{
	struct key a, b;

	if (node >= m->n_inputs)
		return keys[node - m->n_inputs];
	a = first_match(m, keys, 2 * node);
	b = first_match(m, keys, 2 * node + 1);
	m->tree[node] = before(&a, &b) ? b : a;
	return before(&a, &b) ? a : b;
}

static void start(struct merge *m)
{
	m->started = true;
	m->n_taken = 0;
	m->n_wins = 0;
	m->n_live = m->n_inputs;
	for (size_t i = 0; i < m->n_inputs; i++)
		m->keys[i] = pull_key(m, i);
	if (m->n_inputs)
		m->tree[0] = first_match(m, m->keys, 1);
}

/* Drop what was delivered last, and put its input where it belongs now. */
static void advance(struct merge *m)
{
	size_t at = winner(m);
	struct ky_batch *batch = &m->inputs[at].batch;
	struct key key = m->tree[0];

	batch->events += m->n_taken;
	batch->n_events -= m->n_taken;
	batch->loss = NULL;
	if (__builtin_expect(batch->n_events > 0, 1))
		key.ns = batch->events[0].ns;
	else
		key = pull_key(m, at);
	play(m, at, key);
}

/* The best of those that lost to the winner. */
static struct key second(const struct merge *m)
{
	struct key best = {.ns = INT64_MAX, .rank = UINT64_MAX};

	for (size_t node = (winner(m) + m->n_inputs) / 2; node; node /= 2) {
		if (before(&m->tree[node], &best))
			best = m->tree[node];
	}
	return best;
}

/* How many of the winner's events come before the next event of any other input: at least one. */
static size_t run_length(const struct merge *m, const struct ky_batch *batch)
{
	struct key limit = second(m), key = m->tree[0];
	size_t n;

	for (n = 1; n < batch->n_events; n++) {
		key.ns = batch->events[n].ns;
		if (!before(&key, &limit))
			break;
	}
	return n;
}

static int merge_end(struct merge *m, struct kymo_error *err)
{
	int ret = m->code;

	m->code = KYMO_OK;
	if (ret < 0 && err)
		*err = m->first;
	return ret;
}

static int merge_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct merge *m = merge_of(flow);
	size_t at;

	if (__builtin_expect(!m->started, 0))
		start(m);
	else if (m->n_live)
		advance(m);
	if (!m->n_live)
		return merge_end(m, err);
	at = winner(m);
	*batch = m->inputs[at].batch;
	m->n_wins = at == m->last ? m->n_wins + 1 : 0;
	m->last = at;
	__builtin_prefetch(batch->events + 1);
	if (__builtin_expect(!batch->n_events, 0))
		m->n_taken = 0;
	else
		m->n_taken = m->n_wins < RUN_WINS ? 1 : run_length(m, batch);
	batch->n_events = m->n_taken;
	return 1;
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
	free(m->keys);
	free(m->tree);
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
		m->keys = calloc(n_inputs + 1, sizeof(*m->keys));
		m->tree = calloc(n_inputs + 1, sizeof(*m->tree));
	}
	if (!m || !m->inputs || !m->keys || !m->tree) {
		for (size_t i = 0; i < n_inputs; i++)
			ky_flow_close(inputs[i]);
		if (m) {
			free(m->inputs);
			free(m->keys);
			free(m->tree);
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
