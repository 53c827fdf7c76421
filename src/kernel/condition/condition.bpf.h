/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Values of an event, and conditions on them: condition-layout.h. Included by BPF programs, once each. */
#ifndef KY_KERNEL_CONDITION_CONDITION_BPF_H
#define KY_KERNEL_CONDITION_CONDITION_BPF_H

#include "kernel/bpf/kernel.bpf.h"
#include "kernel/condition/condition-layout.h"

#define SIGN (1ull << 63)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___condition {
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

enum bpf_func_id___condition {
	BPF_FUNC_cgrp_storage_get___condition = 210,
};

#define HAS_CAST                                                 \
	bpf_core_enum_value_exists(enum bpf_func_id___condition, \
				   BPF_FUNC_cgrp_storage_get___condition)

/* An event that happens. Programs are inlined, so this is in registers. */
struct ky_record {
	void *ctx; /* of a tracepoint, where its record begins; NULL: @copy has all of it */
	const uint8_t *copy; /* of the record; may be NULL beside a context */
	void *program;	     /* the program's context, for call stacks */
	uint64_t *text;	     /* room for KY_CONDITION_TEXT_BYTES */
	uint64_t task;	     /* the current one, where HAS_CAST */
};

/* ---- values ----------------------------------------------------------------------------- */

/* 8 bytes of the record, and what follows it where it ends before. @at: not behind KY_CONDITION_RECORD_BYTES - 8. */
static __always_inline uint64_t record_word(const struct ky_record *record, uint32_t at)
{
	uint64_t word = 0;

	if (record->ctx && HAS_CAST) {
		const struct timespec64 *found = bpf_rdonly_cast(
			record->ctx + at, bpf_core_type_id_kernel(struct timespec64));

		return found->tv_sec;
	}
	/* volatile: the compiler shall not make one load of this, the next and the one above, which the verifier refuses. */
	if (record->copy)
		return *(const volatile uint64_t *)(record->copy + at);
	bpf_probe_read_kernel(&word, sizeof(word), record->ctx + at);
	return *(const volatile uint64_t *)&word;
}

/* Ids of the current thread, as bpf_get_current_pid_tgid() has them: a call of a helper costs as much as the rest of a short key. */
static __always_inline uint64_t record_ids(const struct ky_record *record)
{
	if (HAS_CAST) {
		const struct task_struct___condition *task =
			bpf_rdonly_cast((void *)record->task,
					bpf_core_type_id_kernel(struct task_struct___condition));

		return (uint64_t)(uint32_t)task->tgid << 32 | (uint32_t)task->pid;
	}
	return bpf_get_current_pid_tgid();
}

static __always_inline void record_comm(const struct ky_record *record, uint64_t *to)
{
	if (HAS_CAST) {
		const uint64_t *comm;
		const struct task_struct___condition *task =
			bpf_rdonly_cast((void *)record->task,
					bpf_core_type_id_kernel(struct task_struct___condition));

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

static __always_inline uint64_t record_number(const struct ky_record *record,
					      const volatile struct ky_condition_field *field)
{
	uint32_t at = field->offset;

	switch (field->source) {
	case KY_CONDITION_INTEGER:
		if (at > KY_CONDITION_RECORD_BYTES - 8)
			return 0;
		return integer_of(record_word(record, at), field->size, field->is_signed) +
		       (int64_t)field->add;
	case KY_CONDITION_CPU:
		return bpf_get_smp_processor_id();
	case KY_CONDITION_TID:
		return (uint32_t)record_ids(record);
	case KY_CONDITION_PID:
		return record_ids(record) >> 32;
	case KY_CONDITION_UID:
		return (uint32_t)bpf_get_current_uid_gid();
	}
	return 0;
}

/* The text at @to, of KY_CONDITION_TEXT_BYTES zero bytes. */
static __always_inline void record_text(const struct ky_record *record,
					const volatile struct ky_condition_field *field, void *to)
{
	uint32_t at = field->offset, size = field->size;
	uint32_t place;

	if (field->source == KY_CONDITION_COMM) {
		record_comm(record, to);
		return;
	}
	if (at > KY_CONDITION_RECORD_BYTES - 8)
		return;
	switch (field->source) {
	case KY_CONDITION_CHARS:
		if (size > KY_CONDITION_TEXT_BYTES)
			size = KY_CONDITION_TEXT_BYTES;
		bpf_probe_read_kernel_str(
			to, size, record->ctx ? record->ctx + at : (void *)(record->copy + at));
		break;
	case KY_CONDITION_DYNAMIC:
		place = record_word(record, at) & 0xffff;
		if (field->is_relative)
			place += at + 4;
		bpf_probe_read_kernel_str(to, KY_CONDITION_TEXT_BYTES, record->ctx + place);
		break;
	case KY_CONDITION_USER:
		bpf_probe_read_user_str(to, KY_CONDITION_TEXT_BYTES,
					(void *)record_word(record, at));
		break;
	}
}

/* ---- steps ------------------------------------------------------------------------------ */

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

static __always_inline uint64_t condition_begins(const struct ky_record *record,
						 const volatile struct ky_condition_step *step)
{
	uint64_t *words = record->text, differs = 0;

#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_CONDITION_TEXT_BYTES / 8; i++)
		words[i] = 0;
	record_text(record, &step->field, words);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_CONDITION_TEXT_BYTES / 8; i++) {
		if (step->text_len >= 8 * i + 8)
			differs |= words[i] ^ step->text[i];
		else if (step->text_len > 8 * i)
			differs |= (words[i] ^ step->text[i]) &
				   ((1ull << 8 * (step->text_len - 8 * i)) - 1);
	}
	return is_zero(differs);
}

static __always_inline uint64_t condition_compare(const struct ky_record *record,
						  const volatile struct ky_condition_step *step)
{
	uint64_t value = record_number(record, &step->field) & step->mask;
	uint64_t bias = step->field.is_signed ? SIGN : 0;

	switch (step->op) {
	case KY_CONDITION_EQUAL:
		return is_zero(value ^ step->value);
	case KY_CONDITION_LESS:
		return is_less(value ^ bias, step->value ^ bias);
	default:
		return is_less(step->value ^ bias, value ^ bias) ^ 1;
	}
}

static __always_inline uint64_t condition_step(const struct ky_record *record,
					       const volatile struct ky_condition_step *step,
					       uint64_t stack)
{
	switch (step->op) {
	case KY_CONDITION_FALSE:
		return stack << 1;
	case KY_CONDITION_TRUE:
		return stack << 1 | 1;
	case KY_CONDITION_AND:
		return stack >> 1 & (stack | ~1ull);
	case KY_CONDITION_OR:
		return stack >> 1 | (stack & 1);
	case KY_CONDITION_NOT:
		return stack ^ 1;
	case KY_CONDITION_BEGINS:
		return stack << 1 | condition_begins(record, step);
	default:
		return stack << 1 | condition_compare(record, step);
	}
}

static __always_inline bool condition_is_true(const struct ky_record *record,
					      const volatile struct ky_condition *condition)
{
	uint64_t stack = opaque(1);

#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_CONDITION_STEPS; i++)
		if (i < condition->n_steps)
			stack = condition_step(record, &condition->steps[i], stack);
	return stack & 1;
}

#endif
