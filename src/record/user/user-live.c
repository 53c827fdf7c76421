/* SPDX-License-Identifier: MIT */
/*
 * Live readers: while a reader follows the recording, the recorder reads the programs' rings up to the last record several
 * times a second. A beacon gives the reader the time until which it has all events.
 *
 * A record that a program began before that time and finishes later comes late: a program that stops in the middle of a
 * record must not hold up the others.
 */
#include <time.h>

#include "os/tsc.h"
#include "record/user/user-internal.h"

/* Between two looks for readers, and between two beacons: a part of the delay that they want. */
#define LOOK_NS		    100000000u
#define BEACON_NS(delay_ms) ((uint64_t)(delay_ms)*400000)
/* A record takes less than this from its time stamp to its end, unless the thread is interrupted. */
#define SETTLED_NS 5000000u
/* So many beacons wait for the rings of programs that have just come. */
#define NEWCOMERS_BEACONS 5

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Time stamps of programs with this clock that are certain to be in the rings. */
static uint64_t settled(const struct ky_clock_record *clock, uint64_t tsc, uint64_t ns)
{
	if (clock->kind == KY_CLOCK_RECORD_TSC)
		return tsc - clock->frequency_hz / (1000000000 / SETTLED_NS);
	return ns - SETTLED_NS;
}

static int tell_file(struct ky_user_ring_file *file, uint64_t tsc, uint64_t ns,
		     struct kymo_error *err)
{
	struct ky_user_ring *ring = file->ring;
	struct kymo_error local;
	int ret;

	/* First the new events are described; that is a task's. */
	if (ky_user_ring_is_behind(ring))
		return KYMO_OK;
	ret = ky_user_ring_read(ring, true, err);
	/* There is more than a program may have read at a time. */
	if (ret < 0 || ret > 1 || !ring->trace.packets)
		return ret < 0 ? ret : KYMO_OK;
	ret = ky_store_beacon(ring->trace.packets, -1, settled(&ring->clock, tsc, ns), &local);
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

static int tell(struct ky_user *user, struct kymo_error *err)
{
	uint64_t tsc = ky_tsc_read(), ns = monotonic_ns();

	for (size_t i = 0; i < user->owners.len; i++) {
		const struct ky_user_owner *owner = user->owners.data[i];

		for (size_t k = 0; k < owner->reading.len; k++) {
			int ret = tell_file(owner->reading.data[k], tsc, ns, err);

			if (ret < 0)
				return ret;
		}
	}
	return KYMO_OK;
}

int ky_user_live_step(struct ky_user *user, struct kymo_error *err)
{
	uint64_t now = monotonic_ns();
	uint32_t delay_ms;

	if (user->options.overwrite || now < user->live_due_ns)
		return KYMO_OK;
	delay_ms = ky_store_readers_delay_ms(user->options.store);
	user->live_due_ns = now + (delay_ms ? BEACON_NS(delay_ms) : LOOK_NS);
	if (!delay_ms)
		return KYMO_OK;
	/* A program whose ring is being opened may have older events. */
	if (user->n_opening && user->live_waits++ < NEWCOMERS_BEACONS)
		return KYMO_OK;
	user->live_waits = 0;
	return tell(user, err);
}
