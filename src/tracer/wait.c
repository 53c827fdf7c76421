/* SPDX-License-Identifier: MIT */
/*
 * A hit whose buffer is full waits for the recorder, where the session wants that. Whether there is still a recorder is
 * seen in memory alone, for the program may have gone into a sandbox, into another directory or to another user
 * since it joined.
 */
#include "tracer/tracer.h"

#define BEATLESS_NS (KY_BEATLESS_MS * UINT64_C(1000000))

/* Does the recorder show signs of life? */
static bool is_alive(struct ky_slot *slot, struct kymo_ring_wait *wait)
{
	uint64_t beat = 1 + __atomic_load_n(&slot->shared_file->beat, __ATOMIC_RELAXED);

	if (__atomic_load_n(&slot->dead_beat, __ATOMIC_RELAXED) == beat)
		return false;
	if (wait->mark != beat) {
		wait->mark = beat;
		wait->mark_ns = wait->waited_ns;
	}
	if (wait->waited_ns - wait->mark_ns < BEATLESS_NS)
		return true;
	/* Later hits do not wait as long to find that out. */
	__atomic_store_n(&slot->dead_beat, beat, __ATOMIC_RELAXED);
	return false;
}

/* Does it read this ring? It has yet to open one that is new; it may have refused to. */
static bool is_read(struct ky_slot *slot, const struct kymo_ring_wait *wait)
{
	if (wait->attended == KYMO_RING_ATTENDED)
		return true;
	if (__atomic_load_n(&slot->is_unread, __ATOMIC_RELAXED))
		return false;
	if (wait->waited_ns < BEATLESS_NS)
		return true;
	__atomic_store_n(&slot->is_unread, true, __ATOMIC_RELAXED);
	return false;
}

static bool wait_goes_on(const void *client, struct kymo_ring_wait *wait)
{
	struct ky_slot *slot =
		(struct ky_slot *)(uintptr_t)client; // NOLINT(performance-no-int-to-ptr)
	const struct ky_control *control = ky_trace.control;

	/* Another cookie means other rules: the ring goes on. */
	return control &&
	       __atomic_load_n(&control->slots[slot->number].cookie, __ATOMIC_RELAXED) != 0 &&
	       is_alive(slot, wait) && is_read(slot, wait);
}

void ky_wait_set(struct ky_slot *slot)
{
	slot->ring.wait_ns = slot->shared_file ? slot->file->wait_ns : 0;
	slot->ring.goes_on = wait_goes_on;
}
