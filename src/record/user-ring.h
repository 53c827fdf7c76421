/* SPDX-License-Identifier: MIT */
/*
 * One program's ring file, and the trace that is made of it: whole sub-buffers go to the trace's
 * streams as they are, behind a packet header of ours. Nothing that the program wrote is trusted:
 * what it can spoil is its own trace.
 *
 * Threads: one at a time per ring.
 */
#ifndef KY_RECORD_USER_RING_H
#define KY_RECORD_USER_RING_H

#include <stdbool.h>

#include <kymo/ring.h>

#include "base/log.h"
#include "ctf/packet-writer.h"
#include "os/clock.h"
#include "record/user-model.h"
#include "store/writer.h"

struct ky_user_ring_options {
	const char *output; /* traces go to OUTPUT/ust/pid/NAME */
	const struct ky_log *log;
	bool read_only; /* take nothing out of the ring: recovery */
	/* What the ring must be like; 0 and NULL: like anything. */
	uint32_t subbuf_bytes, n_subbufs;
	const uint8_t *session_uuid;
	const char *comm; /* what its program must be called; others: KYMO_E_NOT_FOUND */
};

/* A stream of the trace: one per buffer, and the state dump's. */
struct ky_user_stream {
	int number; /* the sink's; -1: nothing was written yet */
	uint64_t sequence;
	uint64_t last_cycles; /* the last packet's end */
	uint64_t discarded;   /* as the last packet told */
};

struct ky_user_dumped; /* user-dump.c: which libraries were written already */

struct ky_user_ring {
	char *name; /* of its file, for messages */
	int fd;	    /* -1: finished */
	uint64_t device, inode;
	uint64_t file_bytes;
	uint64_t bytes_max;		 /* of the trace; a file may claim more than it has */
	struct kymo_ring_reader *reader; /* NULL: finished */
	bool read_only;
	bool is_broken; /* something makes no sense: what came before is kept */
	const struct ky_log *log;

	uint64_t *blob; /* KY_BLOB_BYTES at most; a copy */
	size_t blob_bytes;
	uint64_t blob_offset;	      /* in the file */
	size_t metadata_bytes;	      /* of the blob that the metadata on disk speaks of */
	uint64_t metadata_ns;	      /* when it was last followed */
	struct ky_clock_record clock; /* of the metadata on disk */

	char *path; /* of the trace */
	char trace_name[KY_USER_TRACE_NAME_BYTES + 8];
	struct ky_packet_sink *sink;
	struct ky_user_stream *streams; /* n_streams */
	uint32_t n_streams;

	struct ky_user_stream dump_stream;
	struct ky_packet_writer dump_writer;
	struct ky_user_dumped *dumped;

	uint64_t events, bytes, dump_events, n_damaged;
	uint64_t lost_joining, lost_no_id;
	uint64_t unread;	      /* records that could not be read */
	struct kymo_ring_stats stats; /* valid once finished */
};

/*
 * Open the ring in @fd, which becomes the ring's, and make its trace directory with metadata.
 * @name: of the file. On failure @fd is closed.
 * KYMO_E_FORMAT: not a ring of ours, or not what is expected; KYMO_E_STATE: somebody else reads it;
 * others: the output cannot be written.
 */
int ky_user_ring_open(int fd, const char *name, const struct ky_user_ring_options *options,
		      struct ky_user_ring **ring, struct kymo_error *err);

/*
 * Write what is there: whole sub-buffers; with @all, everything up to now.
 * Returns 1: there was something; 0: nothing; negative: the output cannot be written. A ring that
 * makes no sense is said to the log and is_broken.
 */
int ky_user_ring_read(struct ky_user_ring *ring, bool all, struct kymo_error *err);

/* Whether nobody has the file open or mapped but us. */
bool ky_user_ring_is_left(const struct ky_user_ring *ring);

/* Read the rest, tell the last losses, complete the metadata, close all files. */
int ky_user_ring_finish(struct ky_user_ring *ring, struct kymo_error *err);

/* Of a finished ring: write its metadata again, with @clock. */
int ky_user_ring_set_clock(struct ky_user_ring *ring, const struct ky_clock_record *clock,
			   struct kymo_error *err);

/* NULL is fine. */
void ky_user_ring_free(struct ky_user_ring *ring);

/* All that was lost, by the ring and before it. Of a finished ring. */
uint64_t ky_user_ring_lost(const struct ky_user_ring *ring);

/* Send the packet that is being built for the state dump. */
int ky_user_ring_send_dump(struct ky_user_ring *ring, uint64_t end_cycles, struct kymo_error *err);

static inline const struct ky_blob *ky_user_ring_blob(const struct ky_user_ring *ring)
{
	return (const struct ky_blob *)ring->blob;
}

#endif
