/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Maps and histograms of latency.bpf.c. */
#ifndef KY_LATENCY_LATENCY_CELLS_BPF_H
#define KY_LATENCY_LATENCY_CELLS_BPF_H

#include "latency/bpf/latency-kernel.bpf.h"
#include "latency/bpf/latency-layout.h"

const volatile struct ky_latency_config config = {};
struct ky_latency_shared shared = {};

/* Of an address, BITS bits that tell it from others. The verifier takes 32 bits of a pointer for a number. */
#define ADDRESS_BITS(address, bits)                             \
	({                                                      \
		uint64_t low_;                                  \
		asm volatile("r0 = %1\n w0 = w0\n %0 = r0"      \
			     : "=r"(low_)                       \
			     : "r"((uint64_t)(address))         \
			     : "r0");                           \
		(uint32_t) low_ * 0x9e3779b9u >> (32 - (bits)); \
	})

/* Cells at fixed places, for each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct ky_latency_cell);
	__uint(max_entries, KY_LATENCY_PLACES);
} kymo_places SEC(".maps");

/* Cells with keys. The reader says how many. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct ky_latency_key);
	__type(value, struct ky_latency_cell);
	__uint(max_entries, 1);
} kymo_cells SEC(".maps");

/* What a new cell begins as: too large for a program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, uint32_t);
	__type(value, struct ky_latency_cell);
	__uint(max_entries, 1);
} kymo_empty_cell SEC(".maps");

/* A system call that has begun. */
struct open_call {
	uint64_t registers; /* of the thread: whose this is; 0: nobody's yet */
	uint64_t begin_ns;  /* 0: it is over; of an unwanted one any other value */
	uint32_t number;    /* KY_LATENCY_CALL_COUNT: one without a number below */
	uint32_t is_unwanted;
	uint64_t reserved; /* never in two cache lines */
};

/* What is open of a thread. */
struct thread {
	struct open_call call;	    /* if it has no slot */
	uint64_t waking_ns, off_ns; /* since when; 0: it is not */
	uint64_t reason;
	uint64_t lock, lock_ns; /* the lock that it waits for; 0: none */
	uint64_t lock_kind;
	uint64_t file_ns[KY_LATENCY_FILE_OPS];
	uint64_t in_call; /* bits: which of these end with the system call */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} kymo_threads SEC(".maps");

static __always_inline struct thread *thread_of(const void *task, uint64_t flags)
{
	return bpf_task_storage_get(&kymo_threads, (void *)task, NULL, flags);
}

/* Who was the first to want a place: of CPUs that do so at the same time, one may tell its owner. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, uint32_t);
	__type(value, uint64_t);
	__uint(max_entries, KY_LATENCY_OWNED);
} kymo_owners SEC(".maps");

/* Names of processes that have cells. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, uint32_t);
	__type(value, char[KY_LATENCY_COMM_BYTES]);
	__uint(max_entries, 1);
} kymo_names SEC(".maps");

static __always_inline bool is_wanted_task(const struct task_struct___latency *task)
{
	return config.tgid ? task->tgid == config.tgid : task->tgid != config.own_tgid;
}

/* Whose a duration of @task is. */
static __always_inline uint64_t who_of(const struct task_struct___latency *task)
{
	switch (config.by) {
	case KY_LATENCY_BY_PROCESS:
		return (uint32_t)task->tgid;
	case KY_LATENCY_BY_USER:
		return task->cred->uid.val;
	case KY_LATENCY_BY_CGROUP:
		return task->cgroups->dfl_cgrp->kn->id;
	}
	return 0;
}

static __always_inline void remember_name(const struct task_struct___latency *task)
{
	char name[KY_LATENCY_COMM_BYTES];
	uint32_t tgid = task->tgid;

	if (config.by != KY_LATENCY_BY_PROCESS || bpf_map_lookup_elem(&kymo_names, &tgid))
		return;
	bpf_probe_read_kernel(name, sizeof(name), &task->group_leader->comm);
	bpf_map_update_elem(&kymo_names, &tgid, name, BPF_NOEXIST);
}

static __always_inline void mark_peak(struct ky_latency_cell *cell, uint64_t ns)
{
	uint64_t period = *(volatile uint64_t *)&shared.period;
	struct ky_latency_peak *peak = &cell->peaks[period & 1];

	if (peak->period != period) {
		peak->period = period;
		peak->ns = ns;
	} else if (ns > peak->ns) {
		peak->ns = ns;
	}
}

static __always_inline void add_shared(struct ky_latency_cell *cell, uint64_t ns)
{
	uint64_t bucket = at_most(ky_latency_bucket(ns), KY_LATENCY_BUCKETS - 1);

	__sync_fetch_and_add(&cell->buckets[bucket], 1);
	__sync_fetch_and_add(&cell->sum_ns, ns);
	mark_peak(cell, ns);
}

/* Of this CPU alone, and nothing that interrupts this adds to the same cell. */
static __always_inline void add_here(struct ky_latency_cell *cell, uint64_t ns)
{
	uint64_t bucket = at_most(ky_latency_bucket(ns), KY_LATENCY_BUCKETS - 1);

	cell->buckets[bucket]++;
	cell->sum_ns += ns;
	mark_peak(cell, ns);
}

static __always_inline struct ky_latency_cell *make_cell(const struct ky_latency_key *key,
							 const struct task_struct___latency *task)
{
	uint32_t zero = 0;
	struct ky_latency_cell *cell = bpf_map_lookup_elem(&kymo_empty_cell, &zero);

	if (!cell)
		return NULL;
	bpf_map_update_elem(&kymo_cells, key, cell, BPF_NOEXIST);
	if (task)
		remember_name(task);
	return bpf_map_lookup_elem(&kymo_cells, key);
}

/* Members on their way to the reader. The reader says how large it is. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} kymo_members SEC(".maps");

/*
 * A long one of @task, which is the current thread or, in the scheduler, the next one: of this, the stack is where it went
 * to sleep. NULL: it is nobody's.
 */
static __always_inline void tell_member(void *ctx, uint32_t layer, uint64_t sub,
					const struct task_struct___latency *task,
					const struct task_struct___latency *prev, uint64_t ns)
{
	struct ky_latency_member *member = bpf_ringbuf_reserve(&kymo_members, sizeof(*member), 0);

	if (!member) {
		__sync_fetch_and_add(&shared.n_lost_members, 1);
		return;
	}
	member->end_ns = bpf_ktime_get_ns();
	member->ns = ns;
	member->sub = sub;
	member->layer = layer;
	member->kernel_bytes = member->user_bytes = 0;
	member->prev_tid = -1;
	member->prev_comm[0] = '\0';
	if (!task)
		task = (void *)bpf_get_current_task_btf();
	member->tid = task->pid;
	member->pid = task->tgid;
	bpf_probe_read_kernel(member->comm, sizeof(member->comm), &task->comm);
	if (prev) {
		member->prev_tid = prev->pid;
		bpf_probe_read_kernel(member->prev_comm, sizeof(member->prev_comm), &prev->comm);
	}
	if (config.stacks && layer == KY_LATENCY_SYSCALL)
		member->user_bytes =
			bpf_get_stack(ctx, member->user, sizeof(member->user), BPF_F_USER_STACK);
	if (config.stacks && (layer == KY_LATENCY_LOCK || layer == KY_LATENCY_FILE))
		member->kernel_bytes =
			bpf_get_stack(ctx, member->kernel, sizeof(member->kernel), 0);
	if (config.stacks && prev)
		member->kernel_bytes =
			bpf_get_task_stack((void *)task, member->kernel, sizeof(member->kernel), 0);
	bpf_ringbuf_submit(member, BPF_RB_NO_WAKEUP);
}

/* A duration of @layer and @sub, whose cell has a key. @task: NULL where its name is known. */
static __always_inline void add_keyed(uint32_t layer, uint64_t sub, uint64_t who,
				      const struct task_struct___latency *task, uint64_t ns)
{
	struct ky_latency_key key = {.sub = sub, .who = who, .layer = layer};
	struct ky_latency_cell *cell = bpf_map_lookup_elem(&kymo_cells, &key);

	if (!cell)
		cell = make_cell(&key, task);
	if (cell)
		add_shared(cell, ns);
	else
		__sync_fetch_and_add(&shared.n_lost_cells, 1);
}

/* Does the place belong to @owner? It does, if nobody has had it. */
static __noinline bool owns_place(uint64_t owner, uint32_t at)
{
	uint64_t is = shared.owners[at & (KY_LATENCY_OWNED - 1)];

	if (!is && !bpf_map_update_elem(&kymo_owners, &at, &owner, BPF_NOEXIST))
		is = shared.owners[at & (KY_LATENCY_OWNED - 1)] = owner;
	return is == owner;
}

/* The cell of this CPU that belongs to @sub alone. NULL: it has none, or not yet. */
static __always_inline struct ky_latency_cell *owned_cell(uint32_t layer, uint64_t sub)
{
	uint64_t owner = KY_LATENCY_OWNER(layer, sub);
	uint32_t at = KY_LATENCY_OWNED_PLACE(owner), place = KY_LATENCY_AT_OWNED + at;
	struct ky_latency_cell *cell = bpf_map_lookup_elem(&kymo_places, &place);

	if (!cell || cell->owner == owner)
		return cell;
	if (cell->owner || !owns_place(owner, at))
		return NULL;
	cell->owner = owner;
	return cell;
}

/* A duration of what is nobody's, or of @who. Only one program adds to a layer. */
static __always_inline void add_owned(uint32_t layer, uint64_t sub, uint64_t who,
				      const struct task_struct___latency *task, uint64_t ns)
{
	struct ky_latency_cell *cell =
		config.by == KY_LATENCY_BY_NONE ? owned_cell(layer, sub) : NULL;

	if (cell)
		add_here(cell, ns);
	else
		add_keyed(layer, sub, who, task, ns);
}

/* The same, of @task; without keys its cell is at @place. */
static __always_inline void add(uint32_t layer, uint32_t sub, uint32_t place,
				const struct task_struct___latency *task, uint64_t ns)
{
	struct ky_latency_cell *cell;

	if (config.by != KY_LATENCY_BY_NONE) {
		add_keyed(layer, sub, task ? who_of(task) : 0, task, ns);
		return;
	}
	cell = bpf_map_lookup_elem(&kymo_places, &place);
	if (cell)
		add_here(cell, ns);
}

#endif
