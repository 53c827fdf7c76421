/* SPDX-License-Identifier: MIT */
#include "kernel/content-program.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

/*
 * Registers that calls leave alone:
 *	r6  first the context, then the CPU's region
 *	r7  the record
 *	r8  its bytes until now
 *	r9  the call's descriptor
 * The stack:
 */
enum {
	S_KEY = -4,	 /* of maps: 32 bits */
	S_FAULTS = -8,	 /* the places that were not readable, a bit each: 32 bits */
	S_STATUS = -16,	 /* thread_info.status: 32 bits */
	S_REGS = -24,	 /* address of the registers */
	S_ID = -32,	 /* pid << 32 | tid */
	S_POINTER = -40, /* of the item in hand */
	S_VALUE = -48,
	S_LEN = -56,
	S_NUMBER = -64,
	S_MSG = -80, /* two words of a struct msghdr */
	S_RET = -88,
	S_LATE = -96, /* at exit: the places to be read again */
};

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

#define IOVECS_BYTES  (KY_CONTENT_IOVECS * 16)
#define HEADER_BYTES  ((uint32_t)sizeof(struct ky_content_record))
#define PART_BYTES    ((uint32_t)sizeof(struct ky_content_part))
#define HEAD	      ((int16_t)offsetof(struct ky_content_ring, head))
#define TAIL	      ((int16_t)offsetof(struct ky_content_ring, tail))
#define BUSY	      ((int16_t)offsetof(struct ky_content_ring, busy))
#define LOST	      ((int16_t)offsetof(struct ky_content_ring, lost))
#define SCRATCH	      ((int16_t)offsetof(struct ky_content_ring, scratch))
#define FIELD(member) ((int16_t)offsetof(struct ky_content_record, member))

/* x86's struct pt_regs: from r10 to orig_ax, and where the arguments are in what was copied. */
#define REGS_FROM  56
#define REGS_BYTES 72
#define REGS_NR	   64
static const int16_t argument_at[6] = {56, 48, 40, 0, 16, 8};

/* in_ia32_syscall() */
#define TS_COMPAT 2

struct writer {
	struct ky_bpf_asm a;
	const struct ky_content_programs *p;
	bool is_exit;
	int out, lost, broken; /* labels */
};

static uint32_t up8(uint32_t n)
{
	return (n + 7) & ~7u;
}

/* The longest content of one item. */
static uint32_t part_max(uint32_t limit)
{
	return up8(limit > KY_CONTENT_TEXT_BYTES ? limit : KY_CONTENT_TEXT_BYTES);
}

uint32_t ky_content_record_max(uint32_t limit)
{
	return HEADER_BYTES + KY_CONTENT_PLACES * (PART_BYTES + part_max(limit));
}

/* What the verifier believes possible: a whole record, and behind it one more item, gathered to its limit. */
static uint32_t slack_bytes(uint32_t limit)
{
	return (ky_content_record_max(limit) + part_max(limit) + limit + 2 * PART_BYTES + 4095) &
	       ~4095u;
}

uint64_t ky_content_region_bytes(uint32_t data_bytes, uint32_t limit)
{
	return KY_CONTENT_DATA_OFFSET + (uint64_t)data_bytes + slack_bytes(limit) + IOVECS_BYTES;
}

/* Where vectors are copied to. */
static uint32_t iovecs_at(const struct ky_content_programs *p)
{
	return KY_CONTENT_DATA_OFFSET + p->data_bytes + slack_bytes(p->limit);
}

/* ---- beginning ------------------------------------------------------------------------ */

/* r0 = the element of @map for the 32-bit key in S_KEY; out when there is none. */
static void lookup(struct writer *w, int map)
{
	ky_bpf_map(&w->a, R1, map);
	ky_bpf_move(&w->a, R2, FP);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(&w->a, BPF_FUNC_map_lookup_elem);
	ky_bpf_jump(&w->a, BPF_JEQ, R0, 0, w->out);
}

/* r1 = FP + @at, r2 = @len; r3 is the address. */
static void read_to_stack(struct writer *w, int32_t at, int32_t len, int32_t helper)
{
	ky_bpf_move(&w->a, R1, FP);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R1, at);
	ky_bpf_move_imm(&w->a, R2, len);
	ky_bpf_call(&w->a, helper);
}

/* S_NUMBER = the call's number; out when it cannot be one. */
static void find_number(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_load(a, BPF_DW, R1, R6, 0);
	ky_bpf_store(a, BPF_DW, FP, S_REGS, R1);
	ky_bpf_load(a, BPF_DW, R1, R6, 8);
	if (w->is_exit) {
		ky_bpf_store(a, BPF_DW, FP, S_RET, R1);
		ky_bpf_load(a, BPF_DW, R3, FP, S_REGS);
		ky_bpf_alu_imm(a, BPF_ADD, R3, REGS_FROM + REGS_NR);
		read_to_stack(w, S_NUMBER, 8, BPF_FUNC_probe_read_kernel);
		ky_bpf_jump(a, BPF_JNE, R0, 0, w->out);
		ky_bpf_load(a, BPF_DW, R1, FP, S_NUMBER);
	} else {
		ky_bpf_store(a, BPF_DW, FP, S_NUMBER, R1);
	}
	ky_bpf_jump(a, BPF_JGE, R1, KY_CONTENT_MAX_CALLS, w->out);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
}

static int16_t place_at(unsigned int place)
{
	return (int16_t)(place * 3);
}

/* At entry: is anything to be read? At exit that is known only after the faults were looked up. */
static void find_descriptor(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int some = ky_bpf_label(a);

	lookup(w, w->p->calls_map);
	ky_bpf_move(a, R9, R0);
	for (unsigned int place = 0; place < KY_CONTENT_PLACES; place++) {
		if (!w->is_exit && place >= KY_CONTENT_IN_PLACES)
			break;
		ky_bpf_load(a, BPF_B, R1, R9, place_at(place));
		ky_bpf_jump(a, BPF_JNE, R1, 0, some);
	}
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, some);
}

/* Our own calls, and those with the numbers of 32-bit programs, are left out. */
static void check_task(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_call(a, BPF_FUNC_get_current_pid_tgid);
	ky_bpf_store(a, BPF_DW, FP, S_ID, R0);
	ky_bpf_alu_imm(a, BPF_RSH, R0, 32);
	ky_bpf_jump(a, BPF_JEQ, R0, (int32_t)w->p->own_pid, w->out);
	if (w->p->status_offset < 0)
		return;
	ky_bpf_call(a, BPF_FUNC_get_current_task);
	ky_bpf_move(a, R3, R0);
	ky_bpf_alu_imm(a, BPF_ADD, R3, w->p->status_offset);
	ky_bpf_store_imm(a, BPF_DW, FP, S_STATUS, 0);
	read_to_stack(w, S_STATUS, 4, BPF_FUNC_probe_read_kernel);
	ky_bpf_load(a, BPF_W, R1, FP, S_STATUS);
	ky_bpf_alu_imm(a, BPF_AND, R1, TS_COMPAT);
	ky_bpf_jump(a, BPF_JNE, R1, 0, w->out);
}

/*
 * At exit: which places could not be read at entry? A record is written when there are some, or when
 * the call has output.
 */
static void find_late(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int none = ky_bpf_label(a), done = ky_bpf_label(a);

	ky_bpf_store_imm(a, BPF_DW, FP, S_LATE, 0);
	ky_bpf_load(a, BPF_DW, R1, FP, S_ID);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
	ky_bpf_map(a, R1, w->p->faults_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(a, BPF_FUNC_map_lookup_elem);
	ky_bpf_jump(a, BPF_JEQ, R0, 0, none);
	ky_bpf_load(a, BPF_W, R1, R0, 0);
	ky_bpf_store(a, BPF_DW, FP, S_LATE, R1);
	ky_bpf_map(a, R1, w->p->faults_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(a, BPF_FUNC_map_delete_elem);
	ky_bpf_load(a, BPF_B, R1, R9, offsetof(struct ky_content_descriptor, replaces_memory));
	ky_bpf_jump(a, BPF_JEQ, R1, 0, done);
	ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
	ky_bpf_jump(a, BPF_JNE, R1, 0, done);
	ky_bpf_store_imm(a, BPF_DW, FP, S_LATE, 0);
	ky_bpf_place(a, none);
	for (unsigned int place = KY_CONTENT_IN_PLACES; place < KY_CONTENT_PLACES; place++) {
		ky_bpf_load(a, BPF_B, R1, R9, place_at(place));
		ky_bpf_jump(a, BPF_JNE, R1, 0, done);
	}
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, done);
}

/* r6 = the CPU's region, r7 = a place for the record; lost when there is none. */
static void reserve(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	uint32_t room = w->p->data_bytes - up8(ky_content_record_max(w->p->limit));

	ky_bpf_call(a, BPF_FUNC_get_smp_processor_id);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R0);
	lookup(w, w->p->rings_map);
	ky_bpf_move(a, R6, R0);
	ky_bpf_load(a, BPF_DW, R1, R6, BUSY);
	ky_bpf_jump(a, BPF_JNE, R1, 0, w->lost);
	ky_bpf_load(a, BPF_DW, R1, R6, HEAD);
	ky_bpf_load(a, BPF_DW, R2, R6, TAIL);
	ky_bpf_move(a, R3, R1);
	ky_bpf_alu(a, BPF_SUB, R3, R2);
	ky_bpf_jump(a, BPF_JGT, R3, (int32_t)room, w->lost);
	ky_bpf_store_imm(a, BPF_DW, R6, BUSY, 1);
	ky_bpf_alu_imm(a, BPF_AND, R1, (int32_t)(w->p->data_bytes - 8));
	ky_bpf_move(a, R7, R6);
	ky_bpf_alu_imm(a, BPF_ADD, R7, KY_CONTENT_DATA_OFFSET);
	ky_bpf_alu(a, BPF_ADD, R7, R1);
}

static void write_header(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_move(a, R1, R6);
	ky_bpf_alu_imm(a, BPF_ADD, R1, SCRATCH);
	ky_bpf_move_imm(a, R2, REGS_BYTES);
	ky_bpf_load(a, BPF_DW, R3, FP, S_REGS);
	ky_bpf_alu_imm(a, BPF_ADD, R3, REGS_FROM);
	ky_bpf_call(a, BPF_FUNC_probe_read_kernel);
	for (int i = 0; i < 6; i++) {
		ky_bpf_load(a, BPF_DW, R1, R6, (int16_t)(SCRATCH + argument_at[i]));
		ky_bpf_store(a, BPF_DW, R7, (int16_t)(FIELD(args) + i * 8), R1);
	}
	if (w->is_exit)
		ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
	else
		ky_bpf_move_imm(a, R1, 0);
	ky_bpf_store(a, BPF_DW, R7, FIELD(ret), R1);
	ky_bpf_store_imm(a, BPF_DW, R7, FIELD(reserved2), 0);
	ky_bpf_load(a, BPF_DW, R1, FP, S_NUMBER);
	ky_bpf_store(a, BPF_W, R7, FIELD(number), R1);
	ky_bpf_store_imm(a, BPF_W, R7, FIELD(flags), w->is_exit ? KY_CONTENT_EXIT : 0);
	ky_bpf_load(a, BPF_DW, R1, FP, S_ID);
	ky_bpf_store(a, BPF_W, R7, FIELD(tid), R1);
	ky_bpf_alu_imm(a, BPF_RSH, R1, 32);
	ky_bpf_store(a, BPF_DW, R7, FIELD(pid), R1);
	ky_bpf_call(a, BPF_FUNC_ktime_get_ns);
	ky_bpf_store(a, BPF_DW, R7, FIELD(time_ns), R0);
	ky_bpf_move_imm(a, R8, (int32_t)HEADER_BYTES);
	ky_bpf_store_imm(a, BPF_DW, FP, S_FAULTS, 0);
}

/* ---- one item ------------------------------------------------------------------------- */

struct place {
	unsigned int number;
	bool output;
	uint32_t max;		     /* of its content */
	int fault, absent, ok, next; /* labels */
};

/* Argument number @at bytes into the descriptor -> S_@slot, and r1. */
static void load_argument(struct writer *w, int16_t at, int16_t slot)
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

/* r1 = where the content goes. */
static void content_address(struct writer *w)
{
	ky_bpf_move(&w->a, R1, R7);
	ky_bpf_alu(&w->a, BPF_ADD, R1, R8);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R1, (int32_t)PART_BYTES);
}

/* Each of these ends with r5 = the bytes that were read and goes to ok, or goes to fault or absent. */
static void text(struct writer *w, const struct place *place)
{
	struct ky_bpf_asm *a = &w->a;

	content_address(w);
	ky_bpf_move_imm(a, R2, (int32_t)KY_CONTENT_TEXT_BYTES);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user_str);
	ky_bpf_jump(a, BPF_JSLE, R0, 0, place->fault);
	ky_bpf_move(a, R5, R0);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R0);
	ky_bpf_go(a, place->ok);
}

/* Read min(S_VALUE, @max) bytes from S_POINTER. */
static void bytes(struct writer *w, const struct place *place, uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;
	int small = ky_bpf_label(a);

	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_jump(a, BPF_JEQ, R2, 0, place->absent);
	ky_bpf_jump(a, BPF_JLE, R2, (int32_t)max, small);
	ky_bpf_move_imm(a, R2, (int32_t)max);
	ky_bpf_place(a, small);
	ky_bpf_store(a, BPF_DW, FP, S_LEN, R2);
	content_address(w);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	ky_bpf_load(a, BPF_DW, R5, FP, S_LEN);
	ky_bpf_go(a, place->ok);
}

static void sockaddr(struct writer *w, const struct place *place)
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
	bytes(w, place, KY_CONTENT_SOCKADDR_BYTES);
}

/* Two words of the message, @at bytes into it, become pointer and value. */
static void message(struct writer *w, const struct place *place, int32_t at)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_alu_imm(a, BPF_ADD, R3, at);
	read_to_stack(w, S_MSG, 16, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	ky_bpf_load(a, BPF_DW, R1, FP, S_MSG);
	ky_bpf_store(a, BPF_DW, FP, S_POINTER, R1);
	ky_bpf_load(a, BPF_DW, R2, FP, S_MSG + 8);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R2);
	ky_bpf_jump(a, BPF_JEQ, R1, 0, place->absent);
}

static void message_name(struct writer *w, const struct place *place)
{
	struct ky_bpf_asm *a = &w->a;

	message(w, place, 0);
	/* Its length is an int, also as output. */
	ky_bpf_load(a, BPF_W, R1, FP, S_VALUE);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R1);
	bytes(w, place, KY_CONTENT_SOCKADDR_BYTES);
}

/* The vector's first pieces, one behind the other. */
static void gather(struct writer *w, const struct place *place)
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
		int32_t at = (int32_t)(iovecs_at(w->p) + i * 16);

		ky_bpf_load(a, BPF_DW, R1, FP, S_MSG + 8);
		ky_bpf_jump(a, BPF_JLE, R1, (int32_t)(i * 16), done);
		ky_bpf_load(a, BPF_DW, R5, FP, S_LEN);
		ky_bpf_jump(a, BPF_JGE, R5, limit, done);
		ky_bpf_load(a, BPF_DW, R4, FP, S_MSG);
		ky_bpf_jump_reg(a, BPF_JSGE, R5, R4, done);
		ky_bpf_alu(a, BPF_SUB, R4, R5);
		ky_bpf_move(a, R1, R6);
		ky_bpf_alu_imm(a, BPF_ADD, R1, at);
		ky_bpf_load(a, BPF_DW, R3, R1, 0);
		ky_bpf_load(a, BPF_DW, R2, R1, 8);
		ky_bpf_jump_reg(a, BPF_JLE, R2, R4, small);
		ky_bpf_move(a, R2, R4);
		ky_bpf_place(a, small);
		ky_bpf_jump(a, BPF_JGT, R2, limit, done);
		content_address(w);
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

/* S_VALUE vectors at S_POINTER: their lengths are added up. */
static void iovec(struct writer *w, const struct place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int few = ky_bpf_label(a), again = ky_bpf_label(a), summed = ky_bpf_label(a);

	ky_bpf_load(a, BPF_DW, R2, FP, S_VALUE);
	ky_bpf_jump(a, BPF_JLE, R2, (int32_t)KY_CONTENT_IOVECS, few);
	ky_bpf_move_imm(a, R2, (int32_t)KY_CONTENT_IOVECS);
	ky_bpf_place(a, few);
	ky_bpf_alu_imm(a, BPF_LSH, R2, 4);
	ky_bpf_store(a, BPF_DW, FP, S_MSG + 8, R2);
	ky_bpf_move(a, R1, R6);
	ky_bpf_alu_imm(a, BPF_ADD, R1, (int32_t)iovecs_at(w->p));
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, place->fault);
	/*
	 * The verifier follows the loop for each count there may be, and what it learns of the count there
	 * it must not carry on: after this OR it takes the two for different numbers.
	 */
	ky_bpf_load(a, BPF_DW, R4, FP, S_MSG + 8);
	ky_bpf_alu_imm(a, BPF_OR, R4, 0);
	ky_bpf_move_imm(a, R2, 0);
	ky_bpf_move_imm(a, R3, 0);
	ky_bpf_move(a, R1, R6);
	ky_bpf_alu_imm(a, BPF_ADD, R1, (int32_t)iovecs_at(w->p));
	ky_bpf_place(a, again);
	ky_bpf_jump_reg(a, BPF_JGE, R2, R4, summed);
	ky_bpf_move(a, R5, R1);
	ky_bpf_alu(a, BPF_ADD, R5, R2);
	ky_bpf_load(a, BPF_DW, R5, R5, 8);
	ky_bpf_alu(a, BPF_ADD, R3, R5);
	ky_bpf_alu_imm(a, BPF_ADD, R2, 16);
	ky_bpf_jump(a, BPF_JLT, R2, (int32_t)IOVECS_BYTES, again);
	ky_bpf_place(a, summed);
	ky_bpf_store(a, BPF_DW, FP, S_VALUE, R3);
	ky_bpf_store_imm(a, BPF_DW, FP, S_LEN, 0);
	ky_bpf_move_imm(a, R5, 0);
	if (w->p->limit)
		gather(w, place);
	ky_bpf_go(a, place->ok);
}

static void buffer(struct writer *w, const struct place *place, uint32_t max)
{
	struct ky_bpf_asm *a = &w->a;

	if (place->output) {
		ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
		ky_bpf_store(a, BPF_DW, FP, S_VALUE, R1);
	}
	bytes(w, place, max);
}

/* Code for those of @kinds that the place may hold; r1 is the kind. */
static void dispatch(struct writer *w, const struct place *place, unsigned int kinds)
{
	struct ky_bpf_asm *a = &w->a;

	for (int kind = 1; kind <= KY_CONTENT_OUT_TEXT; kind++) {
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
			sockaddr(w, place);
			break;
		case KY_CONTENT_BUFFER:
			buffer(w, place, w->p->limit);
			break;
		case KY_CONTENT_OUT_TEXT:
			buffer(w, place, KY_CONTENT_TEXT_BYTES);
			break;
		case KY_CONTENT_MSG_NAME:
			message_name(w, place);
			break;
		case KY_CONTENT_MSG_IOVEC:
			message(w, place, 16);
			iovec(w, place);
			break;
		case KY_CONTENT_IOVEC:
			iovec(w, place);
			break;
		case KY_CONTENT_NONE:
			break;
		}
		ky_bpf_place(a, other);
	}
	ky_bpf_go(a, place->next);
}

/* r5 bytes were read: the part's header, and the record is longer. */
static void end_part(struct writer *w, const struct place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int store = ky_bpf_label(a);

	ky_bpf_place(a, place->fault);
	ky_bpf_load(a, BPF_W, R1, FP, S_FAULTS);
	ky_bpf_alu_imm(a, BPF_OR, R1, 1 << place->number);
	ky_bpf_store(a, BPF_W, FP, S_FAULTS, R1);
	ky_bpf_move_imm(a, R4, KY_CONTENT_UNREADABLE);
	ky_bpf_move_imm(a, R5, 0);
	ky_bpf_go(a, store);
	ky_bpf_place(a, place->absent);
	ky_bpf_move_imm(a, R4, KY_CONTENT_ABSENT);
	ky_bpf_move_imm(a, R5, 0);
	ky_bpf_go(a, store);
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

static void item(struct writer *w, unsigned int number, unsigned int kinds)
{
	struct ky_bpf_asm *a = &w->a;
	struct place place = {
		.number = number,
		.output = number >= KY_CONTENT_IN_PLACES,
		.fault = ky_bpf_label(a),
		.absent = ky_bpf_label(a),
		.ok = ky_bpf_label(a),
		.next = ky_bpf_label(a),
		.max = kinds & (1u << KY_CONTENT_BUFFER) ? part_max(w->p->limit)
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
	load_argument(w, (int16_t)(place_at(number) + 2), S_VALUE);
	load_argument(w, (int16_t)(place_at(number) + 1), S_POINTER);
	ky_bpf_jump(a, BPF_JEQ, R1, 0, place.absent);
	dispatch(w, &place, kinds);
	end_part(w, &place);
}

/* ---- the whole program ---------------------------------------------------------------- */

/* Remember what could not be read: the call itself may bring the page in. */
static void remember_faults(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int none = ky_bpf_label(a);

	ky_bpf_load(a, BPF_W, R1, FP, S_FAULTS);
	ky_bpf_jump(a, BPF_JEQ, R1, 0, none);
	ky_bpf_load(a, BPF_DW, R1, FP, S_ID);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
	ky_bpf_map(a, R1, w->p->faults_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_move(a, R3, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R3, S_FAULTS);
	ky_bpf_move_imm(a, R4, BPF_ANY);
	ky_bpf_call(a, BPF_FUNC_map_update_elem);
	ky_bpf_place(a, none);
}

static void finish(struct writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	if (!w->is_exit)
		remember_faults(w);
	ky_bpf_store(a, BPF_W, R7, FIELD(bytes), R8);
	ky_bpf_load(a, BPF_DW, R1, R6, HEAD);
	ky_bpf_alu(a, BPF_ADD, R1, R8);
	ky_bpf_store(a, BPF_DW, R6, HEAD, R1);
	ky_bpf_store_imm(a, BPF_DW, R6, BUSY, 0);
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, w->broken); /* cannot be */
	ky_bpf_store_imm(a, BPF_DW, R6, BUSY, 0);
	ky_bpf_place(a, w->lost);
	ky_bpf_load(a, BPF_DW, R1, R6, LOST);
	ky_bpf_alu_imm(a, BPF_ADD, R1, 1);
	ky_bpf_store(a, BPF_DW, R6, LOST, R1);
	ky_bpf_place(a, w->out);
	ky_bpf_move_imm(a, R0, 0);
	ky_bpf_exit(a);
}

static void write_program(struct writer *w)
{
	const unsigned int text = 1u << KY_CONTENT_TEXT, address = 1u << KY_CONTENT_SOCKADDR,
			   name = 1u << KY_CONTENT_MSG_NAME,
			   vectors = 1u << KY_CONTENT_IOVEC | 1u << KY_CONTENT_MSG_IOVEC,
			   buffers = 1u << KY_CONTENT_BUFFER, out_text = 1u << KY_CONTENT_OUT_TEXT;

	w->out = ky_bpf_label(&w->a);
	w->lost = ky_bpf_label(&w->a);
	w->broken = ky_bpf_label(&w->a);
	ky_bpf_move(&w->a, R6, R1);
	find_number(w);
	find_descriptor(w);
	check_task(w);
	if (w->is_exit)
		find_late(w);
	reserve(w);
	write_header(w);
	item(w, KY_CONTENT_IN_A, text | address | name);
	item(w, KY_CONTENT_IN_B, text | buffers | vectors);
	item(w, KY_CONTENT_IN_C, text);
	if (w->is_exit) {
		item(w, KY_CONTENT_OUT_A, address | name);
		item(w, KY_CONTENT_OUT_B, buffers | vectors | out_text);
	}
	finish(w);
}

int ky_content_load_program(const struct ky_content_programs *programs, bool is_exit,
			    struct kymo_error *err)
{
	struct writer w = {.p = programs, .is_exit = is_exit};
	int fd;

	write_program(&w);
	fd = ky_bpf_load_program(&w.a, BPF_PROG_TYPE_RAW_TRACEPOINT,
				 is_exit ? "kymo_sys_exit" : "kymo_sys_enter", err);
	ky_bpf_asm_fini(&w.a);
	return fd;
}
