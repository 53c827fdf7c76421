/* SPDX-License-Identifier: MIT */
#include "flow/parallel/slice-cut.h"

/* A first guess; each slice tells how far the next should go. */
#define STEP_FIRST_NS 1000
#define STEP_FACTOR   8 /* at most so much longer than the one before */
#define OVERSHOOT     4 /* a slice of so many times the bytes is cut again */
#define TRIES	      16
/* A slice that is decoded should have about so many events, and so many for each stream. */
#define EVENTS	      4096
#define STREAM_EVENTS 64

/* Move the sources to @ns. The earliest entry from there on; INT64_MAX: none exists. */
static int64_t slice_cut_go_to(struct ky_cutter *c, int64_t ns)
{
	int64_t first_ns = INT64_MAX, here_ns;

	for (size_t i = 0; i < c->n; i++) {
		ky_source_limit(c->sources[i], ns);
		if (ky_source_skim(c->sources[i], !c->careful, &here_ns) && here_ns < first_ns)
			first_ns = here_ns;
	}
	return first_ns;
}

static bool slice_cut_all_ended(const struct ky_cutter *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!ky_source_ended(c->at[i]))
			return false;
	}
	return true;
}

static uint64_t position(const struct ky_cutter *c, struct ky_flow *const *sources)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->n; i++)
		bytes += ky_source_place(sources[i]).bits / 8;
	return bytes;
}

static void slice_cut_stand_at(const struct ky_cutter *c, struct ky_flow **sources,
			       struct ky_flow *const *from)
{
	for (size_t i = 0; i < c->n; i++)
		ky_source_assume(sources[i], from[i]);
}

int ky_cutter_init(struct ky_cutter *c, const struct ky_copy *copy,
		   const struct ky_selection *selection, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*c = (struct ky_cutter){
		.sources = copy->sources,
		.at = copy->sources,
		.decode = !selection->filter && !selection->n_events,
		.end_ns = selection->end_ns,
		.from_ns = selection->begin_ns,
		.step_ns = STEP_FIRST_NS,
		.first = true,
	};
	while (copy->sources[c->n] && ret == KYMO_OK) {
		ky_source_log(copy->sources[c->n], NULL);
		if (selection->begin_ns != INT64_MIN)
			ret = ky_flow_seek(copy->sources[c->n], selection->begin_ns, err);
		c->n++;
	}
	return ret;
}

/* How far the next slice goes when one of @step_ns has so many times what is wanted. */
static uint64_t slice_cut_next_step(uint64_t step_ns, double times)
{
	double factor = times > 0 ? 1 / times : STEP_FACTOR, next;

	factor = factor > STEP_FACTOR ? STEP_FACTOR : factor;
	factor = factor < 1.0 / STEP_FACTOR ? 1.0 / STEP_FACTOR : factor;
	next = (double)step_ns * factor;
	return next < 1 ? 1 : next > 1e18 ? (uint64_t)1e18 : (uint64_t)next;
}

/* Where to cut. INT64_MAX: there is no further cut. */
static int64_t cut_at(const struct ky_cutter *c)
{
	int64_t ns;

	if (__builtin_add_overflow(c->from_ns, (int64_t)c->step_ns, &ns))
		ns = INT64_MAX;
	if (c->end_ns != INT64_MAX && ns > c->end_ns)
		ns = c->end_ns + 1;
	return ns;
}

/* Of a first slice it is not known yet where it begins. The cutter's own sources find out. */
static void slice_cut_find_begin(struct ky_cutter *c, const struct ky_copy *copy)
{
	c->first = false;
	c->from_ns = slice_cut_go_to(c, c->from_ns == INT64_MIN ? INT64_MIN + 1 : c->from_ns);
	slice_cut_stand_at(c, c->sources, copy->sources);
}

static void set_limits(const struct ky_cutter *c, const struct ky_copy *copy, int64_t ns)
{
	for (size_t i = 0; i < c->n; i++)
		ky_source_limit(copy->sources[i], ns);
}

/* The slice decoded into the queues of @copy. False: it would be too large, or there is no memory. */
static bool cut_decoding(struct ky_cutter *c, const struct ky_copy *copy, int64_t ns,
			 uint64_t bytes, int64_t *next_ns)
{
	uint64_t begin = position(c, copy->sources), wanted = EVENTS + c->n * STREAM_EVENTS;
	double by_events, by_bytes;
	int64_t here_ns;
	ssize_t n;

	set_limits(c, copy, ns);
	ky_merge_restart(copy->flow);
	n = ky_merge_prefill(copy->flow, wanted * OVERSHOOT);
	if (n < 0)
		return false;
	by_events = (double)n / (double)wanted;
	by_bytes = (double)(position(c, copy->sources) - begin) / (double)bytes;
	c->step_ns = slice_cut_next_step(c->step_ns, by_events > by_bytes ? by_events : by_bytes);
	c->at = copy->sources;
	*next_ns = INT64_MAX;
	for (size_t i = 0; i < c->n; i++) {
		if (ky_source_at_limit(c->at[i], &here_ns) && here_ns < *next_ns)
			*next_ns = here_ns;
	}
	return true;
}

/* The slice without decoding: the cutter's own sources stand at its begin, as those of @copy do. */
static int64_t cut_skimming(struct ky_cutter *c, const struct ky_copy *copy, uint64_t bytes,
			    int64_t *next_ns)
{
	uint64_t begin = position(c, c->sources), step_ns;
	int64_t ns;
	double times;

	for (int tries = 0;; tries++) {
		step_ns = c->step_ns;
		ns = cut_at(c);
		*next_ns = slice_cut_go_to(c, ns);
		times = (double)(position(c, c->sources) - begin) / (double)bytes;
		c->step_ns = slice_cut_next_step(step_ns, times);
		if (times <= OVERSHOOT || step_ns == 1 || tries == TRIES)
			break;
		slice_cut_stand_at(c, c->sources, copy->sources);
	}
	return ns;
}

/* Decode the slice, or go over it. Returns where it ends. */
static int64_t cut_slice(struct ky_cutter *c, const struct ky_copy *copy, uint64_t bytes,
			 int64_t *next_ns)
{
	int64_t ns = cut_at(c);

	if (c->decode) {
		/* What must be given up needs a place to begin anew. */
		if (c->at == copy->sources) {
			slice_cut_stand_at(c, c->sources, c->at);
			c->at = c->sources;
		}
		if (cut_decoding(c, copy, ns, bytes, next_ns))
			return ns;
		slice_cut_stand_at(c, copy->sources, c->at);
	}
	if (c->at != c->sources)
		slice_cut_stand_at(c, c->sources, c->at);
	c->at = c->sources;
	ns = cut_skimming(c, copy, bytes, next_ns);
	set_limits(c, copy, ns);
	ky_merge_restart(copy->flow);
	return ns;
}

uint64_t ky_cutter_next(struct ky_cutter *c, const struct ky_copy *copy, uint64_t bytes,
			struct ky_source_place *ends)
{
	uint64_t begin;
	int64_t ns, next_ns;

	slice_cut_stand_at(c, copy->sources, c->at);
	begin = position(c, copy->sources);
	if (c->first)
		slice_cut_find_begin(c, copy);
	ns = cut_slice(c, copy, bytes, &next_ns);
	c->ended = slice_cut_all_ended(c) || (c->end_ns != INT64_MAX && ns > c->end_ns);
	c->from_ns = next_ns;
	for (size_t i = 0; i < c->n; i++)
		ends[i] = ky_source_place(c->at[i]);
	return position(c, c->at) - begin;
}

void ky_cutter_correct(struct ky_cutter *c, const struct ky_copy *copy)
{
	c->careful = true;
	slice_cut_stand_at(c, c->sources, copy->sources);
	c->at = c->sources;
	c->ended = slice_cut_all_ended(c);
	c->first = true;
	c->from_ns = INT64_MIN;
}
