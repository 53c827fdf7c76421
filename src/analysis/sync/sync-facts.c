/* SPDX-License-Identifier: MIT */
#include "analysis/sync/sync-facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/sync/sync-hull.h"

/* An error of more than this says nothing. */
#define ERROR_MAX_NS ((uint64_t)3600 * 1000000000)
/* Two exact mappings to ns. */
#define ROUNDING_NS 2

static const char *const moments[] = {"begin", "end"};

static bool sync_facts_number(const struct ky_trace *trace, const char *moment, const char *what,
			      int64_t *number)
{
	const struct ky_env *env;
	char name[64];

	snprintf(name, sizeof(name), "clock_%s_%s", moment, what);
	env = ky_env_find(trace->cls, name);
	if (!env || (env->is_text && strspn(env->text, "0123456789") != strlen(env->text)))
		return false;
	*number = env->is_text ? strtoll(env->text, NULL, 10) : env->number;
	return true;
}

static void sync_facts_anchor(const struct ky_trace *trace, const char *moment, int64_t ns,
			      struct ky_sync_facts *facts)
{
	int64_t tsc, error;
	const struct ky_sync_anchor *before = &facts->anchors[0];

	if (!sync_facts_number(trace, moment, "tsc", &tsc) || tsc <= 0 ||
	    !sync_facts_number(trace, moment, "tsc_error_ns", &error) || error < 0 ||
	    (uint64_t)error > ERROR_MAX_NS)
		return;
	if (facts->n_anchors && (ns <= before->ns || (uint64_t)tsc <= before->tsc))
		return;
	facts->anchors[facts->n_anchors++] =
		(struct ky_sync_anchor){(uint64_t)tsc, ns, (uint64_t)error};
}

static void sync_facts_widen(struct ky_sync_range *range, int64_t least, int64_t most)
{
	range->least = range->has && range->least < least ? range->least : least;
	range->most = range->has && range->most > most ? range->most : most;
	range->has = true;
}

static void sync_facts_wall(const struct ky_trace *trace, const char *moment, int64_t ns,
			    struct ky_sync_facts *facts)
{
	int64_t wall, synchronized, error;

	if (!sync_facts_number(trace, moment, "wall_ns", &wall) || wall < 0 || wall > KY_HULL_FAR)
		return;
	sync_facts_widen(&facts->wall, wall - ns, wall - ns);
	if (!sync_facts_number(trace, moment, "utc_synchronized", &synchronized) || !synchronized ||
	    !sync_facts_number(trace, moment, "utc_error_ns", &error) || error < 0 ||
	    (uint64_t)error > ERROR_MAX_NS)
		return;
	sync_facts_widen(&facts->of[KY_KNOWS_UTC], wall - error - ns, wall + error - ns);
}

/* The clock of the trace's events. */
static const struct ky_clock_class *sync_facts_clock(const struct ky_trace *trace)
{
	return trace->cls->clocks.len == 1 ? trace->cls->clocks.data[0] : NULL;
}

bool ky_sync_facts_of(const struct ky_trace *trace, struct ky_sync_facts *facts)
{
	const struct ky_clock_class *clock = sync_facts_clock(trace);

	*facts = (struct ky_sync_facts){0};
	if (!clock || !clock->frequency_hz)
		return false;
	if (strcmp(clock->name, "tsc") == 0)
		facts->counter = clock;
	for (int i = 0; i < 2; i++) {
		int64_t cycles, ns;

		if (!sync_facts_number(trace, moments[i], "cycles", &cycles) || cycles <= 0)
			continue;
		ns = ky_clock_to_ns(clock, (uint64_t)cycles);
		if (ns < 0 || ns > KY_HULL_FAR)
			continue;
		facts->begin_ns = facts->has_times ? facts->begin_ns : ns;
		facts->end_ns = ns > facts->begin_ns ? ns : facts->begin_ns;
		facts->has_times = true;
		sync_facts_anchor(trace, moments[i], ns, facts);
		sync_facts_wall(trace, moments[i], ns, facts);
	}
	return facts->counter || facts->n_anchors || facts->wall.has;
}

/* By the line through both anchors; its error grows outside of them. */
static bool sync_facts_between(const struct ky_sync_facts *facts, uint64_t tsc,
			       struct ky_sync_anchor *anchor)
{
	const struct ky_sync_anchor *a = &facts->anchors[0], *b = &facts->anchors[1];
	__int128 cycles = (__int128)b->tsc - a->tsc, since = (__int128)tsc - a->tsc;
	__int128 ns = (__int128)a->ns + since * (b->ns - a->ns) / cycles;
	uint64_t error = a->error_ns > b->error_ns ? a->error_ns : b->error_ns;
	__int128 outside = tsc < a->tsc ? -since : tsc > b->tsc ? since - cycles : 0;
	__int128 grown = outside * (__int128)(a->error_ns + b->error_ns) / cycles + error + 1;

	if (ns < 0 || ns > KY_HULL_FAR || grown > (__int128)ERROR_MAX_NS)
		return false;
	*anchor = (struct ky_sync_anchor){tsc, (int64_t)ns, (uint64_t)grown};
	return true;
}

bool ky_sync_facts_ns(const struct ky_sync_facts *facts, uint64_t tsc,
		      struct ky_sync_anchor *anchor)
{
	int64_t ns;

	if (!facts->counter)
		return facts->n_anchors == 2 && sync_facts_between(facts, tsc, anchor);
	ns = ky_clock_to_ns(facts->counter, tsc);
	*anchor = (struct ky_sync_anchor){tsc, ns, ROUNDING_NS};
	return ns >= 0 && ns <= KY_HULL_FAR;
}
