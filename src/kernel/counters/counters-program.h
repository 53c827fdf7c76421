/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs that read counters, and what they leave behind: a region of shared memory per CPU,
 *
 *	page 0	head: how many readings were begun
 *	data	slots of slot_bytes each, a power of two of them; reading N is in slot N % slots
 *
 * Who may run beside whom: programs of one CPU may interrupt one another anywhere, so a slot is taken by one
 * atomic addition. It is the writer's from then on, until it says that it is whole by its last store: its own number
 * plus one. The reader is this process; it takes nothing back, and so may be overtaken: it looks at the number
 * before and after it has copied the rest. Where numbers jump, readings were lost.
 */
#ifndef KY_KERNEL_COUNTERS_PROGRAM_H
#define KY_KERNEL_COUNTERS_PROGRAM_H

#include <stdint.h>

#include <kymo/error.h>

#include "kernel/counters/counters.h"

#define KY_COUNTERS_DATA_OFFSET 4096u
#define KY_COUNTERS_UNKNOWN	UINT64_MAX /* could not be read */

/* The programs know these places by number. */
struct ky_counters_slot {
	uint64_t number; /* of the reading, + 1; 0: it is being written */
	uint64_t time_ns;
	uint32_t tid, key;
	uint64_t values[]; /* one for each counter */
};

struct ky_counters_program {
	int regions_map; /* array of regions, by CPU */
	uint32_t slot_bytes, n_slots;
	size_t n;
	struct {
		int map;       /* of the CPUs' perf events; -1: the thread's */
		int32_t at[2]; /* else: of its parts in struct task_struct; -1: none */
	} counters[KY_COUNTERS_MAX];
};

/* What a slot with @n values takes: a power of two. */
uint32_t ky_counters_slot_bytes(size_t n);

/* Write and load the program for events of kind @key. A descriptor or an error. */
int ky_counters_load_program(const struct ky_counters_program *program, uint32_t key,
			     struct kymo_error *err);

#endif
