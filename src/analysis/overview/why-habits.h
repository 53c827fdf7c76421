/* SPDX-License-Identifier: MIT */
/* Report why: habits that stand out, and their sentences. */
#ifndef KY_ANALYSIS_OVERVIEW_WHY_HABITS_H
#define KY_ANALYSIS_OVERVIEW_WHY_HABITS_H

#include "analysis/causes/habits.h"
#include "analysis/overview/why.h"

/* A habit, and what it is measured against. */
struct ky_why_habit {
	struct ky_habit habit;
	uint64_t calls;	      /* of its name, of these threads */
	uint64_t ran_ns;      /* how long these threads ran */
	uint64_t seen_ns;     /* between their first and last call */
	uint64_t interrupted; /* calls of theirs that signals ended */
	uint64_t threads;     /* that made the calls */
	uint64_t starts;      /* of processes and threads, by all that were selected */
	size_t others;	      /* findings of the kind that are not told */
	double rate;	      /* per second of the range */
	uint64_t cost_ns;     /* the order of findings */
};

struct ky_why_habits {
	KY_VEC(struct ky_why_habit) list; /* the costliest first */
};

/*
 * Those of @habits that stand out, in a range of @seconds. @losses: how long threads ran and lost time. @chosen: the user
 * chose threads, so that less matters. 0 or KYMO_E_MEMORY; to be freed in any case.
 */
int ky_why_habits_find(struct ky_why_habits *found, const struct ky_habits *habits,
		       const struct ky_why_losses *losses, double seconds, bool chosen);
void ky_why_habits_fini(struct ky_why_habits *found);

/* As ky_why_say(), ky_why_sure() and ky_why_more(). */
void ky_why_habit_say(struct ky_strbuf *out, const struct ky_model *model,
		      const struct ky_why_losses *losses, const struct ky_why_habit *it);
const char *ky_why_habit_sure(const struct ky_model *model, const struct ky_why_losses *losses,
			      const struct ky_why_habit *it);
void ky_why_habit_more(struct ky_strbuf *out, const struct ky_why_habit *it);

#endif
