/* SPDX-License-Identifier: MIT */
/*
 * The straight path by hand: what kymo_ring_find_spot() and kymo_ring_write_spot() do, for a record
 * of 12 bytes, LTTng's compact header and a 64-bit number. What costs here is the number of
 * instructions, besides the clock's own time; compilers need a quarter more, for they save registers
 * and bring values where they want them.
 */
#ifndef KY_TRACER_STRAIGHT_X86_64_H
#define KY_TRACER_STRAIGHT_X86_64_H

#include <kymo/ring.h>

#include "abi/control.h"
#include "tracer/tracer.h"

#define STRAIGHT_BYTES 12

/* On @cpu, which has a buffer. False: not done, for any reason. */
static inline __attribute__((always_inline)) bool
straight_write(const struct ky_reservation *reservation, ptrdiff_t area, uint64_t cpu,
	       uint64_t value)
{
	__asm__ __volatile__ goto(
		/* rcx: the control block */
		"movq %[cpu], %%rcx\n\t"
		"shlq $8, %%rcx\n\t"
		"addq %c[control](%[reservation]), %%rcx\n\t"
		/* rdx: the time; it comes before the head, see ring.md */
		"rdtsc\n\t"
		"shlq $32, %%rdx\n\t"
		"orq %%rax, %%rdx\n\t"
		/* r11: the head */
		"movq 32(%%rcx), %%r11\n\t"
		/* Less than 2^27 after the last record, and not before it? */
		"movl %%r11d, %%eax\n\t"
		"andl $16, %%eax\n\t"
		"movq (%%rcx, %%rax), %%rax\n\t"
		"subq %%rdx, %%rax\n\t"
		"cmpq $-0x8000000, %%rax\n\t"
		"jb %l[not_done]\n\t"
		/* Does it fit? */
		"movq %%r11, %%r10\n\t"
		"shrq $5, %%r10\n\t"
		"leaq -1(%%r10), %%rax\n\t"
		"andq %c[subbuf_mask](%[reservation]), %%rax\n\t"
		"cmpq %c[room](%[reservation]), %%rax\n\t"
		"ja %l[not_done]\n\t"
		/* r10: the place */
		"andq %c[buffer_mask](%[reservation]), %%r10\n\t"
		"addq %c[data](%[reservation]), %%r10\n\t"
		"movq %[cpu], %%rax\n\t"
		"imulq %c[buffer_bytes](%[reservation]), %%rax\n\t"
		"addq %%rax, %%r10\n\t"
		/* What is behind it may be in the reader's cache. */
		"prefetchw 512(%%r10)\n\t"
		/* Is the session on? */
		"movq %c[asked](%[reservation]), %%rax\n\t"
		"movq (%%rax), %%rax\n\t"
		"cmpq %c[cookie](%[reservation]), %%rax\n\t"
		"jne %l[not_done]\n\t"
		/* As in ring-rseq-x86-64.h. */
		KYMO_RING_RSEQ_BEGIN "cmpl %k[cpu], %%fs:4(%[area])\n\t"
		"jne %l[not_done]\n\t"
		"cmpq %%r11, 32(%%rcx)\n\t"
		"jne %l[not_done]\n\t"
		"movl %%edx, %%eax\n\t"
		"shll $5, %%eax\n\t"
		"orl %c[id](%[reservation]), %%eax\n\t"
		"movl %%eax, (%%r10)\n\t"
		"movq %[value], 4(%%r10)\n\t"
		/* The other point: the time, one record more. */
		"movl %%r11d, %%r10d\n\t"
		"andl $16, %%r10d\n\t"
		"movq 8(%%rcx, %%r10), %%rax\n\t"
		"xorl $16, %%r10d\n\t"
		"incq %%rax\n\t"
		"movq %%rdx, (%%rcx, %%r10)\n\t"
		"movq %%rax, 8(%%rcx, %%r10)\n\t"
		"addq $32 * %c[bytes], %%r11\n\t"
		"xorq $16, %%r11\n\t"
		"movq %%r11, 32(%%rcx)\n" KYMO_RING_RSEQ_END
		:
		: [reservation] "r"(reservation), [area] "r"(area), [cpu] "r"(cpu),
		  [value] "r"(value), [control] "i"(offsetof(struct ky_reservation, ring.control)),
		  [subbuf_mask] "i"(offsetof(struct ky_reservation, ring.subbuf_mask)),
		  [room] "i"(offsetof(struct ky_reservation, room)),
		  [buffer_mask] "i"(offsetof(struct ky_reservation, ring.buffer_mask)),
		  [data] "i"(offsetof(struct ky_reservation, ring.data)),
		  [buffer_bytes] "i"(offsetof(struct ky_reservation, ring.buffer_bytes)),
		  [asked] "i"(offsetof(struct ky_reservation, asked_cookie)),
		  [cookie] "i"(offsetof(struct ky_reservation, cookie)),
		  [id] "i"(offsetof(struct ky_reservation, id)), [bytes] "i"(STRAIGHT_BYTES)
		: "rax", "rcx", "rdx", "r10", "r11", "memory", "cc"
		: not_done);
	return true;
not_done:
	return false;
}

#endif
