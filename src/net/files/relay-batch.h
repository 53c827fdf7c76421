/* SPDX-License-Identifier: MIT */
/*
 * Writes to files of streams: packets that follow each other in a file are one write, and so are their index
 * records, which wait for the end of a turn.
 *
 *	ky_relay_batch_data(&batch, &file, data, bytes, at_bytes);
 *	ky_relay_batch_record(&batch, &file, record, at_bytes);
 *	...
 *	ret = ky_relay_batch_write_data(&batch, &failed);
 *	...
 *	ret = ky_relay_batch_write(&batch, &failed);
 *
 * Threads: one at a time per batch.
 */
#ifndef KY_NET_FILES_RELAY_BATCH_H
#define KY_NET_FILES_RELAY_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define KY_RELAY_BATCH_FILES   8
#define KY_RELAY_BATCH_PARTS   32
#define KY_RELAY_BATCH_RECORDS 32
#define KY_RELAY_RECORD_BYTES  72

/* A file of a stream, with its index. */
struct ky_relay_stream_file {
	int fd, index_fd;
	uint64_t room_bytes; /* ky_relay_reserve() */
};

/* What one of them gets. */
struct ky_relay_batch_file {
	struct ky_relay_stream_file *file;
	uint64_t at_bytes, end_bytes; /* of the parts */
	size_t n_parts;
	uint64_t record_at_bytes;
	size_t n_records;
	struct iovec parts[KY_RELAY_BATCH_PARTS];
	uint8_t records[KY_RELAY_BATCH_RECORDS][KY_RELAY_RECORD_BYTES];
};

struct ky_relay_batch {
	size_t n;
	struct ky_relay_batch_file files[KY_RELAY_BATCH_FILES];
};

/*
 * @data is to be at @at_bytes of the file. It stays the caller's, and must stay as it is until the write, as @file must.
 * False: write the batch first.
 */
bool ky_relay_batch_data(struct ky_relay_batch *batch, struct ky_relay_stream_file *file,
			 const uint8_t *data, size_t bytes, uint64_t at_bytes);
/* The same for a record of the index, which is copied. */
bool ky_relay_batch_record(struct ky_relay_batch *batch, struct ky_relay_stream_file *file,
			   const uint8_t record[KY_RELAY_RECORD_BYTES], uint64_t at_bytes);
/* Writes the data, which is the caller's again; the records stay. Returns as ky_relay_batch_write(). */
int ky_relay_batch_write_data(struct ky_relay_batch *batch, struct ky_relay_stream_file **failed);
/*
 * Writes all; then the batch is empty, after a failure, too. Returns 0 or -errno; then *failed is the first file that could
 * not be written.
 */
int ky_relay_batch_write(struct ky_relay_batch *batch, struct ky_relay_stream_file **failed);

#endif
