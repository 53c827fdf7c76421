/* SPDX-License-Identifier: MIT */
/* Causes: threads that wait for a CPU while another one has nothing to do. */
#include "analysis/causes/causes-internal.h"

#include <stdlib.h>

/* Some CPU is idle. */
struct idle_time {
	int64_t begin_ns, end_ns;
	uint64_t before_ns; /* of the idle times before this one */
};

struct idle_times {
	KY_VEC(struct idle_time) list; /* disjoint, in their order */
};

static int causes_idle_compare(const void *a, const void *b)
{
	const struct idle_time *left = a, *right = b;

	return left->begin_ns < right->begin_ns ? -1 : left->begin_ns > right->begin_ns;
}

static int causes_idle_collect(struct idle_times *times, const struct ky_causes *causes,
			       const struct ky_host *host)
{
	for (size_t i = 0; i < causes->lanes.len; i++) {
		if (ky_model_cpu(causes->model, i)->host != host)
			continue;
		ky_vec_foreach(&causes->lanes.data[i].runs, run) {
			if (run->idle &&
			    ky_vec_push(&times->list,
					(struct idle_time){run->begin_ns, run->end_ns, 0}) < 0)
				return KYMO_E_MEMORY;
		}
	}
	return 0;
}

/* Overlaps become one. */
static void causes_idle_join(struct idle_times *times)
{
	uint64_t sum_ns = 0;
	size_t n = 0;

	if (times->list.len)
		qsort(times->list.data, times->list.len, sizeof(*times->list.data),
		      causes_idle_compare);
	ky_vec_foreach(&times->list, time) {
		struct idle_time *last = n ? &times->list.data[n - 1] : NULL;

		if (last && time->begin_ns <= last->end_ns) {
			if (last->end_ns < time->end_ns)
				last->end_ns = time->end_ns;
			continue;
		}
		times->list.data[n++] = *time;
	}
	times->list.len = n;
	ky_vec_foreach(&times->list, time) {
		time->before_ns = sum_ns;
		sum_ns += (uint64_t)time->end_ns - (uint64_t)time->begin_ns;
	}
}

/* How much of the time before @ns is idle. */
static uint64_t causes_idle_until(const struct idle_times *times, int64_t ns)
{
	size_t i = ky_causes_find(&times->list, begin_ns, ns);
	const struct idle_time *time;

	if (!i)
		return 0;
	time = &times->list.data[i - 1];
	return time->before_ns + (uint64_t)(ns < time->end_ns ? ns : time->end_ns) -
	       (uint64_t)time->begin_ns;
}

static uint64_t causes_idle_beside(const struct ky_causes *causes, const struct idle_times *times,
				   const struct ky_thread *thread)
{
	const struct ky_track *track = ky_causes_track(causes, thread);
	uint64_t ns = 0;

	for (size_t i = 0; track && i < track->stretches.len; i++) {
		const struct ky_stretch *stretch = &track->stretches.data[i];

		if (stretch->kind == KY_STRETCH_READY || stretch->kind == KY_STRETCH_PREEMPTED)
			ns += causes_idle_until(times, stretch->end_ns) -
			      causes_idle_until(times, stretch->begin_ns);
	}
	return ns;
}

int ky_causes_beside_idle(const struct ky_causes *causes, const struct ky_thread *const *threads,
			  size_t n, uint64_t *ns, const struct ky_thread **most)
{
	const struct ky_host *host = n ? threads[0]->host : NULL;
	struct idle_times times = {.list = KY_VEC_INIT};
	int status = causes_idle_collect(&times, causes, host);
	uint64_t most_ns = 0;

	*ns = 0;
	*most = NULL;
	causes_idle_join(&times);
	for (size_t i = 0; i < n && status >= 0; i++) {
		uint64_t own_ns = threads[i]->host == host
					  ? causes_idle_beside(causes, &times, threads[i])
					  : 0;

		*ns += own_ns;
		if (own_ns > most_ns) {
			most_ns = own_ns;
			*most = threads[i];
		}
	}
	ky_vec_fini(&times.list);
	return status;
}
