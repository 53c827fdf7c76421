/* SPDX-License-Identifier: MIT */
/*
 * BPF without libbpf: an assembler that writes programs at run time, and the bpf() system calls
 * that load and attach them. What a program needs of the running kernel (an offset, a number)
 * is known when it is written, so there is nothing to relocate, and no compiler is needed.
 *
 *	struct ky_bpf_asm a = {0};
 *	int out = ky_bpf_label(&a);
 *	ky_bpf_load(&a, BPF_DW, BPF_REG_1, BPF_REG_1, 8);
 *	ky_bpf_jump(&a, BPF_JGT, BPF_REG_1, 511, out);
 *	...
 *	ky_bpf_place(&a, out);
 *	ky_bpf_move_imm(&a, BPF_REG_0, 0);
 *	ky_bpf_exit(&a);
 *	fd = ky_bpf_load_program(&a, BPF_PROG_TYPE_RAW_TRACEPOINT, "name", err);
 *	ky_bpf_asm_fini(&a);
 *
 * An assembler that ran out of memory says so when the program is loaded.
 * Threads: one at a time per assembler; the rest any.
 */
#ifndef KY_KERNEL_BPF_H
#define KY_KERNEL_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

#include <kymo/error.h>

#include "base/vec.h"

struct ky_bpf_fixup {
	size_t insn;
	int label;
};

struct ky_bpf_asm {
	KY_VEC(struct bpf_insn) insns;
	KY_VEC(int32_t) labels; /* where they are; -1: not placed yet */
	KY_VEC(struct ky_bpf_fixup) fixups;
	bool failed;
};

void ky_bpf_asm_fini(struct ky_bpf_asm *a);

/* A new label, for jumps before or after it is placed. */
int ky_bpf_label(struct ky_bpf_asm *a);
void ky_bpf_place(struct ky_bpf_asm *a, int label);

/* @size: BPF_B, BPF_H, BPF_W, BPF_DW. @op: BPF_ADD ..., BPF_JEQ ...; all arithmetic is of 64 bits. */
void ky_bpf_move(struct ky_bpf_asm *a, uint8_t dst, uint8_t src);
void ky_bpf_move_imm(struct ky_bpf_asm *a, uint8_t dst, int32_t imm);
void ky_bpf_alu(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, uint8_t src);
void ky_bpf_alu_imm(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, int32_t imm);
void ky_bpf_load(struct ky_bpf_asm *a, uint8_t size, uint8_t dst, uint8_t src, int16_t offset);
void ky_bpf_store(struct ky_bpf_asm *a, uint8_t size, uint8_t dst, int16_t offset, uint8_t src);
void ky_bpf_store_imm(struct ky_bpf_asm *a, uint8_t size, uint8_t dst, int16_t offset, int32_t imm);
/* @op on the 64 bits at @dst + @offset: BPF_ADD | BPF_FETCH, BPF_XCHG ...; then @src has what was there. */
void ky_bpf_atomic(struct ky_bpf_asm *a, int32_t op, uint8_t dst, int16_t offset, uint8_t src);
void ky_bpf_map(struct ky_bpf_asm *a, uint8_t dst, int map_fd);
void ky_bpf_call(struct ky_bpf_asm *a, int32_t helper);
void ky_bpf_jump(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, int32_t imm, int label);
void ky_bpf_jump_reg(struct ky_bpf_asm *a, uint8_t op, uint8_t dst, uint8_t src, int label);
void ky_bpf_go(struct ky_bpf_asm *a, int label);
void ky_bpf_exit(struct ky_bpf_asm *a);

/*
 * Create a map. Returns a descriptor; KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (a kernel without BPF),
 * KYMO_E_MEMORY or KYMO_E_IO.
 */
int ky_bpf_map_create(enum bpf_map_type type, const char *name, uint32_t key_bytes,
		      uint32_t value_bytes, uint32_t entries, uint32_t flags,
		      struct kymo_error *err);
/* 0 or KYMO_E_IO. */
int ky_bpf_map_update(int map_fd, const void *key, const void *value, struct kymo_error *err);

/* Load what was assembled. Returns a descriptor or an error, with the verifier's last words. */
int ky_bpf_load_program(struct ky_bpf_asm *a, enum bpf_prog_type type, const char *name,
			struct kymo_error *err);

/*
 * The same of a program that is called with one thing after another: @function is the kernel's for it, by its number in BTF
 * ("bpf_iter_task").
 */
int ky_bpf_load_iterator(struct ky_bpf_asm *a, uint32_t function, const char *name,
			 struct kymo_error *err);
/* Have it called with all of them: what it writes is what can be read. Returns a descriptor or an error. */
int ky_bpf_iterate(int prog_fd, struct kymo_error *err);

/*
 * Run program @prog_fd at raw tracepoint @name until the descriptor that is returned is closed.
 * KYMO_E_NOT_FOUND: there is no such tracepoint.
 */
int ky_bpf_attach_raw(int prog_fd, const char *name, struct kymo_error *err);

#endif
