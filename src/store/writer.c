/* SPDX-License-Identifier: MIT */
/*
 * The directory sink: LTTng's trace layout. Of its streams there is a list, which all threads share; of each
 * stream, see stream-writer.h.
 */
#include "store/writer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "os/file.h"
#include "store/stream-writer.h"
#include "store/trace-dir.h"

struct dir_sink {
	struct ky_packet_sink base;
	struct ky_trace_dir dir;
	pthread_mutex_t lock;		/* of the list, not of what stands in it */
	struct ky_block_writer *blocks; /* NULL: none */
	KY_VEC(struct ky_stream_writer *) streams;
};

static struct dir_sink *dir_sink(struct ky_packet_sink *base)
{
	return (struct dir_sink *)base;
}

/* Returns its number, or KYMO_E_MEMORY. */
static int list_stream(struct dir_sink *sink, struct ky_stream_writer *stream,
		       struct kymo_error *err)
{
	int number = KYMO_E_MEMORY;

	pthread_mutex_lock(&sink->lock);
	if (ky_vec_push(&sink->streams, stream) == 0)
		number = (int)sink->streams.len - 1;
	pthread_mutex_unlock(&sink->lock);
	return number < 0 ? ky_error_nomem(err) : number;
}

static int dir_sink_stream(struct ky_packet_sink *base, const char *name, struct kymo_error *err)
{
	struct dir_sink *sink = dir_sink(base);
	struct ky_stream_writer *stream;
	int ret = ky_stream_writer_open(&sink->dir, name, &stream, err);

	if (ret == KYMO_OK)
		ret = list_stream(sink, stream, err);
	if (ret < 0)
		ky_stream_writer_free(stream);
	return ret;
}

static int find_stream(struct ky_packet_sink *base, int number, struct ky_stream_writer **stream,
		       struct kymo_error *err)
{
	struct dir_sink *sink = dir_sink(base);

	*stream = NULL;
	pthread_mutex_lock(&sink->lock);
	if (number >= 0 && (size_t)number < sink->streams.len)
		*stream = sink->streams.data[number];
	pthread_mutex_unlock(&sink->lock);
	return *stream ? KYMO_OK
		       : ky_error_set(err, KYMO_E_INVALID, "there is no stream %d", number);
}

static void count_bytes(struct ky_packet_sink *base, uint64_t bytes)
{
	__atomic_fetch_add(&base->bytes_written, bytes, __ATOMIC_RELAXED);
}

static int dir_sink_copy(struct ky_packet_sink *base, int number, const struct ky_bytes_out *bytes,
			 struct kymo_error *err)
{
	struct ky_stream_writer *stream = NULL;
	int ret = find_stream(base, number, &stream, err);

	if (!ret)
		ret = ky_stream_writer_copy(stream, bytes, err);
	if (!ret)
		count_bytes(base, bytes->size_bytes);
	return ret;
}

static int dir_sink_list(struct ky_packet_sink *base, int number,
			 const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct ky_stream_writer *stream = NULL;
	int ret = find_stream(base, number, &stream, err);

	return ret < 0 ? ret : ky_stream_writer_list(stream, packet, err);
}

static int write_packet(struct ky_packet_sink *base, int number, const struct ky_packet_out *packet,
			struct kymo_error *err)
{
	struct ky_bytes_out bytes = {
		packet->data, packet->size_bytes, -1, 0, packet->head, packet->head_bytes,
	};
	int ret = dir_sink_copy(base, number, &bytes, err);

	return ret < 0 ? ret : dir_sink_list(base, number, packet, err);
}

static int put_block(struct dir_sink *sink, int number, const struct ky_packet_out *packet,
		     struct kymo_error *err)
{
	struct ky_stream_writer *stream = NULL;
	int ret = find_stream(&sink->base, number, &stream, err);

	if (ret < 0) {
		ky_block_give_back(sink->blocks, packet->block);
		return ret;
	}
	ret = ky_stream_writer_put(stream, sink->blocks, packet->block, packet->size_bytes, err);
	if (ret < 0)
		return ret;
	count_bytes(&sink->base, packet->size_bytes);
	return ky_stream_writer_list(stream, packet, err);
}

static int dir_sink_packet(struct ky_packet_sink *base, int number,
			   const struct ky_packet_out *packet, struct kymo_error *err)
{
	if (packet->block)
		return put_block(dir_sink(base), number, packet, err);
	return write_packet(base, number, packet, err);
}

void ky_dir_sink_use_blocks(struct ky_packet_sink *base, struct ky_block_writer *blocks)
{
	dir_sink(base)->blocks = blocks;
}

static int dir_sink_metadata(struct ky_packet_sink *base, const char *text, size_t len_bytes,
			     struct kymo_error *err)
{
	struct dir_sink *sink = dir_sink(base);
	int ret = ky_file_replace(sink->dir.fd, "metadata", text, len_bytes);

	return ret < 0 ? ky_trace_dir_error(&sink->dir, "", "metadata", -ret, "write the metadata",
					    err)
		       : KYMO_OK;
}

static void dir_sink_free(struct dir_sink *sink)
{
	for (size_t i = 0; i < sink->streams.len; i++)
		ky_stream_writer_free(sink->streams.data[i]);
	ky_vec_fini(&sink->streams);
	ky_trace_dir_fini(&sink->dir);
	pthread_mutex_destroy(&sink->lock);
	free(sink);
}

/* What was written goes; what others may have put beside it stays. */
static void remove_files(struct dir_sink *sink)
{
	ky_vec_foreach(&sink->streams, stream)
		ky_stream_writer_remove(*stream);
	ky_trace_dir_remove(&sink->dir);
}

void ky_dir_sink_abort(struct ky_packet_sink *base)
{
	remove_files(dir_sink(base));
	dir_sink_free(dir_sink(base));
}

/* Keeps the first error. */
static int dir_sink_close(struct ky_packet_sink *base, struct kymo_error *err)
{
	struct dir_sink *sink = dir_sink(base);
	int ret = KYMO_OK, here;

	ky_vec_foreach(&sink->streams, stream) {
		here = ky_stream_writer_finish(*stream, ret < 0 ? NULL : err);
		ret = ret < 0 ? ret : here;
	}
	if (ret == KYMO_OK)
		ret = ky_trace_dir_publish(&sink->dir, err);
	if (sink->dir.final_path && ret < 0)
		remove_files(sink);
	dir_sink_free(sink);
	return ret;
}

static const struct ky_packet_sink_ops dir_sink_ops = {
	.stream = dir_sink_stream,
	.packet = dir_sink_packet,
	.copy = dir_sink_copy,
	.list = dir_sink_list,
	.metadata = dir_sink_metadata,
	.close = dir_sink_close,
};

/* @make makes the directory. */
static int open_sink(const char *path,
		     int (*make)(struct ky_trace_dir *, const char *, struct kymo_error *),
		     struct ky_packet_sink **out, struct kymo_error *err)
{
	struct dir_sink *sink = calloc(1, sizeof(*sink));
	int ret = sink ? make(&sink->dir, path, err) : ky_error_nomem(err);

	*out = NULL;
	if (ret < 0) {
		free(sink);
		return ret;
	}
	sink->base.ops = &dir_sink_ops;
	pthread_mutex_init(&sink->lock, NULL);
	*out = &sink->base;
	return KYMO_OK;
}

int ky_dir_sink_open(const char *path, struct ky_packet_sink **out, struct kymo_error *err)
{
	return open_sink(path, ky_trace_dir_make, out, err);
}

int ky_dir_sink_open_atomic(const char *path, struct ky_packet_sink **out, struct kymo_error *err)
{
	return open_sink(path, ky_trace_dir_make_hidden, out, err);
}
