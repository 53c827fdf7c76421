/* SPDX-License-Identifier: MIT */
#include "kernel/counters/counters-program.h"

#include <stddef.h>

#include "kernel/bpf/bpf.h"

/*
 * Registers that calls leave alone:
 *	r6  the CPU's region, then the slot's distance from its first
 *	r7  the number
 *	r8  the time
 * The stack:
 */
enum {
	S_KEY = -4,    /* of maps: 32 bits */
	S_WORD = -16,  /* what was read of the thread */
	S_VALUE = -40, /* struct bpf_perf_event_value */
	S_SUM = -48,
};

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

#define VALUE_BYTES 24
#define SLOT(member) \
	((int16_t)(KY_COUNTERS_DATA_OFFSET + offsetof(struct ky_counters_slot, member)))

uint32_t ky_counters_slot_bytes(size_t n)
{
	uint32_t bytes = 32;

	while (bytes < sizeof(struct ky_counters_slot) + n * 8)
		bytes *= 2;
	return bytes;
}

/* r6 = the slot, less the data's offset; r7 = the reading's number. */
static void reserve(struct ky_bpf_asm *a, const struct ky_counters_program *p, int out)
{
	ky_bpf_call(a, BPF_FUNC_ktime_get_ns);
	ky_bpf_move(a, R8, R0);
	ky_bpf_call(a, BPF_FUNC_get_smp_processor_id);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R0);
	ky_bpf_map(a, R1, p->regions_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(a, BPF_FUNC_map_lookup_elem);
	ky_bpf_jump(a, BPF_JEQ, R0, 0, out);
	ky_bpf_move(a, R6, R0);
	ky_bpf_move_imm(a, R7, 1);
	ky_bpf_atomic(a, BPF_ADD | BPF_FETCH, R6, 0, R7);
	ky_bpf_move(a, R1, R7);
	ky_bpf_alu_imm(a, BPF_AND, R1, (int32_t)p->n_slots - 1);
	ky_bpf_alu_imm(a, BPF_MUL, R1, (int32_t)p->slot_bytes);
	ky_bpf_alu(a, BPF_ADD, R6, R1);
}

/* What perf counts on this CPU. */
static void read_cpu(struct ky_bpf_asm *a, int map, int16_t to)
{
	int known = ky_bpf_label(a);

	ky_bpf_map(a, R1, map);
	ky_bpf_move_imm(a, R2, -1); /* BPF_F_CURRENT_CPU has 32 bits */
	ky_bpf_alu_imm(a, BPF_RSH, R2, 32);
	ky_bpf_move(a, R3, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R3, S_VALUE);
	ky_bpf_move_imm(a, R4, VALUE_BYTES);
	ky_bpf_call(a, BPF_FUNC_perf_event_read_value);
	ky_bpf_load(a, BPF_DW, R1, FP, S_VALUE);
	ky_bpf_jump(a, BPF_JEQ, R0, 0, known);
	ky_bpf_move_imm(a, R1, -1);
	ky_bpf_place(a, known);
	ky_bpf_store(a, BPF_DW, R6, to, R1);
}

/* What the kernel has counted for this thread. */
static void read_thread(struct ky_bpf_asm *a, const int32_t at[2], int16_t to)
{
	ky_bpf_store_imm(a, BPF_DW, FP, S_SUM, 0);
	for (int i = 0; i < 2 && at[i] >= 0; i++) {
		ky_bpf_call(a, BPF_FUNC_get_current_task);
		ky_bpf_move(a, R3, R0);
		ky_bpf_alu_imm(a, BPF_ADD, R3, at[i]);
		ky_bpf_move(a, R1, FP);
		ky_bpf_alu_imm(a, BPF_ADD, R1, S_WORD);
		ky_bpf_move_imm(a, R2, 8);
		ky_bpf_call(a, BPF_FUNC_probe_read_kernel);
		ky_bpf_load(a, BPF_DW, R1, FP, S_WORD);
		ky_bpf_load(a, BPF_DW, R2, FP, S_SUM);
		ky_bpf_alu(a, BPF_ADD, R1, R2);
		ky_bpf_store(a, BPF_DW, FP, S_SUM, R1);
	}
	ky_bpf_load(a, BPF_DW, R1, FP, S_SUM);
	ky_bpf_store(a, BPF_DW, R6, to, R1);
}

static void write_program(struct ky_bpf_asm *a, const struct ky_counters_program *p, uint32_t key)
{
	int out = ky_bpf_label(a);

	reserve(a, p, out);
	/* An exchange, for what it orders: whoever sees any of what follows sees that it is being written. */
	ky_bpf_move_imm(a, R1, 0);
	ky_bpf_atomic(a, BPF_XCHG, R6, SLOT(number), R1);
	ky_bpf_store(a, BPF_DW, R6, SLOT(time_ns), R8);
	ky_bpf_call(a, BPF_FUNC_get_current_pid_tgid);
	ky_bpf_store(a, BPF_W, R6, SLOT(tid), R0);
	ky_bpf_store_imm(a, BPF_W, R6, SLOT(key), (int32_t)key);
	for (size_t i = 0; i < p->n; i++) {
		int16_t to = (int16_t)(SLOT(values) + (int16_t)i * 8);

		if (p->counters[i].map >= 0)
			read_cpu(a, p->counters[i].map, to);
		else
			read_thread(a, p->counters[i].at, to);
	}
	/* The same: all of the above comes before it. */
	ky_bpf_alu_imm(a, BPF_ADD, R7, 1);
	ky_bpf_atomic(a, BPF_XCHG, R6, SLOT(number), R7);
	ky_bpf_place(a, out);
	ky_bpf_move_imm(a, R0, 0);
	ky_bpf_exit(a);
}

int ky_counters_load_program(const struct ky_counters_program *program, uint32_t key,
			     struct kymo_error *err)
{
	struct ky_bpf_asm a = {0};
	int fd;

	write_program(&a, program, key);
	fd = ky_bpf_load_program(&a, BPF_PROG_TYPE_RAW_TRACEPOINT, "kymo_counters", err);
	ky_bpf_asm_fini(&a);
	return fd;
}
