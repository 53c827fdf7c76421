/* SPDX-License-Identifier: MIT */
/*
 * Causes: waits at futexes. Who wakes a waiter of a lock has held the lock before. While there are waiters, each
 * release is a call, so the thread that makes the next release is the one that holds the lock: each wait has the holders
 * one after the other.
 */
#include "analysis/causes/causes-internal.h"

#define FUTEX_OP	0x7f
#define FUTEX_WAIT	0
#define FUTEX_WAKE	1
#define FUTEX_WAKE_OP	5
#define FUTEX_LOCK_PI	6
#define FUTEX_UNLOCK_PI 7
#define FUTEX_LOCK_PI2	13
/* What the lock word of a mutex of the C library, or of Rust's, is while threads wait for it. */
#define MUTEX_CONTENDED 2

/* An address means one thing in one process; a private one at least. */
static uint64_t causes_futex_key(const struct ky_thread *thread, uint64_t address)
{
	uint64_t process = thread->pid == KY_UNKNOWN ? 0 : (uint32_t)thread->pid;

	return address ^ ((process << 8 | thread->host->index) * UINT64_C(0x9e3779b97f4a7c15));
}

static const struct ky_releases *causes_futex_find(const struct ky_causes *causes,
						   const struct ky_thread *thread, uint64_t address)
{
	uintptr_t index =
		(uintptr_t)ky_map_get(&causes->futex_ids, causes_futex_key(thread, address));

	return index ? &causes->futexes.data[index - 1] : NULL;
}

int ky_futex_note(struct ky_causes *causes, const struct ky_thread *thread,
		  const struct ky_track_call *call)
{
	uint64_t key = causes_futex_key(thread, call->address);
	uintptr_t index = (uintptr_t)ky_map_get(&causes->futex_ids, key);
	unsigned int op = call->op & FUTEX_OP;
	struct ky_releases none = KY_VEC_INIT;

	if ((op != FUTEX_WAKE && op != FUTEX_UNLOCK_PI && op != FUTEX_WAKE_OP) || !call->address)
		return 0;
	if (!index) {
		index = causes->futexes.len + 1;
		if (ky_vec_push(&causes->futexes, none) < 0 ||
		    ky_map_set(&causes->futex_ids, key, (void *)index) < 0)
			return KYMO_E_MEMORY;
	}
	return ky_vec_push(&causes->futexes.data[index - 1],
			   (struct ky_release){call->begin_ns, thread});
}

static bool causes_futex_is_lock(const struct ky_track_call *call)
{
	unsigned int op = call->op & FUTEX_OP;

	return op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2 ||
	       (op == FUTEX_WAIT && call->value == MUTEX_CONTENDED);
}

/* The first release after @ns. */
static size_t causes_futex_release(const struct ky_releases *releases, int64_t ns)
{
	size_t low = 0, high = releases ? releases->len : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (releases->data[mid].ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* From release to release, each by who held the lock before it. */
static int causes_futex_holders(struct ky_teller *teller, struct ky_part part,
				const struct ky_stretch *stretch, const struct ky_track_call *call,
				int64_t ns)
{
	const struct ky_releases *releases =
		causes_futex_find(teller->causes, teller->thread, call->address);
	int status = 0;

	for (size_t i = causes_futex_release(releases, teller->at_ns);
	     releases && i < releases->len && status >= 0 && teller->at_ns < ns; i++) {
		const struct ky_release *release = &releases->data[i];

		/* A release after the wake-up tells nothing of this wait. */
		if (release->ns > stretch->end_ns)
			break;
		if (release->thread == teller->thread)
			continue;
		part.who = release->thread;
		status = ky_tell(teller, part, release->ns < ns ? release->ns : ns);
	}
	/* From the last release to the wake-up it makes: the same holder's way out. */
	part.who = part.waker;
	if (!part.who)
		part.cause = KY_CAUSE_FUTEX;
	return status < 0 ? status : ky_tell(teller, part, ns);
}

int ky_tell_futex(struct ky_teller *teller, const struct ky_stretch *stretch,
		  const struct ky_track_call *call, int64_t ns)
{
	struct ky_part part = ky_part_of(teller, KY_CAUSE_FUTEX);

	part.syscall = call->syscall;
	part.address = call->address;
	part.woken_ns = stretch->end_ns;
	if (stretch->line)
		part.line = ky_model_irq_line(teller->causes->model, stretch->line - 1);
	if (call->done && call->ret == -110) /* ETIMEDOUT */
		part.cause = KY_CAUSE_TIMER;
	else
		part.waker = ky_stretch_waker(teller->causes, stretch);
	if (part.cause == KY_CAUSE_FUTEX && causes_futex_is_lock(call)) {
		part.cause = KY_CAUSE_LOCK;
		return causes_futex_holders(teller, part, stretch, call, ns);
	}
	part.who = part.waker;
	return ky_tell(teller, part, ns);
}
