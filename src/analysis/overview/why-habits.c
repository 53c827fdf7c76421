/* SPDX-License-Identifier: MIT */
/* Report why: which habits stand out. */
#include "analysis/overview/why-habits.h"

#include <errno.h>
#include <stdlib.h>

/* Fewer of a kind, in all or per second, do not stand out. */
#define WHY_STARTS_LEAST   20
#define WHY_MOVES_LEAST	   20
#define WHY_BALANCED_RATE  100
#define WHY_SIGNALS_LEAST  50
#define WHY_FAILING_LEAST  100
#define WHY_SHORT_LEAST	   10
#define WHY_BUSY_LEAST	   1000
#define WHY_HERD_LEAST	   20
#define WHY_DELAYED_LEAST  5
#define WHY_TIMEOUTS_LEAST 2
#define WHY_RECLAIMS_LEAST 20
#define WHY_SYNCS_LEAST	   20
#define WHY_SLEEPS_LEAST   20
#define WHY_CALM_RATE	   10
#define WHY_PAGES_LEAST	   4096	 /* 16 MiB */
#define WHY_PAGES_RATE	   25600 /* 100 MiB per second */
/* Parts of the whole, and of the threads' own time. */
#define WHY_PART_LEAST 0.005
#define WHY_OWN_LEAST  0.1
#define WHY_OWN_NS     1000000

static const struct ky_habit *why_habits_of(const struct ky_habits *habits,
					    const struct ky_habit *like, enum ky_habit_kind kind)
{
	struct ky_habit key = {.kind = kind, .thread = like->thread, .syscall = KY_NO_SYSCALL};

	if (kind == KY_HABIT_CALLS)
		key.syscall = like->syscall;
	return ky_habits_find(habits, &key);
}

static void why_habits_measure(struct ky_why_habit *it, const struct ky_habits *habits,
			       double seconds)
{
	const struct ky_habit *found = why_habits_of(habits, &it->habit, KY_HABIT_CALLS);

	it->calls = found ? found->n : 0;
	it->seen_ns = found ? found->more : 0;
	it->threads = found ? found->threads : 1;
	found = why_habits_of(habits, &it->habit, KY_HABIT_RUNS);
	it->ran_ns = found ? found->ns : 0;
	found = why_habits_of(habits, &it->habit, KY_HABIT_INTERRUPTED);
	it->interrupted = found ? found->n : 0;
	it->rate = seconds > 0 ? (double)it->habit.n / seconds : 0;
	it->cost_ns = it->habit.ns;
}

/* Does its time matter: to the whole, or to the threads that have it? */
static bool why_habits_costs(const struct ky_why_habit *it, const struct ky_why_losses *losses)
{
	if (ky_part(it->habit.ns, it->ran_ns) < WHY_OWN_LEAST)
		return false;
	return it->habit.ns >= WHY_OWN_NS ||
	       ky_part(it->habit.ns, losses->total_ns) >= WHY_PART_LEAST;
}

/* Something has run out: that matters, however little time the calls take. */
static bool why_habits_is_short(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOSPC || error == EDQUOT ||
	       error == ENOMEM || error == ENOBUFS || error == EIO;
}

static bool why_habits_fails(const struct ky_why_habit *it, const struct ky_why_losses *losses)
{
	if (why_habits_is_short(it->habit.code))
		return it->habit.n >= WHY_SHORT_LEAST;
	return it->habit.n >= WHY_FAILING_LEAST && it->habit.n >= it->calls / 2 &&
	       why_habits_costs(it, losses);
}

static bool why_habits_moves(const struct ky_why_habit *it)
{
	switch ((enum ky_migration_cause)it->habit.code) {
	case KY_MIGRATION_AFFINITY:
		return it->habit.n >= WHY_MOVES_LEAST && it->rate >= WHY_CALM_RATE;
	case KY_MIGRATION_BALANCER:
		return it->habit.n >= WHY_MOVES_LEAST && it->rate >= WHY_BALANCED_RATE;
	default:
		return false; /* wake-ups move many threads that are well */
	}
}

static bool why_habits_sleeps(const struct ky_why_habit *it)
{
	return it->habit.n >= WHY_SLEEPS_LEAST * it->threads &&
	       ky_part(it->habit.ns, it->seen_ns) >= 0.5 &&
	       (double)it->habit.n >= WHY_CALM_RATE * (double)it->seen_ns / 1e9;
}

/* poll() ends at its timeout where a thread has nothing to do, too; less so where other calls of it got something. */
static bool why_habits_waits(const struct ky_why_habit *it, const struct ky_why_losses *losses)
{
	if (it->habit.n < WHY_TIMEOUTS_LEAST || ky_part(it->habit.ns, it->seen_ns) < 0.2)
		return false;
	return it->habit.code != KY_HABIT_OF_POLL ||
	       (losses->chosen && it->calls - it->habit.n >= it->calls / 5);
}

static bool why_habits_matters(const struct ky_why_habit *it, const struct ky_why_losses *losses)
{
	const struct ky_habit *habit = &it->habit;

	switch (habit->kind) {
	case KY_HABIT_FAILING:
		return why_habits_fails(it, losses);
	case KY_HABIT_EMPTY:
	case KY_HABIT_SMALL:
		return habit->n >= WHY_BUSY_LEAST && habit->n >= it->calls / 2 &&
		       why_habits_costs(it, losses);
	case KY_HABIT_ACCEPTS:
		return habit->n >= WHY_FAILING_LEAST && habit->n >= it->calls / 10;
	case KY_HABIT_TIMEOUTS:
		return why_habits_waits(it, losses);
	case KY_HABIT_HERD:
		return habit->n >= WHY_HERD_LEAST && it->rate >= WHY_CALM_RATE;
	case KY_HABIT_STARTS:
		return habit->n - habit->more >= WHY_STARTS_LEAST && it->rate >= WHY_CALM_RATE;
	case KY_HABIT_MOVES:
		return why_habits_moves(it);
	case KY_HABIT_SIGNALS:
		return habit->n >= WHY_SIGNALS_LEAST && it->rate >= 2 * WHY_CALM_RATE;
	case KY_HABIT_PAGES:
		return habit->n >= WHY_PAGES_LEAST && habit->n >= habit->more / 2 &&
		       habit->more >= habit->n / 2 && it->rate >= WHY_PAGES_RATE;
	case KY_HABIT_RECLAIMS:
		return habit->n >= WHY_RECLAIMS_LEAST && why_habits_costs(it, losses);
	case KY_HABIT_DELAYED:
		return habit->n >= WHY_DELAYED_LEAST;
	case KY_HABIT_SYNCS:
		return habit->n >= WHY_SYNCS_LEAST && ky_part(habit->ns, it->seen_ns) >= 0.2 &&
		       it->rate >= WHY_CALM_RATE;
	case KY_HABIT_SLEEPS:
		return why_habits_sleeps(it);
	default:
		return false;
	}
}

/* What one call of a program may be for comes last: waiting for a time. */
static int why_habits_class(const struct ky_why_habit *it)
{
	return it->habit.kind == KY_HABIT_SLEEPS;
}

static int why_habits_compare(const void *a, const void *b)
{
	const struct ky_why_habit *left = a, *right = b;

	if (why_habits_class(left) != why_habits_class(right))
		return why_habits_class(left) - why_habits_class(right);
	if (left->cost_ns != right->cost_ns)
		return left->cost_ns < right->cost_ns ? 1 : -1;
	if (left->habit.kind != right->habit.kind)
		return left->habit.kind < right->habit.kind ? -1 : 1;
	return left->habit.thread->index < right->habit.thread->index ? -1 : 1;
}

/* Many threads have nothing to do but to sleep: one of them is enough. */
static void why_habits_join(struct ky_why_habits *found)
{
	for (size_t i = 0; i < found->list.len; i++) {
		if (!why_habits_class(&found->list.data[i]))
			continue;
		found->list.data[i].others = found->list.len - i - 1;
		found->list.len = i + 1;
	}
}

int ky_why_habits_find(struct ky_why_habits *found, const struct ky_habits *habits,
		       const struct ky_why_losses *losses, double seconds, bool chosen)
{
	uint64_t starts = 0;

	*found = (struct ky_why_habits){.list = KY_VEC_INIT};
	ky_vec_foreach(&habits->list, habit) {
		starts += habit->kind == KY_HABIT_STARTS ? habit->n : 0;
	}
	ky_vec_foreach(&habits->list, habit) {
		struct ky_why_habit it = {.habit = *habit, .starts = starts};

		/* kthreadd's children: the kernel knows what it does. */
		if (!habit->thread || (!chosen && habit->thread->ppid == 2))
			continue;
		why_habits_measure(&it, habits, seconds);
		if (!why_habits_matters(&it, losses))
			continue;
		/* What it costs, events do not tell: the place of one percent. */
		if (habit->kind == KY_HABIT_MOVES || habit->kind == KY_HABIT_SIGNALS)
			it.cost_ns = losses->total_ns / 100;
		if (ky_vec_push(&found->list, it) < 0)
			return KYMO_E_MEMORY;
	}
	if (found->list.len)
		qsort(found->list.data, found->list.len, sizeof(*found->list.data),
		      why_habits_compare);
	if (!chosen)
		why_habits_join(found);
	return 0;
}

void ky_why_habits_fini(struct ky_why_habits *found)
{
	ky_vec_fini(&found->list);
}
