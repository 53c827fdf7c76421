/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Durations of all layers of the kernel, measured where they happen: only histograms leave the kernel.
 *
 * What is open of a thread is in storage that the kernel keeps with the thread, which costs less than a table by ID; its system
 * call is in a slot (latency-calls.bpf.h). Storage is made where a program may allocate: of threads that exist by kymo_seed,
 * of new ones when they are forked or call; never in the scheduler.
 */
#include "latency/bpf/latency-calls.bpf.h"
#include "latency/bpf/latency-locks.bpf.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

/* Once for each thread, before the others run. */
SEC("iter/task")
int kymo_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		thread_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int kymo_fork(uint64_t *ctx)
{
	if (config.calls)
		forget_slot((void *)ctx[1]);
	if (config.threads)
		thread_of((void *)ctx[1], BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

/* A process has another name, by execve or prctl. */
SEC("tp_btf/task_rename")
int kymo_rename(uint64_t *ctx)
{
	const struct task_struct___latency *task = (void *)ctx[0];
	char name[KY_LATENCY_COMM_BYTES] = {};
	uint32_t tgid = task->tgid;

	if (task->pid != task->tgid || !bpf_map_lookup_elem(&kymo_names, &tgid))
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), (void *)ctx[1]);
	bpf_map_update_elem(&kymo_names, &tgid, name, BPF_ANY);
	return 0;
}

/* ---- the scheduler ---------------------------------------------------------------------- */

static __always_inline bool is_delayed(const struct task_struct___latency *task)
{
	return bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed;
}

/*
 * A thread that runs, and is only about to sleep, goes on: no switch will follow. But a thread that has left its queue,
 * or is to leave it later (delayed), is on its way out.
 */
SEC("tp_btf/sched_waking")
int kymo_waking(uint64_t *ctx)
{
	const struct task_struct___latency *task = (void *)ctx[0];
	struct thread *thread;

	if (task->on_cpu && task->on_rq && !is_delayed(task))
		return 0;
	thread = thread_of(task, 0);
	if (thread)
		thread->waking_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int kymo_wakeup_new(uint64_t *ctx)
{
	struct thread *thread = thread_of((void *)ctx[0], 0);

	if (thread)
		thread->waking_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline uint32_t call_reason(const struct open_call *call)
{
	if (!call->begin_ns || call->number >= KY_LATENCY_CALL_COUNT)
		return KY_LATENCY_OFF_UNKNOWN;
	return config.reason[call->number];
}

static __always_inline uint32_t off_reason(struct thread *thread,
					   const struct task_struct___latency *task, uint32_t state)
{
	const struct open_call *call = open_call_of(task, thread);

	if (!state)
		return call_reason(call) == KY_LATENCY_OFF_YIELD ? KY_LATENCY_OFF_YIELD
								 : KY_LATENCY_OFF_PREEMPTED;
	if (state & TASK_GONE)
		return KY_LATENCY_OFF_NONE;
	if (state & TASK_STOPPED_TRACED)
		return KY_LATENCY_OFF_STOPPED;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return KY_LATENCY_OFF_IO;
	if (task->flags & PF_KTHREAD)
		return (state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD)
			       ? KY_LATENCY_OFF_KERNEL
			       : KY_LATENCY_OFF_KTHREAD;
	if (state & TASK_UNINTERRUPTIBLE)
		return call->begin_ns ? KY_LATENCY_OFF_KERNEL : KY_LATENCY_OFF_FAULT;
	return call_reason(call);
}

static __always_inline void switch_out(const struct task_struct___latency *task, uint32_t state,
				       uint64_t now_ns)
{
	struct thread *thread;

	if (!config.offcpu || !task->pid)
		return;
	thread = thread_of(task, 0);
	if (!thread)
		return;
	thread->reason = off_reason(thread, task, state);
	thread->off_ns = thread->reason ? now_ns : 0;
}

static __always_inline void switch_in(void *ctx, const struct task_struct___latency *task,
				      const struct task_struct___latency *prev, uint64_t now_ns)
{
	struct thread *thread = task->pid ? thread_of(task, 0) : NULL;
	uint64_t waking_ns, off_ns;

	if (!thread)
		return;
	waking_ns = thread->waking_ns;
	off_ns = thread->off_ns;
	thread->waking_ns = 0;
	thread->off_ns = 0;
	if (!is_wanted_task(task))
		return;
	if (config.wakeup && waking_ns && waking_ns < now_ns) {
		add(KY_LATENCY_WAKEUP, 0, KY_LATENCY_AT_WAKEUP, task, now_ns - waking_ns);
		if (now_ns - waking_ns > config.members_ns)
			tell_member(ctx, KY_LATENCY_WAKEUP, 0, task, prev, now_ns - waking_ns);
	}
	if (config.offcpu && off_ns) {
		uint32_t reason = at_most(thread->reason, KY_LATENCY_OFF_REASONS - 1);

		add(KY_LATENCY_OFFCPU, reason, KY_LATENCY_AT_OFFCPU + reason, task,
		    now_ns - off_ns);
		if (now_ns - off_ns > config.members_ns)
			tell_member(ctx, KY_LATENCY_OFFCPU, reason, task, prev, now_ns - off_ns);
	}
}

/* preempt, prev, next, and prev's state, which later it may no longer be. */
SEC("tp_btf/sched_switch")
int kymo_switch(uint64_t *ctx)
{
	const struct task_struct___latency *prev = (void *)ctx[1], *next = (void *)ctx[2];
	uint64_t now_ns = bpf_ktime_get_ns();
	uint32_t state = 0;

	if (config.has_prev_state)
		state = ctx[3];
	else if (bpf_core_field_exists(prev->__state))
		state = prev->__state;
	switch_out(prev, ctx[0] ? 0 : state, now_ns);
	switch_in(ctx, next, prev, now_ns);
	return 0;
}

/* ---- block devices ---------------------------------------------------------------------- */

struct open_request {
	uint64_t request;	      /* its address; 0: nobody's yet */
	uint64_t insert_ns, issue_ns; /* since when it is there; 0: it is not */
	uint64_t device, who;
	uint64_t is_unwanted; /* of another process */
	uint64_t reserved[2]; /* never in two cache lines */
};

/*
 * Requests by their address, of which the kernel has a fixed number for each device and uses them again. Each is in a slot, as
 * system calls are, or in the table while its slot has an open one. There it stays: a change in place costs less than a
 * deletion and an insertion.
 */
#define REQUEST_BITS 13u

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, uint32_t);
	__type(value, struct open_request);
	__uint(max_entries, 1u << REQUEST_BITS);
} kymo_request_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, uint64_t);
	__type(value, struct open_request);
	__uint(max_entries, 32768);
} kymo_requests SEC(".maps");

static __always_inline uint64_t device_of(const struct request *request)
{
	const struct gendisk *disk = NULL;

	if (bpf_core_field_exists(request->q->disk))
		disk = request->q->disk;
	else
		disk = ((const struct request___rq_disk *)request)->rq_disk;
	if (!disk)
		return KY_LATENCY_DEVICE(0, 0, request->cmd_flags & 0xff);
	return KY_LATENCY_DEVICE(disk->major, disk->first_minor, request->cmd_flags & 0xff);
}

static __always_inline struct open_request *request_slot(uint64_t request)
{
	uint32_t at = ADDRESS_BITS(request, REQUEST_BITS);

	return bpf_map_lookup_elem(&kymo_request_slots, &at);
}

static __noinline struct open_request *request_in_table(uint64_t request)
{
	return bpf_map_lookup_elem(&kymo_requests, &request);
}

/* Where a request is. NULL: nowhere. */
static __always_inline struct open_request *find_request(uint64_t request)
{
	struct open_request *slot = request_slot(request);

	return slot && slot->request == request ? slot : request_in_table(request);
}

static __always_inline bool is_open(const struct open_request *request)
{
	return request->insert_ns || request->issue_ns;
}

/* Of a request whose slot is not its own: @slot, if that may become so. */
static __noinline struct open_request *other_place(struct open_request *slot, uint64_t request)
{
	struct open_request *entry = request_in_table(request), empty = {};

	if (entry && is_open(entry))
		return entry;
	if (slot && !is_open(slot)) {
		slot->request = request;
		return slot;
	}
	if (entry)
		return entry;
	bpf_map_update_elem(&kymo_requests, &request, &empty, BPF_NOEXIST);
	entry = request_in_table(request);
	if (!entry)
		__sync_fetch_and_add(&shared.n_lost_requests, 1);
	return entry;
}

/* The same; where it is nowhere, it gets a place. */
static __always_inline struct open_request *take_request(uint64_t request)
{
	struct open_request *slot = request_slot(request);

	return slot && slot->request == request ? slot : other_place(slot, request);
}

/* Without an owner and a process, whose it is does not matter: the process that measures reads nothing from a disk. */
static __always_inline void fill_slot(struct open_request *slot, const struct request *request)
{
	const struct task_struct___latency *task;

	slot->device = device_of(request);
	if (config.by == KY_LATENCY_BY_NONE && !config.tgid)
		return;
	task = (void *)bpf_get_current_task_btf();
	slot->who = who_of(task);
	slot->is_unwanted = !is_wanted_task(task);
	remember_name(task);
}

static __always_inline void add_request(void *ctx, uint32_t layer, const struct open_request *slot,
					uint64_t ns)
{
	add_owned(layer, slot->device, slot->who, NULL, ns);
	if (ns > config.members_ns)
		tell_member(ctx, layer, slot->device, NULL, NULL, ns);
}

SEC("tp_btf/block_rq_insert")
int kymo_insert(uint64_t *ctx)
{
	struct open_request *slot = take_request(ctx[0]);

	if (!slot)
		return 0;
	fill_slot(slot, (void *)ctx[0]);
	slot->insert_ns = bpf_ktime_get_ns();
	slot->issue_ns = 0;
	return 0;
}

/* Again after the driver has given one back: the time in the queue is over, that of the device begins anew. */
SEC("tp_btf/block_rq_issue")
int kymo_issue(uint64_t *ctx)
{
	struct open_request *slot = take_request(ctx[0]);
	uint64_t now_ns = bpf_ktime_get_ns();

	if (!slot)
		return 0;
	if (!is_open(slot))
		fill_slot(slot, (void *)ctx[0]);
	if (slot->insert_ns && !slot->is_unwanted)
		add_request(ctx, KY_LATENCY_BLOCK_QUEUE, slot, now_ns - slot->insert_ns);
	slot->insert_ns = 0;
	slot->issue_ns = now_ns;
	return 0;
}

/* It is part of another request now. */
SEC("tp_btf/block_rq_merge")
int kymo_merge(uint64_t *ctx)
{
	struct open_request *slot = find_request(ctx[0]);

	if (slot)
		slot->insert_ns = slot->issue_ns = 0;
	return 0;
}

SEC("tp_btf/block_rq_complete")
int kymo_complete(uint64_t *ctx)
{
	const struct request *request = (void *)ctx[0];
	struct open_request *slot = find_request(ctx[0]);

	if (!slot || (uint32_t)ctx[2] < request->__data_len)
		return 0;
	if (slot->issue_ns && !slot->is_unwanted)
		add_request(ctx,
			    KY_LATENCY_OP(slot->device) == KY_LATENCY_OP_FLUSH
				    ? KY_LATENCY_FLUSH
				    : KY_LATENCY_BLOCK_DEVICE,
			    slot, bpf_ktime_get_ns() - slot->issue_ns);
	slot->insert_ns = slot->issue_ns = 0;
	return 0;
}

/* ---- interrupts ------------------------------------------------------------------------- */

struct running {
	uint64_t irq_ns, softirq_ns;
};

/* What this CPU has interrupted itself for. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct running);
	__uint(max_entries, 1);
} kymo_running SEC(".maps");

static __always_inline struct running *running_here(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&kymo_running, &zero);
}

SEC("tp_btf/irq_handler_entry")
int kymo_irq_entry(uint64_t *ctx)
{
	struct running *running = running_here();

	(void)ctx;
	if (running)
		running->irq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int kymo_irq_exit(uint64_t *ctx)
{
	struct running *running = running_here();
	uint64_t ns;

	if (!running || !running->irq_ns)
		return 0;
	ns = bpf_ktime_get_ns() - running->irq_ns;
	running->irq_ns = 0;
	add_owned(KY_LATENCY_IRQ, (uint32_t)ctx[0], 0, NULL, ns);
	if (ns > config.members_ns)
		tell_member(ctx, KY_LATENCY_IRQ, (uint32_t)ctx[0], NULL, NULL, ns);
	return 0;
}

SEC("tp_btf/softirq_entry")
int kymo_softirq_entry(uint64_t *ctx)
{
	struct running *running = running_here();

	(void)ctx;
	if (running)
		running->softirq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int kymo_softirq_exit(uint64_t *ctx)
{
	struct running *running = running_here();
	uint32_t vector = at_most(ctx[0], KY_LATENCY_SOFTIRQS - 1);
	uint64_t ns;

	if (!running || !running->softirq_ns)
		return 0;
	ns = bpf_ktime_get_ns() - running->softirq_ns;
	running->softirq_ns = 0;
	add(KY_LATENCY_SOFTIRQ, vector, KY_LATENCY_AT_SOFTIRQ + vector, NULL, ns);
	if (ns > config.members_ns)
		tell_member(ctx, KY_LATENCY_SOFTIRQ, vector, NULL, NULL, ns);
	return 0;
}
