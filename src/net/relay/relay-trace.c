/* SPDX-License-Identifier: MIT */
#include "net/relay/relay-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "net/files/relay-files.h"
#include "net/files/relay-memory.h"
#include "os/file.h"
#include "store/directory/index-record.h"
#include "store/live/live-file.h"

#define STREAMS_MAX    65536	  /* of a trace */
#define STREAMS_OF_ALL (1u << 20) /* of all traces that the session has open */
#define METADATA_NEW   ".metadata.new"
#define INDEX_DIR      "index"
#define FILE_BYTES_MAX (UINT64_C(1) << 50)
/* About what an entry of a map and the heads of two blocks of memory take. */
#define MEMORY_MORE 64

struct stream {
	struct ky_relay_stream_file file; /* first: the batch knows only this */
	struct ky_relay_trace *trace;
	char *name;
	uint64_t size_bytes;		  /* of whole packets */
	uint64_t file_bytes, index_bytes; /* of the files, as far as the quota counts them */
};

struct ky_relay_trace {
	int root_fd; /* of the session */
	struct ky_relay_use *use;
	struct ky_relay_batch *batch;
	char *path;
	bool is_part, is_told;
	int fd, index_fd;      /* -1: closed */
	struct ky_map streams; /* by their number: a recorder chooses it */
	/* What the bytes that come are written to. */
	int write_fd, metadata_fd;
	uint64_t write_at;
	uint64_t memory_bytes; /* its part of the session's */
	struct stream *stream;
	struct ky_net_data data;
};

static int io_error(const struct ky_relay_trace *trace, const char *name, int errnum,
		    const char *what, struct kymo_error *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", trace->path, name);
	return ky_relay_io_error(path, errnum, what, err);
}

/* What a trace's definition, or one of its streams, takes. */
static int relay_trace_take_memory(struct ky_relay_trace *trace, size_t struct_bytes,
				   const char *text, struct kymo_error *err)
{
	uint64_t bytes = struct_bytes + strlen(text) + MEMORY_MORE;
	int ret = ky_relay_memory_take(&trace->use->memory_bytes, bytes, err);

	if (!ret)
		trace->memory_bytes += bytes;
	return ret;
}

/* ---- directories ---------------------------------------------------------------------- */

/* Files that stay open: the session's use has their number. */
static int relay_trace_note_file(const struct ky_relay_trace *trace, int fd)
{
	trace->use->n_files += fd >= 0;
	return fd;
}

static void relay_trace_close_file(const struct ky_relay_trace *trace, int *fd)
{
	trace->use->n_files -= *fd >= 0;
	ky_relay_close_fd(fd);
}

static int relay_trace_open_dirs(struct ky_relay_trace *trace, struct kymo_error *err)
{
	int ret = ky_relay_make_parents(trace->root_fd, trace->path, &trace->use->added_bytes, err);

	if (ret < 0)
		return ret;
	trace->fd =
		relay_trace_note_file(trace, ky_relay_open_directory(trace->root_fd, trace->path,
								     &trace->use->added_bytes));
	if (trace->fd >= 0)
		trace->index_fd = relay_trace_note_file(
			trace,
			ky_relay_open_directory(trace->fd, INDEX_DIR, &trace->use->added_bytes));
	if (trace->fd < 0 || trace->index_fd < 0)
		return io_error(trace, "", errno, "create the trace's directory", err);
	ky_live_begin(trace->index_fd);
	return KYMO_OK;
}

static struct stream *next_stream(const struct ky_relay_trace *trace, size_t *at)
{
	uint64_t number;
	void *stream;

	return ky_map_next(&trace->streams, at, &number, &stream) ? stream : NULL;
}

static void close_streams(struct ky_relay_trace *trace)
{
	struct stream *stream;

	for (size_t at = 0; (stream = next_stream(trace, &at));) {
		trace->use->n_files -= stream->file.fd >= 0;
		ky_relay_close_file(&stream->file.fd, &stream->file.room_bytes);
		relay_trace_close_file(trace, &stream->file.index_fd);
		stream->size_bytes = 0;
	}
	trace->stream = NULL;
	trace->write_fd = -1;
}

/* Live readers learn that the trace is complete. */
static void relay_trace_end_live(struct ky_relay_trace *trace)
{
	if (trace->is_told && trace->fd >= 0)
		(void)unlinkat(trace->fd, KY_LIVE_FILE_NAME, 0);
	trace->is_told = false;
}

int ky_relay_trace_new(int dir_fd, const char *path, bool is_part, struct ky_relay_use *use,
		       struct ky_relay_batch *batch, struct ky_relay_trace **out,
		       struct kymo_error *err)
{
	struct ky_relay_trace *trace = calloc(1, sizeof(*trace));
	int ret = KYMO_OK;

	*out = NULL;
	if (!trace)
		return ky_error_nomem(err);
	trace->root_fd = dir_fd;
	trace->use = use;
	trace->batch = batch;
	trace->is_part = is_part;
	trace->fd = trace->index_fd = trace->write_fd = trace->metadata_fd = -1;
	ret = relay_trace_take_memory(trace, sizeof(*trace), path, err);
	trace->path = ret < 0 ? NULL : strdup(path);
	if (!ret)
		ret = trace->path ? relay_trace_open_dirs(trace, err) : ky_error_nomem(err);
	if (ret < 0) {
		ky_relay_trace_free(trace);
		return ret;
	}
	*out = trace;
	return KYMO_OK;
}

void ky_relay_trace_drop_part(struct ky_relay_trace *trace)
{
	if (trace->metadata_fd < 0)
		return;
	(void)unlinkat(trace->fd, METADATA_NEW, 0);
	ky_relay_close_fd(&trace->metadata_fd);
	trace->use->removed_bytes += trace->write_at;
}

void ky_relay_trace_free(struct ky_relay_trace *trace)
{
	struct stream *stream;

	if (!trace)
		return;
	close_streams(trace);
	ky_relay_trace_drop_part(trace);
	relay_trace_close_file(trace, &trace->index_fd);
	relay_trace_close_file(trace, &trace->fd);
	trace->use->n_streams -= trace->streams.len;
	ky_relay_memory_give(&trace->use->memory_bytes, trace->memory_bytes);
	for (size_t at = 0; (stream = next_stream(trace, &at));) {
		free(stream->name);
		free(stream);
	}
	ky_map_fini(&trace->streams);
	free(trace->path);
	free(trace);
}

/* A trace that has ended may still get its last metadata. */
static int relay_trace_wake(struct ky_relay_trace *trace, struct kymo_error *err)
{
	return trace->fd >= 0 ? KYMO_OK : relay_trace_open_dirs(trace, err);
}

/* ---- streams -------------------------------------------------------------------------- */

static int relay_trace_add_stream(struct ky_relay_trace *trace, uint32_t number, const char *name,
				  struct kymo_error *err)
{
	struct stream *stream;
	int ret;

	if (trace->use->n_streams >= STREAMS_OF_ALL)
		return ky_error_set(err, KYMO_E_LIMIT, "the session has too many streams");
	ret = relay_trace_take_memory(trace, sizeof(*stream), name, err);
	if (ret < 0)
		return ret;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return ky_error_nomem(err);
	stream->trace = trace;
	stream->file.fd = stream->file.index_fd = -1;
	stream->name = strdup(name);
	if (stream->name && ky_map_set(&trace->streams, number, stream) == 0) {
		trace->use->n_streams++;
		return KYMO_OK;
	}
	free(stream->name);
	free(stream);
	return ky_error_nomem(err);
}

int ky_relay_trace_stream(struct ky_relay_trace *trace, uint32_t number, const char *name,
			  struct kymo_error *err)
{
	if (number >= STREAMS_MAX || strlen(name) > NAME_MAX - 4 || strcmp(name, "metadata") == 0 ||
	    strcmp(name, INDEX_DIR) == 0)
		return ky_error_set(err, KYMO_E_FORMAT, "a stream cannot have this number or name");
	return ky_map_get(&trace->streams, number)
		       ? KYMO_OK
		       : relay_trace_add_stream(trace, number, name, err);
}

/* A file that has *bytes gets an end at @end_bytes. */
static void relay_trace_grow(const struct ky_relay_trace *trace, uint64_t *bytes,
			     uint64_t end_bytes)
{
	if (end_bytes <= *bytes)
		return;
	trace->use->added_bytes += end_bytes - *bytes;
	*bytes = end_bytes;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static int relay_trace_open_stream(struct ky_relay_trace *trace, struct stream *stream,
				   struct kymo_error *err)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	char index[NAME_MAX + 1];
	int ret;

	if (stream->file.fd >= 0)
		return KYMO_OK;
	ret = relay_trace_wake(trace, err);
	if (ret < 0)
		return ret;
	stream->file.fd =
		relay_trace_note_file(trace, ky_relay_open_file(trace->fd, stream->name, flags,
								&trace->use->added_bytes));
	if (stream->file.fd < 0)
		return io_error(trace, stream->name, errno, "open the stream's file", err);
	snprintf(index, sizeof(index), "%s.idx", stream->name);
	stream->file.index_fd = relay_trace_note_file(
		trace, ky_relay_open_file(trace->index_fd, index, flags, &trace->use->added_bytes));
	if (stream->file.index_fd < 0)
		return io_error(trace, index, errno, "open the index", err);
	stream->file_bytes = size_of(stream->file.fd);
	stream->file.room_bytes = stream->file_bytes != 0;
	stream->index_bytes = size_of(stream->file.index_fd);
	return KYMO_OK;
}

int ky_relay_trace_packet(struct ky_relay_trace *trace, const struct ky_net_data *data,
			  uint64_t bytes, struct kymo_error *err)
{
	struct stream *stream = ky_map_get(&trace->streams, data->stream);
	int ret;

	if (!stream)
		return ky_error_set(err, KYMO_E_FORMAT, "there is no stream %u", data->stream);
	if ((data->index_bytes && data->index_bytes != KY_NET_INDEX_BYTES) ||
	    data->offset_bytes > FILE_BYTES_MAX || bytes > FILE_BYTES_MAX - data->offset_bytes ||
	    data->entry > FILE_BYTES_MAX / KY_NET_INDEX_BYTES)
		return ky_error_set(err, KYMO_E_FORMAT, "the place of a packet makes no sense");
	/* A hole in a file would take no space, but a client could claim any size. */
	if (stream->file.fd >= 0 && data->offset_bytes > stream->size_bytes)
		return ky_error_set(err, KYMO_E_FORMAT, "a packet leaves a hole in its file");
	ret = relay_trace_open_stream(trace, stream, err);
	if (ret < 0)
		return ret;
	trace->stream = stream;
	trace->data = *data;
	trace->write_fd = stream->file.fd;
	trace->write_at = data->offset_bytes;
	return KYMO_OK;
}

/* The quota has counted what was to come. */
static int relay_trace_failed(struct stream *stream, int errnum, struct kymo_error *err)
{
	uint64_t bytes = size_of(stream->file.fd);

	if (bytes < stream->file_bytes) {
		stream->trace->use->removed_bytes += stream->file_bytes - bytes;
		stream->file_bytes = bytes;
	}
	return io_error(stream->trace, stream->name, errnum, "write what came", err);
}

int ky_relay_trace_flush_data(struct ky_relay_batch *batch, struct kymo_error *err)
{
	struct ky_relay_stream_file *failed;
	int ret = ky_relay_batch_write_data(batch, &failed);

	return ret ? relay_trace_failed((struct stream *)failed, -ret, err) : KYMO_OK;
}

int ky_relay_trace_flush(struct ky_relay_batch *batch, struct kymo_error *err)
{
	struct ky_relay_stream_file *failed;
	int ret = ky_relay_batch_write(batch, &failed);

	return ret ? relay_trace_failed((struct stream *)failed, -ret, err) : KYMO_OK;
}

static int relay_trace_write_packet(struct ky_relay_trace *trace, const uint8_t *data, size_t bytes,
				    struct kymo_error *err)
{
	struct stream *stream = trace->stream;

	while (!ky_relay_batch_data(trace->batch, &stream->file, data, bytes, trace->write_at)) {
		int ret = ky_relay_trace_flush(trace->batch, err);

		if (ret < 0)
			return ret;
	}
	trace->write_at += bytes;
	relay_trace_grow(trace, &stream->file_bytes, trace->write_at);
	return KYMO_OK;
}

int ky_relay_trace_write(struct ky_relay_trace *trace, const uint8_t *data, size_t bytes,
			 struct kymo_error *err)
{
	int ret;

	if (trace->stream)
		return relay_trace_write_packet(trace, data, bytes, err);
	ret = ky_relay_write(trace->write_fd, data, bytes, trace->write_at);
	if (ret < 0)
		return io_error(trace, METADATA_NEW, -ret, "write what came", err);
	trace->write_at += bytes;
	trace->use->added_bytes += bytes;
	return KYMO_OK;
}

static int relay_trace_write_record(const struct ky_relay_trace *trace, struct kymo_error *err)
{
	const struct ky_index_head head = ky_index_head();
	uint64_t at = sizeof(head) + trace->data.entry * KY_NET_INDEX_BYTES;
	struct stream *stream = trace->stream;

	if (!trace->data.entry &&
	    pwrite(stream->file.index_fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return io_error(trace, stream->name, errno, "write the index", err);
	while (!ky_relay_batch_record(trace->batch, &stream->file, trace->data.index, at)) {
		int ret = ky_relay_trace_flush(trace->batch, err);

		if (ret < 0)
			return ret;
	}
	relay_trace_grow(trace, &stream->index_bytes, at + KY_NET_INDEX_BYTES);
	return KYMO_OK;
}

int ky_relay_trace_packet_end(struct ky_relay_trace *trace, struct kymo_error *err)
{
	int ret;

	if (!trace->stream)
		return ky_error_set(err, KYMO_E_FORMAT, "a packet has no data");
	ret = trace->data.index_bytes ? relay_trace_write_record(trace, err) : KYMO_OK;
	trace->stream->size_bytes = trace->write_at;
	trace->stream = NULL;
	trace->write_fd = -1;
	return ret;
}

/* ---- metadata ------------------------------------------------------------------------- */

static const char *metadata_name(const struct ky_relay_trace *trace)
{
	return trace->is_part ? "metadata.ctf" : "metadata";
}

int ky_relay_trace_metadata(struct ky_relay_trace *trace, struct kymo_error *err)
{
	int ret = relay_trace_wake(trace, err);

	if (ret < 0)
		return ret;
	trace->metadata_fd =
		ky_file_open(trace->fd, METADATA_NEW,
			     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (trace->metadata_fd < 0)
		return io_error(trace, METADATA_NEW, errno, "write the metadata", err);
	trace->stream = NULL;
	trace->write_fd = trace->metadata_fd;
	trace->write_at = 0;
	return KYMO_OK;
}

/* What the file that goes or is replaced counts. */
static uint64_t size_at(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0
		       ? (uint64_t)st.st_size + KY_RELAY_ENTRY_BYTES
		       : 0;
}

int ky_relay_trace_metadata_end(struct ky_relay_trace *trace, struct kymo_error *err)
{
	uint64_t old_bytes = size_at(trace->fd, metadata_name(trace));

	trace->write_fd = -1;
	if (renameat(trace->fd, METADATA_NEW, trace->fd, metadata_name(trace)) < 0)
		return io_error(trace, metadata_name(trace), errno, "write the metadata", err);
	ky_relay_close_fd(&trace->metadata_fd);
	trace->use->removed_bytes += old_bytes;
	trace->use->added_bytes += KY_RELAY_ENTRY_BYTES;
	return KYMO_OK;
}

int ky_relay_trace_patch(struct ky_relay_trace *trace, uint64_t at_bytes, const uint8_t *data,
			 size_t bytes, struct kymo_error *err)
{
	int ret = relay_trace_wake(trace, err), fd;
	uint64_t size_bytes;

	if (ret < 0)
		return ret;
	fd = ky_file_open_regular(trace->fd, metadata_name(trace), O_WRONLY);
	if (fd < 0)
		return io_error(trace, metadata_name(trace), -fd, "change the metadata", err);
	size_bytes = size_of(fd);
	if (at_bytes > size_bytes)
		ret = ky_error_set(err, KYMO_E_FORMAT, "the metadata has no byte %llu",
				   (unsigned long long)at_bytes);
	else if (pwrite(fd, data, bytes, (off_t)at_bytes) != (ssize_t)bytes)
		ret = io_error(trace, metadata_name(trace), errno, "change the metadata", err);
	else
		relay_trace_grow(trace, &size_bytes, at_bytes + bytes);
	close(fd);
	return ret;
}

/* ---- live readers, the end ------------------------------------------------------------ */

int ky_relay_trace_beacon(struct ky_relay_trace *trace, uint64_t until_cycles,
			  struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const struct stream *stream;
	int ret = relay_trace_wake(trace, err);

	if (ret < 0)
		return ret;
	ky_live_put_head(&text, until_cycles);
	for (size_t at = 0; (stream = next_stream(trace, &at));)
		ky_live_put_stream(&text, stream->name, stream->size_bytes);
	ret = ky_strbuf_failed(&text) ? -ENOMEM
				      : ky_file_replace(trace->fd, KY_LIVE_FILE_NAME,
							ky_strbuf_text(&text), text.len);
	ky_strbuf_fini(&text);
	trace->is_told = true;
	return ret < 0 ? io_error(trace, KY_LIVE_FILE_NAME, -ret, "write for live readers", err)
		       : KYMO_OK;
}

void ky_relay_trace_end(struct ky_relay_trace *trace)
{
	relay_trace_end_live(trace);
	close_streams(trace);
	relay_trace_close_file(trace, &trace->index_fd);
	relay_trace_close_file(trace, &trace->fd);
}

static void relay_trace_remove_directory(const struct ky_relay_trace *trace, int dir_fd,
					 const char *path)
{
	if (unlinkat(dir_fd, path, AT_REMOVEDIR) == 0)
		trace->use->removed_bytes += KY_RELAY_ENTRY_BYTES;
}

/*
 * The directories of a trace that never got metadata go. A new connection has made them when the relay was killed
 * between the trace's rotation and its close.
 */
void ky_relay_trace_close(struct ky_relay_trace *trace)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", trace->path, metadata_name(trace));
	if (fstatat(trace->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	snprintf(path, sizeof(path), "%s/" INDEX_DIR, trace->path);
	relay_trace_remove_directory(trace, trace->root_fd, path);
	relay_trace_remove_directory(trace, trace->root_fd, trace->path);
}

static void relay_trace_remove_file(const struct ky_relay_trace *trace, int dir_fd,
				    const char *name)
{
	uint64_t bytes = size_at(dir_fd, name);

	if (unlinkat(dir_fd, name, 0) == 0)
		trace->use->removed_bytes += bytes;
}

void ky_relay_trace_discard(struct ky_relay_trace *trace)
{
	const struct stream *stream;

	if (relay_trace_wake(trace, NULL) < 0)
		return;
	relay_trace_end_live(trace);
	for (size_t at = 0; (stream = next_stream(trace, &at));) {
		char index[NAME_MAX + 1];

		snprintf(index, sizeof(index), "%s.idx", stream->name);
		relay_trace_remove_file(trace, trace->fd, stream->name);
		relay_trace_remove_file(trace, trace->index_fd, index);
	}
	(void)unlinkat(trace->fd, METADATA_NEW, 0);
	relay_trace_remove_file(trace, trace->fd, metadata_name(trace));
	relay_trace_remove_directory(trace, trace->fd, INDEX_DIR);
	relay_trace_remove_directory(trace, trace->root_fd, trace->path);
}

int ky_relay_trace_rotate(struct ky_relay_trace *trace, const char *archive, bool continues,
			  struct kymo_error *err)
{
	struct stat st;
	int ret;

	ky_relay_trace_end(trace);
	ret = ky_relay_make_parents(trace->root_fd, archive, &trace->use->added_bytes, err);
	if (ret < 0)
		return ret;
	/* A relay that was killed in between has done this already. */
	if (fstatat(trace->root_fd, archive, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	    renameat(trace->root_fd, trace->path, trace->root_fd, archive) < 0)
		return io_error(trace, archive, errno, "move the trace", err);
	if (continues)
		return relay_trace_open_dirs(trace, err);
	free(trace->path);
	trace->path = strdup(archive);
	return trace->path ? KYMO_OK : ky_error_nomem(err);
}
