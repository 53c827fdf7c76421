/* SPDX-License-Identifier: MIT */
/*
 * Causes: threads that come back to a CPU in a rhythm, while others without a better priority have it. A limit of CPU time makes such
 * a rhythm: what is over the limit waits for the next period, which a timer begins. Turns that a scheduler makes among
 * threads are neither that exact nor that unfair.
 */
#include "analysis/causes/causes-internal.h"

#include <stdlib.h>

/* Waits that are shorter are turns of the scheduler. */
#define WAIT_LEAST_NS	8000000
#define WAITS_LEAST	5
#define WAITS_MOST	10000
#define PERIOD_LEAST_NS 10000000
/* So far from its time may a period begin, as it is seen: the thread waits for its turn then. */
#define RHYTHM_SLACK_NS 2500000
/* Another thread has had the CPU for so long meanwhile: more than a turn. */
#define UNFAIR_NS 8000000
#define OTHERS	  16

struct rhythm {
	int64_t ends_ns[WAITS_MOST];
	size_t n, n_unfair;
	uint64_t ns;
};

struct other {
	const struct ky_thread *thread;
	uint64_t ns;
};

static uint64_t causes_rhythm_run(struct other *others, const struct ky_thread *thread, uint64_t ns)
{
	for (size_t i = 0; i < OTHERS; i++) {
		if (others[i].thread && others[i].thread != thread)
			continue;
		others[i].thread = thread;
		others[i].ns += ns;
		return others[i].ns;
	}
	return 0;
}

/* Did a thread without a better priority have the CPU meanwhile, for more than a turn? Then it was not its turn that @thread waited for. */
static bool causes_rhythm_is_unfair(const struct ky_causes *causes, const struct ky_thread *thread,
				    const struct ky_stretch *wait, uint32_t cpu)
{
	const struct ky_lane *lane = ky_causes_lane(causes, cpu);
	struct other others[OTHERS] = {0};

	for (size_t i = lane ? ky_causes_find(&lane->runs, begin_ns, wait->begin_ns) : 0;
	     lane && i < lane->runs.len && lane->runs.data[i].begin_ns < wait->end_ns; i++) {
		const struct ky_lane_run *run = &lane->runs.data[i];
		int64_t end = run->end_ns < wait->end_ns ? run->end_ns : wait->end_ns;

		if (run->idle)
			return true;
		if (!run->thread || run->thread == thread || run->thread->prio == KY_UNKNOWN ||
		    run->thread->prio < 0 || run->thread->prio < thread->prio)
			continue;
		if (causes_rhythm_run(others, run->thread, (uint64_t)(end - run->begin_ns)) >=
		    UNFAIR_NS)
			return true;
	}
	return false;
}

static void causes_rhythm_collect(struct rhythm *rhythm, const struct ky_causes *causes,
				  const struct ky_thread *thread, const struct ky_track *track)
{
	for (size_t i = 1; i < track->stretches.len && rhythm->n < WAITS_MOST; i++) {
		const struct ky_stretch *wait = &track->stretches.data[i], *run = wait - 1;
		uint64_t ns = (uint64_t)wait->end_ns - (uint64_t)wait->begin_ns;

		if (wait->kind != KY_STRETCH_PREEMPTED || run->kind != KY_STRETCH_RUN ||
		    ns < WAIT_LEAST_NS)
			continue;
		rhythm->ends_ns[rhythm->n++] = wait->end_ns;
		rhythm->n_unfair += causes_rhythm_is_unfair(causes, thread, wait, run->cpu);
		rhythm->ns += ns;
	}
}

static int causes_rhythm_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* The median of the times between two ends, in whole milliseconds. 0: none. */
static int64_t causes_rhythm_period(const struct rhythm *rhythm)
{
	int64_t *gaps = calloc(rhythm->n, sizeof(*gaps)), period = 0;

	for (size_t i = 1; gaps && i < rhythm->n; i++)
		gaps[i - 1] = rhythm->ends_ns[i] - rhythm->ends_ns[i - 1];
	if (gaps) {
		qsort(gaps, rhythm->n - 1, sizeof(*gaps), causes_rhythm_compare);
		period = (gaps[(rhythm->n - 1) / 2] + 500000) / 1000000 * 1000000;
	}
	free(gaps);
	return period;
}

/* How many ends are whole periods behind the one that the most agree with. */
static size_t causes_rhythm_fits(const struct rhythm *rhythm, int64_t period)
{
	size_t most = 0;

	for (size_t first = 0; first < rhythm->n && first < 16; first++) {
		size_t n = 0;

		for (size_t i = 0; i < rhythm->n; i++) {
			int64_t rest = (rhythm->ends_ns[i] - rhythm->ends_ns[first]) % period;

			rest += rest < 0 ? period : 0;
			n += rest <= RHYTHM_SLACK_NS || rest >= period - RHYTHM_SLACK_NS;
		}
		most = most < n ? n : most;
	}
	return most;
}

bool ky_causes_rhythm(const struct ky_causes *causes, const struct ky_thread *thread,
		      struct ky_rhythm *found)
{
	const struct ky_track *track = ky_causes_track(causes, thread);
	struct rhythm *rhythm = track ? calloc(1, sizeof(*rhythm)) : NULL;
	int64_t period = 0;

	*found = (struct ky_rhythm){0};
	if (rhythm)
		causes_rhythm_collect(rhythm, causes, thread, track);
	if (rhythm && rhythm->n >= WAITS_LEAST && rhythm->n_unfair >= rhythm->n - rhythm->n / 4)
		period = causes_rhythm_period(rhythm);
	if (period >= PERIOD_LEAST_NS) {
		size_t n = causes_rhythm_fits(rhythm, period);

		if (n >= WAITS_LEAST && n >= rhythm->n - rhythm->n / 5)
			*found = (struct ky_rhythm){(uint64_t)period, rhythm->ns, n};
	}
	free(rhythm);
	return found->n != 0;
}
