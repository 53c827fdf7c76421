/* SPDX-License-Identifier: MIT */
/*
 * A ring buffer in shared memory, for records of any kind: written by any number of threads,
 * processes and signal handlers at once, for about the price of reading the clock; read by
 * another process, or after the writers died. docs/design/ring.md has guarantees and proofs.
 *
 * In short:
 *
 * - A ring is ONE file (memfd, tmpfs or disk), which describes itself. It has a buffer per CPU (or
 *   one for all), divided into sub-buffers. A record lies in one sub-buffer as a whole.
 * - Writing never waits and never takes a system call, except at the first use of a sub-buffer, and
 *   to wake a reader that asked for it. It may be done in signal handlers, in nested ones, in
 *   forked children, in any thread.
 * - What was written is complete at once: a writer that is killed at any instruction leaves
 *   every record before this one whole, and nothing of this one.
 * - What is lost is counted, exactly, by cause.
 * - The client defines the header of a record, that of a sub-buffer, and the clock, in a CONSTANT
 *   struct kymo_ring_config. The functions here are inline, so each client has its own fast
 *   path with all of it compiled in. Compile with optimisation, or it is only correct.
 *
 * A writer:                                          A reader, usually in another process:
 *
 *   struct kymo_ring_writer w;                         struct kymo_ring_reader *r;
 *   kymo_ring_create(&w, fd, &config, &options);       kymo_ring_reader_open(&r, fd, &o, &err);
 *   kymo_ring_write(&config, &w, &id, &value, 8);      while (kymo_ring_reader_next(r, i, ...) > 0) {
 *                                                              ... chunk.body, chunk.body_bytes ...
 *                                                              kymo_ring_reader_release(r, &chunk);
 *                                                      }
 *
 * Writers (what stands up to "Reading" below) need libc alone, allocate nothing, and use only
 * system calls that are safe in signal handlers; errno is kept. 64-bit machines.
 */
#ifndef KYMO_RING_H
#define KYMO_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kymo/error.h>
#include <kymo/ring-layout.h>
#include <kymo/ring-rseq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 32 sub-buffers of 128 KiB, 4 MiB per CPU that is used: at 10 million records of 12 bytes per
 * second and CPU, a consumer may be away for 35 ms. */
#define KYMO_RING_DEFAULT_SUBBUF_BYTES 131072u
#define KYMO_RING_DEFAULT_SUBBUFS      32u

#define KYMO_RING_HEADER_MAX_BYTES	  16u  /* of a record */
#define KYMO_RING_SUBBUF_HEADER_MAX_BYTES 256u /* of a sub-buffer */
#define KYMO_RING_PARTS_MAX		  16u  /* pieces of one record */

/* ---- what the client defines ---- */

/* Where a record is about to be written. */
struct kymo_ring_spot {
	uint64_t head;	   /* the commit word that this was derived from */
	uint64_t now;	   /* the record's stamp; never before @last */
	uint64_t last;	   /* stamp of the record before it, or of the sub-buffer's beginning */
	uint64_t at_bytes; /* where the record starts in its sub-buffer */
	uint64_t records;  /* so many were written into this buffer before */
	uint64_t buffer;   /* number of the buffer: the CPU, or the spare one */
	uint64_t point;	   /* internal: distance of the point that belongs to the head, in bytes */
	struct kymo_ring_control *control; /* internal: of the buffer */
};

/* The header of a record, in the writer's byte order. */
union kymo_ring_header {
	uint32_t word32; /* the fastest: 4 bytes ... */
	uint64_t word64; /* ... or 8 bytes: they go through a register */
	uint8_t bytes[KYMO_RING_HEADER_MAX_BYTES];
};

/* What there is to say about a sub-buffer, in its header. */
struct kymo_ring_packet {
	uint64_t sequence;	/* number of the sub-buffer in its buffer, from 0 */
	uint64_t begin_stamp;	/* not after its first record */
	uint64_t end_stamp;	/* not before its last record; open: as @begin_stamp */
	uint64_t content_bytes; /* header and records; open: the header */
	uint64_t subbuf_bytes;
	uint64_t lost; /* of this buffer so far, all causes: at the end of this sub-buffer */
	uint64_t first_record; /* so many were written into this buffer before it */
	uint64_t records;      /* in it */
	uint32_t buffer;       /* number of the buffer: the CPU, or the spare one */
	bool is_foreign;       /* @header is of a machine of the other byte order */
};

/*
 * The client's side of a ring. Meant to be a constant that the compiler sees:
 *
 *   static const struct kymo_ring_config config = {...};
 *
 * All functions run in the traced program, in signal handlers too. @client is the writer's,
 * @record is what was given to kymo_ring_write().
 */
struct kymo_ring_config {
	/* Bytes of each sub-buffer's header; up to KYMO_RING_SUBBUF_HEADER_MAX_BYTES. */
	uint32_t subbuf_header_bytes;

	/* The time. Should not go back on one CPU; where it does, the last stamp is used. */
	uint64_t (*clock)(void);

	/* Makes a record's header. Returns its length, up to KYMO_RING_HEADER_MAX_BYTES. */
	uint32_t (*record_header)(const void *record, const struct kymo_ring_spot *spot,
				  union kymo_ring_header *header);

	/* Fills the whole header of a sub-buffer that is opened. */
	void (*subbuf_open)(const void *client, const struct kymo_ring_packet *packet,
			    void *header);

	/* Completes the header of a sub-buffer that is closed: @header is what it holds. */
	void (*subbuf_close)(const void *client, const struct kymo_ring_packet *packet,
			     void *header);
};

/* ---- making and mapping a ring, for writing ---- */

/* How to make a ring. Set size_bytes and what is not to be the default: 0. */
struct kymo_ring_options {
	uint32_t size_bytes;   /* sizeof(struct kymo_ring_options) */
	uint32_t flags;	       /* KYMO_RING_OVERWRITE, KYMO_RING_GLOBAL, KYMO_RING_LOCKED */
	uint64_t subbuf_bytes; /* a power of two, from 512 */
	uint32_t n_subbufs;    /* a power of two, from 2; a buffer has from 4 KiB to 1 GiB */
	uint32_t n_buffers;    /* 0: as many as there may be CPUs */
	uint32_t client;       /* for the client: whose ring it is */
	uint32_t clock;	       /* for the client: which clock */
	uint64_t client_bytes; /* size of the client's region; it takes memory where it is used */
};

/* One process's mapping of a ring, for writing. Forked children go on using it. Fixed once made. */
struct kymo_ring_writer {
	uint8_t *data;
	struct kymo_ring_control *control;
	uint64_t subbuf_mask; /* bytes - 1 */
	uint64_t buffer_mask; /* bytes - 1 */
	uint64_t buffer_bytes;
	ptrdiff_t rseq_area;   /* from the thread pointer */
	uint32_t rseq_buffers; /* buffers that rseq protects; 0: none */
	const void *client;    /* handed to subbuf_open and subbuf_close */
	struct kymo_ring_slot *slots;
	struct kymo_ring_file *file;
	void *client_region;
	struct kymo_ring_process *process; /* what a fork() changes */
	uint64_t map_bytes;
	uint64_t subbuf_bytes;
	uint32_t n_subbufs;
	uint32_t n_buffers; /* the spare one too */
	uint32_t flags;
	uint32_t subbuf_header_bytes;
	bool is_synced; /* on persistent memory: see kymo_ring_create() */
};

/*
 * Make a ring in @fd, an empty file (memfd, tmpfs, disk, persistent memory), and map it. The file may be
 * closed then.
 *
 * On persistent memory (a file system mounted with DAX) the file system has put down where memory is before
 * it is written to (MAP_SYNC): what reaches the memory is found after a power failure. What
 * nobody but the caller can do is to sync the directory that has the file's name.
 *
 * @client: for the client's functions; the ring only hands it on.
 * On success the ring is ready, the client's region is zero. On failure @writer is zeroed, and
 * writing to a zeroed writer is not allowed.
 * Returns 0 or a negative errno: -EINVAL options, -EFBIG RLIMIT_FSIZE, -ENOSPC, -ENOMEM ...
 * Async-signal-safe. No system call here is a cancellation point.
 */
KYMO_API int kymo_ring_create(struct kymo_ring_writer *writer, int fd,
			      const struct kymo_ring_config *config, const void *client,
			      const struct kymo_ring_options *options);

/*
 * Map a ring that exists, as a further writer.
 * 0; -EINVAL: not a ring of this version, or not with this @config; other negative errno.
 * Async-signal-safe.
 */
KYMO_API int kymo_ring_map(struct kymo_ring_writer *writer, int fd,
			   const struct kymo_ring_config *config, const void *client);

/* Unmap. Nobody in this process may be writing. Async-signal-safe. */
KYMO_API void kymo_ring_unmap(struct kymo_ring_writer *writer);

/*
 * Give memory to a part of the client's region that is about to be written: without it a full file
 * system means SIGBUS. 0 or -ENOSPC. Async-signal-safe.
 */
KYMO_API int kymo_ring_populate(const void *start, size_t bytes);

/* ---- writing ---- */

/* A piece of a record. */
struct kymo_ring_part {
	const void *data;
	uint64_t bytes;
};

/*
 * Write a record: the header that the client's function makes of @record, then the parts.
 * The general form, and what the inline ones fall back to: makes room, waits for nobody.
 *
 * Returns 0, or KYMO_E_LIMIT: it was lost, and counted.
 * Threads: any; async-signal-safe.
 */
KYMO_API int kymo_ring_write_slow(const struct kymo_ring_config *config,
				  struct kymo_ring_writer *writer, const void *record,
				  const struct kymo_ring_part *parts, uint32_t n_parts);

/* Count a record that the client itself could not write, as KYMO_RING_LOST_CLIENT. As above. */
KYMO_API void kymo_ring_count_loss(struct kymo_ring_writer *writer);

#define KYMO_RING_INLINE static inline __attribute__((always_inline))

/* The control block of the buffer @i. */
KYMO_RING_INLINE struct kymo_ring_control *
kymo_ring_control_of(const struct kymo_ring_writer *writer, uint64_t i)
{
	return writer->control + i;
}

/* Where @position of buffer @i lies. Whatever the position: within the buffer. */
KYMO_RING_INLINE uint8_t *kymo_ring_address(const struct kymo_ring_writer *writer, uint64_t i,
					    uint64_t position)
{
	return writer->data + i * writer->buffer_bytes + (position & writer->buffer_mask);
}

/* Where in its sub-buffer @position lies, 1 and up; the whole sub-buffer's length at its end, that
 * is, as long as the next one was not opened, and at the very beginning. */
KYMO_RING_INLINE uint64_t kymo_ring_at_bytes(const struct kymo_ring_writer *writer,
					     uint64_t position)
{
	return ((position - 1) & writer->subbuf_mask) + 1;
}

/* Whether @bytes fit at @at_bytes of a sub-buffer. */
KYMO_RING_INLINE bool kymo_ring_fits(const struct kymo_ring_writer *writer, uint64_t at_bytes,
				     uint64_t bytes)
{
	return at_bytes - 1 + bytes <= writer->subbuf_mask; /* at_bytes >= 1 */
}

KYMO_RING_INLINE uint64_t kymo_ring_position(uint64_t head)
{
	return head >> KYMO_RING_POSITION_SHIFT;
}

/* The commit word after @bytes more. */
KYMO_RING_INLINE uint64_t kymo_ring_next_head(uint64_t head, uint64_t bytes)
{
	return (head + (bytes << KYMO_RING_POSITION_SHIFT)) ^ KYMO_RING_PARITY;
}

/* The point that belongs to @head. */
KYMO_RING_INLINE struct kymo_ring_point *kymo_ring_point_of(const struct kymo_ring_control *control,
							    uint64_t head)
{
	return (struct kymo_ring_point *)((char *)control + (head & KYMO_RING_PARITY));
}

/* Take the time, look at buffer @i. The time may be before that of the last record. */
KYMO_RING_INLINE void kymo_ring_glance(const struct kymo_ring_config *config,
				       const struct kymo_ring_writer *writer, uint64_t i,
				       struct kymo_ring_spot *spot)
{
	struct kymo_ring_control *control = kymo_ring_control_of(writer, i);
	const struct kymo_ring_point *point;

	/* The clock waits for what came before it, and what follows may not begin before it ends:
	 * so half of the loads that depend on each other come before it, and half behind it. */
	__asm__ __volatile__("" : "+r"(control) : : "memory");
	spot->now = config->clock();
	__asm__ __volatile__("" : : : "memory");
	/* Partner: the store-release of the head in whoever wrote last, maybe on another CPU. */
	spot->head = __atomic_load_n(&control->head, __ATOMIC_ACQUIRE);
	spot->point = spot->head & KYMO_RING_PARITY;
	/* Compilers are not to find out twice what it is. */
	__asm__("" : "+r"(spot->point));
	/* This is what belongs to the head, if that did not move until the commit. */
	point = (const struct kymo_ring_point *)((const char *)control + spot->point);
	__asm__("" : "+r"(point));
	spot->last = __atomic_load_n(&point->stamp, __ATOMIC_RELAXED);
	spot->records = __atomic_load_n(&point->records, __ATOMIC_RELAXED);
	spot->at_bytes = kymo_ring_at_bytes(writer, kymo_ring_position(spot->head));
	spot->buffer = i;
	spot->control = control;
}

/* Where somebody wrote between clock and head, his stamp is taken. */
KYMO_RING_INLINE void kymo_ring_look(const struct kymo_ring_config *config,
				     const struct kymo_ring_writer *writer, uint64_t i,
				     struct kymo_ring_spot *spot)
{
	kymo_ring_glance(config, writer, i, spot);
	if (spot->now < spot->last)
		spot->now = spot->last;
}

#if KYMO_RING_HAS_RSEQ && defined(__OPTIMIZE__)
/* The assembler knows these. */
#define KYMO_RING_KNOWN(member, offset) \
	((void)sizeof(char[offsetof(struct kymo_ring_control, member) == (offset) ? 1 : -1]))

/*
 * The fast path in two halves, for who has something to check meanwhile. First half: where would a
 * record go? @area is writer->rseq_area; it is the same for all rings of a process. False: nowhere
 * on the fast path.
 */
KYMO_RING_INLINE bool kymo_ring_find_spot(const struct kymo_ring_config *config,
					  const struct kymo_ring_writer *writer, ptrdiff_t area,
					  struct kymo_ring_spot *spot)
{
	uint64_t cpu = kymo_ring_rseq_cpu(area);

	if (__builtin_expect((uint32_t)cpu >= writer->rseq_buffers, 0))
		return false;
	kymo_ring_glance(config, writer, cpu, spot);
	return true;
}

/*
 * Second half: write it there. Up to 8 bytes of payload come in @word, of which the first in
 * memory count; more lie at @payload. True: written.
 */
KYMO_RING_INLINE bool kymo_ring_write_spot(const struct kymo_ring_config *config,
					   const struct kymo_ring_writer *writer, ptrdiff_t area,
					   const struct kymo_ring_spot *spot, const void *record,
					   const void *payload, uint64_t word, uint64_t bytes)
{
	union kymo_ring_header header;
	uint32_t header_bytes = config->record_header(record, spot, &header);

	KYMO_RING_KNOWN(point, 0);
	KYMO_RING_KNOWN(head, 32);
	if (!kymo_ring_rseq_can_store(header_bytes, bytes) ||
	    __builtin_expect(!kymo_ring_fits(writer, spot->at_bytes, header_bytes + bytes), 0))
		return false;
	return !kymo_ring_rseq_store(
		area, spot->buffer, spot->control, spot->head, spot->point ^ KYMO_RING_PARITY,
		kymo_ring_address(writer, spot->buffer, kymo_ring_position(spot->head)),
		header_bytes == 4 ? header.word32 : header.word64, header_bytes, payload, word,
		bytes, spot->now, spot->records + 1);
}
#endif

/* The record's pieces, as moves to where they go; returns its length in bytes. */
KYMO_RING_INLINE uint64_t kymo_ring_gather(const struct kymo_ring_part *parts, uint32_t n_parts,
					   const union kymo_ring_header *header,
					   uint32_t header_bytes, uint8_t *to,
					   struct kymo_ring_move *moves)
{
	uint64_t bytes = header_bytes;

	moves[0].to = to;
	moves[0].from = header;
	moves[0].bytes = header_bytes;
	for (uint32_t i = 0; i < n_parts; i++) {
		moves[i + 1].to = to + bytes;
		moves[i + 1].from = parts[i].data;
		moves[i + 1].bytes = parts[i].bytes;
		bytes += parts[i].bytes;
	}
	return bytes;
}

/* Everything for the commit of a record at @spot; @moves has n_parts + 1. Returns its length. */
KYMO_RING_INLINE uint64_t kymo_ring_prepare(const struct kymo_ring_config *config,
					    const struct kymo_ring_writer *writer,
					    const struct kymo_ring_spot *spot, const void *record,
					    const struct kymo_ring_part *parts, uint32_t n_parts,
					    union kymo_ring_header *header,
					    struct kymo_ring_move *moves,
					    struct kymo_ring_commit *commit)
{
	uint32_t header_bytes = config->record_header(record, spot, header);
	uint64_t bytes = kymo_ring_gather(
		parts, n_parts, header, header_bytes,
		kymo_ring_address(writer, spot->buffer, kymo_ring_position(spot->head)), moves);

	commit->head = &spot->control->head;
	commit->expected = spot->head;
	commit->next = kymo_ring_next_head(spot->head, bytes);
	commit->point = kymo_ring_point_of(spot->control, ~spot->head);
	commit->point_value.stamp = spot->now;
	commit->point_value.records = spot->records + 1;
	commit->moves = moves;
	commit->moves_end = moves + n_parts + 1;
	commit->claim = NULL;
	commit->cpu = (uint32_t)spot->buffer;
	return bytes;
}

/*
 * Write a record whose payload has a size that the compiler knows: the fastest when that is up
 * to 24 bytes, a multiple of 4, and the header has 4 or 8.
 *
 * Returns 0, or KYMO_E_LIMIT: it was lost, and counted.
 * Threads: any; async-signal-safe.
 */
KYMO_RING_INLINE int kymo_ring_write(const struct kymo_ring_config *config,
				     struct kymo_ring_writer *writer, const void *record,
				     const void *payload, uint64_t bytes)
{
	uint64_t word = 0, copy;
	struct kymo_ring_part part;
#if KYMO_RING_HAS_RSEQ && defined(__OPTIMIZE__)
	ptrdiff_t area = writer->rseq_area;
	struct kymo_ring_spot spot;
#endif

	if (bytes && bytes <= sizeof(word))
		memcpy(&word, payload, bytes);
#if KYMO_RING_HAS_RSEQ && defined(__OPTIMIZE__)
	if (__builtin_expect(kymo_ring_find_spot(config, writer, area, &spot) &&
				     spot.now >= spot.last &&
				     kymo_ring_write_spot(config, writer, area, &spot, record,
							  payload, word, bytes),
			     1))
		return 0;
#endif
	/* A copy: so the payload may live in a register, as long as this is not needed. */
	copy = word;
	part.data = bytes <= sizeof(word) ? &copy : payload;
	part.bytes = bytes;
	return kymo_ring_write_slow(config, writer, record, &part, 1);
}

/*
 * Write a record of any shape: @n_parts pieces, up to KYMO_RING_PARTS_MAX, better a constant.
 * Fill what you point to before calling: the pieces are copied after the clock was read, and
 * what was just written in smaller units takes a moment to be read in larger ones.
 *
 * Returns and threads: as kymo_ring_write().
 */
KYMO_RING_INLINE int kymo_ring_write_parts(const struct kymo_ring_config *config,
					   struct kymo_ring_writer *writer, const void *record,
					   const struct kymo_ring_part *parts, uint32_t n_parts)
{
#if KYMO_RING_HAS_RSEQ && defined(__OPTIMIZE__)
	struct kymo_ring_move moves[KYMO_RING_PARTS_MAX + 1];
	struct kymo_ring_commit commit;
	union kymo_ring_header header;
	struct kymo_ring_spot spot;
	uint64_t cpu = kymo_ring_rseq_cpu(writer->rseq_area), bytes;

	if (__builtin_expect(cpu < writer->rseq_buffers && n_parts <= KYMO_RING_PARTS_MAX, 1)) {
		kymo_ring_look(config, writer, cpu, &spot);
		bytes = kymo_ring_prepare(config, writer, &spot, record, parts, n_parts, &header,
					  moves, &commit);
		if (__builtin_expect(kymo_ring_fits(writer, spot.at_bytes, bytes), 1) &&
		    __builtin_expect(!kymo_ring_rseq_commit(writer->rseq_area, &commit), 1))
			return 0;
	}
#endif
	return kymo_ring_write_slow(config, writer, record, parts, n_parts);
}

/*
 * Whether the caller lives, or may live, in the memory of another process' thread, and is known there by that
 * one's numbers: a child of vfork(), of clone(CLONE_VM) without CLONE_THREAD, and who made the latter. Their
 * records go to the spare buffer: vfork() and clone() of libkymo-trace, and of programs that are linked with
 * writers statically, see to it. (A child with thread-local storage of its own, CLONE_SETTLS, and one of the
 * bare system call must not write.)
 *
 * Threads: any; async-signal-safe.
 */
bool kymo_ring_is_shared_thread(void);

/*
 * This thread's signals wait, but those that its instructions raise; returns which did before.
 *
 * Threads: any; async-signal-safe.
 */
uint64_t kymo_ring_signals_block(void);
void kymo_ring_signals_restore(uint64_t before);

/* ---- Reading ---- */

struct kymo_ring_reader;

/* What a ring says of itself; checked. */
struct kymo_ring_info {
	uint32_t flags;	    /* enum kymo_ring_flag */
	uint32_t n_buffers; /* per-CPU buffers; the spare one is number n_buffers */
	uint32_t n_subbufs;
	uint64_t subbuf_bytes;
	uint32_t subbuf_header_bytes;
	uint32_t client; /* as in struct kymo_ring_options */
	uint32_t clock;
	bool is_foreign;	   /* written on a machine of the other byte order */
	const void *client_region; /* in the shared memory: its writer may change it any time */
	uint64_t client_bytes;
};

enum kymo_ring_reader_flag {
	/* Nothing is written to the ring, nothing released; several may read. For recovering what
	 * dead writers left, and for looking on. */
	KYMO_RING_READ_ONLY = 1 << 0,
};

/* How to read a ring. Set size_bytes and what is not to be 0. */
struct kymo_ring_reader_options {
	uint32_t size_bytes; /* sizeof(struct kymo_ring_reader_options) */
	uint32_t flags;	     /* enum kymo_ring_reader_flag */
	/*
	 * For chunks that are not closed sub-buffers: their headers are made by these functions of
	 * the config. NULL: such chunks have no header. The other members are not used.
	 */
	const struct kymo_ring_config *config;
	const void *client;
};

/*
 * Records that lie in a row: a closed sub-buffer, or a part of one.
 *
 * Write @header_bytes of @header, then @body_bytes of @body: that is a packet. The header is the
 * reader's own copy and may be changed (say, to number packets anew); the body is the shared
 * memory itself, or the reader's copy in a snapshot. Header and body are valid until the
 * chunk is released, or the next one taken.
 */
struct kymo_ring_chunk {
	struct kymo_ring_packet packet; /* packet.sequence counts sub-buffers, not chunks */
	void *header;
	const void *body;
	uint64_t body_bytes;
	uint64_t body_offset; /* of the body in the ring's file */
	uint32_t header_bytes;
	bool is_closed;	       /* the sub-buffer's last chunk */
	bool is_continued;     /* not the sub-buffer's first chunk */
	uint64_t end_position; /* internal: for releasing */
};

/*
 * Open the ring in @fd, which stays the caller's and must stay open while it is read.
 *
 * The writer is not trusted: whatever the file holds, now or later, and even when it is cut
 * short meanwhile, reading neither crashes nor hangs. (For the latter a handler of SIGBUS is
 * installed once per process, which hands on what does not concern it.)
 *
 * Returns 0; KYMO_E_FORMAT: no ring, or a broken one; KYMO_E_STATE: another reader consumes it;
 * KYMO_E_IO, KYMO_E_MEMORY.
 * Threads: one at a time per reader.
 */
KYMO_API int kymo_ring_reader_open(struct kymo_ring_reader **reader, int fd,
				   const struct kymo_ring_reader_options *options,
				   struct kymo_error *err);
KYMO_API void kymo_ring_reader_close(struct kymo_ring_reader *reader);

/* Valid as long as the reader. */
KYMO_API const struct kymo_ring_info *kymo_ring_reader_info(const struct kymo_ring_reader *reader);

/* Buffers to go through: the spare one too. */
KYMO_API uint32_t kymo_ring_reader_buffers(const struct kymo_ring_reader *reader);

enum kymo_ring_next_flag {
	KYMO_RING_PARTIAL = 1 << 0, /* what there is of the sub-buffer that is being written, too */
};

/*
 * The next chunk of a buffer, oldest first.
 *
 * Without KYMO_RING_PARTIAL: closed sub-buffers only. With it, the records of the open one up to
 * now; what follows of that sub-buffer is a chunk of its own later, which begins with the last
 * stamp of this one.
 *
 * Returns 1; 0: none now; KYMO_E_FORMAT: something there is not valid, and was passed over: call
 * again for what follows, that ends; KYMO_E_IO: the file was cut short, and that is the end; KYMO_E_STATE: an
 * overwriting ring can only be snapshot, or, when its writers are gone, be read with
 * KYMO_RING_READ_ONLY.
 */
KYMO_API int kymo_ring_reader_next(struct kymo_ring_reader *reader, uint32_t buffer, uint32_t flags,
				   struct kymo_ring_chunk *chunk, struct kymo_error *err);

/* Done with @chunk: its memory may be reused by writers. Not calling it: next gives it again. */
KYMO_API void kymo_ring_reader_release(struct kymo_ring_reader *reader,
				       const struct kymo_ring_chunk *chunk);

/*
 * Copy @chunk, header and body, to @buffer. Returns its length in bytes; KYMO_E_LIMIT when
 * @size_bytes is less.
 */
KYMO_API int64_t kymo_ring_chunk_read(const struct kymo_ring_chunk *chunk, void *buffer,
				      uint64_t size_bytes);

/*
 * Send @chunk, header and body, to @fd: a file, a pipe, a socket.
 *
 * To a file, the kernel copies (sendfile). To a pipe, pages are moved by reference (splice): do
 * not release the chunk before the pipe's other end was read, or it reads what is written
 * next. To a socket or anything else: written, so that it may be released at once.
 * Goes on after short writes; waits where @fd blocks.
 * Returns 0; KYMO_E_AGAIN: @fd does not block and is full, and *sent_bytes says how far it went:
 * call again with it. KYMO_E_IO.
 *
 * @sent_bytes: where to begin in the chunk, 0 at first; on return: so much of it is sent.
 */
KYMO_API int kymo_ring_chunk_send(struct kymo_ring_reader *reader,
				  const struct kymo_ring_chunk *chunk, int fd, uint64_t *sent_bytes,
				  struct kymo_error *err);

/*
 * Snapshot, while writers go on: what the ring holds now, and nothing that is written later.
 *
 * begin: fixes the end, for all buffers. next: gives the chunks of one buffer, oldest first,
 * as copies: only what was whole when it was read; what writers overwrote before it could be
 * copied is passed over. The last chunk of a buffer may be a sub-buffer that is still open.
 * Consumes nothing. Works in both modes.
 *
 * Returns 1; 0: the end; KYMO_E_FORMAT; KYMO_E_MEMORY.
 */
KYMO_API int kymo_ring_snapshot_begin(struct kymo_ring_reader *reader, struct kymo_error *err);
KYMO_API int kymo_ring_snapshot_next(struct kymo_ring_reader *reader, uint32_t buffer,
				     struct kymo_ring_chunk *chunk, struct kymo_error *err);

/* The counts of one buffer, or of the whole ring. */
struct kymo_ring_stats {
	uint64_t records;	 /* written */
	uint64_t bytes;		 /* written: headers, gaps at the ends of sub-buffers, all */
	uint64_t unread_records; /* not released yet, or still there in an overwriting ring */
	uint64_t overwritten;	 /* records that newer ones replaced; overwriting rings */
	uint64_t lost[KYMO_RING_LOSSES_MAX]; /* enum kymo_ring_loss */
	uint64_t lost_total;
};

/* @buffer: KYMO_RING_ALL: the sum, with the losses that belong to no buffer. */
#define KYMO_RING_ALL UINT32_MAX
KYMO_API void kymo_ring_reader_stats(struct kymo_ring_reader *reader, uint32_t buffer,
				     struct kymo_ring_stats *stats);

/* "no free sub-buffer" and so on; static text. */
KYMO_API const char *kymo_ring_loss_text(unsigned int loss);

/*
 * Sleep until a sub-buffer of any buffer was closed after the last kymo_ring_reader_next() that
 * gave none, or @timeout_ns passed, or a signal came. Costs the writers a system call at that
 * next switch, and nothing otherwise.
 *
 * Returns 1: look; 0: time-out or signal; KYMO_E_STATE: read only.
 */
KYMO_API int kymo_ring_reader_wait(struct kymo_ring_reader *reader, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
