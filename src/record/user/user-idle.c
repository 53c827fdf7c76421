/* SPDX-License-Identifier: MIT */
/*
 * The idle recorder: while programs write nothing, the thread that reads does not look at their rings. It asks each ring to
 * wake it (kymo_ring_reader_arm()), and sleeps at all of them (user-sentry.h).
 *
 *	nobody reads		a ring wakes the thread when it closes a sub-buffer
 *	a live reader does	also at the first record after an idle time
 *
 * A wake-up is a hint of a program, which may be hostile: the thread then reads the rings at the usual interval for
 * QUIET_NS at least, so that a program cannot make it work more than by writing events.
 */
#include <sys/eventfd.h>
#include <time.h>

#include "abi/control.h"
#include "os/now.h"
#include "record/user/user-internal.h"

/* After the last data: a wake-up costs the program a system call. */
#define QUIET_NS 100000000
/* The time between a record's stamp and its end, and the difference of clocks. */
#define MARGIN_NS 20000000

bool ky_user_is_idle(const struct ky_user *user)
{
	/* A flight recorder's readers see snapshots. */
	return user->options.overwrite || ky_user_sleeps(user);
}

bool ky_user_sleeps(const struct ky_user *user)
{
	return __atomic_load_n(&user->idle.is_idle, __ATOMIC_RELAXED);
}

void ky_user_idle_found(struct ky_user *user)
{
	user->idle.quiet_since_ns = ky_os_now_ns();
}

/* A record later than that after the last one wakes the reader (idle_stamps of the tracer's rings). */
static uint64_t quiet_ns(const struct ky_user *user)
{
	uint64_t ticks = UINT64_C(1) << KY_HEADER_TIME_BITS, ns = ticks;

	if (!user->live_delay_ms)
		return QUIET_NS;
	if (user->clock_record.kind == KY_CLOCK_RECORD_TSC)
		ns = ticks * 1000 / (user->clock_record.frequency_hz / 1000000 + 1);
	return (ns > QUIET_NS ? ns : QUIET_NS) + MARGIN_NS;
}

bool ky_user_has_deferred(const struct ky_user *user)
{
	return user->has_missed || user->has_closing || user->rotation.n_left ||
	       user->newcomers.has_new || ky_store_is_full(user->options.store);
}

/* As kymo_ring_reader_arm(); 1 also for a ring whose program has told more than the metadata says. */
static int user_idle_arm(const struct ky_user *user, struct ky_user_ring *ring,
			 struct kymo_ring_futex *to)
{
	uint32_t events = KYMO_RING_WAKE_SWITCH | (user->live_delay_ms ? KYMO_RING_WAKE_RECORD : 0);
	int ret = kymo_ring_reader_arm(ring->reader, events, to);

	if (ret || !ky_user_ring_has_more(ring))
		return ret;
	kymo_ring_reader_disarm(ring->reader);
	return 1;
}

static void disarm_all(const struct ky_user *user)
{
	for (size_t i = 0; i < user->owners.len; i++) {
		const struct ky_user_owner *owner = user->owners.data[i];

		for (size_t k = 0; k < owner->reading.len; k++)
			kymo_ring_reader_disarm(owner->reading.data[k]->ring->reader);
	}
}

/* *n: how many of @futexes there are. False: there is something to do, or there are too many rings. */
static bool arm_all(const struct ky_user *user, struct kymo_ring_futex *futexes, unsigned int *n)
{
	*n = 0;
	for (size_t i = 0; i < user->owners.len; i++) {
		const struct ky_user_owner *owner = user->owners.data[i];

		for (size_t k = 0; k < owner->reading.len; k++) {
			struct ky_user_ring *ring = owner->reading.data[k]->ring;

			if (ring->is_broken)
				continue;
			if (*n == KY_USER_SENTRY_RINGS_MAX ||
			    user_idle_arm(user, ring, &futexes[*n]))
				return false;
			++*n;
		}
	}
	return true;
}

void ky_user_idle_try(struct ky_user *user)
{
	struct kymo_ring_futex futexes[KY_USER_SENTRY_RINGS_MAX];
	uint64_t now = ky_os_now_ns();
	unsigned int n;

	if (ky_user_sleeps(user) || user->options.overwrite || user->sentry.fired_fd < 0 ||
	    ky_user_has_deferred(user) || now - user->idle.quiet_since_ns < quiet_ns(user) ||
	    now < user->idle.next_try_ns)
		return;
	/* After a try in vain, other tries would cost as much as looking. */
	user->idle.next_try_ns = now + QUIET_NS;
	if (!arm_all(user, futexes, &n)) {
		disarm_all(user);
		return;
	}
	user->idle.next_try_ns = 0;
	ky_user_sentry_watch(&user->sentry, futexes, n);
	ky_user_beat_rest(user, true);
	__atomic_store_n(&user->idle.is_idle, true, __ATOMIC_RELAXED);
	ky_user_live_rest(user);
}

void ky_user_idle_end(struct ky_user *user, bool is_woken)
{
	if (is_woken)
		ky_user_idle_found(user);
	if (!ky_user_sleeps(user))
		return;
	__atomic_store_n(&user->idle.is_idle, false, __ATOMIC_RELAXED);
	ky_user_beat_rest(user, false);
	disarm_all(user);
	ky_user_sentry_watch(&user->sentry, NULL, 0);
	if (!is_woken || !user->live_delay_ms)
		return;
	/* Events until now are due for the readers soon, and the kernel's recorder must not sleep meanwhile. */
	user->live_due_ns = 0;
	if (user->options.is_beside_kernel)
		(void)eventfd_write(user->active_fd, 1);
}
