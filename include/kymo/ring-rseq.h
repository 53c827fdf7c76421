/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences for the ring. A sequence is a few instructions that the kernel aborts when
 * it preempts or migrates their thread, or delivers a signal to it. Writers store into a per-CPU
 * buffer only inside such a sequence, and store the commit word last. So no other thread on this
 * CPU can interfere, and no store happens late. Internal to kymo/ring.h.
 *
 * A sequence ends by clearing the thread's pointer to the sequence's descriptor. The kernel reads
 * that descriptor later, and it must not lie in a library that was unloaded in the meantime. Code
 * that is never unloaded (an executable, a library linked with -z nodelete) should define
 * KYMO_RING_STAYS, which leaves out the store. The store is expensive, because the next record must
 * then store the pointer again.
 */
#ifndef KYMO_RING_RSEQ_H
#define KYMO_RING_RSEQ_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/ring-layout.h>

/*
 * Thread sanitizer does not see the stores of the assembler. KYMO_RING_NO_RSEQ is for tests, and
 * for programs that want the same code path on all machines.
 */
#if defined(__SANITIZE_THREAD__) || defined(KYMO_RING_NO_RSEQ)
#define KYMO_RING_HAS_RSEQ 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KYMO_RING_HAS_RSEQ 0
#endif
#endif
#ifndef KYMO_RING_HAS_RSEQ
#if (defined(__x86_64__) && !defined(__ILP32__)) || \
	(defined(__aarch64__) && !defined(__ILP32__) && defined(__AARCH64EL__))
#define KYMO_RING_HAS_RSEQ 1
#else
#define KYMO_RING_HAS_RSEQ 0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of memory to copy inside the sequence. */
struct kymo_ring_move {
	void *to;
	const void *from;
	uint64_t bytes;
};

/* The parameters of one sequence. The assembler relies on these offsets. */
struct kymo_ring_commit {
	uint64_t *head; /* 0: goes from @expected ... */
	uint64_t expected;
	uint64_t next;				/* 16: ... to @next, when all else is done */
	struct kymo_ring_point *point;		/* 24: gets @point_value */
	struct kymo_ring_point point_value;	/* 32 */
	const struct kymo_ring_move *moves;	/* 48 */
	const struct kymo_ring_move *moves_end; /* 56 */
	uint64_t *claim;      /* 64: NULL, or gets @claim_value before anything else is stored */
	uint64_t claim_value; /* 72 */
	uint32_t cpu;	      /* 80: the CPU on which the sequence must run */
};

/*
 * Each sequence returns 0 when it is done, and 1 when it has stored nothing: the thread is not on
 * @cpu any more, the head moved, or the kernel aborted the sequence.
 *
 *   kymo_ring_rseq_cpu(area): the CPU; without registration, a number above all CPUs
 *   kymo_ring_rseq_commit(area, commit): the moves, then the point, then the head
 *   kymo_ring_rseq_store(area, cpu, control, expected, other, to, header, header_bytes, from,
 *                        word, bytes, stamp, records): stores a header from a register (4 or 8
 *     bytes) and a payload of a constant size for which kymo_ring_rseq_can_store() is true. Up to
 *     8 bytes of payload come in @word, longer ones lie at @from. @other is the distance of the
 *     point that does not belong to @expected.
 *   kymo_ring_rseq_count(area, cpu, counter): *counter += 1
 *
 * @area: the offset of glibc's struct rseq from the thread pointer.
 */
#if KYMO_RING_HAS_RSEQ
#if defined(__x86_64__)
#include <kymo/ring-rseq-x86-64.h>
#else
#include <kymo/ring-rseq-aarch64.h>
#endif

/*
 * One sequence for each size of header and payload, without branches for sizes. Up to 8 bytes of
 * payload go through a register. For an operand that a size does not use, the macro passes another
 * operand again.
 */
#define KYMO_RING_STORE_SIZES(put, n)                                          \
	switch (bytes) {                                                       \
	case 0:                                                                \
		KYMO_RING_STORE(put, KYMO_RING_COPY_0(n), 0 + n, to, cpu);     \
		break;                                                         \
	case 4:                                                                \
		KYMO_RING_STORE(put, KYMO_RING_COPY_4(n), 4 + n, to, word);    \
		break;                                                         \
	case 8:                                                                \
		KYMO_RING_STORE(put, KYMO_RING_COPY_8(n), 8 + n, to, word);    \
		break;                                                         \
	case 12:                                                               \
		KYMO_RING_STORE(put, KYMO_RING_COPY_12(n), 12 + n, from, cpu); \
		break;                                                         \
	case 16:                                                               \
		KYMO_RING_STORE(put, KYMO_RING_COPY_16(n), 16 + n, from, cpu); \
		break;                                                         \
	case 20:                                                               \
		KYMO_RING_STORE(put, KYMO_RING_COPY_20(n), 20 + n, from, cpu); \
		break;                                                         \
	default:                                                               \
		KYMO_RING_STORE(put, KYMO_RING_COPY_24(n), 24 + n, from, cpu); \
		break;                                                         \
	}

static inline int kymo_ring_rseq_can_store(uint32_t header_bytes, uint64_t bytes)
{
	return (header_bytes == 4 || header_bytes == 8) && bytes % 4 == 0 && bytes <= 24;
}

static inline __attribute__((always_inline)) int
kymo_ring_rseq_store(ptrdiff_t area, uint64_t cpu, struct kymo_ring_control *control,
		     uint64_t expected, uint64_t other, void *to, uint64_t header,
		     uint32_t header_bytes, const void *from, uint64_t word, uint64_t bytes,
		     uint64_t stamp, uint64_t records)
{
	if (header_bytes == 4) {
		KYMO_RING_STORE_SIZES(KYMO_RING_PUT4, 4)
	} else {
		KYMO_RING_STORE_SIZES(KYMO_RING_PUT8, 8)
	}
	return 0;
not_done:
	return 1;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
