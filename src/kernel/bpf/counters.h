/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs that read counters at events: loading them, and what they share with this process. kernel/counters/counters.h
 * does the rest.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_KERNEL_BPF_COUNTERS_H
#define KY_KERNEL_BPF_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/bpf/counters-layout.h"
#include "kernel/bpf/regions.h"

struct ky_bpf_counters_options {
	size_t n;		     /* of counters, up to KY_COUNTERS_MAX */
	uint8_t of[KY_COUNTERS_MAX]; /* enum ky_counter_of */
	uint64_t
		ring_bytes; /* of the kernel's, on each CPU: events wait there as long as readings do here */
};

/* Zeros: nothing is loaded. */
struct ky_bpf_counters {
	struct ky_bpf_regions regions;
	uint32_t slot_bytes, n_slots;
	struct counters_bpf *skeleton;
};

/* What a slot with @n values takes: a power of two. */
static inline uint32_t ky_counters_slot_bytes(size_t n)
{
	uint32_t bytes = 32;

	while (bytes < sizeof(struct ky_counters_slot) + n * 8)
		bytes *= 2;
	return bytes;
}

/*
 * 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no BPF, or the kernel does not tell where it counts for threads),
 * KYMO_E_MEMORY, KYMO_E_IO. In any case ky_bpf_counters_unload() follows.
 */
int ky_bpf_counters_load(struct ky_bpf_counters *counters,
			 const struct ky_bpf_counters_options *options, struct kymo_error *err);
void ky_bpf_counters_unload(struct ky_bpf_counters *counters);

/* Of @cpu, the @i-th counter is perf event @fd. 0 or KYMO_E_IO. */
int ky_bpf_counters_set(struct ky_bpf_counters *counters, uint32_t cpu, size_t i, int fd,
			struct kymo_error *err);

/*
 * Read them at raw tracepoint @tracepoint, for events of kind @key, until the descriptor that is returned is closed.
 * KYMO_E_NOT_FOUND: there is no such tracepoint; else as load.
 */
int ky_bpf_counters_attach(struct ky_bpf_counters *counters, const char *tracepoint, uint32_t key,
			   struct kymo_error *err);

#endif
