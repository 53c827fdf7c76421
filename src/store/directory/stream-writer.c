/* SPDX-License-Identifier: MIT */
/*
 * One write() per packet: packets are large, so another buffer would only copy; or they are blocks, and a
 * thread writes them (block-writer.h). Index entries are small and collected, and tell of nothing that is not
 * written. Index entries that a crash loses do no harm, since readers scan a file that its index does not cover.
 */
#include "store/directory/stream-writer.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "store/directory/index-record.h"

_Static_assert(sizeof(struct ky_index_head) == KY_INDEX_HEADER_BYTES, "index head");
_Static_assert(sizeof(struct ky_index_record) == KY_INDEX_ENTRY_1_1, "index record");

#define INDEX_BATCH_ENTRIES 64

struct ky_stream_writer {
	const struct ky_trace_dir *dir;
	char *name;
	int fd, index_fd;
	struct ky_block_file *blocks; /* NULL: its packets are no blocks */
	uint64_t size_bytes, listed_bytes;
	bool no_index;
	uint32_t n_entries;
	struct ky_index_record entries[INDEX_BATCH_ENTRIES];
};

void ky_stream_writer_free(struct ky_stream_writer *stream)
{
	if (!stream)
		return;
	(void)ky_block_file_close(stream->blocks, NULL);
	if (stream->fd >= 0)
		close(stream->fd);
	if (stream->index_fd >= 0)
		close(stream->index_fd);
	free(stream->name);
	free(stream);
}

static struct ky_stream_writer *stream_new(const struct ky_trace_dir *dir, const char *name)
{
	struct ky_stream_writer *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->dir = dir;
	stream->fd = stream->index_fd = -1;
	stream->name = strdup(name);
	if (stream->name)
		return stream;
	free(stream);
	return NULL;
}

static void index_name(const char *stream, char name[NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, "%s.idx", stream);
}

static bool name_ok(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) <= NAME_MAX - 4 &&
	       strcmp(name, "metadata") != 0 && strcmp(name, "index") != 0;
}

static int stream_files(struct ky_stream_writer *stream, struct kymo_error *err)
{
	const struct ky_index_head header = ky_index_head();
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	char idx[NAME_MAX + 1];
	int ret;

	stream->fd = ky_file_open(stream->dir->fd, stream->name, flags, 0600);
	if (stream->fd < 0)
		return ky_trace_dir_error(stream->dir, "", stream->name, errno,
					  "create the stream file", err);
	index_name(stream->name, idx);
	stream->index_fd = ky_file_open(stream->dir->index_fd, idx, flags, 0600);
	if (stream->index_fd < 0)
		return ky_trace_dir_error(stream->dir, "index/", idx, errno,
					  "create the index file", err);
	ret = ky_write_all(stream->index_fd, &header, sizeof(header));
	if (ret < 0)
		return ky_trace_dir_error(stream->dir, "index/", idx, -ret,
					  "write the packet index", err);
	return KYMO_OK;
}

int ky_stream_writer_open(const struct ky_trace_dir *dir, const char *name,
			  struct ky_stream_writer **out, struct kymo_error *err)
{
	struct ky_stream_writer *stream;
	int ret;

	*out = NULL;
	if (!name_ok(name))
		return ky_error_set(err, KYMO_E_INVALID, "'%s' cannot be a stream's name", name);
	stream = stream_new(dir, name);
	if (!stream)
		return ky_error_nomem(err);
	ret = stream_files(stream, err);
	if (ret < 0) {
		ky_stream_writer_free(stream);
		return ret;
	}
	*out = stream;
	return KYMO_OK;
}

/* ---- packets -------------------------------------------------------------------------- */

/* 0, or -errno: half a packet was taken back, which would make readers report damage. */
static int stream_writer_write_bytes(struct ky_stream_writer *stream,
				     const struct ky_bytes_out *bytes)
{
	uint64_t copied = 0;
	int ret = 0;

	if (bytes->fd >= 0)
		ret = ky_copy_range(bytes->fd, bytes->offset_bytes, stream->fd, bytes->size_bytes,
				    &copied);
	if (ret == 0) {
		struct iovec parts[] = {
			{(void *)bytes->head, bytes->head_bytes},
			{(char *)bytes->data + (bytes->data ? copied : 0),
			 bytes->size_bytes - bytes->head_bytes - copied},
		};

		ret = ky_writev_all(stream->fd, parts, 2);
	}
	if (ret < 0 && ftruncate(stream->fd, (off_t)stream->size_bytes) == 0)
		(void)lseek(stream->fd, (off_t)stream->size_bytes, SEEK_SET);
	return ret;
}

int ky_stream_writer_copy(struct ky_stream_writer *stream, const struct ky_bytes_out *bytes,
			  struct kymo_error *err)
{
	int ret = stream_writer_write_bytes(stream, bytes);

	/* Such as a file that another process may truncate. */
	if (ret == -EFAULT)
		return ky_error_set(err, KYMO_E_FORMAT, "the data to write is gone");
	if (ret < 0)
		return ky_trace_dir_error(stream->dir, "", stream->name, -ret, "write a packet",
					  err);
	stream->size_bytes += bytes->size_bytes;
	return KYMO_OK;
}

int ky_stream_writer_put(struct ky_stream_writer *stream, struct ky_block_writer *blocks,
			 struct ky_block *block, size_t size_bytes, struct kymo_error *err)
{
	int ret;

	if (!stream->blocks)
		stream->blocks = ky_block_file_open(blocks, stream->fd);
	if (!stream->blocks) {
		ky_block_give_back(blocks, block);
		return ky_error_nomem(err);
	}
	ret = ky_block_file_put(stream->blocks, block, (uint32_t)size_bytes);
	if (ret < 0)
		return ky_trace_dir_error(stream->dir, "", stream->name, -ret, "write a packet",
					  err);
	stream->size_bytes += size_bytes;
	return KYMO_OK;
}

/* ---- the index ------------------------------------------------------------------------ */

/* How many entries tell of packets that end before @end_bytes. */
static uint32_t stream_writer_count_entries(const struct ky_stream_writer *stream,
					    uint64_t end_bytes)
{
	uint32_t n = 0;

	while (n < stream->n_entries &&
	       be64toh(stream->entries[n].offset_bytes) +
			       be64toh(stream->entries[n].packet_bits) / 8 <=
		       end_bytes)
		n++;
	return n;
}

/* The packets that were put may be on their way; when none of the table's is in the file, wait for them. */
static uint64_t written_bytes(const struct ky_stream_writer *stream)
{
	uint64_t bytes;

	if (!stream->blocks)
		return stream->size_bytes;
	bytes = ky_block_file_written(stream->blocks);
	if (stream_writer_count_entries(stream, bytes))
		return bytes;
	(void)ky_block_file_wait(stream->blocks);
	return ky_block_file_written(stream->blocks);
}

static int flush_index(struct ky_stream_writer *stream, struct kymo_error *err)
{
	uint32_t n = stream_writer_count_entries(stream, written_bytes(stream));
	int ret = ky_write_all(stream->index_fd, stream->entries, n * sizeof(stream->entries[0]));

	/* No error for the unwritten rest here: the next packet fails. */
	stream->n_entries = n ? stream->n_entries - n : 0;
	memmove(stream->entries, stream->entries + n,
		stream->n_entries * sizeof(stream->entries[0]));
	if (ret < 0)
		return ky_trace_dir_error(stream->dir, "index/", stream->name, -ret,
					  "write the packet index", err);
	return KYMO_OK;
}

int ky_stream_writer_list(struct ky_stream_writer *stream, const struct ky_packet_out *packet,
			  struct kymo_error *err)
{
	stream->no_index |= packet->no_times;
	stream->entries[stream->n_entries++] = ky_index_record(packet, stream->listed_bytes);
	stream->listed_bytes += packet->size_bytes;
	return stream->n_entries == INDEX_BATCH_ENTRIES ? flush_index(stream, err) : KYMO_OK;
}

uint64_t ky_stream_writer_size(const struct ky_stream_writer *stream)
{
	return stream->size_bytes;
}

int ky_stream_writer_flush(struct ky_stream_writer *stream, struct kymo_error *err)
{
	int ret = stream->blocks ? ky_block_file_wait(stream->blocks) : 0;

	if (ret < 0)
		return ky_trace_dir_error(stream->dir, "", stream->name, -ret, "write a packet",
					  err);
	return stream->n_entries ? flush_index(stream, err) : KYMO_OK;
}

/* ---- the end -------------------------------------------------------------------------- */

static void stream_writer_remove_index(const struct ky_trace_dir *dir, const char *stream)
{
	char idx[NAME_MAX + 1];

	index_name(stream, idx);
	(void)unlinkat(dir->index_fd, idx, 0);
}

void ky_stream_files_remove(const struct ky_trace_dir *dir, const char *name)
{
	(void)unlinkat(dir->fd, name, 0);
	stream_writer_remove_index(dir, name);
}

/* All packets are in the file, or what could not be written is not spoken of. */
static int finish_blocks(struct ky_stream_writer *stream, struct kymo_error *err)
{
	struct ky_block_file *blocks = stream->blocks;
	int ret;

	stream->blocks = NULL;
	if (!blocks)
		return KYMO_OK;
	ret = ky_block_file_close(blocks, &stream->size_bytes);
	return ret < 0 ? ky_trace_dir_error(stream->dir, "", stream->name, -ret, "write a packet",
					    err)
		       : KYMO_OK;
}

int ky_stream_writer_finish(struct ky_stream_writer *stream, struct kymo_error *err)
{
	int ret = finish_blocks(stream, err);
	int listed = flush_index(stream, ret < 0 ? NULL : err);

	ret = ret < 0 ? ret : listed;
	/* Some file systems report a full disk at close() only. */
	if (close(stream->fd) < 0 && ret == KYMO_OK)
		ret = ky_trace_dir_error(stream->dir, "", stream->name, errno,
					 "finish the stream file", err);
	stream->fd = -1;
	if (stream->no_index)
		stream_writer_remove_index(stream->dir, stream->name);
	return ret;
}
