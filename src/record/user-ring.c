/* SPDX-License-Identifier: MIT */
#include "record/user-ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

/* Sub-buffers of one buffer that are taken before the others get their turn. */
#define ROUND_CHUNKS 64
/* Traces of one name, of programs that began in the same second with the same pid. */
#define SAME_NAME_MAX 1000
/* A ring file that is recovered: so much more than it takes on disk. */
#define HOLES_FACTOR 64u
#define HOLES_BYTES  (16u << 20)
/* Between two versions of the metadata. */
#define METADATA_PAUSE_NS 50000000

/* ---- the blob ------------------------------------------------------------------------- */

static struct ky_user_blob blob_of(const struct ky_user_ring *ring)
{
	return (struct ky_user_blob){ky_user_ring_blob(ring), ring->blob_bytes};
}

/*
 * Who the program is and which trace this is was said when the ring was opened, and is what packets
 * were written with: all that may change later are the events and the losses.
 */
static void keep_identity(struct ky_blob *now, const struct ky_blob *first)
{
	struct ky_blob kept = *first;

	kept.bytes = now->bytes;
	kept.lost_joining = now->lost_joining;
	kept.lost_no_id = now->lost_no_id;
	kept.lost_large = now->lost_large;
	*now = kept;
}

/* Copy what is valid of the blob now. KYMO_E_FORMAT when it is none. */
static int read_blob(struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct kymo_ring_info *info = kymo_ring_reader_info(ring->reader);
	const struct ky_blob *shared = info->client_region;
	struct ky_user_blob blob;
	uint64_t bytes, *copy;
	ssize_t got;

	if (info->client_bytes < sizeof(*shared))
		return ky_error_set(err, KYMO_E_FORMAT, "not a ring of libkymo-trace");
	/* Acquire: so much is valid. Partner: the program's release. */
	bytes = __atomic_load_n(&shared->bytes, __ATOMIC_ACQUIRE);
	if (bytes < sizeof(*shared) || bytes > KY_BLOB_BYTES || bytes > info->client_bytes)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the ring's description of events makes no sense");
	copy = calloc(1, bytes + sizeof(*copy));
	if (!copy)
		return ky_error_nomem(err);
	got = pread(ring->fd, copy, bytes, (off_t)ring->blob_offset);
	blob = (struct ky_user_blob){(const struct ky_blob *)copy, got < 0 ? 0 : (size_t)got};
	if (ky_user_blob_check(&blob, err) < 0) {
		free(copy);
		return KYMO_E_FORMAT;
	}
	if (ring->blob)
		keep_identity((struct ky_blob *)copy, ky_user_ring_blob(ring));
	free(ring->blob);
	ring->blob = copy;
	ring->blob_bytes = blob.bytes;
	return KYMO_OK;
}

/* ---- metadata ------------------------------------------------------------------------- */

/* What the blob says, as metadata; @text is the caller's to free. */
static int make_metadata(struct ky_user_ring *ring, struct ky_strbuf *text, struct kymo_error *err)
{
	struct ky_user_blob blob = blob_of(ring);
	size_t len_bytes;
	uint32_t n_bad;
	char *made;
	int ret;

	ret = ky_user_metadata(&blob, &ring->clock, ring->trace_name, &made, &len_bytes, &n_bad,
			       err);
	if (ret < 0)
		return ret;
	if (n_bad)
		ky_log_warning(ring->log, "%s: %u descriptions of events make no sense", ring->name,
			       n_bad);
	ky_strbuf_add(text, made, len_bytes);
	free(made);
	return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
}

static int put_metadata(struct ky_user_ring *ring, const struct ky_strbuf *text,
			struct kymo_error *err)
{
	int ret, dir;

	ring->metadata_bytes = ring->blob_bytes;
	if (ring->sink)
		return ring->sink->ops->metadata(ring->sink, text->data, text->len, err);
	dir = open(ring->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = dir < 0 ? -errno : ky_file_replace(dir, "metadata", text->data, text->len);
	if (dir >= 0)
		close(dir);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot write the metadata");
		ky_error_path(err, ring->path);
	}
	return ret;
}

/* KYMO_E_FORMAT: the program's descriptions cannot be told. Others: the output cannot be written. */
static int write_metadata(struct ky_user_ring *ring, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = make_metadata(ring, &text, err);

	if (!ret)
		ret = put_metadata(ring, &text, err);
	ky_strbuf_fini(&text);
	return ret;
}

static void set_broken(struct ky_user_ring *ring, const char *why)
{
	if (!ring->is_broken)
		ky_log_warning(ring->log, "%s: %s; what was read of it before is kept", ring->name,
			       why);
	ring->is_broken = true;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static const char bad_description[] = "its description of events makes no sense any more";

/* As write_metadata(), where a program that makes no sense is no reason to end the recording. */
static int describe(struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret = write_metadata(ring, err);

	if (ret != KYMO_E_FORMAT)
		return ret;
	set_broken(ring, bad_description);
	return KYMO_OK;
}

/*
 * The program has told of more events. Not each time at once: one that does it all the time must
 * not keep us busy. In the end the metadata has them all.
 */
static int follow_blob(struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct ky_blob *shared = kymo_ring_reader_info(ring->reader)->client_region;
	uint64_t bytes = __atomic_load_n(&shared->bytes, __ATOMIC_ACQUIRE);

	if (bytes == ring->metadata_bytes || now_ns() - ring->metadata_ns < METADATA_PAUSE_NS)
		return KYMO_OK;
	ring->metadata_ns = now_ns();
	if (read_blob(ring, NULL) < 0 || ring->blob_bytes < ring->metadata_bytes) {
		set_broken(ring, bad_description);
		return KYMO_OK;
	}
	return describe(ring, err);
}

/* ---- opening -------------------------------------------------------------------------- */

static int make_directory(char *path, size_t size, const char *output, const char *below,
			  struct kymo_error *err)
{
	int ret;

	snprintf(path, size, "%s/%s", output, below);
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot create the trace directory");
	ky_error_path(err, path);
	return ret;
}

static int make_trace(struct ky_user_ring *ring, const char *output, struct kymo_error *err)
{
	char path[PATH_MAX], name[KY_USER_TRACE_NAME_BYTES];
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = make_directory(path, sizeof(path), output, "ust", err);

	if (!ret)
		ret = make_directory(path, sizeof(path), output, "ust/pid", err);
	if (ret < 0)
		return ret;
	ky_user_trace_name(ky_user_ring_blob(ring), name);
	snprintf(ring->trace_name, sizeof(ring->trace_name), "%s", name);
	for (int i = 2; i < SAME_NAME_MAX; i++) {
		snprintf(path, sizeof(path), "%s/ust/pid/%s", output, ring->trace_name);
		if (access(path, F_OK) < 0)
			break;
		snprintf(ring->trace_name, sizeof(ring->trace_name), "%s-%d", name, i);
	}
	ring->path = strdup(path);
	if (!ring->path)
		return ky_error_nomem(err);
	/* First: of a program that makes no sense there is no trace at all. */
	ret = make_metadata(ring, &text, err);
	if (!ret)
		ret = ky_dir_sink_open(path, &ring->sink, err);
	if (!ret)
		ret = put_metadata(ring, &text, err);
	ky_strbuf_fini(&text);
	return ret;
}

/* Before it is mapped: is it as large as it should be, and ours? */
static int check_head(struct ky_user_ring *ring, const struct ky_user_ring_options *options,
		      struct kymo_error *err)
{
	struct kymo_ring_file head;
	struct stat st;

	if (fstat(ring->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return ky_error_set(err, KYMO_E_FORMAT, "not a regular file");
	if (pread(ring->fd, &head, sizeof(head), 0) != sizeof(head))
		return ky_error_set(err, KYMO_E_FORMAT, "not a ring: too short");
	if (head.magic == __builtin_bswap64(KYMO_RING_MAGIC))
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "a ring of a machine of another byte order");
	if (head.client_offset > INT64_MAX || head.file_bytes > INT64_MAX)
		return ky_error_set(err, KYMO_E_FORMAT, "the ring's head makes no sense");
	ring->device = st.st_dev;
	ring->inode = st.st_ino;
	ring->blob_offset = head.client_offset;
	ring->file_bytes = head.file_bytes;
	/*
	 * What is recovered was written once, so it takes space; holes in it come from copying only
	 * (runs of zeros). A live ring is used again and again.
	 */
	ring->bytes_max = UINT64_MAX;
	if (options->read_only)
		ring->bytes_max = (uint64_t)st.st_blocks * 512 * HOLES_FACTOR + HOLES_BYTES;
	return KYMO_OK;
}

/* As the reader has it: the head in the file may have changed since it was looked at. */
static int check_buffers(const struct ky_user_ring *ring,
			 const struct ky_user_ring_options *options, struct kymo_error *err)
{
	const struct kymo_ring_info *info = kymo_ring_reader_info(ring->reader);

	if (!options->subbuf_bytes)
		return KYMO_OK;
	if (info->subbuf_bytes != options->subbuf_bytes || info->n_subbufs != options->n_subbufs)
		return ky_error_set(err, KYMO_E_FORMAT, "its buffers are not what was asked for");
	if (info->n_buffers > (uint32_t)sysconf(_SC_NPROCESSORS_CONF))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "it has more buffers than this machine has CPUs");
	return KYMO_OK;
}

static int check_blob(struct ky_user_ring *ring, const struct ky_user_ring_options *options,
		      struct kymo_error *err)
{
	const struct ky_blob *blob = ky_user_ring_blob(ring);

	if (options->session_uuid &&
	    memcmp(blob->session_uuid, options->session_uuid, sizeof(blob->session_uuid)) != 0)
		return ky_error_set(err, KYMO_E_FORMAT, "the ring of another session");
	if (options->comm &&
	    strncmp(options->comm, blob->procname, sizeof(blob->procname) - 1) != 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "a program of another name");
	ring->clock = blob->clock;
	return KYMO_OK;
}

static int open_streams(struct ky_user_ring *ring, struct kymo_error *err)
{
	ring->n_streams = kymo_ring_reader_buffers(ring->reader);
	ring->streams = calloc(ring->n_streams, sizeof(*ring->streams));
	if (!ring->streams)
		return ky_error_nomem(err);
	for (uint32_t i = 0; i < ring->n_streams; i++)
		ring->streams[i].number = -1;
	ring->dump_stream.number = -1;
	return KYMO_OK;
}

int ky_user_ring_open(int fd, const char *name, const struct ky_user_ring_options *options,
		      struct ky_user_ring **out, struct kymo_error *err)
{
	struct kymo_ring_reader_options reader_options = {
		.size_bytes = sizeof(reader_options),
		.flags = options->read_only ? KYMO_RING_READ_ONLY : 0,
	};
	struct ky_user_ring *ring = calloc(1, sizeof(*ring));
	int ret;

	*out = NULL;
	if (!ring) {
		close(fd);
		return ky_error_nomem(err);
	}
	ring->fd = fd;
	ring->log = options->log;
	ring->read_only = options->read_only;
	ring->name = strdup(name);
	ret = ring->name ? check_head(ring, options, err) : ky_error_nomem(err);
	if (!ret)
		ret = kymo_ring_reader_open(&ring->reader, fd, &reader_options, err);
	if (!ret)
		ret = check_buffers(ring, options, err);
	if (!ret)
		ret = read_blob(ring, err);
	if (!ret)
		ret = check_blob(ring, options, err);
	if (!ret)
		ret = open_streams(ring, err);
	if (!ret)
		ret = make_trace(ring, options->output, err);
	if (ret < 0) {
		ky_user_ring_free(ring);
		return ret;
	}
	*out = ring;
	return KYMO_OK;
}

/* ---- packets -------------------------------------------------------------------------- */

static int open_stream(struct ky_user_ring *ring, struct ky_user_stream *stream, uint32_t number,
		       struct kymo_error *err)
{
	char name[32];

	if (stream->number >= 0)
		return KYMO_OK;
	if (stream == &ring->dump_stream)
		snprintf(name, sizeof(name), "statedump_0");
	else
		snprintf(name, sizeof(name), "channel0_%u", number);
	stream->number = ring->sink->ops->stream(ring->sink, name, err);
	return stream->number < 0 ? stream->number : KYMO_OK;
}

/* What the program says about times and losses never goes back, whatever it says. */
static void fill_prolog(const struct ky_user_ring *ring, struct ky_user_stream *stream,
			const struct kymo_ring_packet *packet, uint64_t body_bytes,
			struct ky_packet_prolog *prolog)
{
	uint64_t begin = packet->begin_stamp, end = packet->end_stamp, bits;

	begin = begin < stream->last_cycles ? stream->last_cycles : begin;
	end = end < begin ? begin : end;
	if (packet->lost > stream->discarded)
		stream->discarded = packet->lost;
	stream->last_cycles = end;
	bits = 8 * (KY_PACKET_PROLOG_BYTES + body_bytes);
	*prolog = (struct ky_packet_prolog){
		.magic = KY_CTF_MAGIC,
		.stream_class_id = 0,
		.stream_id = packet->buffer,
		.begin_cycles = begin,
		.end_cycles = end,
		.content_bits = bits,
		.packet_bits = bits,
		.sequence = stream->sequence++,
		.discarded = stream->discarded,
		.cpu_id = packet->buffer,
	};
	memcpy(prolog->uuid, ky_user_ring_blob(ring)->trace_uuid, sizeof(prolog->uuid));
}

static int send_packet(struct ky_user_ring *ring, const struct kymo_ring_packet *packet,
		       const void *body, uint64_t body_bytes, struct kymo_error *err)
{
	struct ky_user_stream *stream = &ring->streams[packet->buffer];
	struct ky_packet_prolog prolog;
	struct ky_packet_out out;
	int ret = open_stream(ring, stream, packet->buffer, err);

	if (ret < 0)
		return ret;
	fill_prolog(ring, stream, packet, body_bytes, &prolog);
	out = (struct ky_packet_out){
		.data = body,
		.size_bytes = sizeof(prolog) + body_bytes,
		.head = &prolog,
		.head_bytes = sizeof(prolog),
		.content_bits = prolog.content_bits,
		.begin_cycles = prolog.begin_cycles,
		.end_cycles = prolog.end_cycles,
		.discarded = prolog.discarded,
		.sequence = prolog.sequence,
		.stream_class_id = 0,
		.stream_id = prolog.stream_id,
	};
	return ring->sink->ops->packet(ring->sink, stream->number, &out, err);
}

/* Writing a sub-buffer that the program has cut off fails too, and is not the disk's fault. */
static bool is_cut(const struct ky_user_ring *ring)
{
	struct stat st;

	return fstat(ring->fd, &st) == 0 && (uint64_t)st.st_size < ring->file_bytes;
}

/* The program counts them; so many fit. */
static uint64_t records_at_most(const struct kymo_ring_chunk *chunk)
{
	uint64_t most = chunk->body_bytes / KY_HEADER_COMPACT_BYTES;

	return chunk->packet.records < most ? chunk->packet.records : most;
}

/* Returns as ky_user_ring_read(), for one chunk. */
static int read_chunk(struct ky_user_ring *ring, uint32_t buffer, bool all, struct kymo_error *err)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error local;
	int ret = kymo_ring_reader_next(ring->reader, buffer, all ? KYMO_RING_PARTIAL : 0, &chunk,
					&local);

	if (ret == KYMO_E_FORMAT) {
		if (!ring->n_damaged++)
			ky_log_warning(ring->log, "%s: %s", ring->name, local.message);
		return 1;
	}
	if (ret < 0) {
		set_broken(ring, local.message);
		return 0;
	}
	if (!ret)
		return 0;
	if (ring->sink->bytes_written + chunk.body_bytes > ring->bytes_max) {
		set_broken(ring, "it claims more than the file has");
		return 0;
	}
	/* Its ids are described by now. */
	ret = follow_blob(ring, err);
	if (!ret)
		ret = send_packet(ring, &chunk.packet, chunk.body, chunk.body_bytes, err);
	if (ret < 0 && is_cut(ring)) {
		set_broken(ring, "its file was cut short");
		return 0;
	}
	if (ret < 0)
		return ret;
	ring->events += records_at_most(&chunk);
	kymo_ring_reader_release(ring->reader, &chunk);
	return 1;
}

int ky_user_ring_read(struct ky_user_ring *ring, bool all, struct kymo_error *err)
{
	int found = 0, ret;

	for (uint32_t i = 0; i < ring->n_streams; i++) {
		for (int n = 0; !ring->is_broken && n < ROUND_CHUNKS; n++) {
			ret = read_chunk(ring, i, all, err);
			if (ret < 0)
				return ret;
			if (!ret)
				break;
			found = 1;
		}
	}
	return found;
}

bool ky_user_ring_is_left(const struct ky_user_ring *ring)
{
	if (ky_file_lease(ring->fd) < 0)
		return false;
	ky_file_unlease(ring->fd);
	return true;
}

/* ---- finishing ------------------------------------------------------------------------ */

uint64_t ky_user_ring_lost(const struct ky_user_ring *ring)
{
	return ring->stats.lost_total + ring->lost_joining + ring->lost_no_id;
}

/* Losses that no packet has told yet: those of each buffer; and what belongs to none, once. */
static int tell_losses(struct ky_user_ring *ring, struct kymo_error *err)
{
	uint64_t rest = ky_user_ring_lost(ring), told = 0;
	struct kymo_ring_stats stats;
	uint32_t first = ring->n_streams;
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < ring->n_streams; i++) {
		kymo_ring_reader_stats(ring->reader, i, &stats);
		told += stats.lost_total;
		if (first == ring->n_streams && (ring->streams[i].number >= 0 || stats.lost_total))
			first = i;
	}
	rest = rest > told ? rest - told : 0;
	first = first == ring->n_streams ? 0 : first;
	for (uint32_t i = 0; i < ring->n_streams && !ret; i++) {
		struct kymo_ring_packet packet = {.buffer = i,
						  .begin_stamp = ring->streams[i].last_cycles};

		kymo_ring_reader_stats(ring->reader, i, &stats);
		packet.end_stamp = packet.begin_stamp;
		packet.lost = stats.lost_total + (i == first ? rest : 0);
		if (packet.lost > ring->streams[i].discarded)
			ret = send_packet(ring, &packet, NULL, 0, err);
	}
	return ret;
}

static int read_rest(struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret;

	/* What a program writes meanwhile could go on for ever: one buffer's worth is enough. */
	for (uint32_t i = 0; i < 1 + 2 * kymo_ring_reader_info(ring->reader)->n_subbufs; i++) {
		ret = ky_user_ring_read(ring, true, err);
		if (ret <= 0)
			return ret;
	}
	return KYMO_OK;
}

static void take_counts(struct ky_user_ring *ring)
{
	const struct ky_blob *blob;

	kymo_ring_reader_stats(ring->reader, KYMO_RING_ALL, &ring->stats);
	ring->unread = ring->stats.unread_records;
	if (!ring->is_broken && read_blob(ring, NULL) < 0)
		set_broken(ring, bad_description);
	blob = ky_user_ring_blob(ring);
	ring->lost_joining = blob->lost_joining;
	ring->lost_no_id = blob->lost_no_id;
}

static void close_ring(struct ky_user_ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	ring->reader = NULL;
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = -1;
	free(ring->streams);
	ring->streams = NULL;
	ky_packet_writer_fini(&ring->dump_writer);
	free(ring->dumped);
	ring->dumped = NULL;
}

int ky_user_ring_finish(struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret, closed;

	if (!ring->reader)
		return KYMO_OK;
	ret = ring->is_broken ? KYMO_OK : read_rest(ring, err);
	take_counts(ring);
	if (!ret)
		ret = tell_losses(ring, err);
	if (!ret && ring->blob_bytes != ring->metadata_bytes)
		ret = describe(ring, err);
	ring->bytes = ring->sink->bytes_written;
	closed = ring->sink->ops->close(ring->sink, ret < 0 ? NULL : err);
	ring->sink = NULL;
	close_ring(ring);
	return ret < 0 ? ret : closed;
}

int ky_user_ring_set_clock(struct ky_user_ring *ring, const struct ky_clock_record *clock,
			   struct kymo_error *err)
{
	if (memcmp(&ring->clock, clock, sizeof(*clock)) == 0)
		return KYMO_OK;
	ring->clock = *clock;
	return describe(ring, err);
}

void ky_user_ring_free(struct ky_user_ring *ring)
{
	if (!ring)
		return;
	if (ring->sink)
		(void)ring->sink->ops->close(ring->sink, NULL);
	close_ring(ring);
	free(ring->blob);
	free(ring->path);
	free(ring->name);
	free(ring);
}

int ky_user_ring_send_dump(struct ky_user_ring *ring, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_packet_writer *writer = &ring->dump_writer;
	uint64_t content_bits = (uint64_t)writer->used_bytes * 8;
	struct ky_packet_out out;
	int ret = open_stream(ring, &ring->dump_stream, 0, err);

	if (ret < 0)
		return ret;
	out = (struct ky_packet_out){
		.size_bytes = ky_packet_writer_close(writer, end_cycles, 0, 8),
		.data = writer->data,
		.content_bits = content_bits,
		.begin_cycles = writer->begin_cycles,
		.end_cycles = writer->last_cycles,
		.sequence = writer->sequence,
		.stream_class_id = writer->stream_class_id,
		.stream_id = writer->stream_id,
	};
	return ring->sink->ops->packet(ring->sink, ring->dump_stream.number, &out, err);
}
