/* SPDX-License-Identifier: MIT */
/*
 * Samples at events by BPF programs, with stacks that the kernel tells once (stacks-layout.h).
 *
 *	ky_bpf_stacks_load()
 *	ky_bpf_stacks_ring()	for each CPU
 *	ky_bpf_stacks_program()	for each source: what its perf events get
 *	ky_bpf_stacks_turn()	on, off
 *	ky_bpf_stacks_unload()
 *
 * Threads: one at a time.
 */
#ifndef KY_KERNEL_BPF_STACKS_H
#define KY_KERNEL_BPF_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/bpf/stacks-layout.h"

struct ky_bpf_stacks {
	struct stacks_bpf *skeleton; /* NULL: not loaded */
};

/*
 * The programs for tracepoints, and for counters of perf, as far as they are needed.
 * 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED, KYMO_E_MEMORY or KYMO_E_IO. In any case ky_bpf_stacks_unload() follows.
 */
int ky_bpf_stacks_load(struct ky_bpf_stacks *stacks, bool has_events, bool has_counters,
		       struct kymo_error *err);
void ky_bpf_stacks_unload(struct ky_bpf_stacks *stacks);

/* What happens on @cpu goes into the ring of the perf event @fd. 0 or an error. */
int ky_bpf_stacks_ring(struct ky_bpf_stacks *stacks, uint32_t cpu, int fd, struct kymo_error *err);
/* The program that source @source runs, for perf events of a tracepoint or of a counter. A descriptor, the caller's; or an error. */
int ky_bpf_stacks_program(const struct ky_bpf_stacks *stacks, bool is_event, uint32_t source,
			  struct kymo_error *err);
void ky_bpf_stacks_turn(struct ky_bpf_stacks *stacks, bool is_on);

#endif
