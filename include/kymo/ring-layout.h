/* SPDX-License-Identifier: MIT */
/*
 * The layout of a ring file: the memory that writers and readers share. kymo/ring.h is the
 * interface; docs/design/ring.md gives the reasons for the layout.
 *
 *   file head | control block per buffer | sub-buffer slots per buffer | client's region | data
 *
 * The file head contains all offsets, so that later versions can extend it. All numbers are in the
 * writer's byte order; a reader detects the other byte order by the magic number. The ring has one
 * buffer per CPU and, after them, one spare buffer, which writers share under a lock. A global ring
 * has only the spare buffer.
 *
 * A POSITION counts the bytes of a buffer since its creation, including gaps at the ends of
 * sub-buffers. It never decreases. Position p lies at p modulo the buffer's size.
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
#define KYMO_RING_BUFFERS_MAX \
	4096u /* per-CPU buffers; CPUs with higher numbers use the spare buffer */
#define KYMO_RING_ALIGN_BYTES 65536u /* of the file's parts: the largest page size in use */

/* The mode of a ring, which is fixed at its creation. */
enum kymo_ring_flag {
	KYMO_RING_OVERWRITE =
		1
		<< 0, /* new records overwrite the oldest; without it, a full ring discards new records */
	KYMO_RING_GLOBAL = 1 << 1, /* one buffer for all CPUs, under a lock */
	KYMO_RING_LOCKED = 1 << 2, /* writers lock per-CPU buffers, because rseq is not available */
	KYMO_RING_FLAGS = (1 << 3) - 1,
	/*
	 * Of options only: processes with and without rseq write to the ring. Those without use the
	 * spare buffer, if the kernel has rseq; else all lock.
	 */
	KYMO_RING_MIXED = 1 << 3,
};

/* The cause of a loss. */
enum kymo_ring_loss {
	KYMO_RING_LOST_FULL = 0,      /* no free sub-buffer: the consumer is too slow */
	KYMO_RING_LOST_TOO_LARGE = 1, /* the record is longer than a sub-buffer */
	KYMO_RING_LOST_NO_MEMORY = 2, /* the file system had no room for the next sub-buffer */
	KYMO_RING_LOST_BUSY = 3,      /* other writers held the locks of all usable buffers */
	KYMO_RING_LOST_CLIENT = 4,    /* a cause of the client: kymo_ring_count_loss() */
	KYMO_RING_LOSSES = 5,
	KYMO_RING_LOSSES_MAX = 8,
};

/* Whether a reader consumes the ring. A writer waits for room only while one does, or may come. */
enum kymo_ring_attended {
	KYMO_RING_UNATTENDED = 0, /* not yet */
	KYMO_RING_ATTENDED = 1,
	KYMO_RING_ABANDONED = 2, /* the reader reads nothing more */
};

/* What a sleeping reader waits for: bits of the file's word @waiting. */
enum kymo_ring_wake {
	KYMO_RING_WAKE_SWITCH = 1, /* a sub-buffer is closed */
	KYMO_RING_WAKE_RECORD = 2, /* the first record after an idle time is written */
	KYMO_RING_WAKES = 3,
};

/* The beginning of the file. After the magic number is stored, only the last members change. */
struct kymo_ring_file {
	uint64_t magic; /* stored last: the other members are then complete */
	uint32_t version;
	uint32_t flags;		      /* enum kymo_ring_flag */
	uint32_t n_buffers;	      /* per-CPU buffers; the spare one is number n_buffers */
	uint32_t n_subbufs;	      /* of each buffer, a power of two */
	uint64_t subbuf_bytes;	      /* a power of two */
	uint32_t subbuf_header_bytes; /* of the client's header at the start of each sub-buffer */
	uint32_t clock;		      /* the client's number for its clock */
	uint32_t client;	      /* the client's magic number for itself */
	uint32_t page_bytes;	      /* of the writer's machine */
	uint64_t control_offset;      /* struct kymo_ring_control [n_buffers + 1] */
	uint64_t slots_offset;	      /* struct kymo_ring_slot [n_buffers + 1][n_subbufs] */
	uint64_t client_offset;
	uint64_t client_bytes;
	uint64_t data_offset;
	uint64_t file_bytes;
	uint8_t reserved[96];

	/* The wait of a reader: see kymo_ring_reader_arm(). */
	uint32_t waiting; /* number of the request << 2 | enum kymo_ring_wake; 0: no reader waits */
	uint32_t wakes;	  /* futex word: counts the events that found a waiting reader */

	/* The wait of writers for room: see struct kymo_ring_wait. */
	uint32_t stalled;  /* 1: the next release of a sub-buffer must wake the writers */
	uint32_t releases; /* futex word: counts the releases that found waiting writers */
	uint32_t attended; /* enum kymo_ring_attended */
	uint8_t reserved_wait[44];

	/* Losses that belong to no buffer; enum kymo_ring_loss. */
	uint64_t lost[KYMO_RING_LOSSES_MAX];
};

#define KYMO_RING_POSITION_SHIFT 5
#define KYMO_RING_PARITY	 16u /* in a commit word */

/* State that is committed together with a position. */
struct kymo_ring_point {
	uint64_t stamp;	  /* of the last record, or of the sub-buffer's beginning */
	uint64_t records; /* number of records written into this buffer */
};

/*
 * One buffer's control block. It has four cache lines: the data of every record; the data of a
 * switch of sub-buffers; losses; the reader's data.
 *
 * @head: the commit word: position << 5 | parity << 4. All bytes below the position are complete.
 *	point[parity] belongs to the head; a writer prepares the other point. So one store changes
 *	head and point together. (The parity's bit is also the distance of the points in bytes.)
 * @claim: a writer may be overwriting records below this position. It stores the claim before it
 *	overwrites them.
 */
struct kymo_ring_control {
	struct kymo_ring_point point[2];
	uint64_t head;
	uint64_t claim;
	uint64_t reserved_head[2];

	uint64_t owner; /* lock: thread id << 32 | PID namespace; 0: free */
	uint64_t ready; /* number of sub-buffers, from the first, that have memory */
	uint64_t reserved_switch[6];

	uint64_t lost[KYMO_RING_LOSSES_MAX];

	uint64_t
		consumed; /* position, a multiple of a sub-buffer: writers may reuse everything below it */
	uint64_t taken; /* position up to which the reader has given out chunks; >= consumed */
	struct kymo_ring_point taken_point;
	uint64_t taken_lost;
	uint64_t reserved_reader[3];
};

/*
 * The description of one sub-buffer. A writer stores it at the sub-buffer's opening and again at
 * its closing.
 */
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
