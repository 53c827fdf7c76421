/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Switches from the idle task, for CPUs on which the kernel's tracing does not record them; switches-layout.h. */
#include "kernel/bpf/kernel.bpf.h"
#include "kernel/bpf/switches-layout.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

/* Regions, by CPU. The recorder says how many there are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size,
	       KY_SWITCHES_DATA_OFFSET + KY_SWITCHES_SLOTS * sizeof(struct ky_switches_slot));
	__uint(max_entries, 1);
} kymo_switches SEC(".maps");

/* Notices: the slots of a CPU are half full. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, KY_SWITCHES_NOTICES_BYTES);
} kymo_notices SEC(".maps");

/*
 * preempt, prev, next (and the previous state, since Linux 5.18). A program at tp_btf may read them itself, but libbpf then
 * reads all types of the kernel, which takes a tenth of the time of a start.
 */
SEC("raw_tp/sched_switch")
int kymo_switch(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *prev = (void *)ctx->args[1], *next = (void *)ctx->args[2];
	struct ky_switches_head *head;
	struct ky_switches_slot *slot;
	uint32_t cpu;

	/* First what calls no function, since Linux 6.10: most CPUs lack no switches. */
	cpu = bpf_get_smp_processor_id();
	head = bpf_map_lookup_elem(&kymo_switches, &cpu);
	if (!head || !head->is_on)
		return 0;
	/* The thread that leaves is still the current one. */
	if ((uint32_t)bpf_get_current_pid_tgid())
		return 0;
	slot = (void *)head + KY_SWITCHES_DATA_OFFSET +
	       (head->n & (KY_SWITCHES_SLOTS - 1)) * sizeof(*slot);
	slot->time_ns = bpf_ktime_get_ns();
	slot->next_tid = BPF_CORE_READ(next, pid);
	slot->next_prio = BPF_CORE_READ(next, prio);
	slot->prev_prio = BPF_CORE_READ(prev, prio);
	bpf_core_read(slot->prev_comm, sizeof(slot->prev_comm), &prev->comm);
	bpf_core_read(slot->next_comm, sizeof(slot->next_comm), &next->comm);
	/* The slot is whole before the recorder sees it, on every architecture. */
	__sync_fetch_and_add(&head->n, 1);
	if (head->n % KY_SWITCHES_NOTICE == 0)
		(void)bpf_ringbuf_output(&kymo_notices, &cpu, sizeof(cpu), BPF_RB_FORCE_WAKEUP);
	return 0;
}
