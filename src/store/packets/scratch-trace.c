/* SPDX-License-Identifier: MIT */
#include "store/packets/scratch-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "os/sigbus-guard.h"

/* Of all scratch traces of the process. */
#define MEMORY_MAX_BYTES   ((uint64_t)64 << 20)
#define MEMORY_SHARE	   16 /* and of the machine's memory at most one part of so many */
#define MEMORY_FIRST_BYTES ((uint64_t)512 << 10)
#define HUGE_PAGE_BYTES	   ((uint64_t)2 << 20)
static _Atomic uint64_t memory_used_bytes; /* relaxed: a limit, which orders nothing */
/*
 * The host of a virtual machine takes free huge pages back. A program that uses such a page again waits ten times as long as its zeroing takes.
 * From the first such page on, the rest of all streams goes to files: their small pages are seldom taken.
 */
#define HUGE_PAGE_MAX_NS 2000000
static _Atomic bool memory_is_dear; /* relaxed: a hint */

struct scratch_writer {
	struct ky_store_trace base;
	struct ky_scratch_trace *trace;
	char directory[PATH_MAX];
};

static struct scratch_writer *scratch_writer(struct ky_store_trace *base)
{
	return (struct scratch_writer *)base;
}

/* ---- memory --------------------------------------------------------------------------- */

static uint64_t scratch_trace_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static void scratch_trace_free_memory(struct ky_scratch_stream *stream)
{
	if (!stream->memory)
		return;
	if (stream->is_mapped)
		ky_sigbus_guard_remove(stream->memory, stream->memory_bytes);
	munmap(stream->memory, stream->memory_bytes);
	atomic_fetch_sub_explicit(&memory_used_bytes, stream->kept_bytes, memory_order_relaxed);
	stream->memory = NULL;
	stream->memory_bytes = stream->kept_bytes = 0;
}

/* Addresses for @bytes, with what is there; pages come as they are written. */
static bool scratch_trace_reserve(struct ky_scratch_stream *stream, uint64_t bytes)
{
	uint64_t had = stream->memory_bytes, want = had ? had : MEMORY_FIRST_BYTES;
	void *memory;

	while (want < bytes)
		want *= 2;
	if (want == had)
		return true;
	memory = had ? mremap(stream->memory, had, want, MREMAP_MAYMOVE)
		     : mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	if (want >= HUGE_PAGE_BYTES)
		(void)madvise(memory, want, MADV_HUGEPAGE);
	stream->memory = memory;
	stream->memory_bytes = want;
	return true;
}

static uint64_t scratch_trace_memory_max(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t share =
		pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / MEMORY_SHARE : 0;

	return share < MEMORY_MAX_BYTES ? share : MEMORY_MAX_BYTES;
}

static bool scratch_trace_fits(struct ky_scratch_stream *stream, uint64_t bytes)
{
	if (atomic_fetch_add_explicit(&memory_used_bytes, bytes, memory_order_relaxed) + bytes <=
		    scratch_trace_memory_max() &&
	    scratch_trace_reserve(stream, stream->size_bytes + bytes))
		return true;
	atomic_fetch_sub_explicit(&memory_used_bytes, bytes, memory_order_relaxed);
	return false;
}

/*
 * From here on, bytes go to the file: to the same offsets as in the stream, so that the file is mapped behind the memory. A mapping
 * begins with a page, so the last page of the memory goes to the file, too. 0 or negative: an errno.
 */
static int scratch_trace_spill(struct ky_scratch_stream *stream)
{
	uint64_t begin = stream->kept_bytes & ~(scratch_trace_page() - 1);
	int ret;

	if (lseek(stream->fd, (off_t)begin, SEEK_SET) < 0)
		return -errno;
	ret = ky_write_all(stream->fd, stream->memory + begin, stream->kept_bytes - begin);
	stream->is_over = !ret;
	return ret;
}

/* Did the memory for a packet take too long? @began_ns: CPU time of the thread before it was written. */
static void scratch_trace_judge(const struct ky_scratch_stream *stream, int64_t began_ns)
{
	if (stream->memory_bytes > HUGE_PAGE_BYTES &&
	    ky_os_time_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns > HUGE_PAGE_MAX_NS)
		atomic_store_explicit(&memory_is_dear, true, memory_order_relaxed);
}

/* 1: the packet is in memory; 0: it goes to the file, as will those after it; negative: an errno. */
static int scratch_trace_keep(const struct ky_scratch_trace *trace,
			      struct ky_scratch_stream *stream, const struct ky_packet_out *packet)
{
	int64_t began_ns;
	uint8_t *at;

	if (!trace->uses_memory || stream->is_over || (stream->size_bytes && !stream->memory))
		return 0;
	if ((stream->size_bytes >= HUGE_PAGE_BYTES &&
	     atomic_load_explicit(&memory_is_dear, memory_order_relaxed)) ||
	    !scratch_trace_fits(stream, packet->size_bytes))
		return stream->memory ? scratch_trace_spill(stream) : 0;
	at = stream->memory + stream->size_bytes;
	began_ns = ky_os_time_ns(CLOCK_THREAD_CPUTIME_ID);
	if (packet->head_bytes)
		memcpy(at, packet->head, packet->head_bytes);
	memcpy(at + packet->head_bytes, packet->data, packet->size_bytes - packet->head_bytes);
	scratch_trace_judge(stream, began_ns);
	stream->kept_bytes += packet->size_bytes;
	return 1;
}

/*
 * Moves the memory to where there are addresses for all of the stream, by a multiple of the size of huge pages, so that these move
 * whole.
 */
static int scratch_trace_move(struct ky_scratch_stream *stream, uint64_t bytes)
{
	uint64_t room = bytes + HUGE_PAGE_BYTES, skip;
	uint8_t *data =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return errno;
	skip = ((uintptr_t)stream->memory - (uintptr_t)data) % HUGE_PAGE_BYTES;
	if (mremap(stream->memory, stream->memory_bytes, stream->memory_bytes,
		   MREMAP_MAYMOVE | MREMAP_FIXED, data + skip) == MAP_FAILED) {
		munmap(data, room);
		return errno;
	}
	if (skip)
		munmap(data, skip);
	if (skip != HUGE_PAGE_BYTES)
		munmap(data + skip + bytes, HUGE_PAGE_BYTES - skip);
	stream->memory = data + skip;
	stream->memory_bytes = bytes;
	return KYMO_OK;
}

int ky_scratch_stream_map(struct ky_scratch_stream *stream)
{
	uint64_t page = scratch_trace_page(), kept = stream->kept_bytes & ~(page - 1);
	uint64_t bytes = (stream->size_bytes + page - 1) & ~(page - 1);
	int errnum = KYMO_OK;

	if (!stream->is_over || stream->is_mapped)
		return KYMO_OK;
	if (bytes > stream->memory_bytes)
		errnum = scratch_trace_move(stream, bytes);
	if (errnum)
		return errnum;
	if (mmap(stream->memory + kept, bytes - kept, PROT_READ, MAP_PRIVATE | MAP_FIXED,
		 stream->fd, (off_t)kept) == MAP_FAILED)
		return errno;
	if (ky_sigbus_guard_add(stream->memory, stream->memory_bytes) < 0)
		return ENOMEM;
	stream->is_mapped = true;
	atomic_fetch_sub_explicit(&memory_used_bytes, stream->kept_bytes - kept,
				  memory_order_relaxed);
	stream->kept_bytes = kept;
	return KYMO_OK;
}

/* ---- files ---------------------------------------------------------------------------- */

void ky_scratch_trace_fini(struct ky_scratch_trace *trace)
{
	ky_vec_foreach(&trace->streams, stream) {
		close((*stream)->fd);
		scratch_trace_free_memory(*stream);
		free((*stream)->name);
		free(*stream);
	}
	ky_vec_fini(&trace->streams);
	ky_strbuf_fini(&trace->metadata);
}

/* The traces may be larger than memory, which /tmp often is. */
static void choose_directory(char directory[PATH_MAX])
{
	const char *choices[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	const char *chosen = choices[0];

	for (size_t i = 1; (!chosen || !*chosen) && i < sizeof(choices) / sizeof(choices[0]); i++)
		chosen = access(choices[i], W_OK | X_OK) == 0 ? choices[i] : NULL;
	snprintf(directory, PATH_MAX, "%s", chosen ? chosen : "/tmp");
}

static int scratch_error(const char *directory, int errnum, const char *what,
			 struct kymo_error *err)
{
	int code = ky_error_errno(err, errnum, "cannot %s", what);

	if (errnum == EMFILE || errnum == ENFILE) {
		ky_error_hint(err, "each data stream takes one; raise the limit (ulimit -n)");
		return code;
	}
	ky_error_path(err, directory);
	ky_error_hint(
		err,
		errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG
			? "no space for the converted trace; set TMPDIR to a directory on another "
			  "disk"
			: "set TMPDIR to another directory");
	return code;
}

static int scratch_trace_add_stream(struct ky_scratch_trace *trace, const char *name,
				    const char *directory, struct kymo_error *err)
{
	struct ky_scratch_stream *stream = calloc(1, sizeof(*stream));
	int errnum = ENOMEM;

	if (!stream)
		return ky_error_nomem(err);
	*stream = (struct ky_scratch_stream){
		.name = strdup(name), .fd = -1, .passed_bytes = UINT64_MAX};
	if (stream->name) {
		stream->fd = directory ? ky_file_open_unnamed(directory)
				       : memfd_create("kymo-packets", MFD_CLOEXEC);
		errnum = directory ? -stream->fd : errno;
	}
	if (stream->fd >= 0 && ky_vec_push(&trace->streams, stream) == 0)
		return (int)trace->streams.len - 1;
	if (stream->fd >= 0) {
		close(stream->fd);
		errnum = ENOMEM;
	}
	free(stream->name);
	free(stream);
	return errnum == ENOMEM ? ky_error_nomem(err)
				: scratch_error(directory ? directory : "", errnum,
						"create a temporary file", err);
}

int ky_scratch_trace_add(struct ky_scratch_trace *trace, const char *name, bool in_memory,
			 struct kymo_error *err)
{
	char directory[PATH_MAX];
	int ret;

	choose_directory(directory);
	ret = scratch_trace_add_stream(trace, name, in_memory ? NULL : directory, err);
	return ret < 0 ? ret : KYMO_OK;
}

static int scratch_stream(struct ky_store_trace *base, const char *name, struct kymo_error *err)
{
	struct scratch_writer *writer = scratch_writer(base);

	return scratch_trace_add_stream(writer->trace, name, writer->directory, err);
}

static int scratch_packet(struct ky_store_trace *base, int number,
			  const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct scratch_writer *writer = scratch_writer(base);
	struct iovec parts[] = {
		{(void *)packet->head, packet->head_bytes},
		{(void *)packet->data, packet->size_bytes - packet->head_bytes},
	};
	struct ky_scratch_stream *stream;
	int ret;

	if (number < 0 || (size_t)number >= writer->trace->streams.len)
		return ky_error_set(err, KYMO_E_INVALID, "there is no stream %d", number);
	stream = writer->trace->streams.data[number];
	ret = scratch_trace_keep(writer->trace, stream, packet);
	if (!ret)
		ret = ky_writev_all(stream->fd, parts, 2);
	if (ret < 0) {
		/* Half a packet would be damage for its reader. */
		(void)!ftruncate(stream->fd, (off_t)stream->size_bytes);
		(void)lseek(stream->fd, (off_t)stream->size_bytes, SEEK_SET);
		return scratch_error(writer->directory, -ret, "write a temporary file", err);
	}
	stream->size_bytes += packet->size_bytes;
	base->bytes_written += packet->size_bytes;
	return KYMO_OK;
}

static int scratch_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			    struct kymo_error *err)
{
	struct ky_strbuf *metadata = &scratch_writer(base)->trace->metadata;

	ky_strbuf_clear(metadata);
	ky_strbuf_add(metadata, text, len_bytes);
	return ky_strbuf_failed(metadata) ? ky_error_nomem(err) : KYMO_OK;
}

static int scratch_close(struct ky_store_trace *base, struct kymo_error *err)
{
	(void)err;
	free(base);
	return KYMO_OK;
}

static const struct ky_store_trace_ops scratch_ops = {
	.stream = scratch_stream,
	.packet = scratch_packet,
	.metadata = scratch_metadata,
	.close = scratch_close,
};

/* ---- the store ------------------------------------------------------------------------ */

struct scratch_store {
	struct ky_packet_store base;
	struct ky_scratch_trace *trace;
};

static int scratch_open(struct ky_packet_store *base, const struct ky_store_place *place,
			struct ky_store_trace **out, struct kymo_error *err)
{
	struct scratch_writer *writer = calloc(1, sizeof(*writer));

	(void)place;
	*out = NULL;
	if (!writer)
		return ky_error_nomem(err);
	writer->base.ops = &scratch_ops;
	writer->trace = ((struct scratch_store *)base)->trace;
	choose_directory(writer->directory);
	*out = &writer->base;
	return KYMO_OK;
}

static void scratch_store_free(struct ky_packet_store *base)
{
	free(base);
}

static const struct ky_packet_store_ops scratch_store_ops = {
	.open = scratch_open,
	.free = scratch_store_free,
};

int ky_scratch_store_open(struct ky_scratch_trace *trace, struct ky_packet_store **out,
			  struct kymo_error *err)
{
	struct scratch_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (!store)
		return ky_error_nomem(err);
	store->base.ops = &scratch_store_ops;
	store->base.name = (char *)"temporary files";
	store->trace = trace;
	*out = &store->base;
	return KYMO_OK;
}
