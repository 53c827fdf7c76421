/* SPDX-License-Identifier: MIT */
/*
 * Mapped files that somebody makes shorter: what is no longer there reads as zeros, and whoever asks
 * learns of it, instead of the process dying of SIGBUS.
 *
 * Why not read() instead: events are views into the mapping, and outlive the batch they came in
 * where several threads format them; buffers would have to be counted and kept, and copied into.
 *
 * The handler of SIGBUS is process-wide. It is installed while anything is guarded; what it does not know
 * it hands on to the handler that was there before, with its own arguments. A handler that the
 * application sets later is left in peace (and hands on what it does not know, if it is polite).
 *
 * Threads: any. The handler takes no lock and calls mmap() only.
 */
#ifndef KY_OS_SIGBUS_GUARD_H
#define KY_OS_SIGBUS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Guard the mapping of a file at @data. 0 or KYMO_E_MEMORY. */
int ky_sigbus_guard_add(const void *data, size_t size_bytes);

/* Before unmapping or moving: forget every guard that begins in this range. */
void ky_sigbus_guard_remove(const void *data, size_t size_bytes);

/* Has some byte in this range been missing? Never again false until the guard is removed. */
bool ky_sigbus_guard_hit(const void *data, size_t size_bytes);

#endif
