/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What counters say when an event happens; counters-layout.h says where that is left. */
#include "kernel/bpf/counters-layout.h"
#include "kernel/bpf/kernel.bpf.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct ky_counters_config config = {};

/* Regions, by CPU. The recorder says how large they are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, 4096);
	__uint(max_entries, 1);
} kymo_readings SEC(".maps");

/* Counters of CPUs: that of @cpu that is the @i-th is at cpu * n + i. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} kymo_counters SEC(".maps");

static __always_inline uint64_t read_cpu(uint64_t index)
{
	struct bpf_perf_event_value value;

	if (bpf_perf_event_read_value(&kymo_counters, index, &value, sizeof(value)))
		return KY_COUNTERS_UNKNOWN;
	return value.counter;
}

static __always_inline uint64_t read_thread(uint8_t of)
{
	const struct task_struct *task = (void *)bpf_get_current_task();

	switch (of) {
	case KY_COUNTER_PAGE_FAULTS:
		return BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
	case KY_COUNTER_MINOR_FAULTS:
		return BPF_CORE_READ(task, min_flt);
	case KY_COUNTER_MAJOR_FAULTS:
		return BPF_CORE_READ(task, maj_flt);
	case KY_COUNTER_CONTEXT_SWITCHES:
		return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	case KY_COUNTER_CPU_MIGRATIONS:
		return BPF_CORE_READ(task, se.nr_migrations);
	}
	return KY_COUNTERS_UNKNOWN;
}

SEC("raw_tp")
int kymo_read_counters(void *ctx)
{
	uint64_t time_ns = bpf_ktime_get_ns(), number, key;
	uint32_t cpu = bpf_get_smp_processor_id();
	uint64_t *region = bpf_map_lookup_elem(&kymo_readings, &cpu);
	struct ky_counters_slot *slot;

	(void)ctx;
	if (!region)
		return 0;
	number = __sync_fetch_and_add(region, 1);
	slot = (void *)region + KY_COUNTERS_DATA_OFFSET +
	       (number & (config.n_slots - 1)) * config.slot_bytes;
	/* An exchange, for its memory order: a reader of later stores also sees that a write is in progress. */
	(void)__sync_lock_test_and_set(&slot->number, 0);
	slot->time_ns = time_ns;
	slot->tid = bpf_get_current_pid_tgid();
	asm volatile("%[key] = %[any]" : [key] "=r"(key) : [any] "i"(KY_COUNTERS_ANY_KEY));
	slot->key = key;
#pragma clang loop unroll(full)
	for (uint64_t i = 0; i < KY_COUNTERS_MAX; i++) {
		if (i >= config.n)
			break;
		slot->values[i] = config.of[i] == KY_COUNTER_OF_CPU ? read_cpu(cpu * config.n + i)
								    : read_thread(config.of[i]);
	}
	/* The same: all of the above comes before it. */
	(void)__sync_lock_test_and_set(&slot->number, number + 1);
	return 0;
}
