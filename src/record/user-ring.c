/* SPDX-License-Identifier: MIT */
#include "record/user-ring-internal.h"

#include <errno.h>
#include <fcntl.h>
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

void ky_user_ring_set_broken(struct ky_user_ring *ring, const char *why)
{
	if (!ring->is_broken)
		ky_log_warning(ring->log, "%s: %s; what was read of it before is kept", ring->name,
			       why);
	ring->is_broken = true;
}

const char ky_user_ring_nonsense[] = "its description of events makes no sense any more";

/* After writing metadata: a program that makes no sense is no reason to end the recording. */
static int described(struct ky_user_ring *ring, int ret, uint32_t n_bad)
{
	if (!ret && n_bad)
		ky_log_warning(ring->log, "%s: %u descriptions of events make no sense", ring->name,
			       n_bad);
	if (ret == KYMO_E_FORMAT)
		ky_user_ring_set_broken(ring, ky_user_ring_nonsense);
	else if (!ret)
		ring->metadata_bytes = ring->blob_bytes;
	return ret == KYMO_E_FORMAT ? KYMO_OK : ret;
}

int ky_user_ring_describe(struct ky_user_ring *ring, struct ky_user_trace *trace,
			  struct kymo_error *err)
{
	struct ky_user_blob blob = blob_of(ring);
	uint32_t n_bad = 0;
	int ret = ky_user_trace_metadata(trace, &blob, &ring->clock, &n_bad, err);

	return described(ring, ret, n_bad);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
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
		ky_user_ring_set_broken(ring, ky_user_ring_nonsense);
		return KYMO_OK;
	}
	return ky_user_ring_describe(ring, &ring->trace, err);
}

/* ---- opening -------------------------------------------------------------------------- */

/* KYMO_E_FORMAT: of a program that makes no sense there is no trace at all. */
int ky_user_ring_make_trace(struct ky_user_ring *ring, struct ky_user_trace *trace,
			    const char *output, struct kymo_error *err)
{
	struct ky_user_blob blob = blob_of(ring);
	uint32_t n_bad = 0;
	int ret = ky_user_trace_open(trace, output, &blob, &ring->clock, ring->n_buffers, &n_bad,
				     err);

	return ret < 0 ? ret : described(ring, ret, n_bad);
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
	ring->since_ns = options->since_ns;
	ring->is_flight = options->is_flight;
	ring->dump_excluded = options->dump_excluded;
	ring->name = strdup(name);
	ring->output = strdup(options->output);
	ret = ring->name && ring->output ? check_head(ring, options, err) : ky_error_nomem(err);
	if (!ret)
		ret = kymo_ring_reader_open(&ring->reader, fd, &reader_options, err);
	if (!ret)
		ret = check_buffers(ring, options, err);
	if (!ret)
		ret = read_blob(ring, err);
	if (!ret)
		ret = check_blob(ring, options, err);
	if (!ret)
		ring->n_buffers = kymo_ring_reader_buffers(ring->reader);
	if (!ret && !ring->is_flight)
		ret = ky_user_ring_make_trace(ring, &ring->trace, options->output, err);
	if (ret < 0) {
		ky_user_ring_free(ring);
		return ret;
	}
	*out = ring;
	return KYMO_OK;
}

/* ---- packets -------------------------------------------------------------------------- */

/* Writing a sub-buffer that the program has cut off fails too, and is not the disk's fault. */
static bool is_cut(const struct ky_user_ring *ring)
{
	struct stat st;

	return fstat(ring->fd, &st) == 0 && (uint64_t)st.st_size < ring->file_bytes;
}

/* The program counts them; so many fit. */
uint64_t ky_user_ring_records(const struct kymo_ring_chunk *chunk)
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
		ky_user_ring_set_broken(ring, local.message);
		return 0;
	}
	if (!ret)
		return 0;
	if (ring->trace.sink->bytes_written + chunk.body_bytes > ring->bytes_max) {
		ky_user_ring_set_broken(ring, "it claims more than the file has");
		return 0;
	}
	/* Its ids are described by now. */
	ret = follow_blob(ring, err);
	if (!ret)
		ret = ky_user_trace_packet(&ring->trace, &chunk.packet, chunk.body,
					   chunk.body_bytes, err);
	if (ret < 0 && is_cut(ring)) {
		ky_user_ring_set_broken(ring, "its file was cut short");
		return 0;
	}
	if (ret < 0)
		return ret;
	ring->events += ky_user_ring_records(&chunk);
	kymo_ring_reader_release(ring->reader, &chunk);
	return 1;
}

int ky_user_ring_read(struct ky_user_ring *ring, bool all, struct kymo_error *err)
{
	int found = 0, ret;

	for (uint32_t i = 0; i < ring->n_buffers && !ring->is_flight; i++) {
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

/* ---- losses: programs count them ------------------------------------------------------ */

/* In each nanosecond, each CPU may have come by an event and lost it: more is not to be believed. */
static uint64_t most_losses(const struct ky_user_ring *ring)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (!ring->since_ns || ns <= ring->since_ns)
		return KY_USER_LOST_MAX;
	ns = (ns - ring->since_ns) * (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	return ns < KY_USER_LOST_MAX ? ns : KY_USER_LOST_MAX;
}

static uint64_t total_lost(const struct ky_user_ring *ring)
{
	uint64_t lost = ring->stats.lost_total;

	if (__builtin_add_overflow(lost, ring->lost_joining, &lost) ||
	    __builtin_add_overflow(lost, ring->lost_no_id, &lost))
		return UINT64_MAX;
	return lost;
}

/* ---- finishing ------------------------------------------------------------------------ */

uint64_t ky_user_ring_lost(const struct ky_user_ring *ring)
{
	return ring->lost_claimed ? 0 : total_lost(ring);
}

/* Losses that no packet has told yet: those of each buffer; and what belongs to none, once. */
int ky_user_ring_tell_losses(struct ky_user_ring *ring, struct ky_user_trace *trace,
			     struct kymo_error *err)
{
	uint64_t rest = ky_user_ring_lost(ring), told = 0;
	struct kymo_ring_stats stats;
	uint32_t first = ring->n_buffers;
	int ret = KYMO_OK;

	if (ring->lost_claimed)
		return KYMO_OK;
	for (uint32_t i = 0; i < ring->n_buffers; i++) {
		kymo_ring_reader_stats(ring->reader, i, &stats);
		told += stats.lost_total;
		if (first == ring->n_buffers && (trace->streams[i].number >= 0 || stats.lost_total))
			first = i;
	}
	rest = rest > told ? rest - told : 0;
	first = first == ring->n_buffers ? 0 : first;
	for (uint32_t i = 0; i < ring->n_buffers && !ret; i++) {
		struct kymo_ring_packet packet = {.buffer = i,
						  .begin_stamp = trace->streams[i].last_cycles};

		kymo_ring_reader_stats(ring->reader, i, &stats);
		packet.end_stamp = packet.begin_stamp;
		packet.lost = stats.lost_total + (i == first ? rest : 0);
		if (packet.lost > trace->streams[i].discarded)
			ret = ky_user_trace_packet(trace, &packet, NULL, 0, err);
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

void ky_user_ring_take_counts(struct ky_user_ring *ring)
{
	const struct ky_blob *blob;

	kymo_ring_reader_stats(ring->reader, KYMO_RING_ALL, &ring->stats);
	ring->unread = ring->stats.unread_records;
	if (!ring->is_broken && read_blob(ring, NULL) < 0)
		ky_user_ring_set_broken(ring, ky_user_ring_nonsense);
	blob = ky_user_ring_blob(ring);
	ring->lost_joining = blob->lost_joining;
	ring->lost_no_id = blob->lost_no_id;
	ring->lost_claimed = total_lost(ring) > most_losses(ring) ? total_lost(ring) : 0;
}

static void close_ring(struct ky_user_ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	ring->reader = NULL;
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = -1;
	ky_strbuf_fini(&ring->dump);
	free(ring->dumped);
	ring->dumped = NULL;
}

int ky_user_ring_finish(struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret = KYMO_OK, closed;

	if (!ring->reader)
		return KYMO_OK;
	if (ring->is_flight) {
		if (!ring->is_broken)
			ret = ky_user_ring_copy(ring, &ring->trace, ring->output, &ring->events,
						err);
		ky_user_ring_take_counts(ring);
	} else {
		ret = ring->is_broken ? KYMO_OK : read_rest(ring, err);
		ky_user_ring_take_counts(ring);
		if (!ret)
			ret = ky_user_ring_tell_losses(ring, &ring->trace, err);
		if (!ret && ring->blob_bytes != ring->metadata_bytes)
			ret = ky_user_ring_describe(ring, &ring->trace, err);
	}
	closed = ky_user_trace_close(&ring->trace, ret < 0 ? NULL : err);
	close_ring(ring);
	return ret < 0 ? ret : closed;
}

void ky_user_ring_abandon(struct ky_user_ring *ring)
{
	if (!ring->reader)
		return;
	ky_user_ring_take_counts(ring);
	(void)ky_user_trace_close(&ring->trace, NULL);
	close_ring(ring);
}

int ky_user_ring_set_clock(struct ky_user_ring *ring, const struct ky_clock_record *clock,
			   struct kymo_error *err)
{
	if (!ring->trace.path || memcmp(&ring->clock, clock, sizeof(*clock)) == 0)
		return KYMO_OK;
	ring->clock = *clock;
	if (ring->is_flight)
		ky_user_ring_set_uuid(ring, ring->trace.uuid);
	return ky_user_ring_describe(ring, &ring->trace, err);
}

int ky_user_ring_write_dump(struct ky_user_ring *ring, uint64_t cycles, struct kymo_error *err)
{
	int ret;

	if (ring->is_flight || !ring->dump.len)
		return KYMO_OK;
	ret = ky_user_trace_dump(&ring->trace, &ring->dump, cycles, err);
	ky_strbuf_clear(&ring->dump);
	return ret;
}

void ky_user_ring_free(struct ky_user_ring *ring)
{
	if (!ring)
		return;
	(void)ky_user_trace_close(&ring->trace, NULL);
	ky_user_trace_fini(&ring->trace);
	close_ring(ring);
	free(ring->blob);
	free(ring->output);
	free(ring->name);
	free(ring);
}
