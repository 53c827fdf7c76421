/* SPDX-License-Identifier: MIT */
/*
 * Live readers: while a reader follows the recording, the recorder reads the programs' rings up to the last record several
 * times a second. A beacon gives the reader the time until which it has all events. While programs write nothing
 * (user-idle.c), beacons come more rarely, and the first record makes the next one due.
 *
 * A record that a program began before that time and finishes later comes late: a program that stops in the middle of a
 * record must not hold up the others.
 */
#include <sys/eventfd.h>
#include <time.h>

#include "os/tsc.h"
#include "os/now.h"
#include "record/user/user-internal.h"
#include "store/live/live-file.h"

/*
 * Between two beacons: a part of the delay that readers want, and more while there are no events. Between two looks for
 * readers, where nothing tells that one has come.
 */
#define BEACON_NS(delay_ms) ((uint64_t)(delay_ms)*400000)
#define IDLE_NS		    1000000000u
#define LOOK_NS		    500000000u
/* A record takes less than this from its time stamp to its end, unless the thread is interrupted. */
#define SETTLED_NS 5000000u
/* So many beacons wait for the rings of programs that have just come. */
#define NEWCOMERS_BEACONS 5

/* Time stamps of programs with this clock that are certain to be in the rings. */
static uint64_t settled(const struct ky_clock_record *clock, uint64_t tsc, uint64_t ns)
{
	if (clock->kind == KY_CLOCK_RECORD_TSC)
		return tsc - clock->frequency_hz / (1000000000 / SETTLED_NS);
	return ns - SETTLED_NS;
}

static int tell_file(struct ky_user_ring_file *file, uint64_t tsc, uint64_t ns, bool *found,
		     struct kymo_error *err)
{
	struct ky_user_ring *ring = file->ring;
	struct kymo_error local;
	uint64_t told;
	int ret;

	/* First the new events are described; that is a task's. */
	if (ky_user_ring_is_behind(ring))
		return KYMO_OK;
	ret = ky_user_ring_read(ring, true, err);
	*found |= ret > 0;
	/* There is more than a program may have read at a time. */
	if (ret < 0 || ret > 1 || !ring->trace.packets)
		return ret < 0 ? ret : KYMO_OK;
	told = settled(&ring->clock, tsc, ns);
	if (told > ring->dump_cycles)
		ring->dump_cycles = told;
	ret = ky_store_beacon(ring->trace.packets, -1, told, &local);
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

static int user_live_tell(struct ky_user *user, bool *found, struct kymo_error *err)
{
	uint64_t tsc = ky_tsc_read(), ns = ky_os_now_ns();

	*found = false;

	for (size_t i = 0; i < user->owners.len; i++) {
		const struct ky_user_owner *owner = user->owners.data[i];

		for (size_t k = 0; k < owner->reading.len; k++) {
			int ret = tell_file(owner->reading.data[k], tsc, ns, found, err);

			if (ret < 0)
				return ret;
		}
	}
	return KYMO_OK;
}

/* The idle beacons of all recorders of a machine come together, so that it wakes once for them. */
static uint64_t next_ns(const struct ky_user *user, uint64_t now)
{
	uint64_t beacon_ns = BEACON_NS(user->live_delay_ms);

	if (!user->live_delay_ms)
		return now + LOOK_NS;
	if (!ky_user_sleeps(user) || beacon_ns > IDLE_NS)
		return now + beacon_ns;
	return (now / IDLE_NS + 1) * IDLE_NS;
}

void ky_user_live_rest(struct ky_user *user)
{
	if (user->live_delay_ms && BEACON_NS(user->live_delay_ms) < IDLE_NS)
		user->live_due_ns = next_ns(user, ky_os_now_ns());
}

void ky_user_live_look(struct ky_user *user)
{
	if (user->readers_fd >= 0)
		ky_live_watch_clear(user->readers_fd);
	user->live_due_ns = 0;
}

/* Another thread, or a descriptor, says when a reader has come. */
static bool is_told_of_readers(const struct ky_user *user)
{
	return user->options.is_beside_kernel || user->readers_fd >= 0 ||
	       !user->options.store->ops->readers_delay_ms;
}

int ky_user_live_wait_ms(const struct ky_user *user)
{
	uint64_t now = ky_os_now_ns();

	if (user->options.overwrite)
		return -1;
	if (user->live_delay_ms ? user->options.is_beside_kernel : is_told_of_readers(user))
		return -1;
	return now >= user->live_due_ns ? 0 : (int)((user->live_due_ns - now) / 1000000 + 1);
}

static int tell_and_stay(struct ky_user *user, struct kymo_error *err)
{
	bool found;
	int ret = user_live_tell(user, &found, err);

	if (found) {
		ky_user_idle_found(user);
		/* A record that woke nobody: its writer was interrupted. */
		ky_user_idle_end(user, false);
	}
	return ret;
}

int ky_user_live_step(struct ky_user *user, struct kymo_error *err)
{
	uint64_t now = ky_os_now_ns();
	int ret = KYMO_OK;

	if (user->options.overwrite || now < user->live_due_ns)
		return KYMO_OK;
	if (user->readers_fd < 0 && !user->options.is_beside_kernel && !user->options.polls_readers)
		user->readers_fd = ky_store_readers_fd(user->options.store);
	user->live_delay_ms = ky_store_readers_delay_ms(user->options.store);
	/* A program whose ring is being opened may have older events. */
	if (user->live_delay_ms && !(user->n_opening && user->live_waits++ < NEWCOMERS_BEACONS)) {
		user->live_waits = 0;
		ret = tell_and_stay(user, err);
	}
	user->live_due_ns = next_ns(user, now);
	return ret;
}

void ky_user_look_for_readers(struct ky_user *user)
{
	__atomic_store_n(&user->live_is_asked, true, __ATOMIC_RELAXED);
	(void)eventfd_write(user->order_fd, 1);
}

int ky_user_tell_readers(struct ky_user *user, struct kymo_error *err)
{
	bool found = false;
	int ret = KYMO_OK;

	/* The thread is at work, and tells the readers itself. */
	if (pthread_mutex_trylock(&user->turn) != 0)
		return KYMO_OK;
	if (ky_user_sleeps(user) && user->live_delay_ms)
		ret = user_live_tell(user, &found, err);
	if (found)
		ky_user_idle_found(user);
	pthread_mutex_unlock(&user->turn);
	if (found)
		(void)eventfd_write(user->order_fd, 1);
	return ret;
}
