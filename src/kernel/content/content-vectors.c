/* SPDX-License-Identifier: MIT */
/*
 * Code that reads bytes, vectors of them, and struct msghdr. In the memory of 32-bit programs words are half as long: their
 * vectors are copied to what they would be in 64 bits, and all that follows is the same.
 */
#include "kernel/content/content-writer.h"

#define IOVEC_BYTES	   16
#define COMPAT_IOVEC_BYTES 8
/* Vectors of 32 bits are first copied into the upper half of where they go, whose last one is read before it is written. */
#define COMPAT_AT (IOVECS_BYTES / 2)
/* struct msghdr: two words from there on; of 32 bits half as far. */
#define MSG_NAME_AT 0
#define MSG_IOV_AT  16

void ky_content_write_bytes(struct ky_content_writer *w, const struct ky_content_place *place,
			    uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;
	int small = ky_bpf_label(a);

	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_jump(a, BPF_JEQ, R2, 0, place->absent);
	if (place->number == KY_CONTENT_OUT_A) {
		/* The kernel tells how long the address is, not how much of it there was room for. */
		int fits = ky_bpf_label(a);

		ky_bpf_load(a, BPF_W, R1, FP, S_ROOM);
		ky_bpf_jump_reg(a, BPF_JLE, R2, R1, fits);
		ky_bpf_move(a, R2, R1);
		ky_bpf_place(a, fits);
	}
	ky_bpf_jump(a, BPF_JLE, R2, (int32_t)max, small);
	ky_bpf_move_imm(a, R2, (int32_t)max);
	ky_bpf_place(a, small);
	ky_bpf_store(a, BPF_DW, FP, S_LEN, R2);
	content_address(w, place);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	ky_bpf_load(a, BPF_DW, R5, FP, S_LEN);
	ky_bpf_go(a, place->ok);
}

/* ---- vectors -------------------------------------------------------------------------- */

/* @dst = where vectors are copied to. */
static void vectors_address(struct ky_content_writer *w, uint8_t dst, uint32_t plus)
{
	ky_bpf_move(&w->a, dst, R6);
	ky_bpf_alu_imm(&w->a, BPF_ADD, dst, (int32_t)(ky_content_iovecs_at(w->p) + plus));
}

/*
 * The verifier follows a loop for each count there may be, and what it learns of the count there
 * it must not carry on: after this OR it takes the two for different numbers.
 */
static void load_count(struct ky_content_writer *w, uint8_t dst)
{
	ky_bpf_load(&w->a, BPF_DW, dst, FP, S_MSG + 8);
	ky_bpf_alu_imm(&w->a, BPF_OR, dst, 0);
}

/* Vectors of 32 bits become such of 64: S_MSG + 8 bytes. */
static void widen(struct ky_content_writer *w, uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;
	int again = ky_bpf_label(a), done = ky_bpf_label(a);

	load_count(w, R4);
	ky_bpf_move_imm(a, R2, 0);
	vectors_address(w, R1, 0);
	vectors_address(w, R3, COMPAT_AT);
	ky_bpf_place(a, again);
	ky_bpf_jump_reg(a, BPF_JGE, R2, R4, done);
	ky_bpf_load(a, BPF_W, R0, R3, 0);
	ky_bpf_load(a, BPF_W, R5, R3, 4);
	ky_bpf_store(a, BPF_DW, R1, 0, R0);
	ky_bpf_store(a, BPF_DW, R1, 8, R5);
	ky_bpf_alu_imm(a, BPF_ADD, R1, IOVEC_BYTES);
	ky_bpf_alu_imm(a, BPF_ADD, R3, COMPAT_IOVEC_BYTES);
	ky_bpf_alu_imm(a, BPF_ADD, R2, IOVEC_BYTES);
	ky_bpf_jump(a, BPF_JLT, R2, (int32_t)max * IOVEC_BYTES, again);
	ky_bpf_place(a, done);
}

/* S_VALUE vectors at S_POINTER, or @max: S_MSG + 8 = their bytes here. */
static void copy_vectors(struct ky_content_writer *w, const struct ky_content_place *place,
			 uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;
	int few = ky_bpf_label(a), compat = ky_bpf_label(a), done = ky_bpf_label(a);

	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_jump(a, BPF_JLE, R2, (int32_t)max, few);
	ky_bpf_move_imm(a, R2, (int32_t)max);
	ky_bpf_place(a, few);
	ky_bpf_alu_imm(a, BPF_LSH, R2, 4);
	ky_bpf_store(a, BPF_DW, FP, S_MSG + 8, R2);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	if (w->p->compat)
		jump_if_compat(w, compat);
	vectors_address(w, R1, 0);
	ky_bpf_call(a, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	if (w->p->compat) {
		ky_bpf_go(a, done);
		ky_bpf_place(a, compat);
		ky_bpf_alu_imm(a, BPF_RSH, R2, 1);
		vectors_address(w, R1, COMPAT_AT);
		ky_bpf_call(a, BPF_FUNC_probe_read_user);
		ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
		widen(w, max);
	}
	ky_bpf_place(a, done);
}

/* S_VALUE = the lengths of all. */
static void add_up(struct ky_content_writer *w, uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;
	int again = ky_bpf_label(a), done = ky_bpf_label(a);

	load_count(w, R4);
	ky_bpf_move_imm(a, R2, 0);
	ky_bpf_move_imm(a, R3, 0);
	vectors_address(w, R1, 0);
	ky_bpf_place(a, again);
	ky_bpf_jump_reg(a, BPF_JGE, R2, R4, done);
	ky_bpf_move(a, R5, R1);
	ky_bpf_alu(a, BPF_ADD, R5, R2);
	ky_bpf_load(a, BPF_DW, R5, R5, 8);
	ky_bpf_alu(a, BPF_ADD, R3, R5);
	ky_bpf_alu_imm(a, BPF_ADD, R2, IOVEC_BYTES);
	ky_bpf_jump(a, BPF_JLT, R2, (int32_t)max * IOVEC_BYTES, again);
	ky_bpf_place(a, done);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R3);
}

/* The first pieces, one behind the other. */
static void gather(struct ky_content_writer *w, const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int32_t limit = (int32_t)w->p->limit;
	int done = ky_bpf_label(a);

	/* S_LEN: the bytes until now. S_MSG: those to be read at most. */
	ky_bpf_move_imm(a, R1, limit);
	if (place->output) {
		int cut = ky_bpf_label(a);

		ky_bpf_load(a, BPF_DW, R2, FP, S_RET);
		ky_bpf_jump(a, BPF_JSGE, R2, limit, cut);
		ky_bpf_move(a, R1, R2);
		ky_bpf_place(a, cut);
	}
	ky_bpf_store(a, BPF_DW, FP, S_MSG, R1);
	for (uint32_t i = 0; i < KY_CONTENT_GATHERED; i++) {
		int small = ky_bpf_label(a);

		ky_bpf_load(a, BPF_DW, R1, FP, S_MSG + 8);
		ky_bpf_jump(a, BPF_JLE, R1, (int32_t)(i * IOVEC_BYTES), done);
		ky_bpf_load(a, BPF_DW, R5, FP, S_LEN);
		ky_bpf_jump(a, BPF_JGE, R5, limit, done);
		ky_bpf_load(a, BPF_DW, R4, FP, S_MSG);
		ky_bpf_jump_reg(a, BPF_JSGE, R5, R4, done);
		ky_bpf_alu(a, BPF_SUB, R4, R5);
		vectors_address(w, R1, i * IOVEC_BYTES);
		ky_bpf_load(a, BPF_DW, R3, R1, 0);
		ky_bpf_load(a, BPF_DW, R2, R1, 8);
		ky_bpf_jump_reg(a, BPF_JLE, R2, R4, small);
		ky_bpf_move(a, R2, R4);
		ky_bpf_place(a, small);
		ky_bpf_jump(a, BPF_JGT, R2, limit, done);
		content_address(w, place);
		ky_bpf_alu(a, BPF_ADD, R1, R5);
		ky_bpf_alu(a, BPF_ADD, R5, R2);
		ky_bpf_store(a, BPF_DW, FP, S_LEN, R5);
		ky_bpf_call(a, BPF_FUNC_probe_read_user);
		ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	}
	ky_bpf_place(a, done);
	ky_bpf_load(a, BPF_DW, R5, FP, S_LEN);
	ky_bpf_jump(a, BPF_JGT, R5, limit, place->fault);
}

void ky_content_write_vectors(struct ky_content_writer *w, const struct ky_content_place *place,
			      uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;

	copy_vectors(w, place, max);
	add_up(w, max);
	ky_bpf_store_imm(a, BPF_DW, FP, S_LEN, 0);
	ky_bpf_move_imm(a, R5, 0);
	if (w->p->limit)
		gather(w, place);
	ky_bpf_go(a, place->ok);
}

/* ---- struct msghdr -------------------------------------------------------------------- */

/* Two words of the message, @at bytes into it, become S_POINTER and S_VALUE. */
static void take_words(struct ky_content_writer *w, const struct ky_content_place *place,
		       int32_t at)
{
	struct ky_bpf_asm *a = &w->a;
	int compat = ky_bpf_label(a), done = ky_bpf_label(a);

	if (w->p->compat)
		jump_if_compat(w, compat);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_alu_imm(a, BPF_ADD, R3, at);
	read_to_stack(w, S_MSG, 16, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	ky_bpf_load(a, BPF_DW, R1, FP, S_MSG);
	ky_bpf_load(a, BPF_DW, R2, FP, S_MSG + 8);
	if (w->p->compat) {
		ky_bpf_go(a, done);
		ky_bpf_place(a, compat);
		ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
		ky_bpf_alu_imm(a, BPF_ADD, R3, at / 2);
		read_to_stack(w, S_MSG, 8, BPF_FUNC_probe_read_user);
		ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
		ky_bpf_load(a, BPF_W, R1, FP, S_MSG);
		ky_bpf_load(a, BPF_W, R2, FP, S_MSG + 4);
	}
	ky_bpf_place(a, done);
	ky_bpf_store(a, BPF_DW, FP, S_POINTER, R1);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R2);
	ky_bpf_jump(a, BPF_JEQ, R1, 0, place->absent);
}

void ky_content_take_message_name(struct ky_content_writer *w, const struct ky_content_place *place)
{
	take_words(w, place, MSG_NAME_AT);
}

void ky_content_write_message_name(struct ky_content_writer *w,
				   const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;

	take_words(w, place, MSG_NAME_AT);
	/* Its length is an int, also as output. */
	ky_bpf_load(a, BPF_W, R1, FP, S_VALUE);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R1);
	ky_content_write_bytes(w, place, KY_CONTENT_SOCKADDR_BYTES);
}

void ky_content_write_message(struct ky_content_writer *w, const struct ky_content_place *place)
{
	take_words(w, place, MSG_IOV_AT);
	ky_content_write_vectors(w, place, KY_CONTENT_IOVECS);
}
