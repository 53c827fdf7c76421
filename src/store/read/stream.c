/* SPDX-License-Identifier: MIT */
#include "store/read/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/sigbus-guard.h"
#include "store/packets/scratch-trace.h"
#include "store/read/walk.h"

static void stream_unmap(struct ky_stream *stream)
{
	uint64_t bytes = stream->reserved_bytes ?: stream->file.size_bytes;

	if (stream->parts.data[0].memory)
		return;
	ky_sigbus_guard_remove(stream->file.data, bytes);
	munmap((void *)(uintptr_t)stream->file.data, bytes);
}

void ky_stream_give_back(const struct ky_stream *stream, uint64_t from, uint64_t upto)
{
	uint64_t kept = ky_stream_memory_bytes(stream);

	from = from > kept ? from : kept;
	if (from < upto)
		(void)madvise((void *)(uintptr_t)(stream->file.data + from), upto - from,
			      MADV_DONTNEED);
}

void ky_stream_free(struct ky_stream *stream)
{
	if (!stream)
		return;
	if (stream->file.data)
		stream_unmap(stream);
	ky_vec_foreach(&stream->parts, part)
		free(part->path);
	ky_vec_fini(&stream->parts);
	free(stream);
}

static int cannot_map(const char *path, int errnum, struct kymo_error *err)
{
	int ret;

	/* Every file is a mapping, and Linux allows a process some 65,000. */
	if (errnum == ENOMEM)
		ret = ky_error_set(
			err, KYMO_E_MEMORY,
			"cannot map the stream file: memory or mappings are used up; read "
			"fewer files at once, or raise sysctl vm.max_map_count");
	else
		ret = ky_error_errno(err, errnum, "cannot map the stream file");
	ky_error_path(err, path);
	return ret;
}

static int map_growing(struct ky_stream *stream, int fd, uint64_t size_bytes);

/* Which file it is, and its size. An errno; @fd may be -1 with errno. */
static int stream_look(int fd, struct ky_stream_part *part, uint64_t *size_bytes)
{
	struct statx st;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE | STATX_BTIME, &st) < 0)
		return errno;
	part->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	part->inode = st.stx_ino;
	if (st.stx_mask & STATX_BTIME)
		part->born_ns = st.stx_btime.tv_sec * INT64_C(1000000000) + st.stx_btime.tv_nsec;
	*size_bytes = st.stx_size;
	return 0;
}

/* Which file it is goes into the stream's part. */
static int stream_map_file(struct ky_stream *stream, struct kymo_error *err)
{
	struct ky_stream_file *file = &stream->file;
	struct ky_stream_part *part = &stream->parts.data[0];
	int fd = part->fd >= 0 ? part->fd : open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t size_bytes = 0;
	int errnum = stream_look(fd, part, &size_bytes);
	void *data;

	if (!errnum && part->memory) {
		file->data = part->memory;
		file->size_bytes = part->size_bytes;
	} else if (!errnum && ky_stream_may_grow(stream)) {
		errnum = map_growing(stream, fd, size_bytes);
	} else if (!errnum && size_bytes) {
		data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED) {
			errnum = errno;
		} else {
			file->data = data;
			file->size_bytes = part->size_bytes = size_bytes;
			if (ky_sigbus_guard_add(data, size_bytes) < 0)
				errnum = ENOMEM;
		}
	}
	if (fd >= 0 && fd != part->fd)
		close(fd);
	if (!errnum)
		return KYMO_OK;
	return cannot_map(file->path, errnum, err);
}

/* ---- streams that grow ---------------------------------------------------------------- */

/*
 * Addresses for what a stream may become, so that events stay where they are. Addresses cost nothing, but a machine may
 * refuse so many.
 */
#define RESERVE_MAX_BYTES ((uint64_t)256 << 30)
#define RESERVE_MIN_BYTES ((uint64_t)1 << 30)

static void *stream_reserve(uint64_t *bytes)
{
	void *data = MAP_FAILED;

	for (*bytes = RESERVE_MAX_BYTES; data == MAP_FAILED && *bytes >= RESERVE_MIN_BYTES;) {
		data = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
		if (data == MAP_FAILED)
			*bytes /= 4;
	}
	return data;
}

/* Map bytes @from to @upto of @fd, whole pages around them. 0 or an errno. */
static int map_more(const struct ky_stream *stream, int fd, uint64_t from, uint64_t upto)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t *data = (uint8_t *)(uintptr_t)stream->file.data;

	from &= ~(page - 1);
	return mmap(data + from, upto - from, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		    (off_t)from) == MAP_FAILED
		       ? errno
		       : 0;
}

int ky_stream_grow(struct ky_stream *stream, uint64_t size_bytes, struct kymo_error *err)
{
	struct ky_stream_part *part = &stream->parts.data[0];
	int fd, errnum = 0;
	struct stat st;

	if (!stream->reserved_bytes || size_bytes <= part->size_bytes)
		return KYMO_OK;
	fd = part->fd >= 0 ? part->fd : open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		errnum = errno;
	} else if (st.st_dev != part->device || st.st_ino != part->inode) {
		errnum = ESTALE;
	} else {
		size_bytes = (uint64_t)st.st_size < size_bytes ? (uint64_t)st.st_size : size_bytes;
		if (size_bytes > stream->reserved_bytes)
			errnum = EFBIG;
		else if (size_bytes > part->size_bytes)
			errnum = map_more(stream, fd, part->size_bytes, size_bytes);
	}
	if (!errnum && size_bytes > part->size_bytes)
		stream->file.size_bytes = part->size_bytes = size_bytes;
	if (fd >= 0 && fd != part->fd)
		close(fd);
	/* The file was removed, or another one is in its place: the follower learns of that, and opens the set again. */
	return errnum && errnum != ENOENT && errnum != ESTALE ? cannot_map(part->path, errnum, err)
							      : KYMO_OK;
}

/* Map what is whole of @stream, whose file is open as @fd, with addresses for more. 0 or an errno. */
static int map_growing(struct ky_stream *stream, int fd, uint64_t size_bytes)
{
	struct ky_stream_part *part = &stream->parts.data[0];
	uint64_t size = ky_live_size(&stream->trace->live.state, stream->name), reserved;
	void *data;
	int errnum;

	size = size_bytes < size ? size_bytes : size;
	if (!size)
		return 0;
	data = stream_reserve(&reserved);
	if (data == MAP_FAILED)
		return ENOMEM;
	stream->file.data = data;
	stream->reserved_bytes = reserved;
	errnum = size > reserved ? EFBIG : map_more(stream, fd, 0, size);
	if (errnum)
		return errnum;
	stream->file.size_bytes = part->size_bytes = size;
	return ky_sigbus_guard_add(data, reserved) < 0 ? ENOMEM : 0;
}

/* Damage is not reported here: reading the stream will. */
static int learn_from_first_packet(struct ky_stream *stream, struct kymo_error *err)
{
	const struct ky_packet *p;
	uint64_t skipped_bytes;
	struct kymo_error own;
	struct ky_walk walk;
	int ret;

	ret = ky_walk_init(&walk, stream, err);
	if (ret < 0)
		return ret;
	do
		ret = ky_walk_next(&walk, &own);
	while (ret < 0 && ky_walk_recover(&walk, &own, &skipped_bytes));
	if (ret > 0) {
		p = walk.packet;
		stream->cls = p->stream_class;
		stream->has_id = p->has_stream_id;
		stream->id = p->stream_id;
		stream->has_cpu_id = p->has_cpu_id;
		stream->cpu_id = p->cpu_id;
	}
	ky_walk_fini(&walk);
	return KYMO_OK;
}

/* Map the file at @path, which is taken over, or @scratch, as the whole of @stream. */
static int stream_open_file(struct ky_stream *stream, char *path, struct ky_scratch_stream *scratch,
			    struct kymo_error *err)
{
	struct ky_stream_part part = {.path = path, .fd = scratch ? scratch->fd : -1};
	int errnum = scratch ? ky_scratch_stream_map(scratch) : 0;

	if (scratch && !errnum) {
		part.memory = scratch->memory;
		part.memory_bytes = scratch->kept_bytes;
		part.size_bytes = scratch->memory ? scratch->size_bytes : 0;
		part.begin_bytes = scratch->first_bytes;
	}
	stream->passed_bytes = scratch ? &scratch->passed_bytes : NULL;
	if (ky_vec_push(&stream->parts, part) < 0) {
		free(path);
		return ky_error_nomem(err);
	}
	stream->file.path = path;
	stream->name = strrchr(path, '/') + 1;
	return errnum ? cannot_map(path, errnum, err) : stream_map_file(stream, err);
}

int ky_stream_open(struct ky_trace *trace, const char *name, struct ky_scratch_stream *scratch,
		   struct kymo_error *err)
{
	struct ky_stream *stream = calloc(1, sizeof(*stream));
	char *path;
	int ret;

	if (!stream)
		return ky_error_nomem(err);
	stream->trace = trace;
	if (asprintf(&path, "%s/%s", trace->path, name) < 0)
		ret = ky_error_nomem(err);
	else
		ret = stream_open_file(stream, path, scratch, err);
	if (ret == KYMO_OK)
		ret = learn_from_first_packet(stream, err);
	if (ret == KYMO_OK && ky_vec_push(&trace->streams, stream) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		ky_stream_free(stream);
	return ret;
}

const struct ky_stream_part *ky_stream_part_at(const struct ky_stream *stream, uint64_t offset)
{
	const struct ky_stream_part *at = NULL;

	ky_vec_foreach(&stream->parts, part) {
		if (!at || offset >= part->at_bytes)
			at = part;
	}
	return at;
}

int ky_stream_part_open(const struct ky_stream_part *part)
{
	int fd = part->fd >= 0 ? fcntl(part->fd, F_DUPFD_CLOEXEC, 0)
			       : open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 ||
	    (fstat(fd, &st) == 0 && st.st_dev == part->device && st.st_ino == part->inode &&
	     (part->memory || (uint64_t)st.st_size >= part->size_bytes)))
		return fd;
	close(fd);
	return -1;
}

/* How long the file of @part is now, if it is still the same one; else as it was. */
static uint64_t size_now(const struct ky_stream_part *part)
{
	struct stat st;

	if (part->fd >= 0 || stat(part->path, &st) < 0 || st.st_dev != part->device ||
	    st.st_ino != part->inode)
		return part->size_bytes;
	return (uint64_t)st.st_size;
}

int ky_stream_check(const struct ky_stream *stream, bool ask_files, struct kymo_error *err)
{
	const uint8_t *data = stream->file.data;

	if (!data || (!ask_files && !ky_sigbus_guard_hit(data, stream->file.size_bytes)))
		return KYMO_OK;
	ky_vec_foreach(&stream->parts, part) {
		uint64_t now = size_now(part);

		if (now >= part->size_bytes && !ky_sigbus_guard_hit(data + part->at_bytes, 1))
			continue;
		ky_error_set(err, KYMO_E_IO,
			     "the file was cut while it was read: it had %llu bytes, now it has "
			     "%llu",
			     (unsigned long long)part->size_bytes, (unsigned long long)now);
		ky_error_path(err, part->path);
		return KYMO_E_IO;
	}
	return KYMO_OK;
}

void ky_stream_place(const struct ky_stream *stream, struct kymo_error *err)
{
	const struct ky_stream_part *at;

	if (!err)
		return;
	at = ky_stream_part_at(stream, err->offset == KYMO_NO_OFFSET ? 0 : err->offset);
	ky_error_path(err, at ? at->path : stream->file.path);
	if (at && err->offset != KYMO_NO_OFFSET)
		ky_error_offset(err, err->offset - at->at_bytes);
}

int ky_stream_compare(const void *a, const void *b)
{
	const struct ky_stream *x = *(struct ky_stream *const *)a;
	const struct ky_stream *y = *(struct ky_stream *const *)b;

	if (!x->cls != !y->cls)
		return x->cls ? -1 : 1;
	if (x->cls && x->cls->id != y->cls->id)
		return x->cls->id < y->cls->id ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->file.path, y->file.path);
}
