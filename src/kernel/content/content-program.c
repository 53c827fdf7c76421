/* SPDX-License-Identifier: MIT */
#include "kernel/content/content-program.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "kernel/content/content-writer.h"

/* x86's struct pt_regs: from bp to orig_ax, and where the arguments are in what was copied. */
#define REGS_FROM  32
#define REGS_BYTES 96
#define REGS_NR	   88
static const int16_t argument_at[6] = {80, 72, 64, 24, 40, 32};
static const int16_t compat_argument_at[6] = {8, 56, 64, 72, 80, 0};

/* in_ia32_syscall() */
#define TS_COMPAT 2

uint32_t ky_content_part_max(uint32_t limit)
{
	return up8(limit > KY_CONTENT_TEXT_BYTES ? limit : KY_CONTENT_TEXT_BYTES);
}

uint32_t ky_content_messages_max(uint32_t limit)
{
	return KY_CONTENT_MESSAGES_BYTES + (uint32_t)sizeof(struct ky_content_message) +
	       KY_CONTENT_SOCKADDR_BYTES + up8(limit);
}

uint32_t ky_content_record_max(uint32_t limit)
{
	uint32_t items = KY_CONTENT_PLACES * (PART_BYTES + ky_content_part_max(limit)),
		 messages = PART_BYTES + ky_content_messages_max(limit);

	return HEADER_BYTES + (items > messages ? items : messages);
}

/* What the verifier believes possible: a whole record, and behind it one more item, gathered to twice its limit. */
static uint32_t slack_bytes(uint32_t limit)
{
	return (ky_content_record_max(limit) + 2 * ky_content_part_max(limit) + 2 * PART_BYTES +
		4095) &
	       ~4095u;
}

uint64_t ky_content_region_bytes(uint32_t data_bytes, uint32_t limit)
{
	return KY_CONTENT_DATA_OFFSET + (uint64_t)data_bytes + slack_bytes(limit) + IOVECS_BYTES;
}

uint32_t ky_content_iovecs_at(const struct ky_content_programs *p)
{
	return KY_CONTENT_DATA_OFFSET + p->data_bytes + slack_bytes(p->limit);
}

/* ---- beginning ------------------------------------------------------------------------ */

/* Are there calls whose records are written whatever there is to read? */
static bool has_whole(const struct ky_content_writer *w)
{
	return w->p->compat || w->p->unknown;
}

/* S_NUMBER = the call's number, S_KEY its descriptor's; out when no call can have it, and nobody wants such. */
static void find_number(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int known = ky_bpf_label(a);

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
	if (has_whole(w)) {
		ky_bpf_jump(a, BPF_JLT, R1, KY_CONTENT_MAX_CALLS, known);
		ky_bpf_move_imm(a, R1, KY_CONTENT_BEYOND);
	} else {
		ky_bpf_jump(a, BPF_JGE, R1, KY_CONTENT_MAX_CALLS, w->out);
	}
	ky_bpf_place(a, known);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
}

/* To @label, when the call's record is written whatever there is to read. */
static void jump_if_whole(struct ky_content_writer *w, int label)
{
	if (!has_whole(w))
		return;
	ky_bpf_load(&w->a, BPF_B, R1, R9, offsetof(struct ky_content_descriptor, whole));
	ky_bpf_alu_imm(&w->a, BPF_AND, R1,
		       w->is_exit ? KY_CONTENT_WHOLE_EXIT : KY_CONTENT_WHOLE_ENTRY);
	ky_bpf_jump(&w->a, BPF_JNE, R1, 0, label);
}

/* At entry: is anything to be read, or how much will fit into what it returns? At exit that is known only after the faults were looked up. */
static void find_descriptor(struct ky_content_writer *w)
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
	if (!w->is_exit) {
		ky_bpf_load(a, BPF_B, R1, R9, place_at(KY_CONTENT_OUT_A));
		ky_bpf_jump(a, BPF_JEQ, R1, KY_CONTENT_SOCKADDR, some);
		ky_bpf_jump(a, BPF_JEQ, R1, KY_CONTENT_MSG_NAME, some);
	}
	jump_if_whole(w, some);
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, some);
}

/*
 * Our own calls are left out. Those of 32-bit programs, whose numbers mean other calls, too; or they have
 * descriptors of their own.
 */
static void check_task(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int native;

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
	if (!w->p->compat) {
		ky_bpf_jump(a, BPF_JNE, R1, 0, w->out);
		return;
	}
	native = ky_bpf_label(a);
	ky_bpf_store(a, BPF_DW, FP, S_STATUS, R1);
	jump_unless_compat(w, native);
	ky_bpf_load(a, BPF_W, R1, FP, S_KEY);
	ky_bpf_alu_imm(a, BPF_ADD, R1, KY_CONTENT_MAX_CALLS);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
	ky_bpf_place(a, native);
	ky_content_write_unpack(w);
}

/* S_LATE = what could not be read at entry, S_ROOM, then to @done; to @none, when there is nothing. */
static void find_faults(struct ky_content_writer *w, int none, int done)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_load(a, BPF_DW, R1, FP, S_ID);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
	ky_bpf_map(a, R1, w->p->faults_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(a, BPF_FUNC_map_lookup_elem);
	ky_bpf_jump(a, BPF_JEQ, R0, 0, none);
	ky_bpf_load(a, BPF_W, R1, R0, 0);
	ky_bpf_store(a, BPF_DW, FP, S_LATE, R1);
	ky_bpf_load(a, BPF_W, R1, R0, S_ROOM - S_KEPT);
	ky_bpf_store(a, BPF_W, FP, S_ROOM, R1);
	ky_bpf_map(a, R1, w->p->faults_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(a, BPF_FUNC_map_delete_elem);
	ky_bpf_load(a, BPF_B, R1, R9, offsetof(struct ky_content_descriptor, replaces_memory));
	ky_bpf_jump(a, BPF_JEQ, R1, 0, done);
	ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
	ky_bpf_jump(a, BPF_JNE, R1, 0, done);
	ky_bpf_store_imm(a, BPF_DW, FP, S_LATE, 0);
}

/*
 * At exit: which places could not be read at entry? A record is written when there are some, or when
 * the call has output.
 */
static void find_late(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int none = ky_bpf_label(a), done = ky_bpf_label(a);

	ky_bpf_store_imm(a, BPF_DW, FP, S_LATE, 0);
	ky_bpf_store_imm(a, BPF_W, FP, S_ROOM, ANY_ROOM);
	if (!w->p->fields)
		ky_bpf_go(a, none);
	else
		find_faults(w, none, done);
	ky_bpf_place(a, none);
	for (unsigned int place = KY_CONTENT_IN_PLACES; place < KY_CONTENT_PLACES; place++) {
		ky_bpf_load(a, BPF_B, R1, R9, place_at(place));
		ky_bpf_jump(a, BPF_JNE, R1, 0, done);
	}
	jump_if_whole(w, done);
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, done);
}

/* r6 = the CPU's region, r7 = a place for the record; lost when there is none. */
static void reserve(struct ky_content_writer *w)
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

/* The arguments, and what kind of record it is. */
static void write_arguments(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int32_t flags = w->is_exit ? KY_CONTENT_EXIT : 0;
	int native = ky_bpf_label(a), done = ky_bpf_label(a), plain = ky_bpf_label(a);

	if (w->p->compat) {
		jump_unless_compat(w, native);
		ky_bpf_store_imm(a, BPF_W, R7, FIELD(flags), flags | KY_CONTENT_COMPAT);
		ky_bpf_load(a, BPF_DW, R1, FP, S_UNPACKED);
		ky_bpf_alu_imm(a, BPF_OR, R1, 0);
		ky_bpf_jump(a, BPF_JEQ, R1, 0, plain);
		for (int i = 0; i < 6; i++) {
			ky_bpf_load(a, BPF_W, R1, FP, (int16_t)(S_BLOCK + i * 4));
			ky_bpf_store(a, BPF_DW, R7, (int16_t)(FIELD(args) + i * 8), R1);
		}
		ky_bpf_go(a, done);
		ky_bpf_place(a, plain);
		/* Of the registers the call takes the lower half. */
		for (int i = 0; i < 6; i++) {
			ky_bpf_load(a, BPF_W, R1, R6, (int16_t)(SCRATCH + compat_argument_at[i]));
			ky_bpf_store(a, BPF_DW, R7, (int16_t)(FIELD(args) + i * 8), R1);
		}
		ky_bpf_go(a, done);
	}
	ky_bpf_place(a, native);
	if (w->p->unknown) {
		ky_bpf_load(a, BPF_B, R1, R9, offsetof(struct ky_content_descriptor, unknown));
		ky_bpf_alu_imm(a, BPF_OR, R1, flags);
		ky_bpf_store(a, BPF_W, R7, FIELD(flags), R1);
	} else {
		ky_bpf_store_imm(a, BPF_W, R7, FIELD(flags), flags);
	}
	for (int i = 0; i < 6; i++) {
		ky_bpf_load(a, BPF_DW, R1, R6, (int16_t)(SCRATCH + argument_at[i]));
		ky_bpf_store(a, BPF_DW, R7, (int16_t)(FIELD(args) + i * 8), R1);
	}
	ky_bpf_place(a, done);
}

static void write_header(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_move(a, R1, R6);
	ky_bpf_alu_imm(a, BPF_ADD, R1, SCRATCH);
	ky_bpf_move_imm(a, R2, REGS_BYTES);
	ky_bpf_load(a, BPF_DW, R3, FP, S_REGS);
	ky_bpf_alu_imm(a, BPF_ADD, R3, REGS_FROM);
	ky_bpf_call(a, BPF_FUNC_probe_read_kernel);
	write_arguments(w);
	if (w->is_exit)
		ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
	else
		ky_bpf_move_imm(a, R1, 0);
	ky_bpf_store(a, BPF_DW, R7, FIELD(ret), R1);
	ky_bpf_store_imm(a, BPF_DW, R7, FIELD(reserved2), 0);
	ky_bpf_load(a, BPF_DW, R1, FP, S_NUMBER);
	ky_bpf_store(a, BPF_W, R7, FIELD(number), R1);
	ky_bpf_load(a, BPF_DW, R1, FP, S_ID);
	ky_bpf_store(a, BPF_W, R7, FIELD(tid), R1);
	ky_bpf_alu_imm(a, BPF_RSH, R1, 32);
	ky_bpf_store(a, BPF_DW, R7, FIELD(pid), R1);
	ky_bpf_call(a, BPF_FUNC_ktime_get_ns);
	ky_bpf_store(a, BPF_DW, R7, FIELD(time_ns), R0);
	ky_bpf_move_imm(a, R8, (int32_t)HEADER_BYTES);
	ky_bpf_store_imm(a, BPF_DW, FP, S_FAULTS, 0);
	if (!w->is_exit)
		ky_bpf_store_imm(a, BPF_W, FP, S_ROOM, ANY_ROOM);
}

/* ---- the whole program ---------------------------------------------------------------- */

void ky_content_write_faults(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int some = ky_bpf_label(a), none = ky_bpf_label(a);

	ky_bpf_load(a, BPF_W, R1, FP, S_FAULTS);
	ky_bpf_store(a, BPF_W, FP, S_KEPT, R1);
	ky_bpf_jump(a, BPF_JNE, R1, 0, some);
	ky_bpf_load(a, BPF_W, R1, FP, S_ROOM);
	ky_bpf_jump(a, BPF_JEQ, R1, ANY_ROOM, none);
	ky_bpf_place(a, some);
	ky_bpf_load(a, BPF_DW, R1, FP, S_ID);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
	ky_bpf_map(a, R1, w->p->faults_map);
	ky_bpf_move(a, R2, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R2, S_KEY);
	ky_bpf_move(a, R3, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R3, S_KEPT);
	ky_bpf_move_imm(a, R4, BPF_ANY);
	ky_bpf_call(a, BPF_FUNC_map_update_elem);
	ky_bpf_place(a, none);
}

/* One more in the region's @counter. */
static void count(struct ky_content_writer *w, int16_t counter)
{
	ky_bpf_load(&w->a, BPF_DW, R1, R6, counter);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R1, 1);
	ky_bpf_store(&w->a, BPF_DW, R6, counter, R1);
}

void ky_content_write_end(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_store(a, BPF_W, R7, FIELD(bytes), R8);
	ky_bpf_load(a, BPF_DW, R1, R6, HEAD);
	ky_bpf_alu(a, BPF_ADD, R1, R8);
	ky_bpf_store(a, BPF_DW, R6, HEAD, R1);
	ky_bpf_store_imm(a, BPF_DW, R6, BUSY, 0);
	ky_bpf_go(a, w->out);
}

/* At entry: a record of nothing was for what is remembered alone. */
static void drop_empty(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int some = ky_bpf_label(a);

	ky_bpf_jump(a, BPF_JNE, R8, (int32_t)HEADER_BYTES, some);
	jump_if_whole(w, some);
	ky_bpf_store_imm(a, BPF_DW, R6, BUSY, 0);
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, some);
}

static void finish(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int call = ky_bpf_label(a);

	if (!w->is_exit) {
		if (w->p->fields)
			ky_content_write_room(w);
		ky_content_write_faults(w);
		drop_empty(w);
	}
	ky_content_write_end(w);
	ky_bpf_place(a, w->broken); /* cannot be */
	ky_bpf_store_imm(a, BPF_DW, R6, BUSY, 0);
	ky_bpf_place(a, w->lost);
	jump_if_whole(w, call);
	count(w, LOST);
	ky_bpf_go(a, w->out);
	ky_bpf_place(a, call);
	if (has_whole(w))
		count(w, LOST_CALLS);
	ky_bpf_place(a, w->out);
	ky_bpf_move_imm(a, R0, 0);
	ky_bpf_exit(a);
}

static void write_program(struct ky_content_writer *w)
{
	const unsigned int text = 1u << KY_CONTENT_TEXT,
			   address = 1u << KY_CONTENT_SOCKADDR | 1u << KY_CONTENT_VALUE,
			   name = 1u << KY_CONTENT_MSG_NAME,
			   vectors = 1u << KY_CONTENT_IOVEC | 1u << KY_CONTENT_MSG_IOVEC,
			   buffers = 1u << KY_CONTENT_BUFFER, out_text = 1u << KY_CONTENT_OUT_TEXT,
			   messages = 1u << KY_CONTENT_MESSAGES, texts = 1u << KY_CONTENT_TEXTS,
			   environ = 1u << KY_CONTENT_ENVIRON;

	w->out = ky_bpf_label(&w->a);
	w->lost = ky_bpf_label(&w->a);
	w->broken = ky_bpf_label(&w->a);
	ky_bpf_move(&w->a, R6, R1);
	ky_bpf_store(&w->a, BPF_DW, FP, S_CTX, R1);
	find_number(w);
	/* Whose call it is says which descriptor; else a call of which nothing is wanted asks the map only. */
	if (w->p->compat)
		check_task(w);
	find_descriptor(w);
	if (!w->p->compat)
		check_task(w);
	if (w->is_exit)
		find_late(w);
	reserve(w);
	write_header(w);
	ky_content_write_item(w, KY_CONTENT_IN_A, text | address | name);
	ky_content_write_item(w, KY_CONTENT_IN_B, text | buffers | vectors | messages | texts);
	ky_content_write_item(w, KY_CONTENT_IN_C, text | environ);
	if (w->is_exit) {
		ky_content_write_item(w, KY_CONTENT_OUT_A, address | name);
		ky_content_write_item(w, KY_CONTENT_OUT_B, buffers | vectors | messages | out_text);
		if (w->p->ids)
			ky_content_write_item(w, KY_CONTENT_OUT_IDS, 1u << KY_CONTENT_IDS);
	}
	finish(w);
}

int ky_content_load_program(const struct ky_content_programs *programs, bool is_exit,
			    struct kymo_error *err)
{
	struct ky_content_writer w = {.p = programs, .is_exit = is_exit};
	int fd;

	write_program(&w);
	fd = ky_bpf_load_program(&w.a, BPF_PROG_TYPE_RAW_TRACEPOINT,
				 is_exit ? "kymo_sys_exit" : "kymo_sys_enter", err);
	ky_bpf_asm_fini(&w.a);
	return fd;
}
