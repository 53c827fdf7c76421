/* SPDX-License-Identifier: MIT */
/* Habits: what the model tells in a pass: births, moves, signals, pages. */
#include "analysis/causes/causes-internal.h"
#include "analysis/causes/habits.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* So many births, and pairs of threads, are remembered. */
#define WATCH_MAX 1000000

struct watch_birth {
	const struct ky_thread *parent, *child;
	bool is_thread; /* of the parent's process */
};

struct ky_habits_watch {
	struct ky_model *model;
	const struct ky_focus *focus;
	struct ky_habits habits; /* by thread: names may change until the end */
	KY_VEC(struct watch_birth) births;
	KY_VEC(uint8_t) gives; /* by system call: 1 + whether it gives memory back */
};

static bool habits_watch_wants(const struct ky_habits_watch *watch, const struct ky_thread *thread,
			       int64_t ns)
{
	return thread && ns >= watch->focus->begin_ns && ns <= watch->focus->end_ns &&
	       ky_focus_has_thread(watch->focus, thread) && watch->habits.list.len < WATCH_MAX;
}

static int habits_watch_on_born(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_habits_watch *watch = data;
	bool is_thread = thread->pid != thread->tid;
	int32_t parent = is_thread ? thread->pid : thread->ppid;
	struct watch_birth birth = {ky_map_get(&thread->host->threads, (uint32_t)parent), thread,
				    is_thread};

	if (parent < 0 || !habits_watch_wants(watch, birth.parent, ns) ||
	    watch->births.len >= WATCH_MAX)
		return 0;
	return ky_vec_push(&watch->births, birth);
}

static int habits_watch_on_migration(void *data, const struct ky_migration *migration)
{
	struct ky_habits_watch *watch = data;
	struct ky_habit habit = {.kind = KY_HABIT_MOVES,
				 .thread = migration->thread,
				 .syscall = KY_NO_SYSCALL,
				 .code = (int32_t)migration->cause,
				 .n = 1};

	if (migration->cause == KY_MIGRATION_AFFINITY)
		habit.by = migration->by;
	return habits_watch_wants(watch, habit.thread, migration->ns)
		       ? ky_habits_add(&watch->habits, &habit)
		       : 0;
}

static int habits_watch_on_signal(void *data, const struct ky_signal *signal)
{
	struct ky_habits_watch *watch = data;
	bool is_kernel = signal->code == SI_KERNEL || signal->code == SI_TIMER;
	struct ky_habit habit = {.kind = KY_HABIT_SIGNALS,
				 .thread = signal->receiver,
				 .by = is_kernel ? NULL : signal->sender,
				 .syscall = KY_NO_SYSCALL,
				 .code = signal->nr,
				 .n = 1};

	/* The birth of a child tells of its end as well. */
	if (signal->nr == SIGCHLD || !habits_watch_wants(watch, habit.thread, signal->ns))
		return 0;
	return ky_habits_add(&watch->habits, &habit);
}

static bool habits_watch_gives(struct ky_habits_watch *watch, uint32_t syscall)
{
	static const char *const names[] = {"munmap", "madvise", "brk", "mremap"};
	const char *name;

	if (syscall >= ky_model_n_syscalls(watch->model))
		return false;
	while (watch->gives.len <= syscall) {
		if (ky_vec_push(&watch->gives, 0) < 0)
			return false;
	}
	if (!watch->gives.data[syscall]) {
		name = ky_model_syscall_name(watch->model, syscall);
		watch->gives.data[syscall] = 1;
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			watch->gives.data[syscall] += strcmp(name, names[i]) == 0;
	}
	return watch->gives.data[syscall] == 2;
}

static int habits_watch_on_reclaim(struct ky_habits_watch *watch, const struct ky_memory *memory)
{
	const struct ky_habit habit = {.kind = KY_HABIT_RECLAIMS,
				       .thread = memory->thread,
				       .syscall = KY_NO_SYSCALL,
				       .code = memory->by_limit,
				       .n = 1,
				       .more = memory->value,
				       .ns = (uint64_t)(memory->ns - memory->begin_ns)};

	return ky_habits_add(&watch->habits, &habit);
}

static int habits_watch_on_memory(void *data, const struct ky_memory *memory)
{
	struct ky_habits_watch *watch = data;
	struct ky_habit habit = {
		.kind = KY_HABIT_PAGES, .thread = memory->thread, .syscall = KY_NO_SYSCALL};

	if (!habits_watch_wants(watch, memory->thread, memory->ns))
		return 0;
	if (memory->kind == KY_MEMORY_RECLAIM)
		return habits_watch_on_reclaim(watch, memory);
	if (memory->kind == KY_MEMORY_ALLOC)
		habit.more = memory->value;
	else if (memory->kind == KY_MEMORY_FREE &&
		 habits_watch_gives(watch, memory->thread->syscall.id))
		habit.n = memory->value;
	else
		return 0;
	return ky_habits_add(&watch->habits, &habit);
}

struct ky_habits_watch *ky_habits_watch_new(struct ky_model *model, const struct ky_focus *focus)
{
	struct ky_habits_watch *watch = calloc(1, sizeof(*watch));
	const struct ky_listener listener = {
		.data = watch,
		.thread_born = habits_watch_on_born,
		.migration = habits_watch_on_migration,
		.signal = habits_watch_on_signal,
		.memory = habits_watch_on_memory,
	};

	if (!watch)
		return NULL;
	watch->model = model;
	watch->focus = focus;
	watch->habits.by_thread = true;
	if (ky_model_listen(model, &listener) == 0)
		return watch;
	free(watch);
	return NULL;
}

void ky_habits_watch_free(struct ky_habits_watch *watch)
{
	if (!watch)
		return;
	ky_habits_fini(&watch->habits);
	ky_vec_fini(&watch->births);
	ky_vec_fini(&watch->gives);
	free(watch);
}

/* ---- after the pass -------------------------------------------------------------------- */

static uint64_t habits_watch_ran(const struct ky_causes *causes, const struct ky_thread *thread,
				 const struct ky_focus *focus)
{
	const struct ky_track *track = ky_causes_track(causes, thread);
	uint64_t ns = 0;

	for (size_t i = 0; track && i < track->stretches.len; i++) {
		const struct ky_stretch *stretch = &track->stretches.data[i];

		if (stretch->kind == KY_STRETCH_RUN && stretch->end_ns >= focus->begin_ns &&
		    stretch->begin_ns <= focus->end_ns)
			ns += (uint64_t)stretch->end_ns - (uint64_t)stretch->begin_ns;
	}
	return ns;
}

static int habits_watch_add_births(struct ky_habits *habits, const struct ky_habits_watch *watch,
				   const struct ky_causes *causes)
{
	int status = 0;

	ky_vec_foreach(&watch->births, birth) {
		const struct ky_habit habit = {
			.kind = KY_HABIT_STARTS,
			.thread = birth->parent,
			.by = birth->child,
			.syscall = KY_NO_SYSCALL,
			.n = 1,
			.more = birth->is_thread,
			.ns = habits_watch_ran(causes, birth->child, watch->focus),
		};

		if (status >= 0)
			status = ky_habits_add(habits, &habit);
	}
	return status;
}

static int habits_watch_add_runs(struct ky_habits *habits, const struct ky_habits_watch *watch,
				 const struct ky_causes *causes)
{
	int status = 0;

	for (size_t i = 0; i < ky_model_n_threads(watch->model) && status >= 0; i++) {
		struct ky_habit habit = {.kind = KY_HABIT_RUNS, .syscall = KY_NO_SYSCALL, .n = 1};

		habit.thread = ky_model_thread(watch->model, i);
		habit.ns = habits_watch_ran(causes, habit.thread, watch->focus);
		if (habit.ns && ky_focus_has_thread(watch->focus, habit.thread))
			status = ky_habits_add(habits, &habit);
	}
	return status;
}

int ky_habits_collect(struct ky_habits *habits, const struct ky_habits_watch *watch,
		      const struct ky_causes *causes)
{
	int status = 0;

	*habits = (struct ky_habits){.by_thread = false};
	ky_vec_foreach(&watch->habits.list, habit) {
		struct ky_habit fresh = *habit;

		fresh.next = 0;
		if (status >= 0)
			status = ky_habits_add(habits, &fresh);
	}
	if (status >= 0)
		status = habits_watch_add_births(habits, watch, causes);
	if (status >= 0)
		status = habits_watch_add_runs(habits, watch, causes);
	return status < 0 ? status : ky_habits_add_calls(habits, watch->focus, causes);
}
