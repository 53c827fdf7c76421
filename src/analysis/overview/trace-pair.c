/* SPDX-License-Identifier: MIT */
#include "analysis/overview/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causes/causes-internal.h"

#define BEYOND_T   4.5 /* of 1000 comparisons of equal things, less than one exceeds it */
#define LEAST_PART 0.05
#define ITEMS_MAX  100000
#define NS_PER_S   1e9

/* ---- noise --------------------------------------------------------------------------------- */

double ky_compare_mean(const struct ky_compare_values *values)
{
	double sum = 0;

	for (int i = 0; i < KY_COMPARE_SLICES; i++)
		sum += values->values[i];
	return sum / KY_COMPARE_SLICES;
}

static int trace_pair_values(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

/* Without the smallest and the largest slice: the mean, and the square of its standard error (Yuen). */
static void trace_pair_trim(const struct ky_compare_values *values, double *mean, double *error)
{
	const int n = KY_COMPARE_SLICES, h = n - 2;
	struct ky_compare_values sorted = *values;
	double sum = 0, all, squares = 0;

	qsort(sorted.values, (size_t)n, sizeof(*sorted.values), trace_pair_values);
	for (int i = 1; i < n - 1; i++)
		sum += sorted.values[i];
	*mean = sum / h;
	/* The two count as their neighbours. */
	sorted.values[0] = sorted.values[1];
	sorted.values[n - 1] = sorted.values[n - 2];
	all = ky_compare_mean(&sorted);
	for (int i = 0; i < n; i++)
		squares += (sorted.values[i] - all) * (sorted.values[i] - all);
	*error = squares / (h * (h - 1));
}

bool ky_compare_differs(const struct ky_compare_values *a, const struct ky_compare_values *b)
{
	double mean_a, mean_b, error_a, error_b, apart;

	trace_pair_trim(a, &mean_a, &error_a);
	trace_pair_trim(b, &mean_b, &error_b);
	apart = fabs(mean_a - mean_b);
	return apart > BEYOND_T * sqrt(error_a + error_b) &&
	       apart > LEAST_PART * fmax(mean_a, mean_b);
}

/* ---- sides --------------------------------------------------------------------------------- */

/* The side of a host; -1: of none. */
static int trace_pair_side_of(const struct ky_compare *compare, const struct ky_host *host)
{
	const char *const sides[2] = {compare->sides[0].path, compare->sides[1].path};

	return ky_report_side(sides, compare->model, host);
}

static int trace_pair_find_sides(struct ky_compare *compare)
{
	for (int i = 0; i < 2; i++) {
		compare->sides[i].begin_ns = INT64_MAX;
		compare->sides[i].end_ns = INT64_MIN;
	}
	for (size_t i = 0; i < compare->causes->lanes.len; i++) {
		const struct ky_lane *lane = &compare->causes->lanes.data[i];
		const struct ky_cpu *cpu = ky_model_cpu(compare->model, i);
		int at = trace_pair_side_of(compare, cpu->host);
		struct ky_compare_side *side;

		if (at < 0)
			return KYMO_E_INVALID;
		side = &compare->sides[at];
		if (!lane->runs.len)
			continue;
		if (lane->runs.data[0].begin_ns < side->begin_ns)
			side->begin_ns = lane->runs.data[0].begin_ns;
		/* Its last state lasts to the end of both traces. */
		if (cpu->seen_ns > side->end_ns)
			side->end_ns = cpu->seen_ns;
	}
	for (int i = 0; i < 2; i++) {
		struct ky_compare_side *side = &compare->sides[i];

		if (side->from_ns > side->begin_ns)
			side->begin_ns = side->from_ns;
		if (side->until_ns < side->end_ns)
			side->end_ns = side->until_ns;
	}
	return 0;
}

/* Where slice @i of a side begins; of KY_COMPARE_SLICES: its end. */
static int64_t trace_pair_slice(const struct ky_compare_side *side, int i)
{
	uint64_t span = (uint64_t)side->end_ns - (uint64_t)side->begin_ns;

	return side->begin_ns + (int64_t)((double)span * i / KY_COMPARE_SLICES);
}

static double trace_pair_slice_seconds(const struct ky_compare_side *side)
{
	return (double)((uint64_t)side->end_ns - (uint64_t)side->begin_ns) / KY_COMPARE_SLICES /
	       NS_PER_S;
}

/* ---- items --------------------------------------------------------------------------------- */

static uint32_t trace_pair_name(struct ky_compare *compare, const char *name)
{
	uintptr_t number = (uintptr_t)ky_names_get(&compare->names, name);

	if (number)
		return (uint32_t)number;
	number = ++compare->n_names;
	return ky_names_set(&compare->names, name, (void *)number) < 0 ? 0 : (uint32_t)number;
}

/* NULL: out of memory, or there are too many. */
static struct ky_compare_item *trace_pair_item(struct ky_compare *compare, const char *name,
					       enum ky_cause cause, uint32_t syscall)
{
	uint64_t number = trace_pair_name(compare, name);
	uint64_t what = syscall == KY_NO_SYSCALL ? cause : (uint64_t)KY_CAUSES + syscall;
	uint64_t key = number << 32 | (uint32_t)what;
	uintptr_t place = (uintptr_t)ky_map_get(&compare->items_by_key, key);
	struct ky_compare_item item = {.name = name, .cause = cause, .syscall = syscall};

	if (place)
		return &compare->items.data[place - 1];
	if (!number || compare->items.len == ITEMS_MAX || ky_vec_push(&compare->items, item) < 0 ||
	    ky_map_set(&compare->items_by_key, key, (void *)(uintptr_t)compare->items.len) < 0)
		return NULL;
	return ky_vec_last(&compare->items);
}

struct adding {
	struct ky_compare *compare;
	const struct ky_thread *thread;
	int side, slice;
	int64_t since_ns; /* of its program: what was before is another one */
};

/* Waits for others, and for a time, are what most threads of a machine are for: they count where the user chose them. */
static bool trace_pair_is_idle(enum ky_cause cause)
{
	switch (cause) {
	case KY_CAUSE_FUTEX:
	case KY_CAUSE_NETWORK:
	case KY_CAUSE_TIMER:
	case KY_CAUSE_PIPE:
	case KY_CAUSE_DEVICE:
	case KY_CAUSE_SIGNAL:
	case KY_CAUSE_STOPPED:
	case KY_CAUSE_THREAD:
	case KY_CAUSE_BLOCKED:
		return true;
	default:
		return false;
	}
}

static int trace_pair_add_part(void *data, const struct ky_part *part)
{
	const struct adding *adding = data;
	struct ky_compare *compare = adding->compare;
	struct ky_compare_item *item;

	if (part->cause == KY_CAUSE_UNKNOWN ||
	    (!ky_focus_names_threads(compare->focus) && trace_pair_is_idle(part->cause)))
		return 0;
	item = trace_pair_item(compare, adding->thread->comm, part->cause, KY_NO_SYSCALL);
	if (!item)
		return compare->items.len == ITEMS_MAX ? 0 : KYMO_E_MEMORY;
	item->times[adding->side].values[adding->slice] +=
		(double)((uint64_t)part->end_ns - (uint64_t)part->begin_ns) /
		trace_pair_slice_seconds(&compare->sides[adding->side]);
	return 0;
}

static int trace_pair_add_calls(const struct adding *adding, const struct ky_track *track)
{
	struct ky_compare *compare = adding->compare;
	struct ky_compare_side *side = &compare->sides[adding->side];
	double seconds = trace_pair_slice_seconds(side);

	ky_vec_foreach(&track->calls, call) {
		struct ky_compare_item *item;
		uint64_t ns;
		int slice = 0;

		if (!call->done || call->unsure || call->begin_ns <= adding->since_ns ||
		    call->end_ns < call->begin_ns || call->end_ns < side->begin_ns ||
		    call->end_ns > side->end_ns ||
		    (!ky_focus_names_threads(compare->focus) &&
		     ky_call_aspect(compare->causes, call->syscall) != KY_CALL_PLAIN))
			continue;
		item = trace_pair_item(compare, adding->thread->comm, 0, call->syscall);
		if (!item && compare->items.len == ITEMS_MAX)
			continue;
		while (slice + 1 < KY_COMPARE_SLICES &&
		       call->end_ns >= trace_pair_slice(side, slice + 1))
			slice++;
		ns = (uint64_t)call->end_ns - (uint64_t)call->begin_ns;
		if (!item || ky_stats_add(&item->stats[adding->side], ns) < 0)
			return KYMO_E_MEMORY;
		item->counts[adding->side].values[slice] += 1 / seconds;
		item->times[adding->side].values[slice] += (double)ns / seconds;
		side->n_calls++;
	}
	return 0;
}

static int trace_pair_add_thread(struct ky_compare *compare, const struct ky_thread *thread,
				 const struct ky_track *track)
{
	struct adding adding = {compare, thread, trace_pair_side_of(compare, thread->host), 0,
				ky_track_program_ns(compare->causes, track)};
	const struct ky_compare_side *side;
	int status = 0;

	if (adding.side < 0 || !thread->comm[0] || !ky_focus_has_thread(compare->focus, thread))
		return 0;
	side = &compare->sides[adding.side];
	if (side->end_ns <= side->begin_ns)
		return 0;
	for (; adding.slice < KY_COMPARE_SLICES && status >= 0; adding.slice++) {
		int64_t begin_ns = trace_pair_slice(side, adding.slice);
		int64_t end_ns = trace_pair_slice(side, adding.slice + 1);

		if (begin_ns < adding.since_ns)
			begin_ns = adding.since_ns;
		if (begin_ns < end_ns)
			status = ky_causes_explain(compare->causes, thread, begin_ns, end_ns,
						   trace_pair_add_part, &adding);
	}
	return status < 0 ? status : trace_pair_add_calls(&adding, track);
}

int ky_compare_find(struct ky_compare *compare)
{
	int status = trace_pair_find_sides(compare);

	ky_names_init(&compare->names);
	for (size_t i = 0; i < compare->causes->tracks.len && status >= 0; i++)
		status = trace_pair_add_thread(compare, ky_model_thread(compare->model, i),
					       &compare->causes->tracks.data[i]);
	return status;
}

void ky_compare_fini(struct ky_compare *compare)
{
	ky_causes_free(compare->causes);
	ky_names_fini(&compare->names);
	ky_map_fini(&compare->items_by_key);
	ky_vec_foreach(&compare->items, item) {
		ky_stats_fini(&item->stats[0]);
		ky_stats_fini(&item->stats[1]);
	}
	ky_vec_fini(&compare->items);
}
