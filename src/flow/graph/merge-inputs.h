/* SPDX-License-Identifier: MIT */
/*
 * The inputs of a merge (merge.c). Each has a queue of events read ahead. This code decides how far
 * to read, and up to which time all future events are known.
 *
 * Reading goes in rounds. The plan of a round is an end time such that all its events stay in the
 * second-level cache. Inputs that can stop at that time do so (ky_flow_room()): then no events are
 * left in their queues, and each input is visited at most once in a round.
 */
#ifndef KY_FLOW_GRAPH_MERGE_INPUTS_H
#define KY_FLOW_GRAPH_MERGE_INPUTS_H

#include "flow/graph/queue.h"

/* The number of events to read ahead: at first, and at most. */
#define KY_PREFETCH_MIN 32
#define KY_PREFETCH_MAX 1024

struct ky_input {
	struct ky_queue queue;
	size_t ahead; /* how many events to read ahead */
	size_t number;
	size_t n_collected; /* the first entries of the queue belong to the current round */
};

/* The limit of a round: everything up to @ns; of inputs above @number only events before it. */
struct ky_input_limit {
	int64_t ns;
	size_t number;
	struct ky_input *input; /* the input that sets the limit, or NULL */
	int64_t first_ns;	/* of the entries in queues */
};

struct ky_inputs {
	struct ky_input *inputs;
	struct ky_input **live; /* inputs that have not ended, by number */
	size_t n, n_live;
	size_t ahead_total, ahead_most; /* sum and maximum over all inputs */
	size_t next_to_shrink;
	int64_t round_ns; /* end of the last round */
	int64_t until_ns; /* planned end of the next round; INT64_MAX: no plan */
	int code;	  /* the first error of an input, kept until the end of the others */
	int64_t code_ns;
	size_t code_number;
	struct kymo_error first;
	bool is_prefilled; /* the slice is read completely before its first event is delivered */
};

/*
 * Takes @flows over on success. Returns 0 or KYMO_E_MEMORY. The caller must call restart before the
 * first round.
 */
int ky_inputs_init(struct ky_inputs *inputs, struct ky_flow **flows, size_t n);
/* All zeros are allowed. */
void ky_inputs_fini(struct ky_inputs *inputs, struct ky_windows *windows);
/* Drops all entries in queues, after the inputs were moved. */
void ky_inputs_restart(struct ky_inputs *inputs, struct ky_windows *windows);
int ky_inputs_seek(struct ky_inputs *inputs, int64_t ns, struct kymo_error *err);
/* See ky_flow_broken(). */
int ky_inputs_broken(const struct ky_inputs *inputs, size_t i, int64_t *ns, struct kymo_error *err);

/* Fills the queues of all inputs, and drops inputs that have ended. Returns 0 or KYMO_E_MEMORY. */
int ky_inputs_fill(struct ky_inputs *inputs, struct ky_windows *windows);
/* Reads all inputs to their ends: see ky_merge_prefill(). */
ssize_t ky_inputs_prefill(struct ky_inputs *inputs, struct ky_windows *windows, size_t max);

/*
 * After filling, with at least one entry: the limit of the round, at most @span_ns. When the limit
 * is before first_ns, nothing is certain yet, since a growing input may still get an earlier event.
 */
struct ky_input_limit ky_inputs_limit(const struct ky_inputs *inputs, uint64_t span_ns);
/* @n entries were within @limit: plans the next round, of at most @span_ns. */
void ky_inputs_plan(struct ky_inputs *inputs, size_t n, const struct ky_input_limit *limit,
		    uint64_t span_ns);

#endif
