/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs of stacks.bpf.c put into the rings of perf events: samples, which name their stacks by hashes, and each stack
 * once, before the first sample that names it.
 */
#ifndef KY_KERNEL_BPF_STACKS_LAYOUT_H
#define KY_KERNEL_BPF_STACKS_LAYOUT_H

#include <stdint.h>

#define KY_BPF_STACKS_FRAMES 127u
/* Stacks that the kernel knows to be told; of others each sample tells again. */
#define KY_BPF_STACKS_KNOWN 32768u
/* In a program: the number of its source; ky_bpf_load_copy() puts another one there. */
#define KY_BPF_STACKS_ANY_SOURCE 0x5ac0de0

enum ky_bpf_stacks_kind {
	KY_BPF_STACKS_SAMPLE = 1,
	KY_BPF_STACKS_STACK,
};

/* Both begin with the kind. */
struct ky_bpf_sample {
	uint32_t kind, source;
	uint64_t period;
	uint64_t kernel, user; /* hashes; 0: no stack */
};

struct ky_bpf_stack {
	uint32_t kind, n;
	uint64_t hash;
	uint64_t addresses[KY_BPF_STACKS_FRAMES]; /* n of them */
};

#endif
