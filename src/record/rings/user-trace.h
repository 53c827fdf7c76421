/* SPDX-License-Identifier: MIT */
/*
 * The trace of one program: OUTPUT/ust/pid/NAME-PID-DATE. Packets of a ring go to it unchanged,
 * after a packet header of the recorder; the state dump has a stream of its own.
 *
 * Threads: one at a time per trace.
 */
#ifndef KY_RECORD_RINGS_USER_TRACE_H
#define KY_RECORD_RINGS_USER_TRACE_H

#include <stdbool.h>

#include <kymo/ring.h>

#include "base/strbuf.h"
#include "ctf/encode/packet-writer.h"
#include "record/rings/user-metadata.h"
#include "record/request/user-group.h"
#include "record/request/user-options.h"
#include "store/packets/packet-store.h"

/* A stream of the trace: one per buffer, and the state dump's. */
struct ky_user_stream {
	int number;	       /* the sink's number; -1: no packet yet */
	uint64_t sequence;     /* of the next packet */
	uint64_t first_subbuf; /* number of the sub-buffer in the first packet */
	uint64_t last_cycles;  /* end of the last packet */
	uint64_t discarded;    /* the count in the last packet */
};

/* The place of a new trace. */
struct ky_user_place {
	struct ky_packet_store *store;
	const char *group;   /* NULL: the main buffers; must outlive the trace */
	const char *archive; /* a directory of the store; NULL: the store itself */
	bool is_late;	     /* see struct ky_user_options */
};

/* A zeroed struct is not open. */
struct ky_user_trace {
	char *path; /* NULL: not open */
	char name[KY_USER_TRACE_NAME_BYTES + KY_USER_GROUP_NAME_MAX + 24];
	const char *group;
	bool is_late;
	uint8_t uuid[16];
	struct ky_store_trace *packets; /* NULL: closed */
	struct ky_user_stream *streams; /* n_streams: one per buffer */
	uint32_t n_streams;
	bool ended; /* its streams are complete */
	/* The place of the clock's values in the metadata; clock_bytes 0: none. */
	uint64_t clock_at_bytes;
	size_t clock_bytes;
	bool is_copy; /* of a ring in overwrite mode: missing sub-buffers are missing packets */
	bool is_recovered;     /* of a ring whose beginning a killed recorder has read */
	uint64_t first_cycles; /* begin of the first packet; UINT64_MAX: none */
	struct ky_user_stream dump_stream;
	struct ky_packet_writer dump_writer;
	int32_t vpid;
	uint64_t dump_events;
	uint64_t bytes; /* of data; valid after the end of its streams */
};

/*
 * Make the trace of @blob's program at @place, for @n_streams buffers, with metadata; *n_bad: see
 * ky_user_metadata(). KYMO_E_FORMAT: the program's data is malformed, KYMO_E_LIMIT: no descriptor
 * is left; in both cases the function made no files. KYMO_E_IO, KYMO_E_MEMORY. The caller must call
 * fini in any case.
 */
int ky_user_trace_open(struct ky_user_trace *trace, const struct ky_user_place *place,
		       const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		       uint32_t n_streams, uint32_t *n_bad, struct kymo_error *err);

/* Writes the metadata again. *n_bad: see ky_user_metadata(). Errors: those of open. */
int ky_user_trace_metadata(struct ky_user_trace *trace, const struct ky_user_blob *blob,
			   const struct ky_clock_record *clock, uint32_t *n_bad,
			   struct kymo_error *err);

/*
 * Correct the clock in the metadata, also after ky_user_trace_end(). When the store cannot replace
 * a part of the metadata, the trace keeps its first clock. KYMO_E_FORMAT: the clock does not fit;
 * KYMO_E_LIMIT, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_user_trace_set_clock(struct ky_user_trace *trace, const struct ky_clock_record *clock,
			    struct kymo_error *err);

/*
 * Write a packet. Times and loss counts in the trace never go back, even when the program's do.
 * KYMO_E_FORMAT: the program truncated the file with @body; KYMO_E_LIMIT: no descriptor is left;
 * KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_user_trace_packet(struct ky_user_trace *trace, const struct kymo_ring_packet *packet,
			 const void *body, uint64_t body_bytes, struct kymo_error *err);

/*
 * The trace so far moves to @archive in the store. Unless the trace has ended, a new one begins in
 * its place, and the caller must then write its metadata and call ky_user_trace_begin_streams().
 */
int ky_user_trace_rotate(struct ky_user_trace *trace, const char *archive, struct kymo_error *err);
/*
 * Each stream of the new trace that has lost events begins with an empty packet, which tells the
 * losses until then. @step_cycles: the distance between the begins of packets.
 */
int ky_user_trace_begin_streams(struct ky_user_trace *trace, uint64_t step_cycles,
				struct kymo_error *err);

/* The head of one state dump event in @events; `bytes` of fields follow. */
struct ky_user_dump_head {
	uint32_t id; /* enum ky_user_dump_event */
	uint32_t bytes;
};

/* Writes all of @events, at @cycles. */
int ky_user_trace_dump(struct ky_user_trace *trace, const struct ky_strbuf *events, uint64_t cycles,
		       struct kymo_error *err);

/*
 * Completes the streams: no packet follows, but ky_user_trace_set_clock() may. No effect on a
 * closed trace.
 */
int ky_user_trace_end(struct ky_user_trace *trace, struct kymo_error *err);
/* Completes the trace with its streams. No effect on a closed trace. */
int ky_user_trace_close(struct ky_user_trace *trace, struct kymo_error *err);
void ky_user_trace_fini(struct ky_user_trace *trace);

#endif
