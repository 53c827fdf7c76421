/* SPDX-License-Identifier: MIT */
/* What the files share that write the BPF programs of system calls' content. */
#ifndef KY_KERNEL_CONTENT_WRITER_H
#define KY_KERNEL_CONTENT_WRITER_H

#include <stddef.h>

#include "kernel/content/content-program.h"

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
	S_STATUS = -16,	 /* thread_info.status; with programs->compat, 0, or 2: a 32-bit call */
	S_REGS = -24,	 /* address of the registers */
	S_ID = -32,	 /* pid << 32 | tid */
	S_POINTER = -40, /* of the item in hand */
	S_VALUE = -48,
	S_LEN = -56,
	S_NUMBER = -64,
	S_MSG = -80, /* two words of a struct msghdr */
	S_RET = -88,
	S_LATE = -96,	   /* at exit: the places to be read again */
	S_CTX = -104,	   /* what the program was called with */
	S_TURN = -112,	   /* of those through messages */
	S_HEADER = -176,   /* a struct mmsghdr */
	S_UNPACKED = -184, /* not 0: the arguments are in S_BLOCK */
	S_BLOCK = -216,	   /* 32 bytes: what socketcall's second argument points at */
	S_KEPT = -224,	   /* from entry to exit: the faults, and S_ROOM */
	S_ROOM = -220,	   /* how long an address may be that the call returns: 32 bits */
};

/* S_ROOM, when it is not known. */
#define ANY_ROOM INT32_MAX

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

#define IOVECS_BYTES  (KY_CONTENT_IOVECS * 16)
#define HEADER_BYTES  ((uint32_t)sizeof(struct ky_content_record))
#define PART_BYTES    ((uint32_t)sizeof(struct ky_content_part))
#define HEAD	      ((int16_t)offsetof(struct ky_content_ring, head))
#define TAIL	      ((int16_t)offsetof(struct ky_content_ring, tail))
#define BUSY	      ((int16_t)offsetof(struct ky_content_ring, busy))
#define LOST	      ((int16_t)offsetof(struct ky_content_ring, lost))
#define LOST_CALLS    ((int16_t)offsetof(struct ky_content_ring, lost_calls))
#define SCRATCH	      ((int16_t)offsetof(struct ky_content_ring, scratch))
#define WALK(member)  ((int16_t)offsetof(struct ky_content_ring, walk.member))
#define FIELD(member) ((int16_t)offsetof(struct ky_content_record, member))

struct ky_content_writer {
	struct ky_bpf_asm a;
	const struct ky_content_programs *p;
	bool is_exit;
	int out, lost, broken; /* labels */
};

/* An item in hand, and where its code goes on. */
struct ky_content_place {
	unsigned int number;
	bool output;
	bool is_argument;	     /* which may be absent */
	uint32_t lead;		     /* content is so far behind r8 */
	uint32_t max;		     /* of its content */
	int fault, absent, ok, next; /* labels */
	int partial;		     /* r5 bytes were read, but not all could be */
};

static inline uint32_t up8(uint32_t n)
{
	return (n + 7) & ~7u;
}

static inline int16_t place_at(unsigned int place)
{
	return (int16_t)(place * 3);
}

/* r1 = FP + @at, r2 = @len; r3 is the address. */
static inline void read_to_stack(struct ky_content_writer *w, int32_t at, int32_t len,
				 int32_t helper)
{
	ky_bpf_move(&w->a, R1, FP);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R1, at);
	ky_bpf_move_imm(&w->a, R2, len);
	ky_bpf_call(&w->a, helper);
}

/* r1 = where the content of the item in hand goes. */
static inline void content_address(struct ky_content_writer *w,
				   const struct ky_content_place *place)
{
	ky_bpf_move(&w->a, R1, R7);
	ky_bpf_alu(&w->a, BPF_ADD, R1, R8);
	if (place->lead)
		ky_bpf_alu_imm(&w->a, BPF_ADD, R1, (int32_t)place->lead);
}

/* r0 = the element of @map for the 32-bit key in S_KEY; out when there is none. */
static inline void lookup(struct ky_content_writer *w, int map)
{
	ky_bpf_map(&w->a, R1, map);
	ky_bpf_move(&w->a, R2, FP);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R2, S_KEY);
	ky_bpf_call(&w->a, BPF_FUNC_map_lookup_elem);
	ky_bpf_jump(&w->a, BPF_JEQ, R0, 0, w->out);
}

/*
 * With programs->compat: to @label, when the call is one of 32 bits. The verifier shall not go through what
 * follows once for each kind of call: see the OR of ky_content_write_vectors(). r1 is lost.
 */
static inline void jump_if_compat(struct ky_content_writer *w, int label)
{
	ky_bpf_load(&w->a, BPF_DW, R1, FP, S_STATUS);
	ky_bpf_alu_imm(&w->a, BPF_OR, R1, 0);
	ky_bpf_jump(&w->a, BPF_JNE, R1, 0, label);
}

static inline void jump_unless_compat(struct ky_content_writer *w, int label)
{
	ky_bpf_load(&w->a, BPF_DW, R1, FP, S_STATUS);
	ky_bpf_alu_imm(&w->a, BPF_OR, R1, 0);
	ky_bpf_jump(&w->a, BPF_JEQ, R1, 0, label);
}

/* The longest content of one item, with limit @limit. */
uint32_t ky_content_part_max(uint32_t limit);
/* Of all messages of a call. */
uint32_t ky_content_messages_max(uint32_t limit);
/* Where vectors are copied to. */
uint32_t ky_content_iovecs_at(const struct ky_content_programs *p);

/* content-items.c: code for the item at place @number, which may be of @kinds. */
void ky_content_write_item(struct ky_content_writer *w, unsigned int number, unsigned int kinds);
/*
 * content-vectors.c: S_VALUE vectors at S_POINTER, of which @max at most are looked at: S_VALUE = the bytes of all, then,
 * where buffers are wanted, their contents, of output as much as S_RET says. Goes on as readers of items do.
 */
void ky_content_write_vectors(struct ky_content_writer *w, const struct ky_content_place *place,
			      uint32_t max);
/* The same of a struct msghdr's at S_POINTER, or its address. */
void ky_content_write_message(struct ky_content_writer *w, const struct ky_content_place *place);
void ky_content_write_message_name(struct ky_content_writer *w,
				   const struct ky_content_place *place);
/* S_POINTER, S_VALUE = the address of its name, and that one's length in the lower half. */
void ky_content_take_message_name(struct ky_content_writer *w,
				  const struct ky_content_place *place);
/* S_VALUE bytes from S_POINTER, or @max; of an address that was returned, what there was room for. */
void ky_content_write_bytes(struct ky_content_writer *w, const struct ky_content_place *place,
			    uint32_t max);
/* content-messages.c: go on with S_VALUE messages at S_POINTER in the program for them. */
void ky_content_write_messages(struct ky_content_writer *w, const struct ky_content_place *place);
/* At entry: S_ROOM of what the call will return, where it is overwritten with its length. */
void ky_content_write_room(struct ky_content_writer *w);
/* content-program.c: at entry, remember S_FAULTS: the call itself may bring the page in; and S_ROOM. */
void ky_content_write_faults(struct ky_content_writer *w);
/* The record is whole: r8 bytes. Goes out. */
void ky_content_write_end(struct ky_content_writer *w);
/*
 * content-multiplexed.c: a socketcall that stands for a call that is recorded becomes that one: S_NUMBER, S_KEY, S_UNPACKED,
 * S_BLOCK.
 */
void ky_content_write_unpack(struct ky_content_writer *w);
/* content-task.c: the ids of the thread, struct ky_thread_ids; ends as the readers of items do. */
void ky_content_write_ids(struct ky_content_writer *w, const struct ky_content_place *place);

#endif
