/* SPDX-License-Identifier: MIT */
/*
 * Reading a mapped file that another process may truncate. After the file's end, the mapping raises
 * SIGBUS. This handler maps zeroed memory there and notes it: the reader sees zeros, and checks the
 * note afterwards. Faults elsewhere go to the handler that was there before.
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

/*
 * Guards the mapping [@start, @start + @bytes). @guard must not move until its removal. Any thread.
 */
void ky_rb_guard_add(struct ky_rb_guard *guard, void *start, uint64_t bytes);
void ky_rb_guard_remove(struct ky_rb_guard *guard);
bool ky_rb_guard_was_hit(const struct ky_rb_guard *guard);

#endif
