/* SPDX-License-Identifier: MIT */
/*
 * Mapped files that another process truncates: the missing part reads as zeros, and the reader can
 * query it, instead of dying of SIGBUS.
 *
 * Reading with read() instead would be costly: events are views into the mapping and outlive their
 * batch where several threads format them. Buffers would need reference counts and copies.
 *
 * The handler of SIGBUS is process-wide. It is installed while at least one mapping is guarded. It
 * forwards unknown addresses, with the original arguments, to the handler that was there before.
 * When the application sets a handler later, this code leaves it in place, and that handler should
 * forward unknown addresses.
 *
 * Threads: any. The handler takes no lock and calls mmap() only.
 */
#ifndef KY_OS_SIGBUS_GUARD_H
#define KY_OS_SIGBUS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Guard the mapping of a file at @data. 0 or KYMO_E_MEMORY. */
int ky_sigbus_guard_add(const void *data, size_t size_bytes);

/* Removes every guard that begins in this range. Must come before unmapping or moving. */
void ky_sigbus_guard_remove(const void *data, size_t size_bytes);

/*
 * Whether a byte in this range was missing. Once true, the result stays true until the guard's
 * removal.
 */
bool ky_sigbus_guard_hit(const void *data, size_t size_bytes);

#endif
