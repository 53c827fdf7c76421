/* SPDX-License-Identifier: MIT */
/*
 * Perf counters by the names of perf and LTTng, and the counters that this machine has.
 *
 * Threads: any.
 */
#ifndef KY_OS_COUNTER_H
#define KY_OS_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_os_counter {
	const char *name; /* "page-faults" */
	uint32_t type;	  /* as in struct perf_event_attr */
	uint64_t config;
};

/* Returns NULL for an unknown name. */
const struct ky_os_counter *ky_os_counter_find(const char *name, size_t len);
/* Counter @i, or NULL after the last one. */
const struct ky_os_counter *ky_os_counter_at(size_t i);
bool ky_os_counter_is_software(const struct ky_os_counter *counter);

/* Counts all work on @cpu; -1: the work of this thread. Returns a descriptor, or -errno. */
int ky_os_counter_open(const struct ky_os_counter *counter, int cpu, bool without_kernel);

/*
 * Reads a counter of a CPU: its count and the time for which it was enabled. Returns false when the
 * kernel does not give them.
 */
bool ky_os_counter_read(int fd, uint64_t *count, uint64_t *enabled_ns);

/* The counters that can count on CPUs, separated by ", "; cut when @text is too small. */
void ky_os_counters_list(char *text, size_t size);

#endif
