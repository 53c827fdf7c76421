/* SPDX-License-Identifier: MIT */
/*
 * Reading a mapped file that others may cut short. Behind its end the mapping gives SIGBUS. Here a
 * handler puts zeroed memory there instead, and notes it: whoever reads sees zeros, and asks
 * afterwards. Faults elsewhere go to the handler that was there before.
 */
#ifndef KY_RING_RING_GUARD_H
#define KY_RING_RING_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct ky_rb_guard {
	uint8_t *start;
	uint64_t bytes;
	int was_hit; /* atomic */
	struct ky_rb_guard *next;
};

/* Guard the mapping [@start, @start + @bytes). @guard stays where it is until removed. Any thread. */
void ky_rb_guard_add(struct ky_rb_guard *guard, void *start, uint64_t bytes);
void ky_rb_guard_remove(struct ky_rb_guard *guard);
bool ky_rb_guard_was_hit(const struct ky_rb_guard *guard);

#endif
