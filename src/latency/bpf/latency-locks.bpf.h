/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The layer of the kernel's own locks of latency.bpf.c: waits of who did not get one at once. */
#ifndef KY_LATENCY_LATENCY_LOCKS_BPF_H
#define KY_LATENCY_LATENCY_LOCKS_BPF_H

#include "latency/bpf/latency-cells.bpf.h"

/* The kernel's LCB_F_*. */
#define LOCK_SPIN   1
#define LOCK_READ   2
#define LOCK_WRITE  4
#define LOCK_RT	    8
#define LOCK_PERCPU 16
#define LOCK_MUTEX  32

/* Who spins stays on its CPU: a thread, and interrupts on top of it. */
#define SPINS 4

struct spin {
	uint64_t lock, begin_ns;
	uint64_t kind;
};

struct spins {
	struct spin open[SPINS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct spins);
	__uint(max_entries, 1);
} kymo_spins SEC(".maps");

static __always_inline struct spins *spins_here(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&kymo_spins, &zero);
}

static __always_inline uint32_t kind_of(uint32_t flags)
{
	if (flags & LOCK_MUTEX)
		return KY_LATENCY_LOCK_MUTEX;
	if (flags & LOCK_SPIN)
		return flags & LOCK_READ    ? KY_LATENCY_LOCK_SPIN_READ
		       : flags & LOCK_WRITE ? KY_LATENCY_LOCK_SPIN_WRITE
					    : KY_LATENCY_LOCK_SPIN;
	if (flags & LOCK_PERCPU)
		return flags & LOCK_WRITE ? KY_LATENCY_LOCK_PERCPU_WRITE
					  : KY_LATENCY_LOCK_PERCPU_READ;
	if (flags & LOCK_RT)
		return KY_LATENCY_LOCK_RT;
	return flags & LOCK_READ    ? KY_LATENCY_LOCK_READ
	       : flags & LOCK_WRITE ? KY_LATENCY_LOCK_WRITE
				    : KY_LATENCY_LOCK_SEMAPHORE;
}

static __always_inline bool is_spin(uint32_t kind)
{
	return kind >= KY_LATENCY_LOCK_SPIN && kind <= KY_LATENCY_LOCK_SPIN_WRITE;
}

/* A free place; without one, the last: what is there has not ended. */
static __always_inline void spin_begins(uint64_t lock, uint32_t kind)
{
	struct spins *spins = spins_here();
	uint32_t at = SPINS - 1;

	if (!spins)
		return;
#pragma clang loop unroll(full)
	for (uint32_t i = SPINS; i-- > 0;)
		if (!spins->open[i].lock || spins->open[i].lock == lock)
			at = i;
	spins->open[at & (SPINS - 1)] =
		(struct spin){.lock = lock, .begin_ns = bpf_ktime_get_ns(), .kind = kind};
}

static __always_inline void lock_ends(void *ctx, uint32_t kind, uint64_t begin_ns)
{
	const struct task_struct___latency *task = (void *)bpf_get_current_task_btf();
	uint64_t ns = bpf_ktime_get_ns() - begin_ns;

	if (!is_wanted_task(task))
		return;
	kind = at_most(kind, KY_LATENCY_LOCK_KINDS - 1);
	add(KY_LATENCY_LOCK, kind, KY_LATENCY_AT_LOCK + kind, task, ns);
	if (ns > config.members_ns)
		tell_member(ctx, KY_LATENCY_LOCK, kind, task, NULL, ns);
}

/* A mutex begins twice when who spins for it goes to sleep, and is one wait. */
SEC("tp_btf/contention_begin")
int kymo_lock_begin(uint64_t *ctx)
{
	uint32_t kind = kind_of(ctx[1]);
	struct thread *thread;

	if (is_spin(kind)) {
		spin_begins(ctx[0], kind);
		return 0;
	}
	thread = thread_of(bpf_get_current_task_btf(), 0);
	if (!thread || thread->lock == ctx[0])
		return 0;
	thread->lock = ctx[0];
	thread->lock_kind = kind;
	thread->lock_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/contention_end")
int kymo_lock_end(uint64_t *ctx)
{
	struct spins *spins = spins_here();
	struct thread *thread;

	if (!spins)
		return 0;
	for (uint32_t i = 0; i < SPINS; i++) {
		struct spin *spin = &spins->open[i];

		if (spin->lock != ctx[0])
			continue;
		spin->lock = 0;
		lock_ends(ctx, spin->kind, spin->begin_ns);
		return 0;
	}
	thread = thread_of(bpf_get_current_task_btf(), 0);
	if (!thread || thread->lock != ctx[0])
		return 0;
	thread->lock = 0;
	lock_ends(ctx, thread->lock_kind, thread->lock_ns);
	return 0;
}

#endif
