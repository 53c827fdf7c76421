/* SPDX-License-Identifier: MIT */
/* Code that reads one item of a call, of each kind. */
#include "kernel/content/content-writer.h"

/* Argument number @at bytes into the descriptor -> S_@slot, and r1. */
static void load_argument(struct ky_content_writer *w, int16_t at, int16_t slot)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_load(a, BPF_B, R1, R9, at);
	ky_bpf_alu_imm(a, BPF_AND, R1, 7);
	ky_bpf_alu_imm(a, BPF_LSH, R1, 3);
	ky_bpf_move(a, R2, R7);
	ky_bpf_alu(a, BPF_ADD, R2, R1);
	ky_bpf_load(a, BPF_DW, R1, R2, FIELD(args));
	ky_bpf_store(a, BPF_DW, FP, slot, R1);
}

/* r0 = how many bytes the text at S_POINTER has, with its NUL, up to @max; negative: it is not readable so far. */
static void read_text(struct ky_content_writer *w, const struct ky_content_place *place,
		      uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;

	content_address(w, place);
	ky_bpf_move_imm(a, R2, (int32_t)max);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user_str);
}

/* Each of these ends with r5 = the bytes that were read and goes to ok, or goes to fault or absent. */
static void text(struct ky_content_writer *w, const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int whole = ky_bpf_label(a);

	read_text(w, place, KY_CONTENT_TEXT_BYTES);
	ky_bpf_jump(a, BPF_JSGT, R0, 0, whole);
	/* A path that is too long may have nothing behind what the kernel reads of it. */
	read_text(w, place, KY_CONTENT_PATH_BYTES);
	ky_bpf_jump(a, BPF_JSLE, R0, 0, place->fault);
	ky_bpf_move(a, R5, R0);
	ky_bpf_store_imm(a, BPF_DW, FP, S_VALUE, (int32_t)KY_CONTENT_TEXT_BYTES);
	ky_bpf_go(a, place->ok);
	ky_bpf_place(a, whole);
	ky_bpf_move(a, R5, R0);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R0);
	ky_bpf_go(a, place->ok);
}

static void sockaddr(struct ky_content_writer *w, const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;

	if (place->output) {
		/* An int that the kernel has set. */
		ky_bpf_load(a, BPF_DW, R3, FP, S_VALUE);
		ky_bpf_store_imm(a, BPF_DW, FP, S_LEN, 0);
		read_to_stack(w, S_LEN, 4, BPF_FUNC_probe_read_user);
		ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
		ky_bpf_load(a, BPF_W, R1, FP, S_LEN);
	} else {
		ky_bpf_load(a, BPF_W, R1, FP, S_VALUE);
	}
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R1);
	ky_content_write_bytes(w, place, KY_CONTENT_SOCKADDR_BYTES);
}

static void buffer(struct ky_content_writer *w, const struct ky_content_place *place, uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;

	if (place->output) {
		int fits = ky_bpf_label(a);

		/* What is returned may be how long it would have been: recv() with MSG_TRUNC, getxattr() with no room. */
		ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
		ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
		ky_bpf_jump_reg(a, BPF_JLE, R1, R2, fits);
		ky_bpf_move(a, R1, R2);
		ky_bpf_place(a, fits);
		ky_bpf_store(a, BPF_DW, FP, S_VALUE, R1);
	}
	ky_content_write_bytes(w, place, max);
}

/*
 * Where a list of texts has how long it is until now, and whether one could not be read: the verifier
 * forgets both.
 */
#define TEXTS_LEN (SCRATCH + 8)
#define TEXTS_BAD (SCRATCH + 16)
/* Of a text at the list's end there is room for 8 bytes at least. */
#define TEXTS_FULL ((int32_t)KY_CONTENT_TEXT_BYTES - 24)

/*
 * The next text, whose address is at S_POINTER: goes to @end behind the last one, to @cut when there is no
 * room. S_LEN is what an address takes.
 */
static void next_text(struct ky_content_writer *w, const struct ky_content_place *place, int end,
		      int cut, bool is_last)
{
	struct ky_bpf_asm *a = &w->a;
	int bad = ky_bpf_label(a), next = ky_bpf_label(a);

	ky_bpf_store_imm(a, BPF_DW, FP, S_MSG, 0);
	ky_bpf_move(a, R1, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R1, S_MSG);
	ky_bpf_load(a, BPF_DW, R2, FP, S_LEN);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	ky_bpf_load(a, BPF_DW, R3, FP, S_MSG);
	ky_bpf_jump(a, BPF_JEQ, R3, 0, end);
	if (is_last) {
		ky_bpf_go(a, cut);
		return;
	}
	ky_bpf_load(a, BPF_DW, R5, R6, TEXTS_LEN);
	ky_bpf_jump(a, BPF_JGT, R5, TEXTS_FULL, cut);
	content_address(w, place);
	ky_bpf_alu(a, BPF_ADD, R1, R5);
	ky_bpf_alu_imm(a, BPF_ADD, R1, 8);
	ky_bpf_move_imm(a, R2, (int32_t)KY_CONTENT_TEXT_BYTES - 8);
	ky_bpf_alu(a, BPF_SUB, R2, R5);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R2);
	ky_bpf_call(a, BPF_FUNC_probe_read_user_str);
	ky_bpf_load(a, BPF_DW, R5, R6, TEXTS_LEN);
	ky_bpf_jump(a, BPF_JGT, R5, TEXTS_FULL, cut);
	content_address(w, place);
	ky_bpf_alu(a, BPF_ADD, R1, R5);
	ky_bpf_alu_imm(a, BPF_ADD, R5, 8);
	ky_bpf_jump(a, BPF_JSLE, R0, 0, bad);
	ky_bpf_store(a, BPF_DW, R1, 0, R0);
	ky_bpf_move(a, R2, R0);
	ky_bpf_alu_imm(a, BPF_ADD, R2, 7);
	ky_bpf_alu_imm(a, BPF_AND, R2, -8);
	ky_bpf_alu(a, BPF_ADD, R5, R2);
	ky_bpf_store(a, BPF_DW, R6, TEXTS_LEN, R5);
	/* As long as there was room for: so it was cut. */
	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_jump_reg(a, BPF_JGE, R0, R2, cut);
	ky_bpf_go(a, next);
	ky_bpf_place(a, bad);
	ky_bpf_load(a, BPF_DW, R2, FP, S_MSG);
	ky_bpf_alu_imm(a, BPF_XOR, R2, -1);
	ky_bpf_store(a, BPF_DW, R1, 0, R2);
	ky_bpf_store(a, BPF_DW, R6, TEXTS_LEN, R5);
	ky_bpf_store_imm(a, BPF_DW, R6, TEXTS_BAD, 1);
	ky_bpf_place(a, next);
	ky_bpf_load(a, BPF_DW, R1, FP, S_POINTER);
	ky_bpf_load(a, BPF_DW, R2, FP, S_LEN);
	ky_bpf_alu(a, BPF_ADD, R1, R2);
	ky_bpf_store(a, BPF_DW, FP, S_POINTER, R1);
}

static void texts(struct ky_content_writer *w, const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int end = ky_bpf_label(a), cut = ky_bpf_label(a), done = ky_bpf_label(a);

	ky_bpf_store_imm(a, BPF_DW, R6, TEXTS_LEN, 0);
	ky_bpf_store_imm(a, BPF_DW, R6, TEXTS_BAD, 0);
	ky_bpf_move_imm(a, R2, 8);
	if (w->p->compat) {
		/* 0 or 2: an address takes 4 bytes then, which the verifier need not know. */
		ky_bpf_load(a, BPF_DW, R1, FP, S_STATUS);
		ky_bpf_alu_imm(a, BPF_LSH, R1, 1);
		ky_bpf_alu(a, BPF_SUB, R2, R1);
		ky_bpf_alu_imm(a, BPF_AND, R2, 12);
	}
	ky_bpf_store(a, BPF_DW, FP, S_LEN, R2);
	for (uint32_t i = 0; i <= KY_CONTENT_TEXTS_MAX; i++)
		next_text(w, place, end, cut, i == KY_CONTENT_TEXTS_MAX);
	ky_bpf_place(a, end);
	ky_bpf_store_imm(a, BPF_DW, FP, S_VALUE, 0);
	ky_bpf_go(a, done);
	ky_bpf_place(a, cut);
	ky_bpf_store_imm(a, BPF_DW, FP, S_VALUE, 1);
	ky_bpf_place(a, done);
	ky_bpf_load(a, BPF_DW, R5, R6, TEXTS_LEN);
	ky_bpf_jump(a, BPF_JGT, R5, (int32_t)KY_CONTENT_TEXT_BYTES, place->fault);
	ky_bpf_load(a, BPF_DW, R1, R6, TEXTS_BAD);
	ky_bpf_jump(a, BPF_JNE, R1, 0, place->partial);
	ky_bpf_go(a, place->ok);
}

/* Code for those of @kinds that the place may hold; r1 is the kind. */
static void dispatch(struct ky_content_writer *w, const struct ky_content_place *place,
		     unsigned int kinds)
{
	struct ky_bpf_asm *a = &w->a;

	for (int kind = 1; kind <= KY_CONTENT_IDS; kind++) {
		int other = ky_bpf_label(a);

		if (!(kinds & (1u << kind))) {
			ky_bpf_place(a, other);
			continue;
		}
		ky_bpf_load(a, BPF_B, R1, R9, place_at(place->number));
		ky_bpf_jump(a, BPF_JNE, R1, kind, other);
		switch ((enum ky_content_kind)kind) {
		case KY_CONTENT_TEXT:
			text(w, place);
			break;
		case KY_CONTENT_SOCKADDR:
		case KY_CONTENT_VALUE:
			sockaddr(w, place);
			break;
		case KY_CONTENT_BUFFER:
			buffer(w, place, w->p->limit);
			break;
		case KY_CONTENT_OUT_TEXT:
			buffer(w, place, KY_CONTENT_TEXT_BYTES);
			break;
		case KY_CONTENT_MSG_NAME:
			ky_content_write_message_name(w, place);
			break;
		case KY_CONTENT_MSG_IOVEC:
			ky_content_write_message(w, place);
			break;
		case KY_CONTENT_IOVEC:
			ky_content_write_vectors(w, place, KY_CONTENT_IOVECS);
			break;
		case KY_CONTENT_MESSAGES:
			ky_content_write_messages(w, place);
			break;
		case KY_CONTENT_TEXTS:
		case KY_CONTENT_ENVIRON:
			texts(w, place);
			break;
		case KY_CONTENT_IDS:
			ky_content_write_ids(w, place);
			ky_bpf_go(&w->a, place->ok);
			break;
		case KY_CONTENT_NONE:
			break;
		}
		ky_bpf_place(a, other);
	}
	ky_bpf_go(a, place->next);
}

/* r5 bytes were read: the part's header, and the record is longer. */
static void end_part(struct ky_content_writer *w, const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int store = ky_bpf_label(a);

	ky_bpf_place(a, place->fault);
	ky_bpf_move_imm(a, R5, 0);
	ky_bpf_place(a, place->partial);
	ky_bpf_load(a, BPF_W, R1, FP, S_FAULTS);
	ky_bpf_alu_imm(a, BPF_OR, R1, 1 << place->number);
	ky_bpf_store(a, BPF_W, FP, S_FAULTS, R1);
	ky_bpf_move_imm(a, R4, KY_CONTENT_UNREADABLE);
	ky_bpf_go(a, store);
	/* The verifier wants no code that is never reached. */
	if (place->is_argument) {
		ky_bpf_place(a, place->absent);
		ky_bpf_move_imm(a, R4, KY_CONTENT_ABSENT);
		ky_bpf_move_imm(a, R5, 0);
		ky_bpf_go(a, store);
	}
	ky_bpf_place(a, place->ok);
	ky_bpf_jump(a, BPF_JGT, R5, (int32_t)place->max, place->fault);
	ky_bpf_move_imm(a, R4, KY_CONTENT_OK);
	ky_bpf_place(a, store);
	ky_bpf_move(a, R1, R7);
	ky_bpf_alu(a, BPF_ADD, R1, R8);
	ky_bpf_store_imm(a, BPF_B, R1, 0, (int32_t)place->number);
	ky_bpf_store(a, BPF_B, R1, 1, R4);
	ky_bpf_store_imm(a, BPF_H, R1, 2, 0);
	ky_bpf_store(a, BPF_W, R1, 4, R5);
	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_store(a, BPF_DW, R1, 8, R2);
	ky_bpf_alu_imm(a, BPF_ADD, R5, 7);
	ky_bpf_alu_imm(a, BPF_AND, R5, -8);
	ky_bpf_alu(a, BPF_ADD, R8, R5);
	ky_bpf_alu_imm(a, BPF_ADD, R8, (int32_t)PART_BYTES);
	ky_bpf_place(a, place->next);
}

void ky_content_write_room(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int message = ky_bpf_label(a), set = ky_bpf_label(a), none = ky_bpf_label(a);
	const struct ky_content_place place = {.fault = none, .absent = none};

	ky_bpf_load(a, BPF_B, R1, R9, place_at(KY_CONTENT_OUT_A));
	ky_bpf_jump(a, BPF_JEQ, R1, KY_CONTENT_MSG_NAME, message);
	ky_bpf_jump(a, BPF_JNE, R1, KY_CONTENT_SOCKADDR, none);
	load_argument(w, (int16_t)(place_at(KY_CONTENT_OUT_A) + 2), S_POINTER);
	ky_bpf_move(a, R3, R1);
	ky_bpf_store_imm(a, BPF_DW, FP, S_VALUE, 0);
	read_to_stack(w, S_VALUE, 4, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, none);
	ky_bpf_go(a, set);
	ky_bpf_place(a, message);
	load_argument(w, (int16_t)(place_at(KY_CONTENT_OUT_A) + 1), S_POINTER);
	ky_content_take_message_name(w, &place);
	ky_bpf_place(a, set);
	ky_bpf_load(a, BPF_W, R1, FP, S_VALUE);
	ky_bpf_store(a, BPF_W, FP, S_ROOM, R1);
	ky_bpf_place(a, none);
}

void ky_content_write_item(struct ky_content_writer *w, unsigned int number, unsigned int kinds)
{
	struct ky_bpf_asm *a = &w->a;
	struct ky_content_place place = {
		.number = number,
		.output = number >= KY_CONTENT_IN_PLACES,
		.lead = PART_BYTES,
		.is_argument = kinds != 1u << KY_CONTENT_IDS,
		.fault = ky_bpf_label(a),
		.absent = ky_bpf_label(a),
		.ok = ky_bpf_label(a),
		.next = ky_bpf_label(a),
		.partial = ky_bpf_label(a),
		.max = kinds & (1u << KY_CONTENT_BUFFER) ? ky_content_part_max(w->p->limit)
							 : KY_CONTENT_TEXT_BYTES,
	};

	/*
	 * However the record became as long as it is: the verifier shall know its bound only, and go
	 * through what follows once. So the length takes a way on which it is lost sight of.
	 */
	ky_bpf_store(a, BPF_DW, R6, SCRATCH, R8);
	ky_bpf_load(a, BPF_DW, R8, R6, SCRATCH);
	ky_bpf_jump(a, BPF_JGT, R8, (int32_t)ky_content_record_max(w->p->limit), w->broken);
	ky_bpf_load(a, BPF_B, R1, R9, place_at(number));
	ky_bpf_jump(a, BPF_JEQ, R1, 0, place.next);
	if (w->is_exit && !place.output) {
		ky_bpf_load(a, BPF_DW, R1, FP, S_LATE);
		ky_bpf_alu_imm(a, BPF_AND, R1, 1 << number);
		ky_bpf_jump(a, BPF_JEQ, R1, 0, place.next);
	}
	/* Output of a call that failed is not there. */
	if (place.output) {
		ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
		ky_bpf_jump(a, BPF_JSLT, R1, 0, place.next);
	}
	if (place.is_argument) {
		load_argument(w, (int16_t)(place_at(number) + 2), S_VALUE);
		load_argument(w, (int16_t)(place_at(number) + 1), S_POINTER);
		ky_bpf_jump(a, BPF_JEQ, R1, 0, place.absent);
	}
	dispatch(w, &place, kinds);
	end_part(w, &place);
}
