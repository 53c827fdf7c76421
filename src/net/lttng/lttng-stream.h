/* SPDX-License-Identifier: MIT */
/*
 * One stream that an LTTng consumer daemon sends: its packets come over the data connection, their index over the
 * control connection, in any order between the two. A packet and its index meet here.
 *
 * What waits for its other half is bounded: both connections have the same order, and a daemon waits for the answer to
 * each index.
 *
 * Errors: KYMO_E_FORMAT: the daemon's data makes no sense; KYMO_E_LIMIT; KYMO_E_IO: the disk; KYMO_E_MEMORY.
 * Threads: one.
 */
#ifndef KY_NET_LTTNG_LTTNG_STREAM_H
#define KY_NET_LTTNG_LTTNG_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "net/files/relay-batch.h"
#include "net/lttng/lttng-protocol.h"
#include "net/lttng/lttng-trace.h"
#include "store/directory/index-record.h"

/* A packet that is in its file, but not in the index. */
struct ky_lttng_packet {
	uint64_t number;
	uint64_t file; /* number of the file, as in struct ky_lttng_stream */
	uint64_t offset_bytes, bytes;
};

/* An index record without its packet; its numbers are as they came. */
struct ky_lttng_record {
	uint64_t number;
	struct ky_index_record record;
};

struct ky_lttng_consumer;

struct ky_lttng_stream {
	struct ky_relay_stream_file
		file;	 /* first: the batch knows only this; descriptors: -1: none */
	uint64_t handle; /* the daemon's number for it; random */
	struct ky_lttng_consumer *consumer; /* for the owner */
	struct ky_lttng_traces *traces;
	struct ky_lttng_trace *trace; /* NULL: it belongs to no chunk at present */
	char *path, *name;
	bool is_metadata;
	bool has_index;	       /* the daemon sends one */
	uint32_t record_bytes; /* of its records */
	uint64_t file_bytes_max,
		files; /* a new file begins at this size; 0: never. At most so many; 0: any */

	uint64_t file_number, index_file; /* of the open files */
	uint64_t highest_file;
	uint64_t size_bytes;	/* whole packets in the file, or on their way to it */
	uint64_t written_bytes; /* whole packets in the file for certain */
	uint64_t shown_bytes;	/* packets with an index, in the file of the index */
	uint64_t taken_bytes;	/* of the packet that is coming in */
	bool is_padded;		/* the padding of that packet is written */
	bool is_busy;		/* a packet is coming in */
	bool is_index_broken;	/* it does not fit the packets: readers do without */

	uint64_t data_number, index_number; /* of the last packet and record; UINT64_MAX: none */
	uint64_t last_number; /* of the last packet that will come; UINT64_MAX: not known */
	KY_VEC(struct ky_lttng_packet) packets;
	KY_VEC(struct ky_lttng_record) records;

	bool rotates; /* to the chunk @to, or (NULL) out of its chunk, */
	struct ky_lttng_chunk *to;
	uint64_t rotate_sequence; /* from this packet on, by the tracer's number */
	uint64_t next_sequence;	  /* after the last packet with an index */

	uint8_t *out; /* records on their way to the file; NULL: none yet */
	size_t n_out;

	uint64_t until_cycles; /* all packets before this time are here */
	bool is_checked, is_closing;
	unsigned int
		n_files; /* for the owner: that it may have open, with those of a trace that it began */
};

struct ky_lttng_stream_spec {
	const char *path, *channel; /* checked; copied */
	uint64_t file_bytes, files;
	bool has_index, has_sequence;
};

/* A stream of @chunk. */
int ky_lttng_stream_new(struct ky_lttng_traces *traces, struct ky_lttng_chunk *chunk,
			const struct ky_lttng_stream_spec *spec, struct ky_lttng_stream **stream,
			struct kymo_error *err);
/* Its files are complete, as far as packets have come. NULL is allowed. */
void ky_lttng_stream_free(struct ky_lttng_stream *stream);

/*
 * A packet: its begin, its bytes in any pieces (the last one with the size of the padding, else 0), its end. @data must stay as
 * it is until ky_lttng_traces_write().
 */
int ky_lttng_stream_begin(struct ky_lttng_stream *stream, const struct ky_lttng_data_head *head,
			  struct kymo_error *err);
int ky_lttng_stream_write(struct ky_lttng_stream *stream, const uint8_t *data, size_t bytes,
			  size_t padding_bytes, struct kymo_error *err);
int ky_lttng_stream_end(struct ky_lttng_stream *stream, const struct ky_lttng_data_head *head,
			struct kymo_error *err);
/* Sets the error: KYMO_E_FORMAT. */
int ky_lttng_stream_no_chunk(struct kymo_error *err);
/* The rest of the packet that is coming in will not come. */
void ky_lttng_stream_cancel(struct ky_lttng_stream *stream);

/* A record of the index, or a time. @index is in the host's byte order. */
int ky_lttng_stream_index(struct ky_lttng_stream *stream, const struct ky_lttng_index *index,
			  struct kymo_error *err);
/* The stream goes to chunk @to (NULL: to none) with the packet @sequence. */
int ky_lttng_stream_rotate(struct ky_lttng_stream *stream, struct ky_lttng_chunk *to,
			   uint64_t sequence, struct kymo_error *err);

/* Writes the records so far to the index. Without a chunk: no effect. */
int ky_lttng_stream_flush(struct ky_lttng_stream *stream, struct kymo_error *err);

/* Whether packet @number is not here yet, or its index. */
bool ky_lttng_stream_is_pending(const struct ky_lttng_stream *stream, uint64_t number);
/* For `.live`: the sizes of its files that can be read, as lines. Returns their number, at most @lines_max. */
uint64_t ky_lttng_stream_put_live(const struct ky_lttng_stream *stream, uint64_t lines_max,
				  struct ky_strbuf *text);

#endif
