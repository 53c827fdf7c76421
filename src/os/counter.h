/* SPDX-License-Identifier: MIT */
/*
 * Perf counters by the names that perf and LTTng have for them, and which of them this machine has.
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

/* NULL: there is none of that name. */
const struct ky_os_counter *ky_os_counter_find(const char *name, size_t len);
/* The @i-th; NULL: there are not so many. */
const struct ky_os_counter *ky_os_counter_at(size_t i);
bool ky_os_counter_is_software(const struct ky_os_counter *counter);

/* Count on @cpu, everything that runs there; -1: in this thread. A descriptor, or -errno. */
int ky_os_counter_open(const struct ky_os_counter *counter, int cpu, bool without_kernel);

/* Of one that counts on a CPU: what it has, and for how long it was on. False: the kernel does not say. */
bool ky_os_counter_read(int fd, uint64_t *count, uint64_t *enabled_ns);

/* The counters that can be counted on CPUs, with ", " between; cut when they do not fit. */
void ky_os_counters_list(char *text, size_t size);

#endif
