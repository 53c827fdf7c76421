/* SPDX-License-Identifier: MIT */
/*
 * The trace of one program: OUTPUT/ust/pid/NAME-PID-DATE. Packets of a ring go to it as they are,
 * behind a packet header of ours; the state dump has a stream of its own.
 *
 * Threads: one at a time per trace.
 */
#ifndef KY_RECORD_USER_USER_TRACE_H
#define KY_RECORD_USER_USER_TRACE_H

#include <stdbool.h>

#include <kymo/ring.h>

#include "base/strbuf.h"
#include "ctf/encode/packet-writer.h"
#include "record/user/user-model.h"
#include "store/packet-store.h"

/* A stream of the trace: one per buffer, and the state dump's. */
struct ky_user_stream {
	int number;	       /* the sink's; -1: nothing was written yet */
	uint64_t sequence;     /* of the next packet */
	uint64_t first_subbuf; /* number of the sub-buffer that the first packet was made of */
	uint64_t last_cycles;  /* the last packet's end */
	uint64_t discarded;    /* as the last packet told */
};

/* Zeroed: not opened. */
struct ky_user_trace {
	char *path; /* NULL: not opened */
	char name[KY_USER_TRACE_NAME_BYTES + 24];
	uint8_t uuid[16];
	struct ky_store_trace *packets; /* NULL: closed */
	struct ky_user_stream *streams; /* n_streams: one per buffer */
	uint32_t n_streams;
	bool ended; /* its streams are complete */
	/* Of the metadata: where the clock's values stand; clock_bytes 0: nowhere. */
	uint64_t clock_at_bytes;
	size_t clock_bytes;
	bool is_copy; /* of a ring that is overwritten: missing sub-buffers are missing packets */
	bool is_recovered;     /* of a ring that a killed recorder read the beginning of */
	uint64_t first_cycles; /* where the first packet begins; UINT64_MAX: there is none */
	struct ky_user_stream dump_stream;
	struct ky_packet_writer dump_writer;
	int32_t vpid;
	uint64_t dump_events;
	uint64_t bytes; /* of data; valid once its streams have ended */
};

/*
 * Make the trace of @blob's program in @store, of @n_streams buffers, with metadata; *n_bad: as ky_user_metadata().
 * KYMO_E_FORMAT: the program makes no sense, KYMO_E_LIMIT: no descriptor is left for it; nothing was made. KYMO_E_IO,
 * KYMO_E_MEMORY. fini is due in any case.
 */
int ky_user_trace_open(struct ky_user_trace *trace, struct ky_packet_store *store,
		       const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		       uint32_t n_streams, uint32_t *n_bad, struct kymo_error *err);

/* Write the metadata again. *n_bad: as ky_user_metadata(). Errors: as those of open. */
int ky_user_trace_metadata(struct ky_user_trace *trace, const struct ky_user_blob *blob,
			   const struct ky_clock_record *clock, uint32_t *n_bad,
			   struct kymo_error *err);

/*
 * Correct the clock in the metadata, also after ky_user_trace_end(). A store that cannot replace a part of the metadata
 * keeps the clock that the trace began with. KYMO_E_FORMAT: the clock does not fit; KYMO_E_LIMIT, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_user_trace_set_clock(struct ky_user_trace *trace, const struct ky_clock_record *clock,
			    struct kymo_error *err);

/*
 * What the program says about times and losses never goes back in the trace, whatever it says. KYMO_E_FORMAT: the
 * program took @body away; KYMO_E_LIMIT: no descriptor is left; KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_user_trace_packet(struct ky_user_trace *trace, const struct kymo_ring_packet *packet,
			 const void *body, uint64_t body_bytes, struct kymo_error *err);

/* One event of the state dump, as it stands in @events: this, then `bytes` of fields. */
struct ky_user_dump_head {
	uint32_t id; /* enum ky_user_dump_event */
	uint32_t bytes;
};

/* Write all of @events, at @cycles. */
int ky_user_trace_dump(struct ky_user_trace *trace, const struct ky_strbuf *events, uint64_t cycles,
		       struct kymo_error *err);

/* Complete the streams: no packet follows, but ky_user_trace_set_clock() may. Nothing happens to a trace that is not open. */
int ky_user_trace_end(struct ky_user_trace *trace, struct kymo_error *err);
/* Complete the trace, its streams included. Nothing happens to one that is not open. */
int ky_user_trace_close(struct ky_user_trace *trace, struct kymo_error *err);
void ky_user_trace_fini(struct ky_user_trace *trace);

#endif
