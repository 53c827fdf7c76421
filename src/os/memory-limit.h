/* SPDX-License-Identifier: MIT */
/*
 * A limit of memory around calls of libraries that allocate what untrusted files claim: an allocation beyond it fails. The limit is that of the
 * process (RLIMIT_AS), so it leaves room for other threads.
 *
 * Threads: any; the limit ends with the last ky_memory_limit_end().
 */
#ifndef KY_OS_MEMORY_LIMIT_H
#define KY_OS_MEMORY_LIMIT_H

#include <stddef.h>

/* The process may take @bytes more than it has. No effect where /proc is missing. */
void ky_memory_limit_begin(size_t bytes);
void ky_memory_limit_end(void);
/* In a child, after fork(): another thread may have been between the calls. Async-signal-safe. */
void ky_memory_limit_child(void);

#endif
