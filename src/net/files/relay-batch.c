/* SPDX-License-Identifier: MIT */
#include "net/files/relay-batch.h"

#include <errno.h>
#include <string.h>

#include "net/files/relay-files.h"

/* The file's part of the batch; NULL: there is no room for one. */
static struct ky_relay_batch_file *relay_batch_part(struct ky_relay_batch *batch,
						    struct ky_relay_stream_file *file)
{
	for (size_t i = 0; i < batch->n; i++)
		if (batch->files[i].file == file)
			return &batch->files[i];
	if (batch->n == KY_RELAY_BATCH_FILES)
		return NULL;
	batch->files[batch->n].file = file;
	batch->files[batch->n].n_parts = batch->files[batch->n].n_records = 0;
	return &batch->files[batch->n++];
}

bool ky_relay_batch_data(struct ky_relay_batch *batch, struct ky_relay_stream_file *file,
			 const uint8_t *data, size_t bytes, uint64_t at_bytes)
{
	struct ky_relay_batch_file *part = relay_batch_part(batch, file);

	if (!part || (part->n_parts &&
		      (part->n_parts == KY_RELAY_BATCH_PARTS || part->end_bytes != at_bytes)))
		return false;
	if (!part->n_parts)
		part->at_bytes = at_bytes;
	part->parts[part->n_parts++] = (struct iovec){(void *)data, bytes};
	part->end_bytes = at_bytes + bytes;
	return true;
}

bool ky_relay_batch_record(struct ky_relay_batch *batch, struct ky_relay_stream_file *file,
			   const uint8_t record[KY_RELAY_RECORD_BYTES], uint64_t at_bytes)
{
	struct ky_relay_batch_file *part = relay_batch_part(batch, file);
	size_t n = part ? part->n_records : 0;

	if (!part || (n && (n == KY_RELAY_BATCH_RECORDS ||
			    part->record_at_bytes + n * KY_RELAY_RECORD_BYTES != at_bytes)))
		return false;
	if (!n)
		part->record_at_bytes = at_bytes;
	memcpy(part->records[part->n_records++], record, KY_RELAY_RECORD_BYTES);
	return true;
}

/* The parts without their first @bytes. */
static void relay_batch_skip(struct ky_relay_batch_file *part, size_t *first, size_t bytes)
{
	while (*first < part->n_parts && bytes >= part->parts[*first].iov_len)
		bytes -= part->parts[(*first)++].iov_len;
	if (!bytes)
		return;
	part->parts[*first].iov_base = (uint8_t *)part->parts[*first].iov_base + bytes;
	part->parts[*first].iov_len -= bytes;
}

static int relay_batch_write_parts(struct ky_relay_batch_file *part)
{
	uint64_t at = part->at_bytes;
	size_t first = 0;

	if (!part->n_parts)
		return 0;
	ky_relay_reserve(part->file->fd, at, part->end_bytes, &part->file->room_bytes);
	while (at < part->end_bytes) {
		ssize_t done = pwritev(part->file->fd, part->parts + first,
				       (int)(part->n_parts - first), (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -ENOSPC;
		relay_batch_skip(part, &first, (size_t)done);
		at += (uint64_t)done;
	}
	return 0;
}

/* Without its data, a packet gets no record. */
static int relay_batch_write_data(struct ky_relay_batch_file *part)
{
	int ret = relay_batch_write_parts(part);

	part->n_parts = 0;
	if (ret < 0)
		part->n_records = 0;
	return ret;
}

/* The records come last: each is of a packet that is there. */
static int relay_batch_write_file(struct ky_relay_batch_file *part)
{
	int ret = relay_batch_write_data(part);

	if (ret < 0 || !part->n_records)
		return ret;
	return ky_relay_write(part->file->index_fd, part->records,
			      part->n_records * KY_RELAY_RECORD_BYTES, part->record_at_bytes);
}

/* All of the batch. Returns the first error, with its file in *failed. */
static int relay_batch_for_each(struct ky_relay_batch *batch,
				int (*write)(struct ky_relay_batch_file *part),
				struct ky_relay_stream_file **failed)
{
	int ret = 0;

	for (size_t i = 0; i < batch->n; i++) {
		int done = write(&batch->files[i]);

		if (done == 0 || ret < 0)
			continue;
		ret = done;
		*failed = batch->files[i].file;
	}
	return ret;
}

int ky_relay_batch_write_data(struct ky_relay_batch *batch, struct ky_relay_stream_file **failed)
{
	return relay_batch_for_each(batch, relay_batch_write_data, failed);
}

int ky_relay_batch_write(struct ky_relay_batch *batch, struct ky_relay_stream_file **failed)
{
	int ret = relay_batch_for_each(batch, relay_batch_write_file, failed);

	batch->n = 0;
	return ret;
}
