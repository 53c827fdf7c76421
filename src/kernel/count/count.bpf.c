/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Counts and sums of events by their fields; count-layout.h has the config. Attached to tracepoints, it sees tracefs's records. */
#include "kernel/condition/condition.bpf.h"
#include "kernel/count/count-layout.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___count {
	unsigned long r10, r9, r8, dx, si, di, orig_ax;
};
#pragma clang attribute pop

const volatile struct ky_count_config config = {};

/* The recorder says how large keys are. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(key_size, 8);
	__uint(value_size, sizeof(struct ky_count_value));
	__uint(max_entries, 1);
} kymo_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, uint32_t);
	__type(value, uint64_t);
	__uint(max_entries, KY_COUNT_SHARED);
} kymo_shared SEC(".maps");

/* Who counts system call N: its entry at N, its exit at KY_COUNT_CALLS + N; 0: nobody. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, uint32_t);
	__type(value, uint32_t);
	__uint(max_entries, 2 * KY_COUNT_CALLS);
} kymo_calls SEC(".maps");

/* Processes that count. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, uint32_t);
	__type(value, uint8_t);
	__uint(max_entries, 16384);
} kymo_followed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, 4);
	__uint(value_size, KY_COUNT_FRAMES_MAX * 8);
	__uint(max_entries, 1);
} kymo_stacks SEC(".maps");

/* Of a program, which never interrupts itself. */
struct scratch {
	uint8_t record[KY_CONDITION_RECORD_BYTES + 8];
	uint8_t key[KY_COUNT_KEY_MAX + 8];
	uint64_t text[KY_COUNT_TEXT_BYTES / 8];
	uint64_t event; /* of a system call */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct scratch);
	__uint(max_entries, 1);
} kymo_scratch SEC(".maps");

/* ---- values ----------------------------------------------------------------------------- */

static __always_inline uint64_t count_number(const struct ky_record *record,
					     const struct scratch *scratch,
					     const volatile struct ky_condition_field *field)
{
	switch (field->source) {
	case KY_COUNT_EVENT:
		return config.calls ? scratch->event : bpf_get_attach_cookie(record->program);
	case KY_COUNT_KERNEL_STACK:
		return bpf_get_stackid(record->program, &kymo_stacks, 0);
	case KY_COUNT_USER_STACK:
		return bpf_get_stackid(record->program, &kymo_stacks, BPF_F_USER_STACK);
	}
	return record_number(record, field);
}

/* ---- counting --------------------------------------------------------------------------- */

static __always_inline void put_field(const struct ky_record *record, struct scratch *scratch,
				      const volatile struct ky_count_field *field)
{
	uint32_t at = field->at;
	uint8_t *to = scratch->key + at;

	if (at > KY_COUNT_KEY_MAX - KY_COUNT_TEXT_BYTES)
		return;
	if (!field->text_bytes) {
		*(uint64_t *)to = count_number(record, scratch, &field->value);
		return;
	}
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_TEXT_BYTES; i += 8)
		if (i < field->text_bytes)
			*(uint64_t *)(to + i) = 0;
	record_text(record, &field->value, to);
}

static __always_inline void put_key(const struct ky_record *record, struct scratch *scratch)
{
	if (config.has_missing)
		*(uint64_t *)scratch->key = config.missing;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_FIELDS_MAX; i++)
		if (i < config.n_fields)
			put_field(record, scratch, &config.fields[i]);
}

static __always_inline void count_lose(void)
{
	uint32_t at = KY_COUNT_LOST;
	uint64_t *lost = bpf_map_lookup_elem(&kymo_shared, &at);

	if (lost)
		__sync_fetch_and_add(lost, 1);
}

static __always_inline void count_add(const struct ky_record *record, struct scratch *scratch)
{
	int64_t summand = config.sum.source ? record_number(record, &config.sum) : 0;
	struct ky_count_value first = {1, summand}, *value;

	value = bpf_map_lookup_elem(&kymo_counts, scratch->key);
	if (!value) {
		if (!bpf_map_update_elem(&kymo_counts, scratch->key, &first, BPF_NOEXIST))
			return;
		/* Another CPU may have added it. */
		value = bpf_map_lookup_elem(&kymo_counts, scratch->key);
	}
	if (!value) {
		count_lose();
		return;
	}
	value->count++;
	value->sum += summand;
}

static __always_inline bool is_of_interest(const struct ky_record *record)
{
	uint32_t tgid = record_ids(record) >> 32;

	if (config.follows)
		return bpf_map_lookup_elem(&kymo_followed, &tgid);
	return tgid != config.own_tgid;
}

/* in_ia32_syscall(): their numbers are those of other calls. */
#define TS_COMPAT 2

static __always_inline bool count_is_compat(uint64_t current)
{
	const struct task_struct___condition *task = (void *)current;

	return bpf_core_field_exists(task->thread_info.status) &&
	       BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
}

/* Is it a call that this program counts? */
static __always_inline bool count_take_call(uint64_t number, const struct ky_record *record,
					    struct scratch *scratch)
{
	uint32_t at = config.calls == KY_COUNT_EXITS ? number + KY_COUNT_CALLS : number;
	const uint32_t *call =
		number < KY_COUNT_CALLS ? bpf_map_lookup_elem(&kymo_calls, &at) : NULL;

	if (!call || *call >> 16 != config.program || count_is_compat(record->task))
		return false;
	scratch->event = *call & 0xffff;
	return true;
}

/* Of the program's context; NULL: nothing counts now. */
static __always_inline struct scratch *count_begin(void *ctx, struct ky_record *record)
{
	uint32_t zero = 0, at = KY_COUNT_IS_ON;
	const uint64_t *is_on = bpf_map_lookup_elem(&kymo_shared, &at);
	struct scratch *scratch = bpf_map_lookup_elem(&kymo_scratch, &zero);

	if (!is_on || !*is_on || !scratch)
		return NULL;
	record->program = ctx;
	record->copy = scratch->record;
	record->text = scratch->text;
	if (HAS_CAST || config.calls)
		record->task = bpf_get_current_task();
	return is_of_interest(record) ? scratch : NULL;
}

static __always_inline void count_end(const struct ky_record *record, struct scratch *scratch)
{
	if (config.condition.n_steps && !condition_is_true(record, &config.condition))
		return;
	put_key(record, scratch);
	count_add(record, scratch);
}

SEC("tracepoint")
int kymo_count(void *ctx)
{
	struct ky_record record = {.ctx = ctx};
	struct scratch *scratch = count_begin(ctx, &record);
	uint32_t bytes = config.condition.record_bytes;

	if (!scratch)
		return 0;
	if (!HAS_CAST && bytes && bytes <= KY_CONDITION_RECORD_BYTES)
		bpf_probe_read_kernel(scratch->record, bytes, ctx);
	count_end(&record, scratch);
	return 0;
}

/* ---- system calls of x86-64 --------------------------------------------------------------- */

/* Where tracefs's records of calls have the arguments, or the result. */
#define RECORD_ARGS 16

/* @args, as far as a field asks for them. The rest of the record is never read. */
static __always_inline void count_put_args(struct scratch *scratch, const uint64_t *args,
					   uint32_t n)
{
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < n; i++)
		if (config.condition.record_bytes > RECORD_ARGS + 8 * i)
			*(uint64_t *)(scratch->record + RECORD_ARGS + 8 * i) = args[i];
}

/* At the tracepoint itself: the record that tracefs makes of it costs as much as the rest. */
SEC("raw_tp/sys_enter")
int kymo_count_entry(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs___count *registers = (void *)ctx->args[0];
	struct ky_record record = {0};
	struct scratch *scratch = count_begin(ctx, &record);

	if (!scratch || !count_take_call(ctx->args[1], &record, scratch))
		return 0;
	if (config.condition.record_bytes > RECORD_ARGS) {
		const uint64_t args[] = {
			BPF_CORE_READ(registers, di), BPF_CORE_READ(registers, si),
			BPF_CORE_READ(registers, dx), BPF_CORE_READ(registers, r10),
			BPF_CORE_READ(registers, r8), BPF_CORE_READ(registers, r9)};

		count_put_args(scratch, args, 6);
	}
	count_end(&record, scratch);
	return 0;
}

SEC("raw_tp/sys_exit")
int kymo_count_exit(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs___count *registers = (void *)ctx->args[0];
	const uint64_t result = ctx->args[1];
	struct ky_record record = {0};
	struct scratch *scratch = count_begin(ctx, &record);

	if (!scratch || !count_take_call(BPF_CORE_READ(registers, orig_ax), &record, scratch))
		return 0;
	count_put_args(scratch, &result, 1);
	count_end(&record, scratch);
	return 0;
}

/* A followed process has a child. */
SEC("raw_tp/sched_process_fork")
int kymo_fork(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct___condition *parent = (void *)ctx->args[0],
					     *child = (void *)ctx->args[1];
	uint32_t parent_tgid = BPF_CORE_READ(parent, tgid), child_tgid = BPF_CORE_READ(child, tgid);
	uint8_t one = 1;

	if (bpf_map_lookup_elem(&kymo_followed, &parent_tgid) &&
	    bpf_map_update_elem(&kymo_followed, &child_tgid, &one, BPF_ANY))
		count_lose();
	return 0;
}

/* A process is gone, its first thread as the last: another one may get its ID. */
SEC("raw_tp/sched_process_free")
int kymo_free(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct___condition *task = (void *)ctx->args[0];
	uint32_t tgid = BPF_CORE_READ(task, tgid), tid = BPF_CORE_READ(task, pid);

	if (tid == tgid)
		bpf_map_delete_elem(&kymo_followed, &tgid);
	return 0;
}
