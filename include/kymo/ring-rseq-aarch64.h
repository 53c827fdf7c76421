/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences on aarch64; kymo/ring-rseq.h describes them.
 *
 * Other CPUs may see plain stores in any order. Therefore a barrier follows the claim (a snapshot
 * must not see new bytes below an old claim). The head is stored with store-release (a reader that
 * sees the head also sees the record). The point is stored with store-release, too (a reader that
 * still sees the old head must not see the new point).
 */
#ifndef KYMO_RING_RSEQ_H
#include <kymo/ring-rseq.h> /* which includes this file */
#elif !defined(KYMO_RING_RSEQ_AARCH64_H) && KYMO_RING_HAS_RSEQ && defined(__aarch64__)
#define KYMO_RING_RSEQ_AARCH64_H

/* As on x86-64. The signature is an instruction: brk #0x45e0. */
#define KYMO_RING_RSEQ_BEGIN                  \
	".pushsection __rseq_cs, \"aw?\"\n\t" \
	".balign 32\n"                        \
	"3:\n\t"                              \
	".long 0, 0\n\t"                      \
	".quad 1f, 2f - 1f, 4f\n\t"           \
	".popsection\n\t"                     \
	"adrp x9, 3b\n\t"                     \
	"add x9, x9, :lo12:3b\n\t"            \
	"str x9, [%[self], #8]\n"             \
	"1:\n\t"
#ifdef KYMO_RING_STAYS
#define KYMO_RING_RSEQ_CLEAR
#else
#define KYMO_RING_RSEQ_CLEAR "str xzr, [%[self], #8]\n\t"
#endif
#define KYMO_RING_RSEQ_END                                                        \
	"2:\n\t" KYMO_RING_RSEQ_CLEAR ".pushsection kymo_rseq_abort, \"ax?\"\n\t" \
	".inst 0xd428bc00\n"                                                      \
	"4:\n\t"                                                                  \
	"b %l[not_done]\n\t"                                                      \
	".popsection\n\t"
#define KYMO_RING_RSEQ_ON_CPU       \
	"ldr w9, [%[self], #4]\n\t" \
	"cmp w9, %w[cpu]\n\t"       \
	"b.ne %l[not_done]\n\t"

static inline char *kymo_ring_rseq_self(ptrdiff_t area)
{
	return (char *)__builtin_thread_pointer() + area;
}

static inline uint64_t kymo_ring_rseq_cpu(ptrdiff_t area)
{
	return *(volatile uint32_t *)(kymo_ring_rseq_self(area) + 4);
}

static inline int kymo_ring_rseq_count(ptrdiff_t area, uint32_t cpu, uint64_t *counter)
{
	__asm__ __volatile__ goto(
		KYMO_RING_RSEQ_BEGIN KYMO_RING_RSEQ_ON_CPU
		"ldr x9, [%[counter]]\n\t"
		"add x9, x9, #1\n\t"
		"str x9, [%[counter]]\n" KYMO_RING_RSEQ_END
		:
		: [self] "r"(kymo_ring_rseq_self(area)), [cpu] "r"(cpu), [counter] "r"(counter)
		: "x9", "memory", "cc"
		: not_done);
	return 0;
not_done:
	return 1;
}

static inline int kymo_ring_rseq_commit(ptrdiff_t area, const struct kymo_ring_commit *commit)
{
	__asm__ __volatile__ goto(KYMO_RING_RSEQ_BEGIN KYMO_RING_RSEQ_ON_CPU
				  "ldp x10, x11, [%[commit]]\n\t"
				  "ldr x9, [x10]\n\t"
				  "cmp x9, x11\n\t"
				  "b.ne %l[not_done]\n\t"
				  /* The claim. */
				  "ldp x9, x11, [%[commit], #64]\n\t"
				  "cbz x9, 5f\n\t"
				  "str x11, [x9]\n\t"
				  "dmb ishst\n"
				  "5:\n\t"
				  "ldp x11, x12, [%[commit], #48]\n"
				  /* Each move: 8 bytes at a time, then 4, 2, 1. */
				  "6:\n\t"
				  "cmp x11, x12\n\t"
				  "b.eq 12f\n\t"
				  "ldp x13, x14, [x11]\n\t"
				  "ldr x15, [x11, #16]\n\t"
				  "add x11, x11, #24\n\t"
				  "subs x15, x15, #8\n\t"
				  "b.lo 8f\n"
				  "7:\n\t"
				  "ldr x9, [x14], #8\n\t"
				  "str x9, [x13], #8\n\t"
				  "subs x15, x15, #8\n\t"
				  "b.hs 7b\n"
				  "8:\n\t"
				  "tbz x15, #2, 9f\n\t"
				  "ldr w9, [x14], #4\n\t"
				  "str w9, [x13], #4\n"
				  "9:\n\t"
				  "tbz x15, #1, 10f\n\t"
				  "ldrh w9, [x14], #2\n\t"
				  "strh w9, [x13], #2\n"
				  "10:\n\t"
				  "tbz x15, #0, 6b\n\t"
				  "ldrb w9, [x14]\n\t"
				  "strb w9, [x13]\n\t"
				  "b 6b\n"
				  /* The point, and the commit. */
				  "12:\n\t"
				  "ldp x11, x12, [%[commit], #24]\n\t"
				  "stlr x12, [x11]\n\t"
				  "add x11, x11, #8\n\t"
				  "ldr x12, [%[commit], #40]\n\t"
				  "stlr x12, [x11]\n\t"
				  "ldr x9, [%[commit], #16]\n\t"
				  "stlr x9, [x10]\n" KYMO_RING_RSEQ_END
				  :
				  : [self] "r"(kymo_ring_rseq_self(area)), [commit] "r"(commit),
				    [cpu] "r"(commit->cpu)
				  : "x9", "x10", "x11", "x12", "x13", "x14", "x15", "memory", "cc"
				  : not_done);
	return 0;
not_done:
	return 1;
}

/* The short form. @put stores the header, @copy the payload after it; @bytes is their length. */
#define KYMO_RING_STORE(put, copy, bytes, memory_, word_)                                        \
	__asm__ __volatile__ goto(                                                               \
		KYMO_RING_RSEQ_BEGIN KYMO_RING_RSEQ_ON_CPU                                       \
		"ldr x9, [%[control], #32]\n\t"                                                  \
		"cmp x9, %[expected]\n\t"                                                        \
		"b.ne %l[not_done]\n\t" put copy "add x9, %[control], %[other]\n\t"              \
		"stlr %[stamp], [x9]\n\t"                                                        \
		"add x9, x9, #8\n\t"                                                             \
		"stlr %[records], [x9]\n\t"                                                      \
		"add x9, %[expected], #32*(" #bytes ")\n\t"                                      \
		"eor x9, x9, #16\n\t"                                                            \
		"add x10, %[control], #32\n\t"                                                   \
		"stlr x9, [x10]\n" KYMO_RING_RSEQ_END                                            \
		:                                                                                \
		: [self] "r"(kymo_ring_rseq_self(area)), [cpu] "r"(cpu), [control] "r"(control), \
		  [expected] "r"(expected), [to] "r"(to), [header] "r"(header),                  \
		  [from] "r"(memory_), [value] "r"(word_), [stamp] "r"(stamp),                   \
		  [records] "r"(records), [other] "r"(other)                                     \
		: "x9", "x10", "memory", "cc"                                                    \
		: not_done)

#define KYMO_RING_COPY8(at, n)            \
	"ldr x9, [%[from], #" #at "]\n\t" \
	"stur x9, [%[to], #" #at "+" #n "]\n\t"
#define KYMO_RING_COPY4(at, n)            \
	"ldr w9, [%[from], #" #at "]\n\t" \
	"stur w9, [%[to], #" #at "+" #n "]\n\t"
#define KYMO_RING_COPY_0(n)
#define KYMO_RING_COPY_4(n)  "stur %w[value], [%[to], #" #n "]\n\t"
#define KYMO_RING_COPY_8(n)  "stur %[value], [%[to], #" #n "]\n\t"
#define KYMO_RING_COPY_12(n) KYMO_RING_COPY8(0, n) KYMO_RING_COPY4(8, n)
#define KYMO_RING_COPY_16(n) KYMO_RING_COPY8(0, n) KYMO_RING_COPY8(8, n)
#define KYMO_RING_COPY_20(n) KYMO_RING_COPY_16(n) KYMO_RING_COPY4(16, n)
#define KYMO_RING_COPY_24(n) KYMO_RING_COPY_16(n) KYMO_RING_COPY8(16, n)

#define KYMO_RING_PUT4 "str %w[header], [%[to]]\n\t"
#define KYMO_RING_PUT8 "str %[header], [%[to]]\n\t"

#endif
