/* SPDX-License-Identifier: MIT */
/*
 * One stream of a trace that is being written: its file, and its index file, index/NAME.idx.
 *
 * The file always ends with a whole packet: what a full disk cut is taken back, so that the trace stays readable
 * up to there.
 *
 * Threads: one at a time per stream.
 */
#ifndef KY_STORE_STREAM_WRITER_H
#define KY_STORE_STREAM_WRITER_H

#include "store/trace-dir.h"
#include "store/packet-store.h"

struct ky_stream_writer;

/* Create both files. @dir must outlive it. 0, KYMO_E_INVALID (the name), KYMO_E_IO, KYMO_E_MEMORY. */
int ky_stream_writer_open(const struct ky_trace_dir *dir, const char *name,
			  struct ky_stream_writer **stream, struct kymo_error *err);
/* Closes what is open; index entries that wait are lost. NULL is fine. */
void ky_stream_writer_free(struct ky_stream_writer *stream);

/* Append whole packets. 0; KYMO_E_FORMAT: the memory that they were in is gone, nothing was written; KYMO_E_IO. */
int ky_stream_writer_copy(struct ky_stream_writer *stream, const struct ky_bytes_out *bytes,
			  struct kymo_error *err);
/* The same, with a packet of @size_bytes that @block of @blocks begins with; it is used up on failure too. */
int ky_stream_writer_put(struct ky_stream_writer *stream, struct ky_block_writer *blocks,
			 struct ky_block *block, size_t size_bytes, struct kymo_error *err);
/* The index entry of the next packet that was appended. */
int ky_stream_writer_list(struct ky_stream_writer *stream, const struct ky_packet_out *packet,
			  struct kymo_error *err);

/* How many bytes of packets it was given. */
uint64_t ky_stream_writer_size(const struct ky_stream_writer *stream);

/* All packets and their index entries are in the files when it returns: it may wait for the disk. */
int ky_stream_writer_flush(struct ky_stream_writer *stream, struct kymo_error *err);

/* All packets are in the file, or what could not be written is not spoken of; ky_stream_writer_free() is still due. */
int ky_stream_writer_finish(struct ky_stream_writer *stream, struct kymo_error *err);
/* Remove the files of stream @name from @dir. */
void ky_stream_files_remove(const struct ky_trace_dir *dir, const char *name);

#endif
