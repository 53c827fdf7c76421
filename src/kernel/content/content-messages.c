/* SPDX-License-Identifier: MIT */
/*
 * The program that reads the messages of sendmmsg and recvmmsg. A call may have 1024 of them, which is more than the
 * verifier follows in one program: so each run of it takes some, and then jumps to itself. What is known from run to run
 * is in the region (struct ky_content_walk), and goes through it from message to message too, where the verifier does not see
 * what became of which.
 */
#include "kernel/content/content-writer.h"

#define RUNS  33 /* a program and the jumps that any kernel allows */
#define TURNS 32

_Static_assert(RUNS *TURNS >= KY_CONTENT_MESSAGES_MAX, "all messages are reached");

#define MESSAGE_BYTES  ((int32_t)sizeof(struct ky_content_message))
#define MESSAGE(field) ((int16_t)offsetof(struct ky_content_message, field))
#define FIRST_AT       ((int32_t)(HEADER_BYTES + PART_BYTES))
#define LAST_AT	       (FIRST_AT + (int32_t)KY_CONTENT_MESSAGES_BYTES)

/* struct mmsghdr of 64 bits, and of 32. */
struct layout {
	int16_t name, name_len, vectors, n_vectors, len;
	int32_t bytes;
	uint8_t word;
};

static const struct layout native = {0, 8, 16, 24, 56, 64, BPF_DW},
			   of_32_bits = {0, 4, 8, 12, 28, 32, BPF_W};

static void set_walk(struct ky_content_writer *w, int16_t member, int16_t slot)
{
	ky_bpf_load(&w->a, BPF_DW, R1, FP, slot);
	ky_bpf_store(&w->a, BPF_DW, R6, member, R1);
}

/* Falls through where nobody goes on. */
static void jump_to_next_program(struct ky_content_writer *w)
{
	ky_bpf_load(&w->a, BPF_DW, R1, FP, S_CTX);
	ky_bpf_map(&w->a, R2, w->p->next_map);
	ky_bpf_move_imm(&w->a, R3, 0);
	ky_bpf_call(&w->a, BPF_FUNC_tail_call);
}

void ky_content_write_messages(struct ky_content_writer *w, const struct ky_content_place *place)
{
	struct ky_bpf_asm *a = &w->a;
	int few = ky_bpf_label(a);

	/* Their number is an unsigned int; what the call returns was looked at. */
	if (place->output)
		ky_bpf_load(a, BPF_DW, R1, FP, S_RET);
	else
		ky_bpf_load(a, BPF_W, R1, FP, S_VALUE);
	ky_bpf_jump(a, BPF_JEQ, R1, 0, place->absent);
	ky_bpf_store(a, BPF_DW, R6, WALK(count), R1);
	ky_bpf_jump(a, BPF_JLE, R1, (int32_t)KY_CONTENT_MESSAGES_MAX, few);
	ky_bpf_move_imm(a, R1, (int32_t)KY_CONTENT_MESSAGES_MAX);
	ky_bpf_place(a, few);
	ky_bpf_store(a, BPF_DW, R6, WALK(left), R1);
	set_walk(w, WALK(pointer), S_POINTER);
	set_walk(w, WALK(id), S_ID);
	if (w->p->compat)
		set_walk(w, WALK(status), S_STATUS);
	ky_bpf_store_imm(a, BPF_DW, R6, WALK(at), FIRST_AT);
	ky_bpf_store_imm(a, BPF_DW, R6, WALK(is_exit), w->is_exit);
	ky_bpf_store_imm(a, BPF_DW, R6, WALK(place), (int32_t)place->number);
	ky_bpf_store_imm(a, BPF_DW, R6, WALK(faults), 0);
	ky_bpf_store_imm(a, BPF_DW, R6, WALK(wanted), place->output ? 0 : INT32_MAX);
	jump_to_next_program(w);
	ky_bpf_go(a, w->broken);
}

/* ---- the program ---------------------------------------------------------------------- */

/* The next message's struct mmsghdr goes to the walk. */
static void take_header(struct ky_content_writer *w, const struct layout *layout, int bad)
{
	struct ky_bpf_asm *a = &w->a;
	const struct {
		int16_t to, from;
		uint8_t size;
	} words[] = {
		{WALK(name), layout->name, layout->word},
		{WALK(name_len), layout->name_len, BPF_W},
		{WALK(vectors), layout->vectors, layout->word},
		{WALK(n_vectors), layout->n_vectors, layout->word},
		{WALK(len), layout->len, BPF_W},
	};

	ky_bpf_load(a, BPF_DW, R3, R6, WALK(pointer));
	read_to_stack(w, S_HEADER, layout->bytes, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, bad);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		ky_bpf_load(a, words[i].size, R1, FP, (int16_t)(S_HEADER + words[i].from));
		ky_bpf_store(a, BPF_DW, R6, words[i].to, R1);
	}
	ky_bpf_load(a, BPF_DW, R1, R6, WALK(pointer));
	ky_bpf_alu_imm(a, BPF_ADD, R1, layout->bytes);
	ky_bpf_store(a, BPF_DW, R6, WALK(pointer), R1);
}

/* r9 = the message in the record, at r8, with nothing in it yet. */
static void begin_message(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_move(a, R9, R7);
	ky_bpf_alu(a, BPF_ADD, R9, R8);
	ky_bpf_store_imm(a, BPF_DW, R9, MESSAGE(name_len), 0); /* and data_len */
	ky_bpf_store_imm(a, BPF_DW, R9, MESSAGE(bytes), 0);
	ky_bpf_store_imm(a, BPF_W, R9, MESSAGE(flags), 0);
	ky_bpf_load(a, BPF_DW, R1, R6, WALK(len));
	ky_bpf_store(a, BPF_W, R9, MESSAGE(len), R1);
}

static void get_walk(struct ky_content_writer *w, int16_t slot, int16_t member)
{
	ky_bpf_load(&w->a, BPF_DW, R1, R6, member);
	ky_bpf_store(&w->a, BPF_DW, FP, slot, R1);
}

static void note_fault(struct ky_content_writer *w)
{
	ky_bpf_store_imm(&w->a, BPF_DW, R6, WALK(faults), 1);
}

/* The address of the message; then r8 = where its content goes. */
static void take_name(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int none = ky_bpf_label(a);
	struct ky_content_place place = {.lead = (uint32_t)MESSAGE_BYTES,
					 .ok = ky_bpf_label(a),
					 .fault = ky_bpf_label(a),
					 .absent = none};

	get_walk(w, S_VALUE, WALK(name_len));
	get_walk(w, S_POINTER, WALK(name));
	ky_bpf_jump(a, BPF_JEQ, R1, 0, none);
	ky_content_write_bytes(w, &place, KY_CONTENT_SOCKADDR_BYTES);
	ky_bpf_place(a, place.fault);
	note_fault(w);
	ky_bpf_place(a, none);
	ky_bpf_move_imm(a, R5, 0);
	ky_bpf_place(a, place.ok);
	ky_bpf_store(a, BPF_W, R9, MESSAGE(name_len), R5);
	ky_bpf_alu_imm(a, BPF_ADD, R5, 7 + MESSAGE_BYTES);
	ky_bpf_alu_imm(a, BPF_AND, R5, -8);
	ky_bpf_alu(a, BPF_ADD, R8, R5);
	ky_bpf_store(a, BPF_DW, R6, WALK(data_at), R8);
}

/* What the message at r9 consists of, to r8. */
static void take_content(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int few = ky_bpf_label(a);
	const struct ky_content_place place = {
		.output = true, .ok = ky_bpf_label(a), .fault = ky_bpf_label(a)};

	get_walk(w, S_POINTER, WALK(vectors));
	get_walk(w, S_VALUE, WALK(n_vectors));
	ky_bpf_jump(a, BPF_JLE, R1, (int32_t)KY_CONTENT_MESSAGE_IOVECS, few);
	ky_bpf_store_imm(a, BPF_W, R9, MESSAGE(flags), KY_CONTENT_MESSAGE_LONGER);
	ky_bpf_place(a, few);
	ky_bpf_load(a, BPF_DW, R1, R6, WALK(len));
	ky_bpf_load(a, BPF_DW, R2, R6, WALK(wanted));
	ky_bpf_alu(a, BPF_OR, R1, R2);
	ky_bpf_store(a, BPF_DW, FP, S_RET, R1);
	ky_content_write_vectors(w, &place, KY_CONTENT_MESSAGE_IOVECS);
	ky_bpf_place(a, place.fault);
	note_fault(w);
	ky_bpf_move_imm(a, R5, 0);
	ky_bpf_store_imm(a, BPF_DW, FP, S_VALUE, 0);
	ky_bpf_place(a, place.ok);
	ky_bpf_store(a, BPF_W, R9, MESSAGE(data_len), R5);
	ky_bpf_load(a, BPF_DW, R1, FP, S_VALUE);
	ky_bpf_store(a, BPF_DW, R9, MESSAGE(bytes), R1);
	ky_bpf_alu_imm(a, BPF_ADD, R5, 7);
	ky_bpf_alu_imm(a, BPF_AND, R5, -8);
	ky_bpf_alu(a, BPF_ADD, R8, R5);
	ky_bpf_store(a, BPF_DW, R6, WALK(at), R8);
}

/* r8 = @member, which is @max at most. */
static void load_place(struct ky_content_writer *w, int16_t member, int32_t max, int end)
{
	ky_bpf_load(&w->a, BPF_DW, R8, R6, member);
	ky_bpf_jump(&w->a, BPF_JGT, R8, max, end);
}

/* r6 = the CPU's region, r7 = the record that is begun there. */
static void find_record(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;

	ky_bpf_store(a, BPF_DW, FP, S_CTX, R1);
	ky_bpf_call(a, BPF_FUNC_get_smp_processor_id);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R0);
	lookup(w, w->p->rings_map);
	ky_bpf_move(a, R6, R0);
	ky_bpf_load(a, BPF_DW, R1, R6, HEAD);
	ky_bpf_alu_imm(a, BPF_AND, R1, (int32_t)(w->p->data_bytes - 8));
	ky_bpf_move(a, R7, R6);
	ky_bpf_alu_imm(a, BPF_ADD, R7, KY_CONTENT_DATA_OFFSET);
	ky_bpf_alu(a, BPF_ADD, R7, R1);
	if (w->p->compat)
		get_walk(w, S_STATUS, WALK(status));
}

/* The part's header, and all that follows a record's last part. */
static void finish(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int no_faults = ky_bpf_label(a);

	ky_bpf_load(a, BPF_DW, R8, R6, WALK(at));
	ky_bpf_load(a, BPF_DW, R1, R6, WALK(place));
	ky_bpf_store(a, BPF_B, R7, HEADER_BYTES, R1);
	ky_bpf_load(a, BPF_DW, R2, R6, WALK(faults));
	ky_bpf_store(a, BPF_B, R7, HEADER_BYTES + 1, R2); /* KY_CONTENT_UNREADABLE */
	ky_bpf_store_imm(a, BPF_H, R7, HEADER_BYTES + 2, 0);
	ky_bpf_move(a, R3, R8);
	ky_bpf_alu_imm(a, BPF_SUB, R3, FIRST_AT);
	ky_bpf_store(a, BPF_W, R7, HEADER_BYTES + 4, R3);
	ky_bpf_load(a, BPF_DW, R3, R6, WALK(count));
	ky_bpf_store(a, BPF_DW, R7, HEADER_BYTES + 8, R3);
	ky_bpf_load(a, BPF_DW, R3, R6, WALK(is_exit));
	ky_bpf_jump(a, BPF_JNE, R3, 0, no_faults);
	get_walk(w, S_ID, WALK(id));
	ky_bpf_alu_imm(a, BPF_AND, R2, 1);
	ky_bpf_alu_imm(a, BPF_LSH, R2, KY_CONTENT_IN_B);
	ky_bpf_store(a, BPF_W, FP, S_FAULTS, R2);
	ky_bpf_store_imm(a, BPF_W, FP, S_ROOM, ANY_ROOM);
	ky_content_write_faults(w);
	ky_bpf_place(a, no_faults);
	ky_content_write_end(w);
}

static void write_program(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int next = ky_bpf_label(a), end = ky_bpf_label(a), bad = ky_bpf_label(a),
	    begin = ky_bpf_label(a), compat = ky_bpf_label(a);

	w->out = ky_bpf_label(a);
	find_record(w);
	ky_bpf_store_imm(a, BPF_DW, FP, S_TURN, 0);
	ky_bpf_place(a, next);
	ky_bpf_load(a, BPF_DW, R1, R6, WALK(left));
	ky_bpf_jump(a, BPF_JEQ, R1, 0, end);
	ky_bpf_alu_imm(a, BPF_SUB, R1, 1);
	ky_bpf_store(a, BPF_DW, R6, WALK(left), R1);
	load_place(w, WALK(at), LAST_AT, end);
	if (w->p->compat)
		jump_if_compat(w, compat);
	take_header(w, &native, bad);
	if (w->p->compat) {
		ky_bpf_go(a, begin);
		ky_bpf_place(a, compat);
		take_header(w, &of_32_bits, bad);
	}
	ky_bpf_place(a, begin);
	begin_message(w);
	take_name(w);
	load_place(w, WALK(data_at), LAST_AT + MESSAGE_BYTES + (int32_t)KY_CONTENT_SOCKADDR_BYTES,
		   end);
	take_content(w);
	ky_bpf_load(a, BPF_DW, R1, FP, S_TURN);
	ky_bpf_alu_imm(a, BPF_ADD, R1, 1);
	ky_bpf_store(a, BPF_DW, FP, S_TURN, R1);
	ky_bpf_jump(a, BPF_JLT, R1, TURNS, next);
	jump_to_next_program(w);
	ky_bpf_go(a, end);
	ky_bpf_place(a, bad);
	note_fault(w);
	ky_bpf_place(a, end);
	finish(w);
	ky_bpf_place(a, w->out);
	ky_bpf_move_imm(a, R0, 0);
	ky_bpf_exit(a);
}

int ky_content_load_messages(const struct ky_content_programs *programs, struct kymo_error *err)
{
	struct ky_content_writer w = {.p = programs};
	int fd;

	write_program(&w);
	fd = ky_bpf_load_program(&w.a, BPF_PROG_TYPE_RAW_TRACEPOINT, "kymo_messages", err);
	ky_bpf_asm_fini(&w.a);
	return fd;
}
