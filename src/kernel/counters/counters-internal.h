/* SPDX-License-Identifier: MIT */
/* Between counters.c, which counts, and counters-readings.c, which tells events what was read at them. */
#ifndef KY_KERNEL_COUNTERS_COUNTERS_INTERNAL_H
#define KY_KERNEL_COUNTERS_COUNTERS_INTERNAL_H

#include "base/hash.h"
#include "base/vec.h"
#include "kernel/bpf/counters.h"
#include "kernel/counters/counters.h"

#define KY_COUNTERS_GAPS_MAX	   16
#define KY_COUNTERS_CPU_LIST_BYTES 4096

/* In its thread's queue, in the order of time. */
struct ky_counters_reading {
	struct ky_counters_reading *prev, *next;
	uint64_t time_ns;
	uint64_t over_ns; /* no event from then on is its own; UINT64_MAX: not yet known */
	uint32_t key, cpu;
	uint32_t run; /* of the CPU, see below */
	uint64_t values[];
};

struct ky_counters_queue {
	struct ky_counters_reading *first, *last;
};

struct ky_counters_cpu {
	int fds[KY_COUNTERS_MAX]; /* -1: not counted */
	bool here;
	uint64_t enabled_ns; /* how long the first of them was on when they were last looked at */
	/* Of its region: the next reading, and those before it that were still being written. */
	uint64_t next, head;
	struct {
		uint64_t number, after_ns; /* it was taken after the one of then */
	} gaps[KY_COUNTERS_GAPS_MAX];
	uint32_t n_gaps;
	/* The queue of the newest reading (NULL: its thread has no queue), its time, and the number of changes. */
	struct ky_counters_queue *queue;
	uint64_t last_ns, lost_ns;
	uint32_t run;
	/*
	 * A CPU that has been away counts from 0 again; what it had is here. Until its counters are replaced, those
	 * that went away with it are still read, and stand still: such readings, up to that time, have the base before.
	 */
	uint64_t base[KY_COUNTERS_MAX], last[KY_COUNTERS_MAX];
	uint64_t base_before[KY_COUNTERS_MAX], raw_before[KY_COUNTERS_MAX], replaced_ns;
	uint64_t given[KY_COUNTERS_MAX]; /* to its last event */
};

struct ky_counters_link {
	uint32_t key;
	int fd;
};

struct ky_counters {
	struct ky_counter_choice choices[KY_COUNTERS_MAX];
	size_t n;
	struct ky_bpf_counters programs;
	uint64_t ring_bytes;
	KY_VEC(struct ky_counters_link) links;
	uint32_t n_cpus;
	struct ky_counters_cpu *cpus;
	char cpu_list[KY_COUNTERS_CPU_LIST_BYTES]; /* as of the last look */
	struct ky_map threads; /* tid, or IDLE_KEY() -> struct ky_counters_queue */
	struct ky_counters_reading *unused;
	size_t n_readings;
	uint64_t swept_ns;
	uint64_t missing;
};

/* counters-readings.c: those that still wait, and the table of threads. */
void ky_counters_free_readings(struct ky_counters *counters);

#endif
