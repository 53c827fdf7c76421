/* SPDX-License-Identifier: MIT */
/*
 * Where finished packets go: the push side of the record path.
 *
 * A sink takes whole CTF packets and metadata text. The one here writes an LTTng-style trace
 * directory: metadata, one file per stream, index/NAME.idx. Others (network, snapshot) will
 * implement the same operations.
 */
#ifndef KY_STORE_WRITER_H
#define KY_STORE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "store/block-writer.h"

/* A finished packet: bytes as they go to disk, and what the index says about them. */
struct ky_packet_out {
	const void *data;
	size_t size_bytes; /* packet size, padding and @head included */
	const void *head;  /* what stands before @data, of @head_bytes; NULL: nothing does */
	size_t head_bytes;
	uint64_t content_bits;
	uint64_t begin_cycles, end_cycles;
	uint64_t discarded; /* cumulative event records lost on this stream */
	uint64_t sequence;
	uint64_t stream_class_id, stream_id;
	uint64_t n_events; /* in it, for who counts them; may be 0 */
	/*
	 * NULL, or the block that @data begins, which becomes the sink's, on failure too: for one with blocks, and
	 * then for all packets of the stream.
	 */
	struct ky_block *block;
	bool no_times; /* packets of this stream tell no begin and end: it gets no index */
};

/* Bytes of whole packets. */
struct ky_bytes_out {
	const void *data;
	uint64_t size_bytes;
	int fd; /* a file that has them too, at offset_bytes, for the kernel to copy from; or -1. No head then */
	uint64_t offset_bytes;
	const void *head; /* what stands before @data, of @head_bytes (size_bytes has them, too) */
	uint64_t head_bytes;
};

struct ky_packet_sink;

/* Different streams may be announced and written by different threads. */
struct ky_packet_sink_ops {
	/*
	 * Announce a stream before its first packet. @name: the file's name, "channel0_1".
	 * Returns its number (>= 0) for the calls below, or negative.
	 */
	int (*stream)(struct ky_packet_sink *sink, const char *name, struct kymo_error *err);
	int (*packet)(struct ky_packet_sink *sink, int stream, const struct ky_packet_out *packet,
		      struct kymo_error *err);
	/* The two halves of ->packet: the bytes of any number of packets, and what one's index entry says. */
	int (*copy)(struct ky_packet_sink *sink, int stream, const struct ky_bytes_out *bytes,
		    struct kymo_error *err);
	int (*list)(struct ky_packet_sink *sink, int stream, const struct ky_packet_out *packet,
		    struct kymo_error *err);
	/* Replace the metadata with @text (the whole of it, TSDL). */
	int (*metadata)(struct ky_packet_sink *sink, const char *text, size_t len_bytes,
			struct kymo_error *err);
	/* Flush and close everything; frees the sink, on failure too. */
	int (*close)(struct ky_packet_sink *sink, struct kymo_error *err);
};

struct ky_packet_sink {
	const struct ky_packet_sink_ops *ops;
	uint64_t bytes_written; /* data streams only; threads add to it atomically */
};

/*
 * Create trace directory @path (0700, files 0600; parents must exist). An existing directory
 * that is not empty is refused: KYMO_E_INVALID with a hint.
 */
int ky_dir_sink_open(const char *path, struct ky_packet_sink **sink, struct kymo_error *err);

/*
 * The same, all or nothing: the trace is written beside @path under a name that begins with '.', and
 * ->close() moves it there. When that fails nothing stays behind; KYMO_E_INVALID: @path came to
 * be in the meantime.
 */
int ky_dir_sink_open_atomic(const char *path, struct ky_packet_sink **sink, struct kymo_error *err);

/* Packets that are blocks of @blocks, which must outlive @sink, one of the two above, are written by it. */
void ky_dir_sink_use_blocks(struct ky_packet_sink *sink, struct ky_block_writer *blocks);

/*
 * Instead of ->close(): remove all that was written to @sink, one of the two above, with the
 * directory if it was made for it and nothing else is in it.
 */
void ky_dir_sink_abort(struct ky_packet_sink *sink);

#endif
