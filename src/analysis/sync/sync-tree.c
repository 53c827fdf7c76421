/* SPDX-License-Identifier: MIT */
/* The spanning tree: each machine's way to the reference with the least sum of bounds (Dijkstra). */
#include "analysis/sync/sync.h"

#include <string.h>

#include <stdlib.h>

#include <kymo/error.h>

/* A clock against another: t + shift + (t - at) * drift. */
struct step {
	int64_t at, shift, drift;
	int64_t begin, end; /* by the clock that is corrected */
	uint64_t begin_bound, end_bound, drift_bound;
};

static int64_t narrowed(__int128 value)
{
	const int64_t far = INT64_MAX / 2;

	return value > far ? far : value < -far ? -far : (int64_t)value;
}

static int64_t moved(const struct step *step, int64_t ns)
{
	__int128 drifted = ((__int128)ns - step->at) * step->drift / KY_SYNC_DRIFT_ONE;

	return narrowed(drifted + ns + step->shift);
}

static int64_t drift_kept(__int128 drift)
{
	return drift > KY_SYNC_DRIFT_MAX    ? KY_SYNC_DRIFT_MAX
	       : drift < -KY_SYNC_DRIFT_MAX ? -KY_SYNC_DRIFT_MAX
					    : (int64_t)drift;
}

static uint64_t sync_tree_added(uint64_t a, uint64_t b)
{
	uint64_t sum = a + b;

	return a > INT64_MAX || b > INT64_MAX || sum > INT64_MAX ? INT64_MAX : sum;
}

/* 1 % more, as the fastest drift makes of it. */
static uint64_t stretched(uint64_t bound)
{
	return sync_tree_added(bound, bound / 100 + 2);
}

/* From the clock of @from, one of the pair, to that of the other. */
static struct step sync_tree_step_of(const struct ky_sync_pair *pair, uint32_t from)
{
	const struct ky_hull_line *line = &pair->line;
	struct step step = {line->at,	     line->offset,     drift_kept(line->drift),
			    line->begin,     line->end,	       line->begin_bound,
			    line->end_bound, line->drift_bound};
	struct step back = step;

	if (from == pair->b)
		return step;
	back.at = moved(&step, step.at);
	back.shift = -step.shift;
	back.drift = drift_kept(-(__int128)step.drift * KY_SYNC_DRIFT_ONE /
				(KY_SYNC_DRIFT_ONE + step.drift));
	back.begin = moved(&step, step.begin);
	back.end = moved(&step, step.end);
	back.begin_bound = stretched(step.begin_bound);
	back.end_bound = stretched(step.end_bound);
	back.drift_bound = stretched(step.drift_bound);
	return back;
}

static void sync_tree_set_line(struct ky_sync_machine *machine, const struct step *step)
{
	machine->at_ns = step->at;
	machine->shift_ns = step->shift;
	machine->drift = step->drift;
	machine->begin_ns = step->begin;
	machine->end_ns = step->end;
	machine->begin_bound_ns = step->begin_bound;
	machine->end_bound_ns = step->end_bound;
	machine->drift_bound = step->drift_bound;
}

static struct ky_sync line_of(const struct ky_sync_machine *machine)
{
	return (struct ky_sync){.begin_ns = machine->begin_ns,
				.end_ns = machine->end_ns,
				.begin_bound_ns = machine->begin_bound_ns,
				.end_bound_ns = machine->end_bound_ns,
				.drift_bound = machine->drift_bound};
}

/* @machine's clock by @step to @next's, and on by @next's own line to the reference's. */
static void go_on(struct ky_sync_machine *machine, const struct ky_sync_machine *next,
		  struct step step)
{
	const struct step on = {next->at_ns, next->shift_ns, next->drift, 0, 0, 0, 0, 0};
	const struct ky_sync known = line_of(next);
	int64_t there = moved(&step, step.at);
	__int128 drift = (__int128)step.drift + on.drift +
			 (__int128)step.drift * on.drift / KY_SYNC_DRIFT_ONE;
	uint64_t begin = ky_sync_bound(&known, moved(&step, step.begin));
	uint64_t end = ky_sync_bound(&known, moved(&step, step.end));

	step.shift = narrowed((__int128)moved(&on, there) - step.at);
	step.drift = drift_kept(drift);
	step.begin_bound = sync_tree_added(stretched(step.begin_bound), begin);
	step.end_bound = sync_tree_added(stretched(step.end_bound), end);
	step.drift_bound = sync_tree_added(stretched(step.drift_bound), next->drift_bound);
	sync_tree_set_line(machine, &step);
}

static uint64_t cost(const struct ky_sync_machine *machine)
{
	uint64_t bound = machine->begin_bound_ns > machine->end_bound_ns ? machine->begin_bound_ns
									 : machine->end_bound_ns;

	/* A way that is only a guess comes after all others. */
	return machine->quality == KY_SYNC_ACCURATE ? bound / 2 : bound / 2 + INT64_MAX;
}

static void sync_tree_relax(struct ky_sync_run *run, size_t from, size_t number)
{
	struct ky_sync_pair *pair = run->pairs.data[number];
	const struct ky_sync_machine *next = &run->machines.data[from];
	uint32_t other = pair->a == from ? pair->b : pair->a;
	struct ky_sync_machine *machine = &run->machines.data[other], better = *machine;

	if (machine->is_reached || (pair->a != from && pair->b != from) ||
	    pair->quality < KY_SYNC_APPROXIMATE)
		return;
	better.quality = pair->quality < next->quality ? pair->quality : next->quality;
	better.by_pair = number;
	go_on(&better, next, sync_tree_step_of(pair, other));
	if (machine->quality < KY_SYNC_APPROXIMATE || cost(&better) < cost(machine))
		*machine = better;
}

static struct ky_sync_machine *nearest(struct ky_sync_run *run, size_t *number)
{
	struct ky_sync_machine *best = NULL;

	ky_vec_foreach(&run->machines, machine) {
		if (machine->is_reached || machine->quality < KY_SYNC_APPROXIMATE ||
		    (best && cost(machine) >= cost(best)))
			continue;
		best = machine;
		*number = (size_t)(machine - run->machines.data);
	}
	return best;
}

/* ---- what NTP and PTP say -------------------------------------------------------------- */

/* UTC, or the grandmaster's time, minus the clock is the middle of what is said, within the half of it. */
static uint64_t sync_tree_known(const struct ky_sync_range *range, int64_t *middle)
{
	uint64_t width = (uint64_t)range->most - (uint64_t)range->least;

	*middle = range->least + (int64_t)(width / 2);
	return width / 2 + 1;
}

/* Whether both know the same time. */
static bool sync_tree_compares(const struct ky_sync_facts *a, const struct ky_sync_facts *b,
			       enum ky_sync_knows what)
{
	return a->of[what].has && b->of[what].has &&
	       (what != KY_KNOWS_PTP || !a->grandmaster[0] || !b->grandmaster[0] ||
		strcmp(a->grandmaster, b->grandmaster) == 0);
}

/* How far the statements of @a are away from those of @b, whose clock is @offset behind. */
static uint64_t sync_tree_gap(const struct ky_sync_facts *a, const struct ky_sync_facts *b,
			      int64_t offset)
{
	__int128 before = (__int128)b->end_ns + offset - a->end_ns;
	__int128 after = (__int128)a->begin_ns - b->begin_ns - offset;
	__int128 gap = before > after ? before : after;

	if (a->is_grandmaster || b->is_grandmaster)
		return 0;
	return gap > INT64_MAX ? INT64_MAX : gap > 0 ? (uint64_t)gap : 0;
}

/* The line between two machines that both know the time: how the clocks drift is not known. */
static void sync_tree_set_known(const struct ky_sync_run *run, struct ky_sync_pair *pair,
				enum ky_sync_knows what)
{
	const struct ky_sync_facts *a = &run->facts[pair->a], *b = &run->facts[pair->b];
	struct ky_hull_line *line = &pair->line;
	int64_t of_a, of_b;
	uint64_t bound =
		sync_tree_known(&a->of[what], &of_a) + sync_tree_known(&b->of[what], &of_b);
	uint64_t drift_max = (uint64_t)run->options->drift_max;

	bound = sync_tree_added(bound,
				(uint64_t)((unsigned __int128)sync_tree_gap(a, b, of_b - of_a) *
					   drift_max / KY_SYNC_DRIFT_ONE));
	*line = (struct ky_hull_line){.is_possible = true,
				      .at = b->begin_ns,
				      .offset = of_b - of_a,
				      .drift_bound = drift_max,
				      .begin = b->begin_ns,
				      .end = b->end_ns,
				      .begin_bound = bound,
				      .end_bound = bound};
	pair->quality = KY_SYNC_APPROXIMATE;
	pair->source = what == KY_KNOWS_PTP ? KY_SYNC_PTP : KY_SYNC_UTC;
	pair->bound_ns = bound;
}

/* Of the machines that are left, the one that knows the time best; SIZE_MAX: none does. */
static size_t sync_tree_best(const struct ky_sync_run *run, enum ky_sync_knows what)
{
	const struct ky_sync_facts *reference = &run->facts[run->reference];
	uint64_t best = UINT64_MAX;
	size_t found = SIZE_MAX;
	int64_t middle;

	for (size_t i = 0; i < run->machines.len; i++) {
		uint64_t bound = sync_tree_known(&run->facts[i].of[what], &middle);

		if (run->machines.data[i].is_reached || bound >= best ||
		    !sync_tree_compares(reference, &run->facts[i], what))
			continue;
		best = bound;
		found = i;
	}
	return found;
}

/*
 * Machines that nothing else leads to: the one that knows the time best joins the reference, and others may follow by what they have seen of it.
 * *joined: its number; SIZE_MAX: no machine is left.
 */
static int sync_tree_join_by_time(struct ky_sync_run *run, size_t *joined)
{
	enum ky_sync_knows what = KY_KNOWS_PTP;
	struct ky_sync_pair *pair;

	*joined = sync_tree_best(run, what);
	if (*joined == SIZE_MAX) {
		what = KY_KNOWS_UTC;
		*joined = sync_tree_best(run, what);
	}
	if (*joined == SIZE_MAX)
		return KYMO_OK;
	pair = ky_sync_pair_of(run, (uint32_t)run->reference, (uint32_t)*joined);
	if (!pair)
		return KYMO_E_MEMORY;
	sync_tree_set_known(run, pair, what);
	run->machines.data[*joined].quality = KY_SYNC_ABSENT;
	sync_tree_relax(
		run, run->reference,
		(size_t)(uintptr_t)ky_map_get(&run->by_pair, (uint64_t)pair->a << 32 | pair->b) -
			1);
	return KYMO_OK;
}

/* The next machine of the tree, @machine, and the ways on from it. */
static void sync_tree_reach(struct ky_sync_run *run, size_t number)
{
	struct ky_sync_machine *machine = &run->machines.data[number];

	machine->is_reached = true;
	if (number != run->reference)
		run->pairs.data[machine->by_pair]->is_chosen = true;
	for (size_t i = 0; i < run->pairs.len; i++)
		sync_tree_relax(run, number, i);
}

static int sync_tree_grow(struct ky_sync_run *run)
{
	size_t number = run->reference;
	int ret = KYMO_OK;

	while (!ret && number != SIZE_MAX) {
		sync_tree_reach(run, number);
		if (!nearest(run, &number))
			ret = sync_tree_join_by_time(run, &number);
	}
	return ret;
}

int ky_sync_choose_tree(struct ky_sync_run *run)
{
	int ret;

	run->machines.data[run->reference].quality = KY_SYNC_ACCURATE;
	ret = sync_tree_grow(run);
	/* The others: the best that was seen of them. */
	ky_vec_foreach(&run->pairs, it) {
		const struct ky_sync_pair *pair = *it;
		struct ky_sync_machine *ends[] = {&run->machines.data[pair->a],
						  &run->machines.data[pair->b]};

		for (int i = 0; i < 2; i++)
			if (!ends[i]->is_reached && pair->quality == KY_SYNC_INCOMPLETE)
				ends[i]->quality = KY_SYNC_INCOMPLETE;
	}
	return ret;
}
