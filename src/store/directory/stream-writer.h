/* SPDX-License-Identifier: MIT */
/*
 * A stream of a trace during its writing: its file, and its index file, index/NAME.idx.
 *
 * The file always ends with a whole packet: when the disk is full, the writer truncates the
 * incomplete packet, so that the trace stays readable.
 *
 * Threads: one at a time per stream.
 */
#ifndef KY_STORE_STREAM_WRITER_H
#define KY_STORE_STREAM_WRITER_H

#include "store/directory/trace-dir.h"
#include "store/packets/packet-store.h"

struct ky_stream_writer;

/*
 * Creates both files. @dir must outlive the stream. Returns 0, KYMO_E_INVALID (the name),
 * KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_stream_writer_open(const struct ky_trace_dir *dir, const char *name,
			  struct ky_stream_writer **stream, struct kymo_error *err);
/* Closes the files; waiting index entries are lost. NULL is allowed. */
void ky_stream_writer_free(struct ky_stream_writer *stream);

/*
 * Appends whole packets. Returns 0; KYMO_E_FORMAT: the file behind the packets' memory was
 * truncated, nothing was written; KYMO_E_IO.
 */
int ky_stream_writer_copy(struct ky_stream_writer *stream, const struct ky_bytes_out *bytes,
			  struct kymo_error *err);
/*
 * The same for a packet of @size_bytes at the beginning of @block, a block of @blocks. Takes the
 * block over, on failure too.
 */
int ky_stream_writer_put(struct ky_stream_writer *stream, struct ky_block_writer *blocks,
			 struct ky_block *block, size_t size_bytes, struct kymo_error *err);
/* Adds the index entry of the next appended packet. */
int ky_stream_writer_list(struct ky_stream_writer *stream, const struct ky_packet_out *packet,
			  struct kymo_error *err);

/* The number of bytes of all packets so far. */
uint64_t ky_stream_writer_size(const struct ky_stream_writer *stream);

/*
 * Writes all packets and index entries to the files before it returns, so it may wait for the disk.
 */
int ky_stream_writer_flush(struct ky_stream_writer *stream, struct kymo_error *err);

/*
 * Completes the file: it has all packets, or ends before the first one that could not be written.
 * The caller must still call ky_stream_writer_free().
 */
int ky_stream_writer_finish(struct ky_stream_writer *stream, struct kymo_error *err);
/* Removes the files of stream @name from @dir. */
void ky_stream_files_remove(const struct ky_trace_dir *dir, const char *name);

#endif
