/* SPDX-License-Identifier: MIT */
/*
 * The call stacks of samples, each once, with a number. A stack of a program is one of its process: other processes have other files
 * at the same addresses.
 *
 * The table is bounded. Stacks beyond the bound have no number.
 * Threads: one at a time per table.
 */
#ifndef KY_KERNEL_SAMPLES_SAMPLE_STACKS_H
#define KY_KERNEL_SAMPLES_SAMPLE_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct ky_sample_stack {
	uint32_t id; /* from 1 */
	uint32_t n;
	/* For those who write them out: the first writer that did, the part of its output, from 1, and its packet; for each writer the part. */
	uint32_t first_writer, first_part;
	uint64_t first_packet;
	uint32_t *told;
	uint64_t addresses[];
};

struct ky_sample_stacks {
	struct ky_map by_hash;
	uint64_t n_bytes;
	uint32_t n_writers, last_id;
};

void ky_sample_stacks_init(struct ky_sample_stacks *stacks);
void ky_sample_stacks_fini(struct ky_sample_stacks *stacks);

/* @pid: 0: a stack of the kernel. */
uint64_t ky_sample_stacks_hash(uint32_t pid, const uint64_t *addresses, uint32_t n);
/* NULL: the table has no such stack. */
struct ky_sample_stack *ky_sample_stacks_get(const struct ky_sample_stacks *stacks, uint64_t hash);
/* The one that is there, or a new one. NULL: the table is full, or there is no memory. */
struct ky_sample_stack *ky_sample_stacks_add(struct ky_sample_stacks *stacks, uint64_t hash,
					     const uint64_t *addresses, uint32_t n);

#endif
