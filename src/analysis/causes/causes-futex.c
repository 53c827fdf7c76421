/* SPDX-License-Identifier: MIT */
/* Causes: waits at futexes. The state model tells who held a lock, from moment to moment (model-locks.c). */
#include "analysis/causes/causes-internal.h"

#define TIMED_OUT (-110) /* ETIMEDOUT */

/* By holders, as far as they are known; on the way out, the wait is for the one that woke. */
static int causes_futex_holders(struct ky_teller *teller, const struct ky_part *like, size_t i,
				int64_t ns)
{
	const struct ky_track *track = teller->track;
	int status = 0;

	for (; i < track->locks.len && teller->at_ns < ns && status >= 0; i++) {
		const struct ky_track_lock *lock = &track->locks.data[i];
		struct ky_part part = *like;

		part.who = part.waker;
		if (lock->begin_ns >= ns)
			break;
		status = ky_tell(teller, part, lock->begin_ns);
		if (ky_lock_is_lock(lock->lock)) {
			part.cause = KY_CAUSE_LOCK;
			part.shared = !lock->holder && ky_lock_is_shared(lock->lock);
			part.who = lock->is_free || part.shared ? part.waker : lock->holder;
		}
		if (status >= 0)
			status = ky_tell(teller, part, lock->end_ns < ns ? lock->end_ns : ns);
	}
	return status;
}

int ky_tell_futex(struct ky_teller *teller, const struct ky_stretch *stretch,
		  const struct ky_track_call *call, int64_t ns)
{
	struct ky_part part = ky_part_of(teller, KY_CAUSE_FUTEX);
	size_t i = ky_causes_find(&teller->track->locks, end_ns, teller->at_ns);
	int status = 0;

	part.syscall = call->syscall;
	part.address = call->address;
	part.woken_ns = stretch->end_ns;
	if (stretch->line)
		part.line = ky_model_irq_line(teller->causes->model, stretch->line - 1);
	if (call->done && call->ret == TIMED_OUT)
		part.cause = KY_CAUSE_TIMER;
	else
		part.waker = ky_stretch_waker(teller->causes, stretch);
	if (ky_wait_is_interrupted(teller->track, stretch, call))
		part.cause = KY_CAUSE_SIGNAL;
	part.doubtful =
		part.waker && ky_waker_is_doubtful(teller->causes, stretch, teller->track, call);
	if (part.cause == KY_CAUSE_FUTEX)
		status = causes_futex_holders(teller, &part, i, ns);
	part.who = part.waker;
	return status < 0 ? status : ky_tell(teller, part, ns);
}
