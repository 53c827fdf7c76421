/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Readings of counters, as a BPF program (counters.bpf.c) leaves them: in a region of shared memory per CPU,
 *
 *	page 0	head: how many readings were begun
 *	data	slots of slot_bytes each, a power of two of them; reading N is in slot N % slots
 *
 * Who may run beside whom: programs of one CPU may interrupt one another anywhere, so a slot is taken by one
 * atomic addition. It is the writer's from then on, until it says that it is whole by its last store: its own number
 * plus one. The reader takes nothing back, and so may be overtaken: it looks at the number before and after it has
 * copied the rest. Where numbers jump, readings were lost.
 */
#ifndef KY_KERNEL_BPF_COUNTERS_LAYOUT_H
#define KY_KERNEL_BPF_COUNTERS_LAYOUT_H

#include <stdint.h>

#define KY_COUNTERS_MAX		8
#define KY_COUNTERS_DATA_OFFSET 4096u
#define KY_COUNTERS_UNKNOWN	UINT64_MAX /* could not be read */

/* What a counter counts: for a CPU, perf says; for a thread, the kernel anyway. */
enum ky_counter_of {
	KY_COUNTER_OF_CPU,
	KY_COUNTER_OF_THREAD, /* the first of those: */
	KY_COUNTER_PAGE_FAULTS = KY_COUNTER_OF_THREAD,
	KY_COUNTER_MINOR_FAULTS,
	KY_COUNTER_MAJOR_FAULTS,
	KY_COUNTER_CONTEXT_SWITCHES,
	KY_COUNTER_CPU_MIGRATIONS,
};

struct ky_counters_slot {
	uint64_t number; /* of the reading, + 1; 0: it is being written */
	uint64_t time_ns;
	uint32_t tid, key;
	uint64_t values[]; /* one for each counter */
};

/* What does not change while the program runs: to it these are constants. */
struct ky_counters_config {
	uint64_t n, n_slots, slot_bytes;
	uint8_t of[KY_COUNTERS_MAX]; /* enum ky_counter_of */
};

/* In the program, in the place of its events' key: the loader replaces it for each kind of event. */
#define KY_COUNTERS_ANY_KEY 0x6b796d6f

#endif
