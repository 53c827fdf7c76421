/* SPDX-License-Identifier: MIT */
/*
 * The directory sink: LTTng's trace layout.
 *
 * One write() per packet: packets are large, so another buffer would only copy; or they are blocks, and a
 * thread writes them (block-writer.h). Index entries are small and collected, and tell of nothing that is not
 * written. A stream file always ends with a whole packet: what a full disk cut is taken back, so that the trace
 * stays readable up to there. Index entries that a crash loses do no harm either, since readers scan a file that
 * its index does not cover.
 */
#include "store/writer.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "os/file.h"

#define INDEX_MAGIC	    0xC1F1DCC1u
#define INDEX_MAJOR	    1
#define INDEX_MINOR	    1
#define INDEX_ENTRY_BYTES   72
#define INDEX_BATCH_ENTRIES 64

struct index_header {
	uint32_t magic, major, minor, entry_bytes;
};

/* Everything big-endian; offset in bytes, sizes in bits. */
struct index_entry {
	uint64_t offset_bytes, packet_bits, content_bits;
	uint64_t begin_cycles, end_cycles, discarded;
	uint64_t stream_class_id, stream_id, sequence;
};

_Static_assert(sizeof(struct index_entry) == INDEX_ENTRY_BYTES, "index entry");

struct stream {
	char *name;
	int fd, index_fd;
	struct ky_block_file *blocks; /* NULL: its packets are no blocks */
	uint64_t size_bytes, listed_bytes;
	bool no_index;
	uint32_t n_entries;
	struct index_entry entries[INDEX_BATCH_ENTRIES];
};

struct dir_sink {
	struct ky_packet_sink base;
	char *path;
	char *final_path; /* where the directory is to be moved, or NULL */
	bool is_ours;	  /* the directory was not there before */
	int dir_fd, index_dir_fd;
	pthread_mutex_t lock;		/* of the list, not of what stands in it */
	struct ky_block_writer *blocks; /* NULL: none */
	KY_VEC(struct stream *) streams;
};

static struct dir_sink *dir_sink(struct ky_packet_sink *base)
{
	return (struct dir_sink *)base;
}

/* The error of @errnum on file @name of @dir ("" or "index/") below the trace. */
static int file_error(const struct dir_sink *sink, const char *dir, const char *name, int errnum,
		      const char *what, struct kymo_error *err)
{
	char path[PATH_MAX];
	int code = ky_error_errno(err, errnum, "cannot %s", what);

	snprintf(path, sizeof(path), "%s/%s%s", sink->path, dir, name);
	ky_error_path(err, path);
	if (errnum == ENOSPC || errnum == EDQUOT)
		ky_error_hint(err, "the disk is full: free some space or record to another one; "
				   "what was written until now can be read");
	else if (errnum == EMFILE)
		ky_error_hint(err, "raise the limit of open files (ulimit -n)");
	return code;
}

static void stream_free(struct stream *stream)
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

static struct stream *stream_new(const char *name)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->fd = stream->index_fd = -1;
	stream->name = strdup(name);
	if (stream->name)
		return stream;
	free(stream);
	return NULL;
}

/* How many entries tell of packets that end before @end_bytes. */
static uint32_t count_entries(const struct stream *stream, uint64_t end_bytes)
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
static uint64_t written_bytes(const struct stream *stream)
{
	uint64_t bytes;

	if (!stream->blocks)
		return stream->size_bytes;
	bytes = ky_block_file_written(stream->blocks);
	if (count_entries(stream, bytes))
		return bytes;
	(void)ky_block_file_wait(stream->blocks);
	return ky_block_file_written(stream->blocks);
}

static int flush_index(struct dir_sink *sink, struct stream *stream, struct kymo_error *err)
{
	uint32_t n = count_entries(stream, written_bytes(stream));
	int ret = ky_write_all(stream->index_fd, stream->entries, n * sizeof(stream->entries[0]));

	/* Of what could not be written, nothing is told: the next packet fails. */
	stream->n_entries = n ? stream->n_entries - n : 0;
	memmove(stream->entries, stream->entries + n,
		stream->n_entries * sizeof(stream->entries[0]));
	if (ret < 0)
		return file_error(sink, "index/", stream->name, -ret, "write the packet index",
				  err);
	return KYMO_OK;
}

static bool name_ok(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) <= NAME_MAX - 4 &&
	       strcmp(name, "metadata") != 0 && strcmp(name, "index") != 0;
}

static int stream_files(struct dir_sink *sink, struct stream *stream, struct kymo_error *err)
{
	const struct index_header header = {htobe32(INDEX_MAGIC), htobe32(INDEX_MAJOR),
					    htobe32(INDEX_MINOR), htobe32(INDEX_ENTRY_BYTES)};
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	char index_name[NAME_MAX + 1];
	int ret;

	stream->fd = openat(sink->dir_fd, stream->name, flags, 0600);
	if (stream->fd < 0)
		return file_error(sink, "", stream->name, errno, "create the stream file", err);
	snprintf(index_name, sizeof(index_name), "%s.idx", stream->name);
	stream->index_fd = openat(sink->index_dir_fd, index_name, flags, 0600);
	if (stream->index_fd < 0)
		return file_error(sink, "index/", index_name, errno, "create the index file", err);
	ret = ky_write_all(stream->index_fd, &header, sizeof(header));
	if (ret < 0)
		return file_error(sink, "index/", index_name, -ret, "write the packet index", err);
	return KYMO_OK;
}

/* Returns its number, or KYMO_E_MEMORY. */
static int list_stream(struct dir_sink *sink, struct stream *stream, struct kymo_error *err)
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
	struct stream *stream;
	int ret;

	if (!name_ok(name))
		return ky_error_set(err, KYMO_E_INVALID, "'%s' cannot be a stream's name", name);
	stream = stream_new(name);
	if (!stream)
		return ky_error_nomem(err);
	ret = stream_files(sink, stream, err);
	if (ret == KYMO_OK)
		ret = list_stream(sink, stream, err);
	if (ret < 0)
		stream_free(stream);
	return ret;
}

/* 0, or -errno: half a packet was taken back, which would make readers report damage. */
static int write_bytes(struct stream *stream, const struct ky_bytes_out *bytes)
{
	uint64_t copied = 0;
	int ret = 0;

	if (bytes->fd >= 0)
		ret = ky_copy_range(bytes->fd, bytes->offset_bytes, stream->fd, bytes->size_bytes,
				    &copied);
	if (ret == 0) {
		struct iovec parts[] = {
			{(void *)bytes->head, bytes->head_bytes},
			{(char *)bytes->data + copied,
			 bytes->size_bytes - bytes->head_bytes - copied},
		};

		ret = ky_writev_all(stream->fd, parts, 2);
	}
	if (ret < 0 && ftruncate(stream->fd, (off_t)stream->size_bytes) == 0)
		(void)lseek(stream->fd, (off_t)stream->size_bytes, SEEK_SET);
	return ret;
}

static int find_stream(struct ky_packet_sink *base, int number, struct stream **stream,
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

static int dir_sink_copy(struct ky_packet_sink *base, int number, const struct ky_bytes_out *bytes,
			 struct kymo_error *err)
{
	struct stream *stream = NULL;
	int ret = find_stream(base, number, &stream, err);

	if (ret < 0)
		return ret;
	ret = write_bytes(stream, bytes);
	if (ret < 0)
		return file_error(dir_sink(base), "", stream->name, -ret, "write a packet", err);
	stream->size_bytes += bytes->size_bytes;
	__atomic_fetch_add(&base->bytes_written, bytes->size_bytes, __ATOMIC_RELAXED);
	return KYMO_OK;
}

static int dir_sink_list(struct ky_packet_sink *base, int number,
			 const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct stream *stream = NULL;
	int ret = find_stream(base, number, &stream, err);

	if (ret < 0)
		return ret;
	stream->no_index |= packet->no_times;
	stream->entries[stream->n_entries++] = (struct index_entry){
		.offset_bytes = htobe64(stream->listed_bytes),
		.packet_bits = htobe64((uint64_t)packet->size_bytes * 8),
		.content_bits = htobe64(packet->content_bits),
		.begin_cycles = htobe64(packet->begin_cycles),
		.end_cycles = htobe64(packet->end_cycles),
		.discarded = htobe64(packet->discarded),
		.stream_class_id = htobe64(packet->stream_class_id),
		.stream_id = htobe64(packet->stream_id),
		.sequence = htobe64(packet->sequence),
	};
	stream->listed_bytes += packet->size_bytes;
	return stream->n_entries == INDEX_BATCH_ENTRIES ? flush_index(dir_sink(base), stream, err)
							: KYMO_OK;
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
	struct stream *stream = NULL;
	int ret = find_stream(&sink->base, number, &stream, err);

	if (!ret && !stream->blocks) {
		stream->blocks = ky_block_file_open(sink->blocks, stream->fd);
		if (!stream->blocks)
			ret = ky_error_nomem(err);
	}
	if (ret < 0) {
		ky_block_give_back(sink->blocks, packet->block);
		return ret;
	}
	ret = ky_block_file_put(stream->blocks, packet->block, (uint32_t)packet->size_bytes);
	if (ret < 0)
		return file_error(sink, "", stream->name, -ret, "write a packet", err);
	stream->size_bytes += packet->size_bytes;
	__atomic_fetch_add(&sink->base.bytes_written, packet->size_bytes, __ATOMIC_RELAXED);
	return dir_sink_list(&sink->base, number, packet, err);
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
	int ret = ky_file_replace(sink->dir_fd, "metadata", text, len_bytes);

	return ret < 0 ? file_error(sink, "", "metadata", -ret, "write the metadata", err)
		       : KYMO_OK;
}

static void dir_sink_free(struct dir_sink *sink)
{
	for (size_t i = 0; i < sink->streams.len; i++)
		stream_free(sink->streams.data[i]);
	ky_vec_fini(&sink->streams);
	if (sink->index_dir_fd >= 0)
		close(sink->index_dir_fd);
	if (sink->dir_fd >= 0)
		close(sink->dir_fd);
	pthread_mutex_destroy(&sink->lock);
	free(sink->final_path);
	free(sink->path);
	free(sink);
}

/* What was written goes; what others may have put beside it stays. */
static void remove_files(struct dir_sink *sink)
{
	char index_name[NAME_MAX + 1];

	ky_vec_foreach(&sink->streams, stream) {
		(void)unlinkat(sink->dir_fd, (*stream)->name, 0);
		snprintf(index_name, sizeof(index_name), "%s.idx", (*stream)->name);
		(void)unlinkat(sink->index_dir_fd, index_name, 0);
	}
	(void)unlinkat(sink->dir_fd, "metadata", 0);
	(void)unlinkat(sink->dir_fd, "index", AT_REMOVEDIR);
	if (sink->is_ours)
		(void)rmdir(sink->path);
}

void ky_dir_sink_abort(struct ky_packet_sink *base)
{
	remove_files(dir_sink(base));
	dir_sink_free(dir_sink(base));
}

/* All packets are in the file, or what could not be written is not spoken of. */
static int finish_blocks(struct dir_sink *sink, struct stream *stream, struct kymo_error *err)
{
	struct ky_block_file *blocks = stream->blocks;
	int ret;

	stream->blocks = NULL;
	if (!blocks)
		return KYMO_OK;
	ret = ky_block_file_close(blocks, &stream->size_bytes);
	return ret < 0 ? file_error(sink, "", stream->name, -ret, "write a packet", err) : KYMO_OK;
}

/* Some file systems report a full disk at close() only. Keeps the first error. */
static int close_stream(struct dir_sink *sink, struct stream *stream, int ret,
			struct kymo_error *err)
{
	char index_name[NAME_MAX + 1];
	int here = finish_blocks(sink, stream, ret < 0 ? NULL : err);
	int listed = flush_index(sink, stream, ret < 0 || here < 0 ? NULL : err);

	here = here < 0 ? here : listed;
	if (close(stream->fd) < 0 && here == KYMO_OK)
		here = file_error(sink, "", stream->name, errno, "finish the stream file",
				  ret < 0 ? NULL : err);
	stream->fd = -1;
	if (stream->no_index) {
		snprintf(index_name, sizeof(index_name), "%s.idx", stream->name);
		(void)unlinkat(sink->index_dir_fd, index_name, 0);
	}
	return ret < 0 ? ret : here;
}

/* Only an empty directory is ours to fill. 0, or a negative errno (ENOTEMPTY). */
static int check_empty(int dir_fd)
{
	DIR *dir = ky_dir_open(dir_fd, ".");
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			ret = -ENOTEMPTY;
	closedir(dir);
	return ret;
}

static int open_error(int errnum, const char *path, struct kymo_error *err)
{
	int code;

	if (errnum == ENOTEMPTY) {
		code = ky_error_set(err, KYMO_E_INVALID, "the directory is not empty");
		ky_error_hint(err, "give the trace a directory of its own, or remove the old one");
	} else {
		code = ky_error_errno(err, errnum, "cannot create the trace directory");
		if (errnum == ENOENT)
			ky_error_hint(err, "its parent directory must exist");
	}
	ky_error_path(err, path);
	return code;
}

static int open_dirs(struct dir_sink *sink)
{
	int ret;

	if (mkdir(sink->path, 0700) == 0)
		sink->is_ours = true;
	else if (errno != EEXIST)
		return -errno;
	sink->dir_fd = open(sink->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sink->dir_fd < 0)
		return -errno;
	ret = check_empty(sink->dir_fd);
	if (ret < 0)
		return ret;
	if (mkdirat(sink->dir_fd, "index", 0700) < 0)
		return -errno;
	sink->index_dir_fd = openat(sink->dir_fd, "index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sink->index_dir_fd < 0 ? -errno : 0;
}

/* Put the finished directory in its place; an empty one that is there already gives way. */
static int move(struct dir_sink *sink, struct kymo_error *err)
{
	int errnum;

	if (rename(sink->path, sink->final_path) == 0)
		return KYMO_OK;
	errnum = errno == EEXIST || errno == ENOTDIR ? ENOTEMPTY : errno;
	return open_error(errnum, sink->final_path, err);
}

static int dir_sink_close(struct ky_packet_sink *base, struct kymo_error *err)
{
	struct dir_sink *sink = dir_sink(base);
	int ret = KYMO_OK;

	for (size_t i = 0; i < sink->streams.len; i++)
		ret = close_stream(sink, sink->streams.data[i], ret, err);
	if (sink->final_path && ret == KYMO_OK)
		ret = move(sink, err);
	if (sink->final_path && ret < 0)
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

/* @path: taken over. */
static int open_sink(char *path, struct dir_sink **out, struct kymo_error *err)
{
	struct dir_sink *sink = calloc(1, sizeof(*sink));
	int ret;

	if (!sink || !path) {
		free(path);
		free(sink);
		return ky_error_nomem(err);
	}
	sink->base.ops = &dir_sink_ops;
	pthread_mutex_init(&sink->lock, NULL);
	sink->dir_fd = sink->index_dir_fd = -1;
	sink->path = path;
	ret = open_dirs(sink);
	if (ret < 0) {
		ret = open_error(-ret, path, err);
		dir_sink_free(sink);
		return ret;
	}
	*out = sink;
	return KYMO_OK;
}

int ky_dir_sink_open(const char *path, struct ky_packet_sink **out, struct kymo_error *err)
{
	struct dir_sink *sink;
	int ret = open_sink(strdup(path), &sink, err);

	*out = ret == KYMO_OK ? &sink->base : NULL;
	return ret;
}

/* "a/b/" -> "a/.b.XXXXXX": beside it, where readers do not look. */
static char *hidden_name(const char *path)
{
	size_t len = strlen(path), name;
	char *hidden;

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (name = len; name && path[name - 1] != '/'; name--)
		;
	if (asprintf(&hidden, "%.*s.%.*s.XXXXXX", (int)name, path, (int)(len - name), path + name) <
	    0)
		return NULL;
	return hidden;
}

/* It is early enough to say so now. 0 or a negative errno. */
static int check_free(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno == ENOTDIR ? -ENOTEMPTY : -errno;
	ret = check_empty(fd);
	close(fd);
	return ret;
}

int ky_dir_sink_open_atomic(const char *path, struct ky_packet_sink **out, struct kymo_error *err)
{
	char *hidden = hidden_name(path), *final_path = strdup(path);
	struct dir_sink *sink = NULL;
	int ret = KYMO_OK, failed = check_free(path);

	*out = NULL;
	if (!hidden || !final_path)
		ret = ky_error_nomem(err);
	else if (failed < 0 || !mkdtemp(hidden))
		ret = open_error(failed < 0 ? -failed : errno, path, err);
	if (ret < 0) {
		free(hidden);
		free(final_path);
		return ret;
	}
	ret = open_sink(hidden, &sink, err);
	if (ret < 0) {
		free(final_path);
		return ret;
	}
	sink->is_ours = true;
	sink->final_path = final_path;
	*out = &sink->base;
	return KYMO_OK;
}
