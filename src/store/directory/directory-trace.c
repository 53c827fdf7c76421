/* SPDX-License-Identifier: MIT */
/*
 * A trace of a directory store has a list of its streams, which all threads share; of each stream, see stream-writer.h.
 */
#include "store/directory/directory-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "os/file.h"
#include "store/directory/directory-place.h"
#include "store/live/live-file.h"
#include "store/directory/stream-writer.h"

struct directory_stream {
	char *name;
	struct ky_stream_writer *writer; /* NULL: no file yet in the directory of now */
};

struct directory_trace {
	struct ky_store_trace base;
	struct ky_packet_store *own_store; /* freed with the trace; or NULL */
	struct ky_packet_store *store;
	struct ky_trace_dir dir;
	const char *metadata_name;
	pthread_mutex_t lock;		/* of the list, not of what stands in it */
	struct ky_block_writer *blocks; /* NULL: none */
	KY_VEC(struct directory_stream) streams;
	bool ended;   /* no packet is allowed any more */
	bool is_told; /* there is a file for live readers */
};

static struct directory_trace *directory_trace(struct ky_store_trace *base)
{
	return (struct directory_trace *)base;
}

/* ---- streams ------------------------------------------------------------------------- */

/* Returns its number, or KYMO_E_MEMORY. */
static int list_stream(struct directory_trace *trace, const char *name,
		       struct ky_stream_writer *writer, struct kymo_error *err)
{
	struct directory_stream stream = {strdup(name), writer};
	int number = KYMO_E_MEMORY;

	pthread_mutex_lock(&trace->lock);
	if (stream.name && ky_vec_push(&trace->streams, stream) == 0)
		number = (int)trace->streams.len - 1;
	pthread_mutex_unlock(&trace->lock);
	if (number >= 0)
		return number;
	free(stream.name);
	return ky_error_nomem(err);
}

static int directory_add_stream(struct ky_store_trace *base, const char *name,
				struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	struct ky_stream_writer *writer;
	int ret = ky_stream_writer_open(&trace->dir, name, &writer, err);

	if (ret == KYMO_OK)
		ret = list_stream(trace, name, writer, err);
	if (ret < 0)
		ky_stream_writer_free(writer);
	return ret;
}

/* The first packet of a stream after a rotation. */
static int open_again(struct directory_trace *trace, int number, const char *name,
		      struct ky_stream_writer **writer, struct kymo_error *err)
{
	int ret = ky_stream_writer_open(&trace->dir, name, writer, err);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&trace->lock);
	trace->streams.data[number].writer = *writer;
	pthread_mutex_unlock(&trace->lock);
	return KYMO_OK;
}

static int directory_trace_find_stream(struct directory_trace *trace, int number,
				       struct ky_stream_writer **writer, struct kymo_error *err)
{
	struct directory_stream stream = {0};

	pthread_mutex_lock(&trace->lock);
	if (number >= 0 && (size_t)number < trace->streams.len)
		stream = trace->streams.data[number];
	pthread_mutex_unlock(&trace->lock);
	*writer = stream.writer;
	if (!stream.name)
		return ky_error_set(err, KYMO_E_INVALID, "there is no stream %d", number);
	if (trace->ended)
		return ky_error_set(err, KYMO_E_STATE, "stream '%s' has ended", stream.name);
	return *writer ? KYMO_OK : open_again(trace, number, stream.name, writer, err);
}

/* ---- packets ------------------------------------------------------------------------- */

static void directory_trace_count_bytes(struct ky_store_trace *base, uint64_t bytes)
{
	__atomic_fetch_add(&base->bytes_written, bytes, __ATOMIC_RELAXED);
}

static int directory_copy(struct ky_store_trace *base, int number, const struct ky_bytes_out *bytes,
			  struct kymo_error *err)
{
	struct ky_stream_writer *stream = NULL;
	int ret = directory_trace_find_stream(directory_trace(base), number, &stream, err);

	if (!ret)
		ret = ky_stream_writer_copy(stream, bytes, err);
	if (!ret)
		directory_trace_count_bytes(base, bytes->size_bytes);
	return ret;
}

static int directory_list(struct ky_store_trace *base, int number,
			  const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct ky_stream_writer *stream = NULL;
	int ret = directory_trace_find_stream(directory_trace(base), number, &stream, err);

	return ret < 0 ? ret : ky_stream_writer_list(stream, packet, err);
}

static int directory_trace_write_packet(struct ky_store_trace *base, int number,
					const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct ky_bytes_out bytes = {
		packet->data, packet->size_bytes, -1, 0, packet->head, packet->head_bytes,
	};
	int ret = directory_copy(base, number, &bytes, err);

	return ret < 0 ? ret : directory_list(base, number, packet, err);
}

static int directory_trace_put_block(struct directory_trace *trace, int number,
				     const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct ky_stream_writer *stream = NULL;
	int ret = directory_trace_find_stream(trace, number, &stream, err);

	if (ret < 0) {
		ky_block_give_back(trace->blocks, packet->block);
		return ret;
	}
	ret = ky_stream_writer_put(stream, trace->blocks, packet->block, packet->size_bytes, err);
	if (ret < 0)
		return ret;
	directory_trace_count_bytes(&trace->base, packet->size_bytes);
	return ky_stream_writer_list(stream, packet, err);
}

static int directory_packet(struct ky_store_trace *base, int number,
			    const struct ky_packet_out *packet, struct kymo_error *err)
{
	if (packet->block)
		return directory_trace_put_block(directory_trace(base), number, packet, err);
	return directory_trace_write_packet(base, number, packet, err);
}

static void directory_use_blocks(struct ky_store_trace *base, struct ky_block_writer *blocks)
{
	directory_trace(base)->blocks = blocks;
}

static int directory_flush(struct ky_store_trace *base, struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	int ret = KYMO_OK;

	for (size_t i = 0; !ret; i++) {
		struct ky_stream_writer *writer = NULL;
		bool is_there;

		pthread_mutex_lock(&trace->lock);
		is_there = i < trace->streams.len;
		if (is_there)
			writer = trace->streams.data[i].writer;
		pthread_mutex_unlock(&trace->lock);
		if (!is_there)
			break;
		if (writer)
			ret = ky_stream_writer_flush(writer, err);
	}
	return ret;
}

/* ---- live readers -------------------------------------------------------------------- */

/* A directory has one beacon for all streams of a trace, and none for a single stream. */
static int directory_beacon(struct ky_store_trace *base, int stream, uint64_t until_cycles,
			    struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	if (stream >= 0 || trace->ended)
		return KYMO_OK;
	ret = directory_flush(base, err);
	if (ret < 0)
		return ret;
	ky_live_put_head(&text, until_cycles);
	pthread_mutex_lock(&trace->lock);
	ky_vec_foreach(&trace->streams, it)
		ky_live_put_stream(&text, it->name,
				   it->writer ? ky_stream_writer_size(it->writer) : 0);
	pthread_mutex_unlock(&trace->lock);
	if (ky_strbuf_failed(&text)) {
		ret = ky_error_nomem(err);
	} else {
		ret = ky_file_replace(trace->dir.fd, KY_LIVE_FILE_NAME, ky_strbuf_text(&text),
				      text.len);
		if (ret < 0)
			ret = ky_trace_dir_error(&trace->dir, "", KY_LIVE_FILE_NAME, -ret,
						 "write the file for live readers", err);
		else
			trace->is_told = true;
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* Before the directory is no longer locked: a reader that finds neither takes the trace for complete. */
static void directory_trace_end_live(struct directory_trace *trace)
{
	if (trace->is_told)
		(void)unlinkat(trace->dir.fd, KY_LIVE_FILE_NAME, 0);
	trace->is_told = false;
}

/* ---- metadata ------------------------------------------------------------------------ */

static int metadata_error(const struct directory_trace *trace, int errnum, struct kymo_error *err)
{
	return ky_trace_dir_error(&trace->dir, "", trace->metadata_name, errnum,
				  "write the metadata", err);
}

static int directory_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			      struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	int ret = ky_trace_dir_wake(&trace->dir, err);

	if (ret < 0)
		return ret;
	ret = ky_file_replace(trace->dir.fd, trace->metadata_name, text, len_bytes);
	if (trace->ended)
		ky_trace_dir_rest(&trace->dir);
	return ret < 0 ? metadata_error(trace, -ret, err) : KYMO_OK;
}

static int directory_patch_metadata(struct ky_store_trace *base, uint64_t at_bytes,
				    const char *text, size_t len_bytes, struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	int ret = ky_trace_dir_wake(&trace->dir, err), fd;
	ssize_t written;

	if (ret < 0)
		return ret;
	fd = ky_file_open_regular(trace->dir.fd, trace->metadata_name, O_WRONLY);
	if (trace->ended)
		ky_trace_dir_rest(&trace->dir);
	if (fd < 0)
		return metadata_error(trace, -fd, err);
	written = pwrite(fd, text, len_bytes, (off_t)at_bytes);
	if (written != (ssize_t)len_bytes)
		ret = metadata_error(trace, written < 0 ? errno : ENOSPC, err);
	close(fd);
	return ret;
}

/* ---- the end ------------------------------------------------------------------------- */

static void directory_trace_free_streams(struct directory_trace *trace)
{
	ky_vec_foreach(&trace->streams, stream) {
		ky_stream_writer_free(stream->writer);
		stream->writer = NULL;
	}
}

static void directory_trace_free(struct directory_trace *trace)
{
	directory_trace_free_streams(trace);
	ky_vec_foreach(&trace->streams, stream)
		free(stream->name);
	ky_vec_fini(&trace->streams);
	ky_trace_dir_fini(&trace->dir);
	pthread_mutex_destroy(&trace->lock);
	ky_store_free(trace->own_store);
	free(trace->base.path);
	free(trace);
}

/* What was written goes; what others may have put beside it stays. */
static void directory_trace_remove_files(struct directory_trace *trace)
{
	if (ky_trace_dir_wake(&trace->dir, NULL) < 0)
		return;
	ky_vec_foreach(&trace->streams, stream)
		ky_stream_files_remove(&trace->dir, stream->name);
	directory_trace_end_live(trace);
	(void)unlinkat(trace->dir.fd, trace->metadata_name, 0);
	ky_trace_dir_remove(&trace->dir);
}

static void directory_discard(struct ky_store_trace *base)
{
	directory_trace_remove_files(directory_trace(base));
	directory_trace_free(directory_trace(base));
}

/* Keeps the first error. */
static int finish_streams(struct directory_trace *trace, struct kymo_error *err)
{
	int ret = KYMO_OK, here;

	ky_vec_foreach(&trace->streams, stream) {
		if (!stream->writer)
			continue;
		here = ky_stream_writer_finish(stream->writer, ret < 0 ? NULL : err);
		ret = ret < 0 ? ret : here;
	}
	directory_trace_free_streams(trace);
	return ret;
}

static int directory_end_streams(struct ky_store_trace *base, struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	int ret;

	if (trace->ended)
		return KYMO_OK;
	ret = finish_streams(trace, err);
	directory_trace_end_live(trace);
	trace->ended = true;
	ky_trace_dir_rest(&trace->dir);
	return ret;
}

static int directory_close(struct ky_store_trace *base, struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	int ret = finish_streams(trace, err);

	directory_trace_end_live(trace);
	if (ret == KYMO_OK)
		ret = ky_trace_dir_publish(&trace->dir, err);
	if (trace->dir.final_path && ret < 0)
		directory_trace_remove_files(trace);
	directory_trace_free(trace);
	return ret;
}

/* ---- rotation ------------------------------------------------------------------------ */

/* Moves the complete trace to @to, a whole path, which it takes over. */
static int move_trace(struct directory_trace *trace, char *to, struct kymo_error *err)
{
	int ret = ky_directory_make_parents(to, strlen(trace->store->name), err);

	if (!ret && rename(trace->dir.path, to) < 0) {
		ret = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR
			      ? ky_error_set(err, KYMO_E_INVALID,
					     "cannot move the trace to %s: the path is in use", to)
			      : ky_error_errno(err, errno, "cannot move the trace to %s", to);
		ky_error_path(err, trace->dir.path);
	}
	if (ret < 0) {
		free(to);
		return ret;
	}
	free(trace->dir.path);
	trace->dir.path = to;
	return KYMO_OK;
}

/* The next trace in the place of one that has moved away. */
static int begin_again(struct directory_trace *trace, struct kymo_error *err)
{
	struct ky_trace_dir next;
	char *path;
	int ret;

	if (asprintf(&path, "%s/%s", trace->store->name, trace->base.path) < 0)
		return ky_error_nomem(err);
	ret = ky_trace_dir_make(&next, path, err);
	free(path);
	if (ret < 0)
		return ret;
	ky_trace_dir_fini(&trace->dir);
	trace->dir = next;
	ky_live_begin(trace->dir.index_fd);
	return KYMO_OK;
}

static int directory_rotate(struct ky_store_trace *base, const char *archive,
			    struct kymo_error *err)
{
	struct directory_trace *trace = directory_trace(base);
	char *to;
	int ret;

	if (!*base->path || trace->dir.final_path)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "a trace that is the whole output cannot be rotated");
	if (asprintf(&to, "%s/%s", trace->store->name, archive) < 0)
		return ky_error_nomem(err);
	ret = finish_streams(trace, err);
	directory_trace_end_live(trace);
	if (ret < 0)
		free(to);
	else
		ret = move_trace(trace, to, err);
	return ret < 0 || trace->ended ? ret : begin_again(trace, err);
}

/* ---- opening ------------------------------------------------------------------------- */

static const struct ky_store_trace_ops directory_trace_ops = {
	.stream = directory_add_stream,
	.packet = directory_packet,
	.metadata = directory_metadata,
	.close = directory_close,
	.discard = directory_discard,
	.copy = directory_copy,
	.list = directory_list,
	.patch_metadata = directory_patch_metadata,
	.use_blocks = directory_use_blocks,
	.flush = directory_flush,
	.beacon = directory_beacon,
	.end_streams = directory_end_streams,
	.rotate = directory_rotate,
};

int ky_directory_trace_new(struct ky_packet_store *store, const struct ky_store_place *place,
			   struct ky_store_trace **out, struct kymo_error *err)
{
	struct directory_trace *trace = calloc(1, sizeof(*trace));
	int ret;

	*out = NULL;
	if (!trace)
		return ky_error_nomem(err);
	ret = ky_directory_make_place(store, place, &trace->dir, &trace->base.path, err);
	if (ret < 0) {
		free(trace);
		return ret;
	}
	trace->base.ops = &directory_trace_ops;
	trace->store = store;
	trace->metadata_name = place->is_part ? "metadata.ctf" : "metadata";
	pthread_mutex_init(&trace->lock, NULL);
	ky_live_begin(trace->dir.index_fd);
	*out = &trace->base;
	return KYMO_OK;
}

void ky_directory_trace_own(struct ky_store_trace *trace, struct ky_packet_store *store)
{
	directory_trace(trace)->own_store = store;
}
