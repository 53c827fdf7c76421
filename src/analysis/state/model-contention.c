/* SPDX-License-Identifier: MIT */
/*
 * The state model: waits for locks of the kernel (lock:contention_begin and contention_end, since Linux 5.19).
 *
 * Events name the waiting thread, and the end of its wait; they do not tell when a lock is released. So a holder is known only while others
 * wait: a thread that got the lock after another one had begun to wait for it held it then, until it gave it on.
 */
#include "analysis/state/model-internal.h"

/* At a time on a thread: it waits for one lock, and interrupts on top of it spin. */
#define WAITS 4

/* The kernel's LCB_F_*. */
#define LOCK_SPIN   1
#define LOCK_READ   2
#define LOCK_WRITE  4
#define LOCK_RT	    8
#define LOCK_PERCPU 16
#define LOCK_MUTEX  32

struct contention_wait {
	uint64_t address; /* 0: none */
	int64_t begin_ns;
	uint64_t flags;
};

struct ky_contention_waits {
	struct contention_wait at[WAITS];
};

/* A lock that was waited for. */
struct contended {
	const struct ky_thread
		*getter; /* who got it last, of those that waited; NULL: nobody so far */
	int64_t got_ns;
};

const char *ky_contention_kind(uint64_t flags)
{
	if (flags & LOCK_MUTEX)
		return "mutex";
	if (flags & LOCK_SPIN)
		return flags & LOCK_READ    ? "rwlock:R"
		       : flags & LOCK_WRITE ? "rwlock:W"
					    : "spinlock";
	if (flags & LOCK_PERCPU)
		return flags & LOCK_WRITE ? "pcpu-sem:W" : "pcpu-sem:R";
	if (flags & LOCK_RT)
		return "rt-mutex";
	return flags & LOCK_READ ? "rwsem:R" : flags & LOCK_WRITE ? "rwsem:W" : "semaphore";
}

static struct contention_wait *contention_find(struct ky_thread *thread, uint64_t address)
{
	for (size_t i = 0; thread->contentions && i < WAITS; i++) {
		if (thread->contentions->at[i].address == address)
			return &thread->contentions->at[i];
	}
	return NULL;
}

/* A mutex begins twice when who spins for it goes to sleep, and is one wait. */
int ky_on_contention_begin(struct ky_feed *feed, const struct ky_event *event,
			   const struct ky_class_info *info)
{
	uint64_t address = ky_get_u64(event, &info->fields[KY_CONTENTION_ADDRESS], 0);
	struct ky_thread *thread = ky_feed_thread(feed, event, info);
	struct contention_wait *wait;

	if (!thread || !address || !thread->host->state)
		return 0;
	if (!thread->contentions)
		thread->contentions = ky_arena_new(&feed->model->arena, struct ky_contention_waits);
	if (!thread->contentions)
		return KYMO_E_MEMORY;
	wait = contention_find(thread, address);
	if (wait && wait->begin_ns >= feed->host->torn_until_ns)
		return 0;
	wait = wait ? wait : contention_find(thread, 0);
	if (wait)
		*wait = (struct contention_wait){
			address, event->ns,
			ky_get_u64(event, &info->fields[KY_CONTENTION_FLAGS], 0)};
	return 0;
}

static struct contended *contention_lock(struct ky_feed *feed, uint64_t address)
{
	struct ky_map *locks = &feed->host->state->contended;
	struct contended *lock = ky_map_get(locks, address);

	if (lock)
		return lock;
	lock = ky_arena_new(&feed->model->arena, struct contended);
	return lock && ky_map_set(locks, address, lock) >= 0 ? lock : NULL;
}

int ky_on_contention_end(struct ky_feed *feed, const struct ky_event *event,
			 const struct ky_class_info *info)
{
	uint64_t address = ky_get_u64(event, &info->fields[KY_CONTENTION_ADDRESS], 0);
	struct ky_thread *thread = ky_feed_thread(feed, event, info);
	struct contention_wait *wait = thread && address ? contention_find(thread, address) : NULL;
	struct ky_contention seen = {.thread = thread, .address = address, .end_ns = event->ns};
	struct contended *lock;
	bool known;

	if (!wait)
		return 0;
	seen.flags = wait->flags;
	seen.begin_ns = wait->begin_ns;
	known = wait->begin_ns >= feed->host->torn_until_ns && wait->begin_ns <= event->ns;
	seen.failed = ky_get_i64(event, &info->fields[KY_CONTENTION_RET], 0) != 0;
	wait->address = 0;
	lock = contention_lock(feed, address);
	if (!lock)
		return KYMO_E_MEMORY;
	if (lock->getter && lock->getter != thread && lock->got_ns >= seen.begin_ns) {
		seen.holder = lock->getter;
		seen.held_ns = (uint64_t)event->ns - (uint64_t)lock->got_ns;
	}
	if (!seen.failed)
		*lock = (struct contended){thread, event->ns};
	if (!known || !ky_model_tells(feed->model, thread, event->cpu_id) ||
	    !ky_model_tells_long(feed->model, seen.end_ns - seen.begin_ns))
		return 0;
	return ky_model_notify(feed->model, contention, &seen);
}
