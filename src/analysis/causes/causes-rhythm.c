/* SPDX-License-Identifier: MIT */
/*
 * Causes: threads that come back to a CPU in a rhythm, while others without a better priority have it. A limit of CPU time makes such
 * a rhythm: what is over the limit waits for the next period, which a timer begins. Turns that a scheduler makes among
 * threads are neither that exact nor that unfair. On a busy machine, none of the others may have the CPU for more than a turn; then the
 * thread itself gets its turns after less, except for the limit's waits.
 */
#include "analysis/causes/causes-internal.h"

#include <stdlib.h>

/* Waits that are shorter are turns of the scheduler. */
#define WAIT_LEAST_NS	8000000
#define WAITS_LEAST	5
#define WAITS_MOST	10000
#define PERIOD_LEAST_NS 10000000
/* Shorter ones say nothing of turns. */
#define TURN_LEAST_NS 500000
/* What a limit has, unless somebody chose another one. */
#define PERIOD_USUAL_NS 100000000
/* So far from its time may a period begin, as it is seen: the thread waits for its turn then. */
#define RHYTHM_SLACK_NS 2500000
/* Another thread has had the CPU for so long meanwhile: more than a turn. */
#define UNFAIR_NS 8000000
#define OTHERS	  16

struct rhythm_wait {
	int64_t end_ns;
	uint64_t ns;
	bool is_unfair;
};

struct rhythm {
	struct rhythm_wait waits[WAITS_MOST];
	size_t n, n_unfair, n_turns;
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

		if (wait->kind != KY_STRETCH_PREEMPTED || run->kind != KY_STRETCH_RUN)
			continue;
		if (ns < WAIT_LEAST_NS) {
			rhythm->n_turns += ns >= TURN_LEAST_NS;
			continue;
		}
		rhythm->waits[rhythm->n++] = (struct rhythm_wait){
			wait->end_ns, ns, causes_rhythm_is_unfair(causes, thread, wait, run->cpu)};
	}
}

/* Half of the WAITS_LEAST-th longest wait: on a busy machine, waits for a turn are shorter than those that a limit makes. */
static uint64_t causes_rhythm_floor_ns(const struct rhythm *rhythm)
{
	uint64_t longest[WAITS_LEAST] = {0};

	for (size_t i = 0; i < rhythm->n; i++) {
		uint64_t ns = rhythm->waits[i].ns;

		for (size_t at = 0; at < WAITS_LEAST; at++)
			if (ns > longest[at]) {
				uint64_t shorter = longest[at];

				longest[at] = ns;
				ns = shorter;
			}
	}
	return longest[WAITS_LEAST - 1] / 2;
}

/* Only waits of at least @floor_ns stay. */
static void causes_rhythm_keep(struct rhythm *rhythm, uint64_t floor_ns)
{
	size_t n = 0;

	rhythm->n_unfair = 0;
	rhythm->ns = 0;
	for (size_t i = 0; i < rhythm->n; i++) {
		if (rhythm->waits[i].ns < floor_ns) {
			rhythm->n_turns++;
			continue;
		}
		rhythm->n_unfair += rhythm->waits[i].is_unfair;
		rhythm->ns += rhythm->waits[i].ns;
		rhythm->waits[n++] = rhythm->waits[i];
	}
	rhythm->n = n;
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
		gaps[i - 1] = rhythm->waits[i].end_ns - rhythm->waits[i - 1].end_ns;
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
			int64_t rest =
				(rhythm->waits[i].end_ns - rhythm->waits[first].end_ns) % period;

			rest += rest < 0 ? period : 0;
			n += rest <= RHYTHM_SLACK_NS || rest >= period - RHYTHM_SLACK_NS;
		}
		most = most < n ? n : most;
	}
	return most;
}

static bool causes_rhythm_has(const struct rhythm *rhythm, int64_t period, struct ky_rhythm *found)
{
	size_t n = period < PERIOD_LEAST_NS ? 0 : causes_rhythm_fits(rhythm, period);

	if (n < WAITS_LEAST || n < rhythm->n - rhythm->n / 5)
		return false;
	*found = (struct ky_rhythm){(uint64_t)period, rhythm->ns, n};
	return true;
}

/* Of the waits that are there. They are not for a turn if others had more than a turn, or if the thread's turns come after less. */
static bool causes_rhythm_judge(const struct rhythm *rhythm, struct ky_rhythm *found)
{
	if (rhythm->n < WAITS_LEAST)
		return false;
	return (rhythm->n_unfair >= rhythm->n - rhythm->n / 4 &&
		causes_rhythm_has(rhythm, causes_rhythm_period(rhythm), found)) ||
	       (rhythm->n_turns >= rhythm->n && causes_rhythm_has(rhythm, PERIOD_USUAL_NS, found));
}

bool ky_causes_rhythm(const struct ky_causes *causes, const struct ky_thread *thread,
		      struct ky_rhythm *found)
{
	const struct ky_track *track = ky_causes_track(causes, thread);
	struct rhythm *rhythm = track ? calloc(1, sizeof(*rhythm)) : NULL;
	bool is_found = false;

	*found = (struct ky_rhythm){0};
	if (rhythm) {
		causes_rhythm_collect(rhythm, causes, thread, track);
		causes_rhythm_keep(rhythm, 0);
		is_found = causes_rhythm_judge(rhythm, found);
	}
	if (rhythm && !is_found) {
		causes_rhythm_keep(rhythm, causes_rhythm_floor_ns(rhythm));
		is_found = causes_rhythm_judge(rhythm, found);
	}
	free(rhythm);
	return is_found;
}
