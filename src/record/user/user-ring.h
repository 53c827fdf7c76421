/* SPDX-License-Identifier: MIT */
/*
 * One program's ring file, and the trace that is made of it: whole sub-buffers go to the trace's
 * streams as they are, behind a packet header of ours. Nothing that the program wrote is trusted:
 * what it can spoil is its own trace.
 *
 * Threads: one at a time per ring.
 */
#ifndef KY_RECORD_USER_USER_RING_H
#define KY_RECORD_USER_USER_RING_H

#include <stdatomic.h>
#include <stdbool.h>

#include <kymo/ring.h>

#include "base/log.h"
#include "record/user/user-trace.h"

/* What was read of all rings until now; any thread. */
struct ky_user_counts {
	atomic_uint_fast64_t programs, events, bytes, lost;
};

struct ky_user_ring_options {
	struct ky_packet_store
		*store; /* traces go to ust/pid/NAME in it; it must outlive the ring */
	const struct ky_log *log;
	bool read_only; /* take nothing out of the ring: recovery */
	bool is_flight; /* keep what the ring holds, for snapshots; at the end it becomes the trace */
	/* What the ring must be like; 0 and NULL: like anything. */
	uint32_t subbuf_bytes, n_subbufs;
	uint64_t since_ns; /* CLOCK_MONOTONIC: it is not older than this; 0: not known */
	const uint8_t *session_uuid;
	const char *comm;	  /* what its program must be called; others: KYMO_E_NOT_FOUND */
	uint32_t dump_excluded;	  /* of the state dump, a bit for each enum ky_user_dump_event */
	uint64_t description_max; /* bytes of descriptions that there is room for; 0: any */
	const struct ky_clock_record *clock; /* NULL: as the program says */
	struct ky_user_counts *counts;	     /* of the whole recording; NULL: none */
};

/* Nobody has lost more, however long it took. */
#define KY_USER_LOST_MAX (UINT64_C(1) << 56)

struct ky_user_dumped; /* user-dump.c: which libraries were written already */

struct ky_user_ring {
	char *name; /* of its file, for messages */
	int fd;	    /* -1: finished */
	uint64_t device, inode;
	uint64_t file_bytes;
	uint64_t bytes_max;		 /* of the trace; a file may claim more than it has */
	struct kymo_ring_reader *reader; /* NULL: finished */
	bool read_only;
	bool is_broken;	  /* something makes no sense: what came before is kept */
	bool is_bad_told; /* that some descriptions make none */
	const struct ky_log *log;

	uint64_t *blob; /* KY_BLOB_BYTES at most; a copy */
	size_t blob_bytes;
	uint64_t blob_offset;	      /* in the file */
	size_t metadata_bytes;	      /* of the blob that the metadata on disk speaks of */
	uint64_t metadata_ns;	      /* when it was written; CLOCK_MONOTONIC */
	uint64_t metadata_took_ns;    /* how long that took */
	struct ky_clock_record clock; /* of the metadata on disk */

	struct ky_packet_store *store; /* where its trace goes */
	bool is_flight; /* a flight recorder's: it is copied, whenever somebody wants that */
	uint32_t n_buffers;
	uint32_t next_buffer; /* where reading goes on */
	struct ky_user_trace trace;

	struct ky_strbuf dump; /* the state dump's events that are not written, or kept */
	struct ky_user_dumped *dumped;
	uint32_t dump_excluded;
	uint64_t dump_missing; /* files that could not be looked at for want of descriptors */

	struct ky_user_counts *counts; /* NULL: none */
	uint64_t events, n_damaged;
	uint64_t lost_joining, lost_no_id;
	uint64_t cut_texts;   /* as the program says */
	uint64_t lost_unread; /* of a ring that makes no sense any more: what was not read of it */
	uint64_t since_ns;
	uint64_t
		lost_claimed; /* the program says so, but in that time nobody can lose so many: then lost is 0 */
	uint64_t unread;	      /* records that could not be read */
	struct kymo_ring_stats stats; /* valid once finished */
};

/*
 * Open the ring in @fd, which becomes the ring's, and (but for a flight recorder's) make its trace
 * directory with metadata.
 * @name: of the file. On failure @fd is closed.
 * KYMO_E_FORMAT, KYMO_E_UNSUPPORTED: not a ring of ours, or not what is expected; KYMO_E_STATE: somebody else reads
 * it; KYMO_E_LIMIT: there is no room for it; KYMO_E_NOT_FOUND: its program is not meant. All these are about this
 * program alone; others: the output cannot be written.
 */
int ky_user_ring_open(int fd, const char *name, const struct ky_user_ring_options *options,
		      struct ky_user_ring **ring, struct kymo_error *err);

/*
 * Write what is there: whole sub-buffers; with @all, everything up to now.
 * Returns 1: there was something; 2: there is more, but others should have their turn; 0: nothing; negative: the
 * output cannot be written. A ring that makes no sense is said to the log and is_broken.
 */
int ky_user_ring_read(struct ky_user_ring *ring, bool all, struct kymo_error *err);

/* Whether the program has told of more events, and it is time to write that into the metadata; then do. */
bool ky_user_ring_is_behind(const struct ky_user_ring *ring);
int ky_user_ring_follow(struct ky_user_ring *ring, struct kymo_error *err);

/* Whether nobody has the file open or mapped but us. */
bool ky_user_ring_is_left(const struct ky_user_ring *ring);

/* Read the rest, tell the last losses, complete the metadata, close all files. */
int ky_user_ring_finish(struct ky_user_ring *ring, struct kymo_error *err);

/* Instead, when the output cannot be written any more: what was read stays a trace, the rest is left. */
void ky_user_ring_abandon(struct ky_user_ring *ring);

/* Of a finished ring: what the program said of its events is needed no more; its name and such stay. */
void ky_user_ring_forget_events(struct ky_user_ring *ring);

/* Of a finished ring: @clock is what its metadata is to tell. */
int ky_user_ring_set_clock(struct ky_user_ring *ring, const struct ky_clock_record *clock,
			   struct kymo_error *err);

/* NULL is fine. */
void ky_user_ring_free(struct ky_user_ring *ring);

/* All that was lost, by the ring and before it, as far as it can be true. Of a finished ring. */
uint64_t ky_user_ring_lost(const struct ky_user_ring *ring);

/*
 * A flight recorder's: make a trace of what the ring holds now, in OUTPUT/ust/pid, with @clock. Programs
 * go on writing. A ring that holds nothing makes none. *events, *bytes: of that trace.
 */
int ky_user_ring_snapshot(struct ky_user_ring *ring, struct ky_packet_store *store,
			  const struct ky_clock_record *clock, uint64_t *events, uint64_t *bytes,
			  struct kymo_error *err);

/* Write the state dump's events that were collected, at @cycles; a flight recorder keeps them. */
int ky_user_ring_write_dump(struct ky_user_ring *ring, uint64_t cycles, struct kymo_error *err);

/* What is the program's own trouble makes the ring broken, and is none for others: KYMO_OK. Else returns @ret. */
int ky_user_ring_excuse(struct ky_user_ring *ring, int ret, const struct kymo_error *err);

/*
 * Whether an error of reading, copying or finishing a ring is its program's own trouble. Others are those of
 * the output or of the recorder itself, which ends.
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
