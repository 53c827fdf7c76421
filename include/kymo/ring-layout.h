/* SPDX-License-Identifier: MIT */
/*
 * What a ring file looks like: the memory that writers and readers share. kymo/ring.h is the
 * interface; docs/design/ring.md says why it is laid out like this.
 *
 *   file head | control block per buffer | sub-buffer slots per buffer | client's region | data
 *
 * Offsets stand in the file head, so that later versions may add to it. All numbers are in the
 * writer's byte order; a reader recognises the other one by the magic number. There is one
 * buffer per CPU and, behind them, one spare buffer, which is shared under a lock (a global
 * ring has the spare one alone).
 *
 * A POSITION counts the bytes of a buffer since its beginning, gaps at the ends of sub-buffers
 * included, and never goes back. Position p lies at p modulo the buffer's size.
 */
#ifndef KYMO_RING_LAYOUT_H
#define KYMO_RING_LAYOUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_RING_MAGIC	  UINT64_C(0x6b796d6f52696e67) /* "kymoRing" as a big-endian number */
#define KYMO_RING_VERSION 1u

#define KYMO_RING_SUBBUF_MIN_BYTES 512u
#define KYMO_RING_BUFFER_MIN_BYTES 4096u
#define KYMO_RING_BUFFER_MAX_BYTES (UINT64_C(1) << 30)
#define KYMO_RING_BUFFERS_MAX	   4096u  /* per-CPU ones; CPUs beyond use the spare buffer */
#define KYMO_RING_ALIGN_BYTES	   65536u /* of the file's parts: the largest page size in use */

/* How a ring works; chosen when it is made. */
enum kymo_ring_flag {
	KYMO_RING_OVERWRITE =
		1 << 0, /* the newest records stay; else new ones are discarded when full */
	KYMO_RING_GLOBAL = 1 << 1, /* one buffer for all CPUs, under a lock */
	KYMO_RING_LOCKED = 1 << 2, /* per-CPU buffers are written under locks: there is no rseq */
	KYMO_RING_FLAGS = (1 << 3) - 1,
};

/* Why a record was lost. */
enum kymo_ring_loss {
	KYMO_RING_LOST_FULL = 0,      /* no free sub-buffer: the consumer is behind */
	KYMO_RING_LOST_TOO_LARGE = 1, /* longer than a sub-buffer */
	KYMO_RING_LOST_NO_MEMORY = 2, /* the file system had no room for the next sub-buffer */
	KYMO_RING_LOST_BUSY = 3,      /* every buffer that could be used was locked by somebody */
	KYMO_RING_LOST_CLIENT = 4,    /* for the client's own causes: kymo_ring_count_loss() */
	KYMO_RING_LOSSES = 5,
	KYMO_RING_LOSSES_MAX = 8,
};

/* The beginning of the file. Nothing but the last lines changes once the magic number is there. */
struct kymo_ring_file {
	uint64_t magic; /* stored last: the rest is complete */
	uint32_t version;
	uint32_t flags;		      /* enum kymo_ring_flag */
	uint32_t n_buffers;	      /* per-CPU buffers; the spare one is number n_buffers */
	uint32_t n_subbufs;	      /* of each buffer, a power of two */
	uint64_t subbuf_bytes;	      /* a power of two */
	uint32_t subbuf_header_bytes; /* the client's, at the start of each sub-buffer */
	uint32_t clock;		      /* the client's number for its clock */
	uint32_t client;	 /* whose ring this is, in the client's words: its magic number */
	uint32_t page_bytes;	 /* of the writer's machine */
	uint64_t control_offset; /* struct kymo_ring_control [n_buffers + 1] */
	uint64_t slots_offset;	 /* struct kymo_ring_slot [n_buffers + 1][n_subbufs] */
	uint64_t client_offset;
	uint64_t client_bytes;
	uint64_t data_offset;
	uint64_t file_bytes;
	uint8_t reserved[96];

	/* A reader that sleeps: see kymo_ring_reader_wait(). */
	uint32_t waiting; /* 1: wake me at the next switch of a sub-buffer */
	uint32_t wakes;	  /* futex word: counts the switches that saw a waiter */
	uint8_t reserved_wait[56];

	/* Losses that belong to no buffer; enum kymo_ring_loss. */
	uint64_t lost[KYMO_RING_LOSSES_MAX];
};

#define KYMO_RING_POSITION_SHIFT 5
#define KYMO_RING_PARITY	 16u /* in a commit word */

/* State that is committed together with a position. */
struct kymo_ring_point {
	uint64_t stamp;	  /* of the last record, or of the sub-buffer's beginning */
	uint64_t records; /* written into this buffer so far */
};

/*
 * One buffer's control block. Four cache lines: what every record touches; what a switch of
 * sub-buffers touches; losses; the reader's.
 *
 * @head: the commit word: position << 5 | parity << 4. Everything below the position is complete.
 *   point[parity] belongs to it; a writer prepares the other one. So head and point change
 *   together, with one store. (The parity's bit is also the distance of the points in bytes.)
 * @claim: records below this position may be being overwritten. Stored before they are.
 */
struct kymo_ring_control {
	struct kymo_ring_point point[2];
	uint64_t head;
	uint64_t claim;
	uint64_t reserved_head[2];

	uint64_t owner; /* lock: thread id << 32 | PID namespace; 0: free */
	uint64_t ready; /* so many sub-buffers, from the first, have memory */
	uint64_t reserved_switch[6];

	uint64_t lost[KYMO_RING_LOSSES_MAX];

	uint64_t consumed; /* position, a multiple of a sub-buffer: below it all may be reused */
	uint64_t taken;	   /* position up to which the reader has handed out; >= consumed */
	struct kymo_ring_point taken_point;
	uint64_t taken_lost;
	uint64_t reserved_reader[3];
};

/* One sub-buffer: what is in it. Written when it is opened and again when it is closed. */
struct kymo_ring_slot {
	uint64_t start;		/* position of its first byte */
	uint64_t content_bytes; /* client's header and records; 0 while it is open */
	struct kymo_ring_point open;
	struct kymo_ring_point close;
	uint64_t open_lost; /* losses of this buffer so far, all causes */
	uint64_t close_lost;
};

#ifdef __cplusplus
}
#endif

#endif
