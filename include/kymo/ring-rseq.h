/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences for the ring: a few instructions that the kernel starts over when
 * their thread is preempted, migrated or gets a signal among them. All stores to a per-CPU
 * buffer are made inside such a sequence, the commit word being the last one, so nothing else
 * on this CPU comes between, and nothing is written late. Internal to kymo/ring.h.
 *
 * A sequence ends by clearing the thread's pointer to its descriptor: the kernel reads that
 * descriptor later, and it must not lie in a library that was unloaded meanwhile. In code that is
 * never unloaded (an executable, a library linked with -z nodelete), define KYMO_RING_STAYS: that
 * store costs more than it seems, for the next record has to store there again.
 */
#ifndef KYMO_RING_RSEQ_H
#define KYMO_RING_RSEQ_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/ring-layout.h>

/* Thread sanitizer does not see what assembler stores. KYMO_RING_NO_RSEQ: for tests, and for
 * who wants one code path everywhere. */
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

/* What one sequence does. The assembler knows these offsets. */
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
	uint32_t cpu;	      /* 80: where this must run */
};

/*
 * Each of these returns 0 when it was done, and 1 when nothing was: the thread is not on @cpu
 * any more, the head moved, or the sequence was interrupted.
 *
 *   kymo_ring_rseq_cpu(area): the CPU, or a number beyond all CPUs without registration
 *   kymo_ring_rseq_commit(area, commit): the moves, then the point, then the head
 *   kymo_ring_rseq_store(area, cpu, control, expected, other, to, header, header_bytes, from,
 *                        word, bytes, stamp, records): @other is the distance of the point that
 *     does not belong to @expected; header from a register (4 or 8 bytes), and
 *     payload of a constant size of which kymo_ring_rseq_can_store(bytes) holds; up to 8 bytes
 *     of it in @word, else at @from
 *   kymo_ring_rseq_count(area, cpu, counter): *counter += 1
 *
 * @area: where glibc put the thread's struct rseq, from the thread pointer.
 */
#if KYMO_RING_HAS_RSEQ
#if defined(__x86_64__)
#include <kymo/ring-rseq-x86-64.h>
#else
#include <kymo/ring-rseq-aarch64.h>
#endif

/* One sequence for each size of header and payload: all is straight on. Up to 8 bytes of payload
 * go through a register; operands that a size does not use are ones that are there anyway. */
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
