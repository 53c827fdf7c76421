/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The chain from an interrupt to user space: chain-layout.h. What runs on a CPU in interrupts is in a struct per CPU;
 * a wake-up in one of them gives the woken thread the times so far, which are in the thread's storage from then on.
 */
#include "latency/bpf/chain-layout.h"
#include "latency/bpf/latency-kernel.bpf.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct ky_chain_config config = {};
struct ky_chain_shared shared = {};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct timerqueue_node {
	int64_t expires;
};

struct hrtimer_clock_base {
	int clockid;
};

struct hrtimer {
	struct timerqueue_node node;
	struct hrtimer_clock_base *base;
};

#pragma clang attribute pop

#define VECTORS 16

/* How an interrupt's work came about. Times that it does not have are 0. */
struct origin {
	uint32_t kind, id;
	uint64_t due_ns, entry_ns, exit_ns;
};

struct cpu {
	struct origin irq, timer, softirq,
		raised[VECTORS]; /* kind: 0: does not run, was not raised */
	uint64_t softirq_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct cpu);
	__uint(max_entries, 1);
} kymo_cpus SEC(".maps");

/* Of a thread that was woken up in an interrupt. */
struct chain {
	struct origin origin;
	uint64_t softirq_ns, waking_ns, switch_ns;
	uint32_t irq_cpu, cpu;
	int32_t prev_tid;
	char prev_comm[KY_LATENCY_COMM_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct chain);
} kymo_chains SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct ky_latency_cell);
	__uint(max_entries, KY_CHAIN_PARTS);
} kymo_cell SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} kymo_reports SEC(".maps");

static __always_inline struct chain *chain_of(const void *task, uint64_t flags)
{
	return bpf_task_storage_get(&kymo_chains, (void *)task, NULL, flags);
}

static __always_inline struct cpu *chain_cpu(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&kymo_cpus, &zero);
}

SEC("iter/task")
int kymo_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		chain_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int kymo_fork(uint64_t *ctx)
{
	chain_of((void *)ctx[1], BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

/* ---- interrupts ------------------------------------------------------------------------- */

SEC("tp_btf/irq_handler_entry")
int kymo_irq_entry(uint64_t *ctx)
{
	struct cpu *cpu = chain_cpu();

	if (!cpu)
		return 0;
	cpu->irq.kind = KY_CHAIN_OF_IRQ;
	cpu->irq.id = ctx[0];
	cpu->irq.entry_ns = bpf_ktime_get_ns();
	return 0;
}

/* The softirqs that the handler has raised begin behind it. */
SEC("tp_btf/irq_handler_exit")
int kymo_irq_exit(uint64_t *ctx)
{
	struct cpu *cpu = chain_cpu();
	uint64_t now_ns = bpf_ktime_get_ns();

	(void)ctx;
	if (!cpu)
		return 0;
	for (uint32_t i = 0; i < VECTORS; i++)
		if (cpu->raised[i].kind == KY_CHAIN_OF_IRQ && !cpu->raised[i].exit_ns)
			cpu->raised[i].exit_ns = now_ns;
	cpu->irq.kind = KY_CHAIN_OF_NOTHING;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int kymo_timer_entry(uint64_t *ctx)
{
	const struct hrtimer *timer = (void *)ctx[0];
	struct cpu *cpu = chain_cpu();
	uint64_t now_ns = bpf_ktime_get_ns(), due_ns;

	if (!cpu)
		return 0;
	due_ns = (uint64_t)BPF_CORE_READ(timer, node.expires);
	cpu->timer.kind = KY_CHAIN_OF_TIMER;
	cpu->timer.entry_ns = now_ns;
	/* Other clocks count from another time. */
	cpu->timer.due_ns =
		BPF_CORE_READ(timer, base, clockid) == 1 && due_ns < now_ns ? due_ns : now_ns;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int kymo_timer_exit(uint64_t *ctx)
{
	struct cpu *cpu = chain_cpu();

	(void)ctx;
	if (cpu)
		cpu->timer.kind = KY_CHAIN_OF_NOTHING;
	return 0;
}

SEC("tp_btf/softirq_raise")
int kymo_raise(uint64_t *ctx)
{
	uint64_t vector = at_most(ctx[0], VECTORS - 1);
	struct cpu *cpu = chain_cpu();
	struct origin *raised;

	if (!cpu)
		return 0;
	raised = &cpu->raised[vector];
	if (raised->kind)
		return 0; /* by something earlier */
	if (cpu->irq.kind) {
		*raised = cpu->irq;
		raised->exit_ns = 0;
	} else {
		raised->kind = KY_CHAIN_OF_SOFTIRQ;
		raised->id = vector;
		raised->entry_ns = raised->exit_ns = bpf_ktime_get_ns();
	}
	return 0;
}

SEC("tp_btf/softirq_entry")
int kymo_softirq_entry(uint64_t *ctx)
{
	uint64_t vector = at_most(ctx[0], VECTORS - 1);
	struct cpu *cpu = chain_cpu();

	if (!cpu)
		return 0;
	cpu->softirq = cpu->raised[vector];
	cpu->raised[vector].kind = KY_CHAIN_OF_NOTHING;
	cpu->softirq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int kymo_softirq_exit(uint64_t *ctx)
{
	struct cpu *cpu = chain_cpu();

	(void)ctx;
	if (cpu)
		cpu->softirq.kind = KY_CHAIN_OF_NOTHING;
	return 0;
}

/* ---- the thread ------------------------------------------------------------------------- */

static __always_inline bool chain_is_wanted(const struct task_struct___latency *task)
{
	char comm[KY_LATENCY_COMM_BYTES];

	if (task->flags & PF_KTHREAD || (config.tid && task->pid != config.tid) ||
	    (config.pid && task->tgid != config.pid) || task->tgid == config.own_pid)
		return false;
	if (!config.comm_bytes)
		return true;
	bpf_probe_read_kernel(comm, sizeof(comm), &task->comm);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_LATENCY_COMM_BYTES; i++)
		if (i < config.comm_bytes && comm[i] != config.comm[i])
			return false;
	return true;
}

SEC("tp_btf/sched_waking")
int kymo_waking(uint64_t *ctx)
{
	const struct task_struct___latency *task = (void *)ctx[0];
	struct cpu *cpu = chain_cpu();
	const struct origin *origin;
	struct chain *chain;

	if (!cpu || (task->on_cpu && task->on_rq) || !chain_is_wanted(task))
		return 0;
	chain = chain_of(task, 0);
	if (!chain)
		return 0;
	origin = cpu->timer.kind ? &cpu->timer : cpu->irq.kind ? &cpu->irq : &cpu->softirq;
	chain->origin = *origin;
	chain->softirq_ns = origin == &cpu->softirq ? cpu->softirq_ns : 0;
	chain->waking_ns = bpf_ktime_get_ns();
	chain->switch_ns = 0;
	chain->irq_cpu = bpf_get_smp_processor_id();
	return 0;
}

static __always_inline void chain_switch_in(const struct task_struct___latency *next,
					    const struct task_struct___latency *prev)
{
	struct chain *chain = next->pid ? chain_of(next, 0) : NULL;

	if (!chain || !chain->origin.kind || chain->switch_ns)
		return;
	chain->switch_ns = bpf_ktime_get_ns();
	chain->cpu = bpf_get_smp_processor_id();
	chain->prev_tid = prev->pid;
	bpf_probe_read_kernel(chain->prev_comm, sizeof(chain->prev_comm), &prev->comm);
}

/* A thread that goes to sleep again has not returned: the interrupt was not for the program. */
SEC("tp_btf/sched_switch")
int kymo_switch(uint64_t *ctx)
{
	const struct task_struct___latency *prev = (void *)ctx[1];
	uint32_t state = config.has_prev_state ? ctx[3] : prev->__state;
	struct chain *chain = prev->pid && !ctx[0] && state ? chain_of(prev, 0) : NULL;

	if (chain && chain->origin.kind && chain->switch_ns) {
		chain->origin.kind = KY_CHAIN_OF_NOTHING;
		__sync_fetch_and_add(&shared.n_dropped, 1);
	}
	chain_switch_in((void *)ctx[2], prev);
	return 0;
}

/* It has returned from something else, such as a page fault. */
SEC("tp_btf/sys_enter")
int kymo_enter(uint64_t *ctx)
{
	struct chain *chain = chain_of(bpf_get_current_task_btf(), 0);

	(void)ctx;
	if (chain)
		chain->origin.kind = KY_CHAIN_OF_NOTHING;
	return 0;
}

/* ---- the end ---------------------------------------------------------------------------- */

static __always_inline void chain_add(uint32_t part, uint64_t ns)
{
	uint64_t period = *(volatile uint64_t *)&shared.period;
	uint64_t bucket = at_most(ky_latency_bucket(ns), KY_LATENCY_BUCKETS - 1);
	struct ky_latency_cell *cell = bpf_map_lookup_elem(&kymo_cell, &part);
	struct ky_latency_peak *peak;

	if (!cell)
		return;
	cell->buckets[bucket]++;
	cell->sum_ns += ns;
	peak = &cell->peaks[period & 1];
	if (peak->period != period || ns > peak->ns)
		peak->ns = ns;
	peak->period = period;
}

static __always_inline void chain_report(const struct ky_chain_report *from)
{
	struct ky_chain_report *report = bpf_ringbuf_reserve(&kymo_reports, sizeof(*report), 0);

	if (!report) {
		__sync_fetch_and_add(&shared.n_lost, 1);
		return;
	}
	*report = *from;
	bpf_ringbuf_submit(report, 0);
}

static __always_inline void take_apart(struct ky_chain_report *report, const struct chain *chain,
				       uint64_t now_ns)
{
	uint64_t *parts = report->parts_ns;
	uint64_t at_ns = chain->origin.entry_ns;

	report->begin_ns = at_ns;
	if (chain->origin.kind == KY_CHAIN_OF_TIMER) {
		report->begin_ns = chain->origin.due_ns;
		parts[KY_CHAIN_TIMER] = at_ns - chain->origin.due_ns;
	}
	if (chain->softirq_ns) {
		uint64_t raised_ns = chain->origin.exit_ns;

		/* A softirq can begin before the handler's end is seen: in the handler, it has no wait. */
		if (!raised_ns || raised_ns > chain->softirq_ns)
			raised_ns = chain->softirq_ns;
		parts[KY_CHAIN_HANDLER] = raised_ns - at_ns;
		parts[KY_CHAIN_SOFTIRQ_WAIT] = chain->softirq_ns - raised_ns;
		parts[KY_CHAIN_SOFTIRQ] = chain->waking_ns - chain->softirq_ns;
	} else {
		parts[KY_CHAIN_HANDLER] = chain->waking_ns - at_ns;
	}
	parts[KY_CHAIN_WAKEUP] = chain->switch_ns - chain->waking_ns;
	parts[KY_CHAIN_RETURN] = now_ns - chain->switch_ns;
	parts[KY_CHAIN_WHOLE] = now_ns - report->begin_ns;
}

static __always_inline bool has_part(uint32_t part, const struct chain *chain)
{
	switch (part) {
	case KY_CHAIN_TIMER:
		return chain->origin.kind == KY_CHAIN_OF_TIMER;
	case KY_CHAIN_HANDLER:
		return chain->origin.kind != KY_CHAIN_OF_SOFTIRQ;
	case KY_CHAIN_SOFTIRQ_WAIT:
	case KY_CHAIN_SOFTIRQ:
		return chain->softirq_ns;
	}
	return true;
}

SEC("tp_btf/sys_exit")
int kymo_exit(uint64_t *ctx)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	struct chain *chain = chain_of(task, 0);
	struct ky_chain_report report = {};
	uint64_t whole_ns, id;
	bool is_worst;

	(void)ctx;
	if (!chain || !chain->origin.kind || !chain->switch_ns)
		return 0;
	take_apart(&report, chain, bpf_ktime_get_ns());
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_CHAIN_PARTS; i++)
		if (has_part(i, chain))
			chain_add(i, report.parts_ns[i]);
	whole_ns = report.parts_ns[KY_CHAIN_WHOLE];
	is_worst = whole_ns > shared.worst_ns;
	if (is_worst)
		shared.worst_ns = whole_ns;
	if (config.over_worst ? is_worst : whole_ns > config.over_ns) {
		id = bpf_get_current_pid_tgid();
		report.tid = (int32_t)id;
		report.pid = (int32_t)(id >> 32);
		report.origin = chain->origin.kind;
		report.id = chain->origin.id;
		report.irq_cpu = chain->irq_cpu;
		report.cpu = chain->cpu;
		report.prev_tid = chain->prev_tid;
		__builtin_memcpy(report.prev_comm, chain->prev_comm, sizeof(report.prev_comm));
		bpf_get_current_comm(report.comm, sizeof(report.comm));
		chain_report(&report);
	}
	chain->origin.kind = KY_CHAIN_OF_NOTHING;
	return 0;
}
