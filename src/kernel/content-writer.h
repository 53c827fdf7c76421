/* SPDX-License-Identifier: MIT */
/* What the files share that write the BPF programs of system calls' content. */
#ifndef KY_KERNEL_CONTENT_WRITER_H
#define KY_KERNEL_CONTENT_WRITER_H

#include <stddef.h>

#include "kernel/content-program.h"

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
#define LOST_CALLS    ((int16_t)offsetof(struct ky_content_ring, lost_calls))
#define SCRATCH	      ((int16_t)offsetof(struct ky_content_ring, scratch))
#define FIELD(member) ((int16_t)offsetof(struct ky_content_record, member))

struct ky_content_writer {
	struct ky_bpf_asm a;
	const struct ky_content_programs *p;
	bool is_exit;
	int out, lost, broken; /* labels */
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
static inline void content_address(struct ky_content_writer *w)
{
	ky_bpf_move(&w->a, R1, R7);
	ky_bpf_alu(&w->a, BPF_ADD, R1, R8);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R1, (int32_t)PART_BYTES);
}

/* The longest content of one item, with limit @limit. */
uint32_t ky_content_part_max(uint32_t limit);
/* Where vectors are copied to. */
uint32_t ky_content_iovecs_at(const struct ky_content_programs *p);

/* content-items.c: code for the item at place @number, which may be of @kinds. */
void ky_content_write_item(struct ky_content_writer *w, unsigned int number, unsigned int kinds);
/* content-task.c: the ids of the thread, struct ky_thread_ids; ends as the readers of items do. */
void ky_content_write_ids(struct ky_content_writer *w);

#endif
