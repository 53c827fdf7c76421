/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences on x86-64; kymo/ring-rseq.h describes them. On x86-64, stores become
 * visible in program order, so the order of the instructions suffices.
 */
#ifndef KYMO_RING_RSEQ_H
#include <kymo/ring-rseq.h> /* which includes this file */
#elif !defined(KYMO_RING_RSEQ_X86_64_H) && KYMO_RING_HAS_RSEQ && defined(__x86_64__)
#define KYMO_RING_RSEQ_X86_64_H

/*
 * The sequence lies between labels 1: and 2:, its descriptor at 3:. An interrupted sequence
 * continues at 4:. The kernel requires the signature before 4:; the bytes before it make it an
 * undefined instruction. "?" puts both into the section group of their function, if any, so that
 * the linker drops duplicates of C++ inline functions as a whole.
 */
#define KYMO_RING_RSEQ_BEGIN                  \
	".pushsection __rseq_cs, \"aw?\"\n\t" \
	".balign 32\n"                        \
	"3:\n\t"                              \
	".long 0, 0\n\t"                      \
	".quad 1f, 2f - 1f, 4f\n\t"           \
	".popsection\n\t"                     \
	"leaq 3b(%%rip), %%rax\n\t"           \
	"movq %%rax, %%fs:8(%[area])\n"       \
	"1:\n\t"
#ifdef KYMO_RING_STAYS
#define KYMO_RING_RSEQ_CLEAR
#else
#define KYMO_RING_RSEQ_CLEAR "movq $0, %%fs:8(%[area])\n\t"
#endif
#define KYMO_RING_RSEQ_END                                                        \
	"2:\n\t" KYMO_RING_RSEQ_CLEAR ".pushsection kymo_rseq_abort, \"ax?\"\n\t" \
	".byte 0x0f, 0xb9, 0x3d\n\t"                                              \
	".long 0x53053053\n"                                                      \
	"4:\n\t"                                                                  \
	"jmp %l[not_done]\n\t"                                                    \
	".popsection\n\t"

static inline uint64_t kymo_ring_rseq_cpu(ptrdiff_t area)
{
	uint64_t cpu;

	__asm__ __volatile__("movl %%fs:4(%1), %k0" : "=r"(cpu) : "r"(area));
	return cpu;
}

static inline int kymo_ring_rseq_count(ptrdiff_t area, uint32_t cpu, uint64_t *counter)
{
	__asm__ __volatile__ goto(KYMO_RING_RSEQ_BEGIN "cmpl %[cpu], %%fs:4(%[area])\n\t"
						       "jne %l[not_done]\n\t"
						       "incq (%[counter])\n" KYMO_RING_RSEQ_END
				  :
				  : [area] "r"(area), [cpu] "r"(cpu), [counter] "r"(counter)
				  : "rax", "memory", "cc"
				  : not_done);
	return 0;
not_done:
	return 1;
}

static inline int kymo_ring_rseq_commit(ptrdiff_t area, const struct kymo_ring_commit *commit)
{
	__asm__ __volatile__ goto(KYMO_RING_RSEQ_BEGIN
				  "movl 80(%[commit]), %%eax\n\t"
				  "cmpl %%eax, %%fs:4(%[area])\n\t"
				  "jne %l[not_done]\n\t"
				  "movq 0(%[commit]), %%rdx\n\t"
				  "movq 8(%[commit]), %%rax\n\t"
				  "cmpq %%rax, (%%rdx)\n\t"
				  "jne %l[not_done]\n\t"
				  /* The claim. */
				  "movq 64(%[commit]), %%rdi\n\t"
				  "testq %%rdi, %%rdi\n\t"
				  "jz 5f\n\t"
				  "movq 72(%[commit]), %%rax\n\t"
				  "movq %%rax, (%%rdi)\n"
				  "5:\n\t"
				  "movq 48(%[commit]), %%r8\n\t"
				  "movq 56(%[commit]), %%r9\n"
				  /* Each move: 8 bytes at a time, then 4, 2, 1. */
				  "6:\n\t"
				  "cmpq %%r9, %%r8\n\t"
				  "je 12f\n\t"
				  "movq 0(%%r8), %%rdi\n\t"
				  "movq 8(%%r8), %%rsi\n\t"
				  "movq 16(%%r8), %%rcx\n\t"
				  "addq $24, %%r8\n\t"
				  "cmpq $256, %%rcx\n\t"
				  "jae 11f\n\t"
				  "subq $8, %%rcx\n\t"
				  "jb 8f\n"
				  "7:\n\t"
				  "movq (%%rsi), %%rax\n\t"
				  "movq %%rax, (%%rdi)\n\t"
				  "addq $8, %%rsi\n\t"
				  "addq $8, %%rdi\n\t"
				  "subq $8, %%rcx\n\t"
				  "jae 7b\n"
				  "8:\n\t"
				  "testb $4, %%cl\n\t"
				  "jz 9f\n\t"
				  "movl (%%rsi), %%eax\n\t"
				  "movl %%eax, (%%rdi)\n\t"
				  "addq $4, %%rsi\n\t"
				  "addq $4, %%rdi\n"
				  "9:\n\t"
				  "testb $2, %%cl\n\t"
				  "jz 10f\n\t"
				  "movzwl (%%rsi), %%eax\n\t"
				  "movw %%ax, (%%rdi)\n\t"
				  "addq $2, %%rsi\n\t"
				  "addq $2, %%rdi\n"
				  "10:\n\t"
				  "testb $1, %%cl\n\t"
				  "jz 6b\n\t"
				  "movzbl (%%rsi), %%eax\n\t"
				  "movb %%al, (%%rdi)\n\t"
				  "jmp 6b\n"
				  "11:\n\t"
				  "rep movsb\n\t"
				  "jmp 6b\n"
				  /* The point, and the commit. */
				  "12:\n\t"
				  "movq 24(%[commit]), %%rdi\n\t"
				  "movq 32(%[commit]), %%rax\n\t"
				  "movq %%rax, (%%rdi)\n\t"
				  "movq 40(%[commit]), %%rax\n\t"
				  "movq %%rax, 8(%%rdi)\n\t"
				  "movq 16(%[commit]), %%rax\n\t"
				  "movq %%rax, (%%rdx)\n" KYMO_RING_RSEQ_END
				  :
				  : [area] "r"(area), [commit] "r"(commit)
				  : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "memory", "cc"
				  : not_done);
	return 0;
not_done:
	return 1;
}

/*
 * The short form: one sequence per size of header and payload, without branches for sizes. @put
 * stores the header, @copy the payload after it; @bytes is their length. The form has few operands,
 * because the compiler must save a register for each.
 */
#define KYMO_RING_STORE(put, copy, bytes, memory_, word_)                                         \
	__asm__ __volatile__ goto(KYMO_RING_RSEQ_BEGIN                                            \
				  "cmpl %k[cpu], %%fs:4(%[area])\n\t"                             \
				  "jne %l[not_done]\n\t"                                          \
				  "cmpq %[expected], 32(%[control])\n\t"                          \
				  "jne %l[not_done]\n\t" put copy                                 \
				  "movq %[stamp], (%[control], %[other])\n\t"                     \
				  "movq %[records], 8(%[control], %[other])\n\t"                  \
				  "leaq 32*(" #bytes ")(%[expected]), %%rax\n\t"                  \
				  "xorq $16, %%rax\n\t"                                           \
				  "movq %%rax, 32(%[control])\n" KYMO_RING_RSEQ_END               \
				  :                                                               \
				  : [area] "r"(area), [cpu] "r"(cpu), [control] "r"(control),     \
				    [expected] "r"(expected), [to] "r"(to), [header] "r"(header), \
				    [from] "r"(memory_), [value] "r"(word_), [stamp] "r"(stamp),  \
				    [records] "r"(records), [other] "r"(other)                    \
				  : "rax", "memory", "cc"                                         \
				  : not_done)

#define KYMO_RING_COPY8(at, n)             \
	"movq " #at "(%[from]), %%rax\n\t" \
	"movq %%rax, " #at "+" #n "(%[to])\n\t"
#define KYMO_RING_COPY4(at, n)             \
	"movl " #at "(%[from]), %%eax\n\t" \
	"movl %%eax, " #at "+" #n "(%[to])\n\t"
#define KYMO_RING_COPY_0(n)
#define KYMO_RING_COPY_4(n)  "movl %k[value], " #n "(%[to])\n\t"
#define KYMO_RING_COPY_8(n)  "movq %[value], " #n "(%[to])\n\t"
#define KYMO_RING_COPY_12(n) KYMO_RING_COPY8(0, n) KYMO_RING_COPY4(8, n)
#define KYMO_RING_COPY_16(n) KYMO_RING_COPY8(0, n) KYMO_RING_COPY8(8, n)
#define KYMO_RING_COPY_20(n) KYMO_RING_COPY_16(n) KYMO_RING_COPY4(16, n)
#define KYMO_RING_COPY_24(n) KYMO_RING_COPY_16(n) KYMO_RING_COPY8(16, n)

#define KYMO_RING_PUT4 "movl %k[header], (%[to])\n\t"
#define KYMO_RING_PUT8 "movq %[header], (%[to])\n\t"

#endif
