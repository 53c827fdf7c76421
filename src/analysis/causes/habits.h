/* SPDX-License-Identifier: MIT */
/*
 * Habits: what threads do too often, or for nothing: calls that fail, that ask without waiting, that move a few bytes;
 * processes started, moves to other CPUs, signals, memory that comes and goes. They are facts; whether they are a problem
 * is the reader's to say. Threads: one at a time per object.
 *
 * Files: habits.c the collection, habits-watch.c listens to the model, habits-calls.c looks at the calls after the pass.
 */
#ifndef KY_ANALYSIS_CAUSES_HABITS_H
#define KY_ANALYSIS_CAUSES_HABITS_H

#include "analysis/causes/causes.h"
#include "base/hash.h"

enum ky_habit_kind {
	KY_HABIT_FAILING, /* calls that fail; @code: the error */
	/* Calls that ask without waiting, and get nothing; @code KY_HABIT_OF_POLL: the same files are ready each time. */
	KY_HABIT_EMPTY,
	KY_HABIT_ACCEPTS, /* the same of accept(): another thread was faster */
	/* Calls at sockets that waited, and got nothing; @code KY_HABIT_OF_POLL: poll() and the like. */
	KY_HABIT_TIMEOUTS,
	KY_HABIT_SMALL,	  /* reads and writes of a few bytes; @more: bytes */
	KY_HABIT_HERD,	  /* a futex() wakes many; @more: how many in all */
	KY_HABIT_STARTS,  /* processes and threads; @more: threads among them; @by: one of them */
	KY_HABIT_MOVES,	  /* to other CPUs; @code: enum ky_migration_cause; @by: who moves it */
	KY_HABIT_SIGNALS, /* @code: the number; @by: the sender; NULL: the kernel or a timer */
	KY_HABIT_PAGES,	  /* given back in calls; @more: got */
	KY_HABIT_RECLAIMS, /* frees memory itself; @code: 1 by a control group's limit; @more: pages */
	KY_HABIT_DELAYED, /* waits for a socket as long as TCP delays an acknowledgement */
	KY_HABIT_SYNCS,	  /* calls that wait until data is durable */
	KY_HABIT_SLEEPS, /* short sleeps, one after the other; @more: how long the thread was seen */
	KY_HABIT_INTERRUPTED, /* calls that a signal ended */
	KY_HABIT_CALLS,	      /* all calls of a name */
	KY_HABIT_RUNS,	      /* @ns: how long threads of a name ran */
	KY_HABIT_KINDS,
};

#define KY_HABIT_OF_POLL 1

/* Threads of the same name have the same habits. */
struct ky_habit {
	enum ky_habit_kind kind;
	const struct ky_thread *thread; /* the first of them */
	const struct ky_thread *by;
	const struct ky_file *file; /* of KY_HABIT_SMALL: the first one; NULL: unknown */
	uint32_t syscall;	    /* KY_NO_SYSCALL: none */
	int32_t code;
	uint64_t n, more, ns; /* how often; see above; the time that it took */
	uint32_t threads;     /* of KY_HABIT_CALLS: of so many threads */
	uint32_t next;	      /* with the same hash, + 1 */
};

struct ky_habits {
	struct ky_map by_hash;
	KY_VEC(struct ky_habit) list;
	bool by_thread; /* each thread for itself */
};

/* What differs from others counts apart: kind, names of thread and @by, call, code. 0 or KYMO_E_MEMORY. */
int ky_habits_add(struct ky_habits *habits, const struct ky_habit *habit);
/* The one like @habit; NULL: none. */
const struct ky_habit *ky_habits_find(const struct ky_habits *habits, const struct ky_habit *habit);
void ky_habits_fini(struct ky_habits *habits);

/* ---- a pass ---------------------------------------------------------------------------- */

struct ky_habits_watch;

/* Listens to @model, which tells of all threads, as causes do. @focus chooses, and outlives it. NULL: out of memory. */
struct ky_habits_watch *ky_habits_watch_new(struct ky_model *model, const struct ky_focus *focus);
void ky_habits_watch_free(struct ky_habits_watch *watch); /* NULL is fine */

/* After the pass: all habits of the chosen threads. 0 or KYMO_E_MEMORY. */
int ky_habits_collect(struct ky_habits *habits, const struct ky_habits_watch *watch,
		      const struct ky_causes *causes);
/* Its part: calls. */
int ky_habits_add_calls(struct ky_habits *habits, const struct ky_focus *focus,
			const struct ky_causes *causes);

#endif
