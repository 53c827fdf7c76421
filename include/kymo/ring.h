/* SPDX-License-Identifier: MIT */
/*
 * A ring buffer in shared memory, for records of any kind. Any number of threads, processes and
 * signal handlers write it at once; a record costs about as much as reading the clock. Another
 * process reads the ring, also after the death of the writers. docs/design/ring.md has guarantees
 * and proofs.
 *
 * In short:
 *
 * - A ring is ONE file (memfd, tmpfs or disk), which describes itself. It has a buffer per CPU (or
 *   one for all CPUs), divided into sub-buffers. A record never crosses the end of a sub-buffer.
 * - A writer never waits, unless its owner wants that (struct kymo_ring_wait). It makes system calls only at the first use of a sub-buffer, and to wake
 *   a reader that waits. Signal handlers, nested signal handlers, forked children and all threads
 *   may write.
 * - A record is complete when its commit is done: after the death of a writer at any instruction,
 *   all earlier records are whole, and nothing of the unfinished record is visible.
 * - The ring counts all lost records exactly, by cause.
 * - The client defines the header of a record, the header of a sub-buffer, and the clock, in a
 *   CONSTANT struct kymo_ring_config. The functions here are inline, so the compiler makes a fast
 *   path for each client. This needs optimisation; without it, the code is correct but slow.
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
 * The writing part (everything above "Reading" below) needs only libc, allocates no memory, and
 * uses only system calls that are safe in signal handlers. It leaves errno unchanged. It needs a
 * 64-bit machine.
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

/*
 * 32 sub-buffers of 128 KiB are 4 MiB per used CPU: at 10 million records of 12 bytes per second
 * and CPU, the consumer may pause for 35 ms.
 */
#define KYMO_RING_DEFAULT_SUBBUF_BYTES 131072u
#define KYMO_RING_DEFAULT_SUBBUFS      32u

#define KYMO_RING_HEADER_MAX_BYTES	  16u  /* of a record */
#define KYMO_RING_SUBBUF_HEADER_MAX_BYTES 256u /* of a sub-buffer */
#define KYMO_RING_PARTS_MAX		  16u  /* pieces of one record */

/* ---- definitions of the client ---- */

/* The place of the next record. */
struct kymo_ring_spot {
	uint64_t head;	   /* the commit word from which the other members come */
	uint64_t now;	   /* the record's stamp; never before @last */
	uint64_t last;	   /* stamp of the record before it, or of the sub-buffer's beginning */
	uint64_t at_bytes; /* offset of the record in its sub-buffer */
	uint64_t records;  /* number of records in this buffer before this one */
	uint64_t buffer;   /* number of the buffer: the CPU, or the spare one */
	uint64_t point;	   /* internal: distance of the head's point, in bytes */
	struct kymo_ring_control *control; /* internal: of the buffer */
};

/* The header of a record, in the writer's byte order. */
union kymo_ring_header {
	uint32_t word32; /* 4 bytes are fastest ... */
	uint64_t word64; /* ... and 8 bytes, too: both go through a register */
	uint8_t bytes[KYMO_RING_HEADER_MAX_BYTES];
};

/* The description of a sub-buffer, for its header. */
struct kymo_ring_packet {
	uint64_t sequence;	/* number of the sub-buffer in its buffer, from 0 */
	uint64_t begin_stamp;	/* not later than its first record */
	uint64_t end_stamp;	/* not earlier than its last record; open: as @begin_stamp */
	uint64_t content_bytes; /* header and records; open sub-buffer: only the header */
	uint64_t subbuf_bytes;
	uint64_t lost; /* losses of this buffer until the end of this sub-buffer, all causes */
	uint64_t first_record; /* number of records in this buffer before this sub-buffer */
	uint64_t records;      /* number of records in this sub-buffer */
	uint32_t buffer;       /* number of the buffer: the CPU, or the spare one */
	bool is_foreign;       /* @header has the other byte order than this machine */
};

/*
 * The client's side of a ring. It should be a constant that the compiler sees:
 *
 *   static const struct kymo_ring_config config = {...};
 *
 * All functions run in the traced program, in signal handlers too. @client is the writer's member,
 * @record the argument of kymo_ring_write().
 */
struct kymo_ring_config {
	/* Bytes of each sub-buffer's header; up to KYMO_RING_SUBBUF_HEADER_MAX_BYTES. */
	uint32_t subbuf_header_bytes;

	/*
	 * Returns the time. It should not go back on one CPU; where it does, the ring repeats the
	 * last stamp.
	 */
	uint64_t (*clock)(void);

	/* Makes a record's header. Returns its length, up to KYMO_RING_HEADER_MAX_BYTES. */
	uint32_t (*record_header)(const void *record, const struct kymo_ring_spot *spot,
				  union kymo_ring_header *header);

	/* Fills the whole header of a sub-buffer at its opening. */
	void (*subbuf_open)(const void *client, const struct kymo_ring_packet *packet,
			    void *header);

	/*
	 * Completes the header of a sub-buffer at its closing. @header has the bytes of
	 * subbuf_open().
	 */
	void (*subbuf_close)(const void *client, const struct kymo_ring_packet *packet,
			     void *header);

	/*
	 * A record whose stamp is so much later than the stamp before it in its buffer is the first
	 * after an idle time: it wakes a reader that waits for KYMO_RING_WAKE_RECORD. 0: no record
	 * does. The check costs the fast path nothing where the record's header depends on the
	 * same comparison.
	 */
	uint64_t idle_stamps;
};

/* ---- creating and mapping a ring, for writing ---- */

/* Options of a new ring. The caller sets size_bytes and may set the others; 0 is the default. */
struct kymo_ring_options {
	uint32_t size_bytes;   /* sizeof(struct kymo_ring_options) */
	uint32_t flags;	       /* KYMO_RING_OVERWRITE, KYMO_RING_GLOBAL, KYMO_RING_LOCKED */
	uint64_t subbuf_bytes; /* a power of two, from 512 */
	uint32_t n_subbufs;    /* a power of two, from 2; a buffer has from 4 KiB to 1 GiB */
	uint32_t n_buffers;    /* 0: as many as there may be CPUs */
	uint32_t client;       /* for the client: its magic number */
	uint32_t clock;	       /* for the client: the number of its clock */
	uint64_t client_bytes; /* size of the client's region; only used pages take memory */
};

/* The wait of one record for room in its buffer. */
struct kymo_ring_wait {
	uint64_t waited_ns;	/* so far; the ring's */
	uint64_t limit_ns;	/* the record is lost after that */
	uint32_t attended;	/* enum kymo_ring_attended, by the shared memory: not trusted */
	uint64_t mark, mark_ns; /* for the client; 0 at first */
};

/*
 * A process's mapping of a ring, for writing. Forked children continue to use it. Its members do
 * not change.
 */
struct kymo_ring_writer {
	uint8_t *data;
	struct kymo_ring_control *control;
	uint64_t subbuf_mask; /* bytes - 1 */
	uint64_t buffer_mask; /* bytes - 1 */
	uint64_t buffer_bytes;
	ptrdiff_t rseq_area;   /* from the thread pointer */
	uint32_t rseq_buffers; /* buffers that rseq protects; 0: none */
	const void *client;    /* argument of subbuf_open and subbuf_close */
	struct kymo_ring_slot *slots;
	struct kymo_ring_file *file;
	void *client_region;
	struct kymo_ring_process *process; /* state that a fork() changes */
	uint64_t map_bytes;
	uint64_t subbuf_bytes;
	uint32_t n_subbufs;
	uint32_t n_buffers; /* including the spare buffer */
	uint32_t flags;
	uint32_t subbuf_header_bytes;
	bool is_synced; /* on persistent memory: see kymo_ring_create() */

	/*
	 * What a write does when its buffer is full. 0: the record is lost. Otherwise the write
	 * sleeps until the reader has released a sub-buffer, for this time at the most; UINT64_MAX:
	 * without a limit. It holds no lock meanwhile, and makes no system call but futex and
	 * clock_gettime. The owner of the writer sets both members before the first write.
	 * @goes_on: called before each part of the sleep, of at most 20 ms; false ends the wait,
	 * and the record is lost. @client: as above.
	 */
	uint64_t wait_ns;
	bool (*goes_on)(const void *client, struct kymo_ring_wait *wait);
};

/*
 * Make a ring in @fd, an empty file (memfd, tmpfs, disk, persistent memory), and map it. After
 * that, the caller may close the file.
 *
 * On persistent memory (a file system mounted with DAX), the mapping has MAP_SYNC: the file system
 * records the place of memory on disk before the first write to it. So the bytes in memory survive
 * a power failure. The caller must sync the directory that has the file's name.
 *
 * @client: an argument for the client's functions; the ring does not use it.
 * Returns 0 or a negative errno: -EINVAL options, -EFBIG RLIMIT_FSIZE, -ENOSPC, -ENOMEM ... On
 * success the ring is ready, and the client's region is zero. On failure @writer is zeroed, and the
 * caller must not write to it.
 * Async-signal-safe. No system call here is a cancellation point.
 */
KYMO_API int kymo_ring_create(struct kymo_ring_writer *writer, int fd,
			      const struct kymo_ring_config *config, const void *client,
			      const struct kymo_ring_options *options);

/*
 * Map an existing ring, as a further writer.
 *
 * Returns 0; -EINVAL when the file is not a ring of this version, or has another @config; or
 * another negative errno.
 * Async-signal-safe.
 */
KYMO_API int kymo_ring_map(struct kymo_ring_writer *writer, int fd,
			   const struct kymo_ring_config *config, const void *client);

/* Unmap the ring. No thread of this process may be writing. Async-signal-safe. */
KYMO_API void kymo_ring_unmap(struct kymo_ring_writer *writer);

/*
 * Allocate memory for a part of the client's region before the caller writes to it. Without this
 * call, a write to a full file system raises SIGBUS. Returns 0 or -ENOSPC. Async-signal-safe.
 */
KYMO_API int kymo_ring_populate(const void *start, size_t bytes);

/* ---- writing ---- */

/* A piece of a record. */
struct kymo_ring_part {
	const void *data;
	uint64_t bytes;
};

/*
 * Write a record: the header that the client's function makes of @record, then the parts. This is
 * the general form, and the fallback of the inline functions. It opens the next sub-buffer when
 * necessary. It never waits for a reader unless the writer's wait_ns is set.
 *
 * Returns 0, or KYMO_E_LIMIT: the record is lost, and the ring has counted the loss.
 * Threads: any; async-signal-safe.
 */
KYMO_API int kymo_ring_write_slow(const struct kymo_ring_config *config,
				  struct kymo_ring_writer *writer, const void *record,
				  const struct kymo_ring_part *parts, uint32_t n_parts);

/*
 * Count a record that the client could not write, as KYMO_RING_LOST_CLIENT. Threads: any;
 * async-signal-safe.
 */
KYMO_API void kymo_ring_count_loss(struct kymo_ring_writer *writer);

/*
 * Wake a reader that waits for one of @events (enum kymo_ring_wake). The writing functions do this by
 * themselves; a client calls it after a change of its region that a reader should see soon.
 *
 * Threads: any; async-signal-safe. A system call only if a reader waits.
 */
KYMO_API void kymo_ring_wake(struct kymo_ring_writer *writer, uint32_t events);

#define KYMO_RING_INLINE static inline __attribute__((always_inline))

/* The control block of the buffer @i. */
KYMO_RING_INLINE struct kymo_ring_control *
kymo_ring_control_of(const struct kymo_ring_writer *writer, uint64_t i)
{
	return writer->control + i;
}

/* The address of @position in buffer @i. For every position, the address lies within the buffer. */
KYMO_RING_INLINE uint8_t *kymo_ring_address(const struct kymo_ring_writer *writer, uint64_t i,
					    uint64_t position)
{
	return writer->data + i * writer->buffer_bytes + (position & writer->buffer_mask);
}

/*
 * The offset of @position in its sub-buffer, 1 and up. At the end of a sub-buffer (while the next
 * one is not open), and at the very beginning, it is the whole length of a sub-buffer.
 */
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

/* Read the time and the state of buffer @i. The time may be before that of the last record. */
KYMO_RING_INLINE void kymo_ring_glance(const struct kymo_ring_config *config,
				       const struct kymo_ring_writer *writer, uint64_t i,
				       struct kymo_ring_spot *spot)
{
	struct kymo_ring_control *control = kymo_ring_control_of(writer, i);
	const struct kymo_ring_point *point;

	/*
	 * The clock's instruction waits for earlier instructions, and later ones wait for the
	 * clock. So half of the loads that depend on each other come before it, and half after it.
	 */
	__asm__ __volatile__("" : "+r"(control) : : "memory");
	spot->now = config->clock();
	__asm__ __volatile__("" : : : "memory");
	/* Partner: the store-release of the head in the last writer, maybe on another CPU. */
	spot->head = __atomic_load_n(&control->head, __ATOMIC_ACQUIRE);
	spot->point = spot->head & KYMO_RING_PARITY;
	/* Keeps the compiler from computing the value twice. */
	__asm__("" : "+r"(spot->point));
	/* The point belongs to the head if the head does not move until the commit. */
	point = (const struct kymo_ring_point *)((const char *)control + spot->point);
	__asm__("" : "+r"(point));
	spot->last = __atomic_load_n(&point->stamp, __ATOMIC_RELAXED);
	spot->records = __atomic_load_n(&point->records, __ATOMIC_RELAXED);
	spot->at_bytes = kymo_ring_at_bytes(writer, kymo_ring_position(spot->head));
	spot->buffer = i;
	spot->control = control;
}

/* When another writer committed a record between clock and head, the record gets its stamp. */
KYMO_RING_INLINE void kymo_ring_look(const struct kymo_ring_config *config,
				     const struct kymo_ring_writer *writer, uint64_t i,
				     struct kymo_ring_spot *spot)
{
	kymo_ring_glance(config, writer, i, spot);
	if (spot->now < spot->last)
		spot->now = spot->last;
}

/* After the record at @spot: a reader may sleep until the end of the idle time. */
KYMO_RING_INLINE void kymo_ring_end_idle(const struct kymo_ring_config *config,
					 struct kymo_ring_writer *writer,
					 const struct kymo_ring_spot *spot)
{
	if (config->idle_stamps &&
	    __builtin_expect(spot->now - spot->last >= config->idle_stamps, 0))
		kymo_ring_wake(writer, KYMO_RING_WAKE_RECORD);
}

#if KYMO_RING_HAS_RSEQ && defined(__OPTIMIZE__)
/* The assembler relies on these offsets. */
#define KYMO_RING_KNOWN(member, offset) \
	((void)sizeof(char[offsetof(struct kymo_ring_control, member) == (offset) ? 1 : -1]))

/*
 * The fast path in two halves, for callers that check something between them. The first half finds
 * the place of a record. @area is writer->rseq_area, which is the same for all rings of a process.
 * Returns false when the fast path is not possible.
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
 * The second half writes the record. @word has up to 8 bytes of payload, at its first bytes in
 * memory; a longer payload lies at @payload. Returns true when the record is written.
 */
KYMO_RING_INLINE bool kymo_ring_write_spot(const struct kymo_ring_config *config,
					   struct kymo_ring_writer *writer, ptrdiff_t area,
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
	if (kymo_ring_rseq_store(
		    area, spot->buffer, spot->control, spot->head, spot->point ^ KYMO_RING_PARITY,
		    kymo_ring_address(writer, spot->buffer, kymo_ring_position(spot->head)),
		    header_bytes == 4 ? header.word32 : header.word64, header_bytes, payload, word,
		    bytes, spot->now, spot->records + 1))
		return false;
	kymo_ring_end_idle(config, writer, spot);
	return true;
}
#endif

/* Turns the record's pieces into moves to their places. Returns the record's length in bytes. */
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

/* Prepares the commit of a record at @spot; @moves has n_parts + 1. Returns the record's length. */
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
 * Write a record whose payload has a size that the compiler knows. Fastest are payloads of up to 24
 * bytes, a multiple of 4, with a header of 4 or 8 bytes.
 *
 * Returns 0, or KYMO_E_LIMIT: the record is lost, and the ring has counted the loss.
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
	/*
	 * Only this path needs the payload in memory; without the copy, it could not stay in a
	 * register.
	 */
	copy = word;
	part.data = bytes <= sizeof(word) ? &copy : payload;
	part.bytes = bytes;
	return kymo_ring_write_slow(config, writer, record, &part, 1);
}

/*
 * Write a record of any shape: @n_parts pieces, up to KYMO_RING_PARTS_MAX, preferably a constant.
 * The caller should fill the pieces before the call: the function copies them after it read the
 * clock, and the CPU stalls when it loads bytes in larger units than it stored them just before.
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
		    __builtin_expect(!kymo_ring_rseq_commit(writer->rseq_area, &commit), 1)) {
			kymo_ring_end_idle(config, writer, &spot);
			return 0;
		}
	}
#endif
	return kymo_ring_write_slow(config, writer, record, parts, n_parts);
}

/*
 * Whether the calling process shares memory with another process, or may share it, and has the IDs
 * of that process's thread in its thread-local storage: a child of vfork(), a child of
 * clone(CLONE_VM) without CLONE_THREAD, and the parent of the latter. Records of such processes go
 * to the spare buffer. vfork() and clone() of libkymo-trace, and of programs with statically linked
 * writers, keep track of this. (A child with its own thread-local storage, CLONE_SETTLS, and a
 * child of the bare system call must not write.)
 *
 * Threads: any; async-signal-safe.
 */
bool kymo_ring_is_shared_thread(void);

/*
 * Block the signals of this thread, except signals that its own instructions raise. Returns the
 * signals that were blocked before.
 *
 * Threads: any; async-signal-safe.
 */
uint64_t kymo_ring_signals_block(void);
void kymo_ring_signals_restore(uint64_t before);

/* ---- Reading ---- */

struct kymo_ring_reader;

/* The description of a ring. The reader has checked the values. */
struct kymo_ring_info {
	uint32_t flags;	    /* enum kymo_ring_flag */
	uint32_t n_buffers; /* per-CPU buffers; the spare one is number n_buffers */
	uint32_t n_subbufs;
	uint64_t subbuf_bytes;
	uint32_t subbuf_header_bytes;
	uint32_t client; /* see struct kymo_ring_options */
	uint32_t clock;
	bool is_foreign;	   /* written on a machine of the other byte order */
	const void *client_region; /* in the shared memory: the writer may change it at any time */
	uint64_t client_bytes;
};

enum kymo_ring_reader_flag {
	/*
	 * The reader writes nothing to the ring and releases nothing, so several readers can read
	 * it. For recovering the records of dead writers, and for observers.
	 */
	KYMO_RING_READ_ONLY = 1 << 0,
};

/* Options of a reader. The caller sets size_bytes and may set the others; 0 is the default. */
struct kymo_ring_reader_options {
	uint32_t size_bytes; /* sizeof(struct kymo_ring_reader_options) */
	uint32_t flags;	     /* enum kymo_ring_reader_flag */
	/*
	 * For chunks that are not closed sub-buffers: these functions of the config make the
	 * headers. NULL: such chunks have no header. The reader does not use the other members of
	 * the config.
	 */
	const struct kymo_ring_config *config;
	const void *client;
};

/*
 * Records in a row: a closed sub-buffer, or a part of one.
 *
 * @header_bytes of @header and then @body_bytes of @body make a packet. The header is the reader's
 * own copy, and the caller may change it (for example, to number packets anew). The body is the
 * shared memory itself, or, in a snapshot, the reader's copy. Header and body are valid until the
 * chunk's release, or until the next chunk.
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
 * Open the ring in @fd. The descriptor stays the caller's, who must keep it open while reading.
 *
 * The reader does not trust the writer: with any content of the file, now or later, and even when
 * the file shrinks, reading neither crashes nor hangs. (For shrinking files, the reader installs a
 * handler of SIGBUS once per process, which forwards unrelated signals.)
 *
 * Returns 0; KYMO_E_FORMAT: the file is not a ring, or a broken one; KYMO_E_STATE: another reader
 * consumes the ring; KYMO_E_IO, KYMO_E_MEMORY.
 * Threads: one thread at a time per reader.
 */
KYMO_API int kymo_ring_reader_open(struct kymo_ring_reader **reader, int fd,
				   const struct kymo_ring_reader_options *options,
				   struct kymo_error *err);
KYMO_API void kymo_ring_reader_close(struct kymo_ring_reader *reader);

/*
 * The caller reads nothing more, as after an error: writers that wait for room lose their records,
 * and none waits from now on. kymo_ring_reader_close() does the same.
 */
KYMO_API void kymo_ring_reader_abandon(struct kymo_ring_reader *reader);

/* Borrowed until the reader's close. */
KYMO_API const struct kymo_ring_info *kymo_ring_reader_info(const struct kymo_ring_reader *reader);

/* The number of buffers, including the spare buffer. */
KYMO_API uint32_t kymo_ring_reader_buffers(const struct kymo_ring_reader *reader);

enum kymo_ring_next_flag {
	KYMO_RING_PARTIAL = 1 << 0, /* includes the records of the sub-buffer that is still open */
};

/*
 * The next chunk of a buffer, oldest first.
 *
 * Without KYMO_RING_PARTIAL, the function returns closed sub-buffers only. With it, the function
 * also returns the current records of the open sub-buffer. The later records of that sub-buffer
 * make a chunk of their own, which begins with the last stamp of this chunk.
 *
 * Returns 1 with a chunk; 0 when none exists now; KYMO_E_FORMAT: the reader skipped malformed
 * data, and the caller may call again, which ends after finitely many calls; KYMO_E_IO: the file
 * was truncated, and no more chunks follow; KYMO_E_STATE: the ring is in overwrite mode, which
 * allows only snapshots, or, after the death of its writers, KYMO_RING_READ_ONLY.
 */
KYMO_API int kymo_ring_reader_next(struct kymo_ring_reader *reader, uint32_t buffer, uint32_t flags,
				   struct kymo_ring_chunk *chunk, struct kymo_error *err);

/*
 * Release @chunk: writers may reuse its memory. Without the release, kymo_ring_reader_next()
 * returns the chunk again.
 */
KYMO_API void kymo_ring_reader_release(struct kymo_ring_reader *reader,
				       const struct kymo_ring_chunk *chunk);

/*
 * Copy @chunk, header and body, to @buffer. Returns its length in bytes, or KYMO_E_LIMIT when
 * @size_bytes is less.
 */
KYMO_API int64_t kymo_ring_chunk_read(const struct kymo_ring_chunk *chunk, void *buffer,
				      uint64_t size_bytes);

/*
 * Send @chunk, header and body, to @fd: a file, a pipe, a socket.
 *
 * To a file, the kernel copies the bytes (sendfile). To a pipe, the kernel moves pages by reference
 * (splice): the caller must not release the chunk before the pipe's other end has read it, else the
 * other end may read later records. To a socket or another file, the function writes the bytes, and
 * the caller may release the chunk at once. The function continues after short writes, and waits
 * when @fd blocks.
 *
 * @sent_bytes: the place in the chunk where to begin, 0 at first. On return: the number of sent
 *	bytes.
 * Returns 0; KYMO_E_AGAIN: @fd does not block and is full; the caller calls again with *sent_bytes;
 * KYMO_E_IO.
 */
KYMO_API int kymo_ring_chunk_send(struct kymo_ring_reader *reader,
				  const struct kymo_ring_chunk *chunk, int fd, uint64_t *sent_bytes,
				  struct kymo_error *err);

/*
 * A snapshot, while writers continue: the present records of the ring, and no later ones.
 *
 * begin fixes the end for all buffers. next returns copies of the chunks of one buffer, oldest
 * first. A chunk has only records that were whole when the reader copied them; the reader skips
 * records that writers overwrote before. The last chunk of a buffer may be a sub-buffer that is
 * still open. A snapshot consumes nothing. It works in both modes.
 *
 * forget leaves the present records out of this reader's future snapshots of an overwriting ring.
 *
 * Returns 1 with a chunk; 0 at the end; KYMO_E_FORMAT; KYMO_E_MEMORY; forget: KYMO_E_STATE (the ring
 * does not overwrite).
 */
KYMO_API int kymo_ring_snapshot_forget(struct kymo_ring_reader *reader, struct kymo_error *err);
KYMO_API int kymo_ring_snapshot_begin(struct kymo_ring_reader *reader, struct kymo_error *err);
KYMO_API int kymo_ring_snapshot_next(struct kymo_ring_reader *reader, uint32_t buffer,
				     struct kymo_ring_chunk *chunk, struct kymo_error *err);

/* The counts of one buffer, or of the whole ring. */
struct kymo_ring_stats {
	uint64_t records;	 /* written */
	uint64_t bytes;		 /* written: headers and gaps at the ends of sub-buffers included */
	uint64_t unread_records; /* not released yet; in overwrite mode: still present */
	uint64_t overwritten;	 /* number of records that newer ones replaced, in overwrite mode */
	uint64_t lost[KYMO_RING_LOSSES_MAX]; /* enum kymo_ring_loss */
	uint64_t lost_total;
};

/* @buffer KYMO_RING_ALL: the sum of all buffers, with the losses that belong to no buffer. */
#define KYMO_RING_ALL UINT32_MAX
KYMO_API void kymo_ring_reader_stats(struct kymo_ring_reader *reader, uint32_t buffer,
				     struct kymo_ring_stats *stats);

/* The cause of a loss: "no free sub-buffer" and so on; static text. */
KYMO_API const char *kymo_ring_loss_text(unsigned int loss);

/*
 * Sleep until a writer closes a sub-buffer of any buffer after the last kymo_ring_reader_next()
 * that returned 0, until @timeout_ns have passed, or until a signal comes. The writer makes a
 * system call at that switch of sub-buffers; otherwise waiting costs writers nothing.
 *
 * Returns 1: a sub-buffer was closed; 0: time-out or signal; KYMO_E_STATE: the reader is read-only.
 */
KYMO_API int kymo_ring_reader_wait(struct kymo_ring_reader *reader, int64_t timeout_ns);

/* A word of shared memory for FUTEX_WAIT or FUTEX_WAITV: not private, 32 bits. */
struct kymo_ring_futex {
	const uint32_t *word;
	uint32_t value; /* the sleep ends when the word has another one */
};

/*
 * The two halves of a wait, for readers of many rings. arm asks the writers to change *futex, and to wake
 * those that sleep there, at the next of @events (enum kymo_ring_wake). The writer that does so takes the
 * request back; disarm does it otherwise. A sleep that ends is a hint only: writers may be hostile.
 *
 * For KYMO_RING_WAKE_RECORD, the caller has taken all records with KYMO_RING_PARTIAL, found no new ones for the
 * time of config->idle_stamps, and arms then: the next record wakes it. One exception: a writer that was
 * interrupted for that long between its stamp and its commit. So the caller also looks now and then.
 *
 * Returns 0; 1: one of @events has happened already, and nothing is asked; KYMO_E_STATE: the reader is
 * read-only, or the ring that of another byte order. The futex is valid until the reader's close.
 */
KYMO_API int kymo_ring_reader_arm(struct kymo_ring_reader *reader, uint32_t events,
				  struct kymo_ring_futex *futex);
KYMO_API void kymo_ring_reader_disarm(struct kymo_ring_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
