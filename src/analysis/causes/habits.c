/* SPDX-License-Identifier: MIT */
#include "analysis/causes/habits.h"

#include <string.h>

static uint64_t habits_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* A thread without a name is one of its own. */
static bool habits_are_one(const struct ky_habits *habits, const struct ky_thread *a,
			   const struct ky_thread *b)
{
	if (a == b || !a || !b)
		return a == b;
	return !habits->by_thread && a->host == b->host && a->comm[0] &&
	       strcmp(a->comm, b->comm) == 0;
}

static uint64_t habits_mix_thread(const struct ky_habits *habits, uint64_t hash,
				  const struct ky_thread *thread)
{
	if (!thread)
		return habits_mix(hash, 0);
	if (habits->by_thread || !thread->comm[0])
		return habits_mix(hash, thread->index + UINT64_C(1));
	for (const char *c = thread->comm; *c; c++)
		hash = habits_mix(hash, (uint8_t)*c);
	return habits_mix(hash, thread->host->index);
}

static uint64_t habits_hash(const struct ky_habits *habits, const struct ky_habit *habit)
{
	uint64_t hash = habits_mix(habit->kind + UINT64_C(1), habit->syscall);

	hash = habits_mix(hash, (uint64_t)habit->code);
	hash = habits_mix_thread(habits, hash, habit->thread);
	/* Those that a thread starts have any names. */
	return habit->kind == KY_HABIT_STARTS ? hash : habits_mix_thread(habits, hash, habit->by);
}

static struct ky_habit *habits_get(const struct ky_habits *habits, const struct ky_habit *habit,
				   uint64_t hash)
{
	uintptr_t i = (uintptr_t)ky_map_get(&habits->by_hash, hash);

	for (; i; i = habits->list.data[i - 1].next) {
		struct ky_habit *it = &habits->list.data[i - 1];

		if (it->kind == habit->kind && it->syscall == habit->syscall &&
		    it->code == habit->code && habits_are_one(habits, it->thread, habit->thread) &&
		    (it->kind == KY_HABIT_STARTS || habits_are_one(habits, it->by, habit->by)))
			return it;
	}
	return NULL;
}

int ky_habits_add(struct ky_habits *habits, const struct ky_habit *habit)
{
	uint64_t hash = habits_hash(habits, habit);
	struct ky_habit *it = habits_get(habits, habit, hash);
	struct ky_habit fresh = *habit;

	if (it) {
		it->n += habit->n;
		it->more += habit->more;
		it->ns += habit->ns;
		it->threads += habit->threads;
		it->file = it->file ? it->file : habit->file;
		return 0;
	}
	if (habits->list.len == UINT32_MAX)
		return KYMO_E_MEMORY;
	fresh.next = (uint32_t)(uintptr_t)ky_map_get(&habits->by_hash, hash);
	if (ky_vec_push(&habits->list, fresh) < 0)
		return KYMO_E_MEMORY;
	return ky_map_set(&habits->by_hash, hash, (void *)(uintptr_t)habits->list.len);
}

const struct ky_habit *ky_habits_find(const struct ky_habits *habits, const struct ky_habit *habit)
{
	return habits_get(habits, habit, habits_hash(habits, habit));
}

void ky_habits_fini(struct ky_habits *habits)
{
	ky_map_fini(&habits->by_hash);
	ky_vec_fini(&habits->list);
}
