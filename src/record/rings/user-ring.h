/* SPDX-License-Identifier: MIT */
/*
 * One program's ring file, and its trace: whole sub-buffers go to the trace's streams unchanged,
 * after a packet header of the recorder. The data of the program is untrusted: the program can only
 * spoil its own trace.
 *
 * Threads: one at a time per ring.
 */
#ifndef KY_RECORD_RINGS_USER_RING_H
#define KY_RECORD_RINGS_USER_RING_H

#include <stdatomic.h>
#include <stdbool.h>

#include <kymo/ring.h>

#include "base/log.h"
#include "record/rings/user-trace.h"

/* Counts of all rings so far; any thread. */
struct ky_user_counts {
	atomic_uint_fast64_t programs, events, bytes, lost;
	atomic_uint_fast64_t archived_dump_events; /* of state dumps in traces that were rotated */
};

struct ky_user_ring_options {
	struct ky_packet_store
		*store; /* traces go to ust/pid/NAME in it; it must outlive the ring */
	const struct ky_log *log;
	const char *group; /* of the trace's name; NULL: none */
	bool is_late;	   /* see struct ky_user_options */
	bool read_only;	   /* do not consume the ring: recovery */
	bool is_flight; /* copy the ring only for snapshots; at the end, the ring's contents become the trace */
	/* The required sizes of the ring; 0 and NULL: no requirement. */
	uint32_t subbuf_bytes, n_subbufs;
	uint64_t since_ns; /* CLOCK_MONOTONIC: a ring must not be older; 0: unknown */
	bool is_shared; /* must be the ring of all programs of user @uid; false: of one program */
	uint32_t uid;
	const uint8_t *session_uuid;
	const char *comm; /* the required name of the program; others: KYMO_E_NOT_FOUND */
	uint32_t
		dump_excluded; /* events that the state dump omits, a bit for each enum ky_user_dump_event */
	uint64_t description_max;	     /* limit for descriptions in bytes; 0: none */
	const struct ky_clock_record *clock; /* NULL: the program's */
	struct ky_user_counts *counts;	     /* of the whole recording; NULL: no counting */
};

/* A plausible limit: no program can lose more events, in any time. */
#define KY_USER_LOST_MAX (UINT64_C(1) << 56)

struct ky_user_dumped; /* user-dump.c: the libraries that are already in the trace */
struct ky_user_states; /* user-states.c: the same of many processes, and their notes */

struct ky_user_ring {
	char *name; /* of its file, for messages */
	int fd;	    /* -1: finished */
	uint64_t device, inode;
	uint64_t file_bytes;
	uint64_t bytes_max; /* limit for the trace; a file may claim more bytes than it has */
	struct kymo_ring_reader *reader; /* NULL: finished */
	bool read_only;
	bool is_shared;	  /* the ring of all programs of a user (KY_BLOB_SHARED) */
	bool is_broken;	  /* the program's data is malformed; the trace keeps the earlier events */
	bool is_bad_told; /* the log has the warning about malformed descriptions */
	const struct ky_log *log;

	uint64_t *blob; /* a copy of at most KY_BLOB_BYTES */
	size_t blob_bytes;
	uint64_t blob_offset;  /* in the file */
	size_t metadata_bytes; /* bytes of the blob that the metadata on disk covers */
	uint64_t told_bytes;   /* shared: the programs' count of bytes, when the blob was copied */
	uint64_t metadata_ns;  /* CLOCK_MONOTONIC time of the last writing of metadata */
	uint64_t metadata_took_ns;    /* duration of that writing */
	struct ky_clock_record clock; /* of the metadata on disk */

	struct ky_user_place place; /* of the trace */
	bool is_flight;		    /* of a flight recorder: copied at each snapshot */
	uint32_t n_buffers;
	uint32_t next_buffer; /* the buffer where reading continues */
	struct ky_user_trace trace;

	struct ky_strbuf
		dump; /* state dump events that are not written yet, or that a flight recorder keeps */
	struct ky_user_dumped *dumped;
	struct ky_user_states *states; /* shared: NULL without notes */
	uint64_t
		dump_cycles; /* of the last ones, or the bound that live readers have; others come later */
	uint32_t dump_excluded;
	uint64_t dump_missing; /* files that could not be examined because no descriptor was left */

	struct ky_user_counts *counts; /* NULL: none */
	uint64_t events, n_damaged;
	uint64_t taken_events, taken_bytes; /* flight recorder: those in chunks */
	uint64_t archived_dump_events;	    /* of the state dumps before the last rotation */
	uint64_t lost_joining, lost_no_id;
	uint64_t cut_texts;   /* the program's own count */
	uint64_t lost_unread; /* of a ring that became malformed: number of unread events */
	uint64_t since_ns;
	uint64_t lost_claimed; /* the program's own count, if it is implausible; lost is then 0 */
	uint64_t unread;       /* records that could not be read */
	struct kymo_ring_stats stats; /* valid once finished */
};

/*
 * Open the ring in @fd, which the ring takes over, and make its trace directory with metadata
 * (except for a flight recorder). @name: the file's name. On failure the function closes @fd.
 *
 * Returns 0. KYMO_E_FORMAT, KYMO_E_UNSUPPORTED: not a ring of Kymo, or not the expected one;
 * KYMO_E_STATE: another reader has it; KYMO_E_LIMIT: there is no room for it; KYMO_E_NOT_FOUND: its
 * program is not selected. These errors concern this program alone; others: the output cannot be
 * written.
 */
int ky_user_ring_open(int fd, const char *name, const struct ky_user_ring_options *options,
		      struct ky_user_ring **ring, struct kymo_error *err);

/*
 * Write the available data: whole sub-buffers; with @all, everything up to now. Returns 1: there
 * were data; 2: there are more data, but other rings should have their turn; 0: no data; negative:
 * the output cannot be written. For a malformed ring, the function logs a warning and sets
 * is_broken.
 */
int ky_user_ring_read(struct ky_user_ring *ring, bool all, struct kymo_error *err);

/*
 * Whether the program has described more events, and it is time to write them into the metadata;
 * and the writing.
 */
bool ky_user_ring_is_behind(const struct ky_user_ring *ring);
/* Whether it has described more events, or loaded files, though it may be too early to write that. */
bool ky_user_ring_has_more(const struct ky_user_ring *ring);
int ky_user_ring_follow(struct ky_user_ring *ring, struct kymo_error *err);

/* Whether no other process has the file open or mapped. */
bool ky_user_ring_is_left(const struct ky_user_ring *ring);

/* Reads the rest, writes the last losses, completes the metadata, closes all files. */
int ky_user_ring_finish(struct ky_user_ring *ring, struct kymo_error *err);

/*
 * The alternative when the output cannot be written: the events so far stay a trace, the rest is
 * dropped.
 */
void ky_user_ring_abandon(struct ky_user_ring *ring);

/* Frees the event descriptions of a finished ring; its name and counts stay. */
void ky_user_ring_forget_events(struct ky_user_ring *ring);

/* Sets the clock in the metadata of a finished ring. */
int ky_user_ring_set_clock(struct ky_user_ring *ring, const struct ky_clock_record *clock,
			   struct kymo_error *err);

/*
 * Everything up to now becomes a complete trace in @archive of the store, with the clock @ended. A
 * ring that is not finished continues in a new trace, with the clock @next; one that is finished
 * has no trace afterwards. Errors: those of ky_user_ring_read().
 */
int ky_user_ring_rotate(struct ky_user_ring *ring, const char *archive,
			const struct ky_clock_record *ended, const struct ky_clock_record *next,
			struct kymo_error *err);

/* NULL is allowed. */
void ky_user_ring_free(struct ky_user_ring *ring);

/* All losses of a finished ring, by the ring and before it, as far as they are plausible. */
uint64_t ky_user_ring_lost(const struct ky_user_ring *ring);

/*
 * Flight recorder: make a trace of the ring's present contents, in ust/pid of @place, with @clock.
 * Programs continue to write. An empty ring makes no trace. *events, *bytes: of that trace.
 */
int ky_user_ring_snapshot(struct ky_user_ring *ring, const struct ky_user_place *place,
			  const struct ky_clock_record *clock, uint64_t *events, uint64_t *bytes,
			  struct kymo_error *err);

/*
 * The same, for a chunk: later traces of the ring do not have these events again. They have the clock @next.
 */
int ky_user_ring_take(struct ky_user_ring *ring, const struct ky_user_place *place,
		      const struct ky_clock_record *ended, const struct ky_clock_record *next,
		      struct kymo_error *err);

/* Flight recorder: snapshots, and the trace at the end, no longer have the events until now. */
void ky_user_ring_forget(struct ky_user_ring *ring);

/* Writes the collected state dump events at @cycles; a flight recorder keeps them. */
int ky_user_ring_write_dump(struct ky_user_ring *ring, uint64_t cycles, struct kymo_error *err);

/*
 * An error that concerns only the program marks the ring as broken and becomes KYMO_OK. For other
 * errors the function returns @ret.
 */
int ky_user_ring_excuse(struct ky_user_ring *ring, int ret, const struct kymo_error *err);

/*
 * Whether an error of reading, copying or finishing a ring concerns only its program. Other errors
 * are those of the output or of the recorder itself, which then ends.
 */
static inline bool ky_user_ring_is_own_error(int ret)
{
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_UNSUPPORTED ||
	       ret == KYMO_E_STATE;
}

static inline const struct ky_blob *ky_user_ring_blob(const struct ky_user_ring *ring)
{
	return (const struct ky_blob *)ring->blob;
}

#endif
