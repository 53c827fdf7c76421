/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Counts and sums of events by their fields; count-layout.h has the config. Attached to tracepoints, it sees tracefs's records. */
#include "kernel/bpf/kernel.bpf.h"
#include "kernel/count/count-layout.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct ky_count_config config = {};

#define SIGN (1ull << 63)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___count {
	struct thread_info thread_info;
	int pid, tgid;
	char comm[16];
};

/* Any struct that begins with a number of 8 bytes. */
struct timespec64 {
	int64_t tv_sec;
};
#pragma clang attribute pop

/* What it gives is read without a call, and is 0 where there is nothing. Linux 6.2 has it, and is the first to have this helper. */
extern void *bpf_rdonly_cast(const void *from, uint32_t type) __ksym __weak;

enum bpf_func_id___count {
	BPF_FUNC_cgrp_storage_get___count = 210,
};

#define HAS_CAST \
	bpf_core_enum_value_exists(enum bpf_func_id___count, BPF_FUNC_cgrp_storage_get___count)

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

/* Events do not nest: the kernel runs one program of tracepoints at a time on a CPU. */
struct scratch {
	uint8_t record[KY_COUNT_RECORD_BYTES + 8];
	uint8_t key[KY_COUNT_KEY_MAX + 8];
	uint8_t text[KY_COUNT_TEXT_BYTES];
	uint64_t event; /* of a system call */
	uint64_t task;	/* the current one */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct scratch);
	__uint(max_entries, 1);
} kymo_scratch SEC(".maps");

/* ---- values ----------------------------------------------------------------------------- */

/* 8 bytes of the record, and what follows it where it ends before. @at: not behind KY_COUNT_RECORD_BYTES - 8. */
static __always_inline uint64_t count_word_at(void *ctx, const struct scratch *scratch, uint32_t at)
{
	if (HAS_CAST) {
		const struct timespec64 *word =
			bpf_rdonly_cast(ctx + at, bpf_core_type_id_kernel(struct timespec64));

		return word->tv_sec;
	}
	return *(const uint64_t *)(scratch->record + at);
}

/* Ids of the current thread, as bpf_get_current_pid_tgid() has them: a call of a helper costs as much as the rest of a short key. */
static __always_inline uint64_t count_ids(const struct scratch *scratch)
{
	if (HAS_CAST) {
		const struct task_struct___count *task = bpf_rdonly_cast(
			(void *)scratch->task, bpf_core_type_id_kernel(struct task_struct___count));

		return (uint64_t)(uint32_t)task->tgid << 32 | (uint32_t)task->pid;
	}
	return bpf_get_current_pid_tgid();
}

static __always_inline void count_comm(const struct scratch *scratch, uint64_t *to)
{
	if (HAS_CAST) {
		const uint64_t *comm;
		const struct task_struct___count *task = bpf_rdonly_cast(
			(void *)scratch->task, bpf_core_type_id_kernel(struct task_struct___count));

		comm = (const uint64_t *)task->comm;
		to[0] = comm[0];
		to[1] = comm[1];
	} else {
		bpf_get_current_comm(to, 16);
	}
}

static __always_inline uint64_t integer_of(uint64_t word, uint32_t size, uint32_t is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int64_t)(int8_t)word : (uint8_t)word;
	case 2:
		return is_signed ? (uint64_t)(int64_t)(int16_t)word : (uint16_t)word;
	case 4:
		return is_signed ? (uint64_t)(int64_t)(int32_t)word : (uint32_t)word;
	default:
		return word;
	}
}

static __always_inline uint64_t number_of(void *ctx, const struct scratch *scratch,
					  const volatile struct ky_count_field *field)
{
	uint32_t at = field->offset;

	switch (field->source) {
	case KY_COUNT_INTEGER:
		if (at > KY_COUNT_RECORD_BYTES - 8)
			return 0;
		return integer_of(count_word_at(ctx, scratch, at), field->size, field->is_signed) +
		       (int64_t)field->add;
	case KY_COUNT_EVENT:
		return config.calls ? scratch->event : bpf_get_attach_cookie(ctx);
	case KY_COUNT_CPU:
		return bpf_get_smp_processor_id();
	case KY_COUNT_TID:
		return (uint32_t)count_ids(scratch);
	case KY_COUNT_PID:
		return count_ids(scratch) >> 32;
	case KY_COUNT_UID:
		return (uint32_t)bpf_get_current_uid_gid();
	case KY_COUNT_KERNEL_STACK:
		return bpf_get_stackid(ctx, &kymo_stacks, 0);
	case KY_COUNT_USER_STACK:
		return bpf_get_stackid(ctx, &kymo_stacks, BPF_F_USER_STACK);
	}
	return 0;
}

/* The text at @to, of KY_COUNT_TEXT_BYTES zero bytes. */
static __always_inline void text_of(void *ctx, struct scratch *scratch,
				    const volatile struct ky_count_field *field, void *to)
{
	uint32_t at = field->offset, size = field->size;
	uint32_t place;

	if (field->source == KY_COUNT_COMM) {
		count_comm(scratch, to);
		return;
	}
	if (at > KY_COUNT_RECORD_BYTES - 8)
		return;
	switch (field->source) {
	case KY_COUNT_CHARS:
		if (size > KY_COUNT_TEXT_BYTES)
			size = KY_COUNT_TEXT_BYTES;
		bpf_probe_read_kernel_str(to, size, ctx + at);
		break;
	case KY_COUNT_DYNAMIC:
		place = count_word_at(ctx, scratch, at) & 0xffff;
		if (field->is_relative)
			place += at + 4;
		bpf_probe_read_kernel_str(to, KY_COUNT_TEXT_BYTES, ctx + place);
		break;
	case KY_COUNT_USER:
		bpf_probe_read_user_str(to, KY_COUNT_TEXT_BYTES,
					(void *)count_word_at(ctx, scratch, at));
		break;
	}
}

/* ---- the filter ------------------------------------------------------------------------- */

/* Without branches: else the verifier follows each of their combinations. */
static __always_inline uint64_t opaque(uint64_t value)
{
	asm volatile("" : "+r"(value));
	return value;
}

static __always_inline uint64_t is_zero(uint64_t value)
{
	return opaque(opaque(value | -value) >> 63) ^ 1;
}

static __always_inline uint64_t is_less(uint64_t a, uint64_t b)
{
	return opaque((~a & b) | (~(a ^ b) & (a - b))) >> 63;
}

static __always_inline uint64_t begins(void *ctx, struct scratch *scratch,
				       const volatile struct ky_count_step *step)
{
	uint64_t *words = (uint64_t *)scratch->text, differs = 0;

#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_TEXT_BYTES / 8; i++)
		words[i] = 0;
	text_of(ctx, scratch, &step->field, words);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_TEXT_BYTES / 8; i++) {
		if (step->text_len >= 8 * i + 8)
			differs |= words[i] ^ step->text[i];
		else if (step->text_len > 8 * i)
			differs |= (words[i] ^ step->text[i]) &
				   ((1ull << 8 * (step->text_len - 8 * i)) - 1);
	}
	return is_zero(differs);
}

static __always_inline uint64_t count_compare(void *ctx, struct scratch *scratch,
					      const volatile struct ky_count_step *step)
{
	uint64_t value = number_of(ctx, scratch, &step->field) & step->mask;
	uint64_t bias = step->field.is_signed ? SIGN : 0;

	switch (step->op) {
	case KY_COUNT_EQUAL:
		return is_zero(value ^ step->value);
	case KY_COUNT_LESS:
		return is_less(value ^ bias, step->value ^ bias);
	default:
		return is_less(step->value ^ bias, value ^ bias) ^ 1;
	}
}

static __always_inline uint64_t run(void *ctx, struct scratch *scratch,
				    const volatile struct ky_count_step *step, uint64_t stack)
{
	switch (step->op) {
	case KY_COUNT_FALSE:
		return stack << 1;
	case KY_COUNT_TRUE:
		return stack << 1 | 1;
	case KY_COUNT_AND:
		return stack >> 1 & (stack | ~1ull);
	case KY_COUNT_OR:
		return stack >> 1 | (stack & 1);
	case KY_COUNT_NOT:
		return stack ^ 1;
	case KY_COUNT_BEGINS:
		return stack << 1 | begins(ctx, scratch, step);
	default:
		return stack << 1 | count_compare(ctx, scratch, step);
	}
}

static __always_inline bool count_is_wanted(void *ctx, struct scratch *scratch)
{
	uint64_t stack = opaque(1);

#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_STEPS_MAX; i++)
		if (i < config.n_steps)
			stack = run(ctx, scratch, &config.steps[i], stack);
	return stack & 1;
}

/* ---- counting --------------------------------------------------------------------------- */

static __always_inline void put_field(void *ctx, struct scratch *scratch,
				      const volatile struct ky_count_field *field)
{
	uint32_t at = field->at;
	uint8_t *to = scratch->key + at;

	if (at > KY_COUNT_KEY_MAX - KY_COUNT_TEXT_BYTES)
		return;
	if (!field->text_bytes) {
		*(uint64_t *)to = number_of(ctx, scratch, field);
		return;
	}
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_TEXT_BYTES; i += 8)
		if (i < field->text_bytes)
			*(uint64_t *)(to + i) = 0;
	text_of(ctx, scratch, field, to);
}

static __always_inline void put_key(void *ctx, struct scratch *scratch)
{
	if (config.has_missing)
		*(uint64_t *)scratch->key = config.missing;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_COUNT_FIELDS_MAX; i++)
		if (i < config.n_fields)
			put_field(ctx, scratch, &config.fields[i]);
}

static __always_inline void count_lose(void)
{
	uint32_t at = KY_COUNT_LOST;
	uint64_t *lost = bpf_map_lookup_elem(&kymo_shared, &at);

	if (lost)
		__sync_fetch_and_add(lost, 1);
}

static __always_inline void count_add(void *ctx, struct scratch *scratch)
{
	int64_t summand = config.sum.source ? number_of(ctx, scratch, &config.sum) : 0;
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

static __always_inline bool is_of_interest(const struct scratch *scratch)
{
	uint32_t tgid = count_ids(scratch) >> 32;

	if (config.follows)
		return bpf_map_lookup_elem(&kymo_followed, &tgid);
	return tgid != config.own_tgid;
}

/* in_ia32_syscall(): their numbers are those of other calls. */
#define TS_COMPAT 2

static __always_inline bool count_is_compat(const struct scratch *scratch)
{
	const struct task_struct___count *task = (void *)scratch->task;

	return bpf_core_field_exists(task->thread_info.status) &&
	       BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
}

/* Is it a call that this program counts? */
static __always_inline bool count_take_call(const uint64_t *ctx, struct scratch *scratch)
{
	uint64_t number = ctx[1];
	uint32_t at = config.calls == KY_COUNT_EXITS ? number + KY_COUNT_CALLS : number;
	const uint32_t *call =
		number < KY_COUNT_CALLS ? bpf_map_lookup_elem(&kymo_calls, &at) : NULL;

	if (!call || *call >> 16 != config.program || count_is_compat(scratch))
		return false;
	scratch->event = *call & 0xffff;
	return true;
}

SEC("tracepoint")
int kymo_count(void *ctx)
{
	uint32_t zero = 0, at = KY_COUNT_IS_ON;
	const uint64_t *is_on = bpf_map_lookup_elem(&kymo_shared, &at);
	struct scratch *scratch = bpf_map_lookup_elem(&kymo_scratch, &zero);

	if (!is_on || !*is_on || !scratch)
		return 0;
	if (HAS_CAST || config.calls)
		scratch->task = bpf_get_current_task();
	if (!is_of_interest(scratch))
		return 0;
	if (config.calls && !count_take_call(ctx, scratch))
		return 0;
	if (!HAS_CAST && config.record_bytes && config.record_bytes <= KY_COUNT_RECORD_BYTES)
		bpf_probe_read_kernel(scratch->record, config.record_bytes, ctx);
	if (config.n_steps && !count_is_wanted(ctx, scratch))
		return 0;
	put_key(ctx, scratch);
	count_add(ctx, scratch);
	return 0;
}

/* A followed process has a child. */
SEC("raw_tp/sched_process_fork")
int kymo_fork(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct___count *parent = (void *)ctx->args[0],
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
	const struct task_struct___count *task = (void *)ctx->args[0];
	uint32_t tgid = BPF_CORE_READ(task, tgid), tid = BPF_CORE_READ(task, pid);

	if (tid == tgid)
		bpf_map_delete_elem(&kymo_followed, &tgid);
	return 0;
}
