/* SPDX-License-Identifier: MIT */
/*
 * The inputs of a merge (merge.c), each read ahead into a queue: how far, and up to when all that is to come
 * next is known.
 *
 * They are read in rounds. A round is planned to end at a time, with so many events that everything in flight stays
 * in the second-level cache. Inputs that can stop there do so (ky_flow_room()): then nothing is left in
 * their queues that was read too early, and none is looked at more often than once in a round.
 */
#ifndef KY_FLOW_GRAPH_MERGE_INPUTS_H
#define KY_FLOW_GRAPH_MERGE_INPUTS_H

#include "flow/graph/queue.h"

/* How far an input is read ahead, in events: to begin with, and at most. */
#define KY_PREFETCH_MIN 32
#define KY_PREFETCH_MAX 1024

struct ky_input {
	struct ky_queue queue;
	size_t ahead; /* how far it is to be read */
	size_t number;
	size_t n_collected; /* the first entries of the queue are in the current round */
};

/* What is known to come next: everything up to @ns, of inputs above @number only before it. */
struct ky_input_limit {
	int64_t ns;
	size_t number;
	struct ky_input *input; /* who sets it, or NULL */
	int64_t first_ns;	/* of what waits */
};

struct ky_inputs {
	struct ky_input *inputs;
	struct ky_input **live; /* those that have not ended, by number */
	size_t n, n_live;
	size_t ahead_total, ahead_most; /* of all of them */
	size_t next_to_shrink;
	int64_t round_ns; /* where the last round ended */
	int64_t until_ns; /* where the next one should; INT64_MAX: it is not planned */
	int code;	  /* the first error of an input, kept until the others have ended */
	int64_t code_ns;
	size_t code_number;
	struct kymo_error first;
	bool is_prefilled; /* all of a slice is read before its first event is wanted */
};

/* @flows are taken over when it succeeds: 0 or KYMO_E_MEMORY. Before the first round: restart. */
int ky_inputs_init(struct ky_inputs *inputs, struct ky_flow **flows, size_t n);
/* All zeros is fine. */
void ky_inputs_fini(struct ky_inputs *inputs, struct ky_windows *windows);
/* Forget everything that waits: the inputs were moved. */
void ky_inputs_restart(struct ky_inputs *inputs, struct ky_windows *windows);
int ky_inputs_seek(struct ky_inputs *inputs, int64_t ns, struct kymo_error *err);
/* See ky_flow_broken(). */
int ky_inputs_broken(const struct ky_inputs *inputs, size_t i, int64_t *ns, struct kymo_error *err);

/* Top up all inputs, and drop those that have nothing any more. 0 or KYMO_E_MEMORY. */
int ky_inputs_fill(struct ky_inputs *inputs, struct ky_windows *windows);
/* Read all of them to their ends: see ky_merge_prefill(). */
ssize_t ky_inputs_prefill(struct ky_inputs *inputs, struct ky_windows *windows, size_t max);

/*
 * After filling, with something that waits: how far the round may go. No further than @span_ns. Before first_ns: nothing is
 * certain yet, since an input that grows may still have something earlier.
 */
struct ky_input_limit ky_inputs_limit(const struct ky_inputs *inputs, uint64_t span_ns);
/* @n entries lay within @limit: plan the next round, of up to @span_ns. */
void ky_inputs_plan(struct ky_inputs *inputs, size_t n, const struct ky_input_limit *limit,
		    uint64_t span_ns);

#endif
