/* SPDX-License-Identifier: MIT */
#include "kernel/samples/sample-stacks.h"

#include <stdlib.h>
#include <string.h>

#define STACKS_MAX 65536u
#define BYTES_MAX  (32u << 20)

void ky_sample_stacks_init(struct ky_sample_stacks *stacks)
{
	*stacks = (struct ky_sample_stacks){.n_writers = 1};
	ky_map_init(&stacks->by_hash);
}

void ky_sample_stacks_fini(struct ky_sample_stacks *stacks)
{
	size_t at = 0;
	uint64_t hash;
	void *stack;

	while (ky_map_next(&stacks->by_hash, &at, &hash, &stack))
		free(stack);
	ky_map_fini(&stacks->by_hash);
}

uint64_t ky_sample_stacks_hash(uint32_t pid, const uint64_t *addresses, uint32_t n)
{
	return ky_hash_bytes(addresses, n * sizeof(*addresses)) ^ ky_hash_u64(pid);
}

struct ky_sample_stack *ky_sample_stacks_get(const struct ky_sample_stacks *stacks, uint64_t hash)
{
	return ky_map_get(&stacks->by_hash, hash);
}

struct ky_sample_stack *ky_sample_stacks_add(struct ky_sample_stacks *stacks, uint64_t hash,
					     const uint64_t *addresses, uint32_t n)
{
	struct ky_sample_stack *stack = ky_map_get(&stacks->by_hash, hash);
	size_t n_bytes =
		sizeof(*stack) + n * sizeof(uint64_t) + stacks->n_writers * sizeof(uint32_t);

	if (stack)
		return stack;
	if (stacks->by_hash.len >= STACKS_MAX || stacks->n_bytes + n_bytes > BYTES_MAX)
		return NULL;
	stack = calloc(1, n_bytes);
	if (!stack || ky_map_set(&stacks->by_hash, hash, stack) < 0) {
		free(stack);
		return NULL;
	}
	stacks->n_bytes += n_bytes;
	stack->id = ++stacks->last_id;
	stack->n = n;
	stack->told = (uint32_t *)&stack->addresses[n];
	memcpy(stack->addresses, addresses, n * sizeof(*addresses));
	return stack;
}
