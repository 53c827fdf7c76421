/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Samples at events, with call stacks by hash: a stack goes into the ring once, and the map of stacks remembers that. A program
 * runs at a tracepoint, another one at a counter of perf. Neither lets perf make a sample of its own at the recorder's counters.
 */
#include "kernel/bpf/kernel.bpf.h"
#include "kernel/bpf/stacks-layout.h"

#include <linux/bpf_perf_event.h>

char kymo_license[] SEC("license") = "Dual MIT/GPL";

/* Interrupts come in the middle of programs. */
#define DEPTHS 4

uint32_t kymo_is_on;

/* A ring per CPU: of an event of perf. The recorder says how many there are. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} kymo_rings SEC(".maps");

/* Hashes of the stacks that are in the rings. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KY_BPF_STACKS_KNOWN);
	__type(key, uint64_t);
	__type(value, uint8_t);
} kymo_known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DEPTHS);
	__type(key, uint32_t);
	__type(value, struct ky_bpf_stack);
} kymo_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} kymo_depth SEC(".maps");

static __always_inline uint64_t hash_of(const struct ky_bpf_stack *stack, uint64_t n, uint64_t hash)
{
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < KY_BPF_STACKS_FRAMES; i++) {
		if (i >= n)
			break;
		hash = (hash ^ stack->addresses[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash ? hash : 1;
}

/* The stack's hash; the stack itself is in the ring. 0: the thread has no such stack. */
static __always_inline uint64_t take(void *ctx, struct ky_bpf_stack *stack, uint64_t flags,
				     uint64_t seed)
{
	long n_bytes = bpf_get_stack(ctx, stack->addresses, sizeof(stack->addresses), flags);
	uint8_t known = 1;
	uint64_t n;

	if (n_bytes <= 0)
		return 0;
	n = at_most((uint64_t)n_bytes / 8, KY_BPF_STACKS_FRAMES);
	stack->hash = hash_of(stack, n, seed);
	if (bpf_map_lookup_elem(&kymo_known, &stack->hash))
		return stack->hash;
	stack->kind = KY_BPF_STACKS_STACK;
	stack->n = n;
	if (bpf_perf_event_output(ctx, &kymo_rings, BPF_F_CURRENT_CPU, stack,
				  offsetof(struct ky_bpf_stack, addresses) + n * 8))
		return 0;
	bpf_map_update_elem(&kymo_known, &stack->hash, &known, BPF_ANY);
	return stack->hash;
}

static __always_inline void sample(void *ctx, uint64_t period)
{
	uint64_t ids = bpf_get_current_pid_tgid(), source;
	uint32_t zero = 0, *depth, at;
	struct ky_bpf_sample sample = {.kind = KY_BPF_STACKS_SAMPLE, .period = period};
	struct ky_bpf_stack *stack;

	/* The idle task has the id 0. */
	if (!kymo_is_on || !(uint32_t)ids)
		return;
	depth = bpf_map_lookup_elem(&kymo_depth, &zero);
	if (!depth)
		return;
	at = (*depth)++;
	stack = bpf_map_lookup_elem(&kymo_stacks, &at);
	asm volatile("%[source] = %[any]"
		     : [source] "=r"(source)
		     : [any] "i"(KY_BPF_STACKS_ANY_SOURCE));
	sample.source = source;
	if (stack) {
		sample.kernel = take(ctx, stack, 0, 0);
		sample.user = take(ctx, stack, BPF_F_USER_STACK, ids >> 32);
	}
	bpf_perf_event_output(ctx, &kymo_rings, BPF_F_CURRENT_CPU, &sample, sizeof(sample));
	(*depth)--;
}

/* Others have events at the same tracepoint, which they shall get: not 0. */
SEC("?tracepoint")
int kymo_at_event(void *ctx)
{
	sample(ctx, 1);
	return 1;
}

SEC("?perf_event")
int kymo_at_counter(struct bpf_perf_event_data *ctx)
{
	sample(ctx, ctx->sample_period);
	return 0;
}
