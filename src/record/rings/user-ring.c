/* SPDX-License-Identifier: MIT */
#include "record/rings/user-ring-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/rings/user-dump.h"
#include "record/rings/user-registry.h"

/* Sub-buffers of one buffer that are taken before the others get their turn; bytes, before other rings do. */
#define ROUND_CHUNKS 64
#define ROUND_BYTES  (4u << 20)
/* A ring file that is recovered: so much more than it takes on disk. */
#define HOLES_FACTOR 64u
#define HOLES_BYTES  (16u << 20)
/*
 * Between two versions of the metadata, and so many times what the last one took. While there is little more to
 * tell, it waits for longer, so that what one that tells of many events has written in the end is some times as
 * much as it has.
 */
#define METADATA_PAUSE_NS	 50000000
#define METADATA_PAUSE_FACTOR	 32
#define METADATA_PATIENCE_NS	 200000000
#define METADATA_PATIENCE_FACTOR 256
#define METADATA_MORE		 8 /* one part in so many */

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
	kept.cut_texts = now->cut_texts;
	*now = kept;
}

/* The present copy from now on. */
static void take_blob(struct ky_user_ring *ring, uint64_t *copy, size_t bytes)
{
	if (ring->blob)
		keep_identity((struct ky_blob *)copy, ky_user_ring_blob(ring));
	free(ring->blob);
	ring->blob = copy;
	ring->blob_bytes = bytes;
}

/* As ky_user_ring_read_blob(), of a ring that many programs describe. */
static int read_registry(struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct kymo_ring_info *info = kymo_ring_reader_info(ring->reader);
	const struct ky_blob *shared = info->client_region;
	struct ky_user_blob blob;
	uint64_t told = __atomic_load_n(&shared->bytes, __ATOMIC_ACQUIRE), *copy;
	int ret = ky_user_registry_copy(shared, info->client_bytes, &copy, &blob.bytes, err);

	if (ret < 0)
		return ret;
	blob.head = (const struct ky_blob *)copy;
	ret = ky_user_blob_check(&blob, err);
	if (ret < 0) {
		free(copy);
		return ret;
	}
	ring->told_bytes = told;
	take_blob(ring, copy, blob.bytes);
	return KYMO_OK;
}

/* Copy what is valid of the blob now. KYMO_E_FORMAT: not a valid blob. */
int ky_user_ring_read_blob(struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct kymo_ring_info *info = kymo_ring_reader_info(ring->reader);
	const struct ky_blob *shared = info->client_region;
	struct ky_user_blob blob;
	uint64_t bytes, *copy;
	ssize_t got;

	if (info->client_bytes < sizeof(*shared))
		return ky_error_set(err, KYMO_E_FORMAT, "not a ring of libkymo-trace");
	if (ring->is_shared)
		return read_registry(ring, err);
	/* Acquire: so much is valid. Partner: the program's release. */
	bytes = __atomic_load_n(&shared->bytes, __ATOMIC_ACQUIRE);
	if (bytes < sizeof(*shared) || bytes > KY_BLOB_BYTES || bytes > info->client_bytes)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the ring's description of events is malformed");
	copy = calloc(1, bytes + sizeof(*copy));
	if (!copy)
		return ky_error_nomem(err);
	got = pread(ring->fd, copy, bytes, (off_t)ring->blob_offset);
	blob = (struct ky_user_blob){(const struct ky_blob *)copy, got < 0 ? 0 : (size_t)got};
	if (ky_user_blob_check(&blob, err) < 0) {
		free(copy);
		return KYMO_E_FORMAT;
	}
	take_blob(ring, copy, blob.bytes);
	return KYMO_OK;
}

/* ---- metadata ------------------------------------------------------------------------- */

void ky_user_ring_set_broken(struct ky_user_ring *ring, const char *why)
{
	if (!ring->is_broken)
		ky_log_warning(ring->log, "%s: %s; the trace keeps its earlier events", ring->name,
			       why);
	ring->is_broken = true;
	if (ring->reader)
		kymo_ring_reader_abandon(ring->reader);
}

const char ky_user_ring_nonsense[] = "its description of events has become malformed";

/* After writing metadata: a program that makes no sense is no reason to end the recording. */
static int described(struct ky_user_ring *ring, int ret, uint32_t n_bad)
{
	if (!ret && n_bad && !ring->is_bad_told)
		ky_log_warning(ring->log, "%s: %u descriptions of events are malformed", ring->name,
			       n_bad);
	ring->is_bad_told |= !ret && n_bad;
	if (!ret)
		ring->metadata_bytes = ring->blob_bytes;
	return ret;
}

int ky_user_ring_excuse(struct ky_user_ring *ring, int ret, const struct kymo_error *err)
{
	if (!ky_user_ring_is_own_error(ret))
		return ret;
	ky_user_ring_set_broken(ring, ret == KYMO_E_FORMAT ? ky_user_ring_nonsense : err->message);
	return KYMO_OK;
}

int ky_user_ring_describe(struct ky_user_ring *ring, struct ky_user_trace *trace,
			  struct kymo_error *err)
{
	struct ky_user_blob blob = blob_of(ring);
	uint32_t n_bad = 0;
	struct kymo_error local;
	int ret = ky_user_trace_metadata(trace, &blob, &ring->clock, &n_bad, &local);

	ret = described(ring, ret, n_bad);
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

/* How far the program says that its descriptions go, in bytes of the metadata's blob. */
static uint64_t described_bytes(const struct ky_user_ring *ring)
{
	const struct ky_blob *shared = kymo_ring_reader_info(ring->reader)->client_region;
	uint64_t bytes = __atomic_load_n(&shared->bytes, __ATOMIC_RELAXED);

	if (!ring->is_shared)
		return bytes;
	/* What the programs count, and the copy, need not agree. */
	return ring->metadata_bytes + (bytes > ring->told_bytes ? bytes - ring->told_bytes : 0);
}

bool ky_user_ring_has_more(const struct ky_user_ring *ring)
{
	return !ring->is_flight && !ring->is_broken && ring->reader &&
	       (described_bytes(ring) != ring->metadata_bytes || ky_user_dump_is_behind(ring));
}

/*
 * Whether the program has described more events than the metadata has. Each update writes the whole metadata, so there
 * is a minimum time between two updates: a program with new events all the time must not keep the recorder busy. The
 * metadata is complete at the end.
 */
bool ky_user_ring_is_behind(const struct ky_user_ring *ring)
{
	uint64_t bytes, since;

	if (!ky_user_ring_has_more(ring))
		return false;
	bytes = described_bytes(ring);
	since = ky_os_now_ns() - ring->metadata_ns;
	if (since < METADATA_PAUSE_NS || since < METADATA_PAUSE_FACTOR * ring->metadata_took_ns)
		return false;
	return since > METADATA_PATIENCE_NS + METADATA_PATIENCE_FACTOR * ring->metadata_took_ns ||
	       bytes > ring->metadata_bytes + ring->metadata_bytes / METADATA_MORE ||
	       bytes == ring->metadata_bytes;
}

int ky_user_ring_follow(struct ky_user_ring *ring, struct kymo_error *err)
{
	uint64_t begin = ky_os_now_ns();
	int ret = KYMO_OK;

	if (ky_user_ring_read_blob(ring, NULL) < 0 || ring->blob_bytes < ring->metadata_bytes)
		ky_user_ring_set_broken(ring, ky_user_ring_nonsense);
	else
		ret = ky_user_ring_describe(ring, &ring->trace, err);
	ring->metadata_ns = ky_os_now_ns();
	ring->metadata_took_ns = ring->metadata_ns - begin;
	return ret;
}

/* ---- opening -------------------------------------------------------------------------- */

int ky_user_ring_make_trace(struct ky_user_ring *ring, struct ky_user_trace *trace,
			    const struct ky_user_place *place, struct kymo_error *err)
{
	struct ky_user_blob blob = blob_of(ring);
	uint64_t begin = ky_os_now_ns();
	uint32_t n_bad = 0;
	int ret;

	trace->is_recovered = ring->read_only;
	ret = ky_user_trace_open(trace, place, &blob, &ring->clock, ring->n_buffers, &n_bad, err);
	/* Later descriptions are written at once, too. */
	ring->metadata_ns = 0;
	ring->metadata_took_ns = ky_os_now_ns() - begin;
	return described(ring, ret, n_bad);
}

/* A ring of another shape could be of any size. */
static int check_geometry(const struct ky_user_ring_options *options, uint64_t subbuf_bytes,
			  uint32_t n_subbufs, uint32_t n_buffers, struct kymo_error *err)
{
	if (!options->subbuf_bytes)
		return KYMO_OK;
	if (subbuf_bytes != options->subbuf_bytes || n_subbufs != options->n_subbufs)
		return ky_error_set(err, KYMO_E_FORMAT, "its buffers differ from the request");
	if (n_buffers > (uint32_t)sysconf(_SC_NPROCESSORS_CONF))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "it has more buffers than this machine has CPUs");
	return KYMO_OK;
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
		return ky_error_set(err, KYMO_E_FORMAT, "the ring's head is malformed");
	if (check_geometry(options, head.subbuf_bytes, head.n_subbufs, head.n_buffers, err) < 0)
		return KYMO_E_FORMAT;
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

	return check_geometry(options, info->subbuf_bytes, info->n_subbufs, info->n_buffers, err);
}

/* A ring that cannot be mapped is damaged, or one too many: this affects only its program. */
static int open_reader(struct ky_user_ring *ring, struct kymo_error *err)
{
	struct kymo_ring_reader_options options = {
		.size_bytes = sizeof(options),
		.flags = ring->read_only ? KYMO_RING_READ_ONLY : 0,
	};
	int ret = kymo_ring_reader_open(&ring->reader, ring->fd, &options, err);

	if (ret == KYMO_OK || ret == KYMO_E_UNSUPPORTED || ret == KYMO_E_STATE)
		return ret;
	if (err)
		err->code = KYMO_E_FORMAT;
	return KYMO_E_FORMAT;
}

/* Once: it stays what it is now. */
static int find_kind(struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct kymo_ring_info *info = kymo_ring_reader_info(ring->reader);
	const struct ky_blob *shared = info->client_region;

	if (info->client_bytes < sizeof(*shared))
		return ky_error_set(err, KYMO_E_FORMAT, "not a ring of libkymo-trace");
	ring->is_shared = __atomic_load_n(&shared->flags, __ATOMIC_RELAXED) & KY_BLOB_SHARED;
	return KYMO_OK;
}

static int check_blob(struct ky_user_ring *ring, const struct ky_user_ring_options *options,
		      struct kymo_error *err)
{
	struct ky_blob *blob = (struct ky_blob *)ring->blob;

	if (!options->read_only && options->is_shared != ring->is_shared)
		return ky_error_set(err, KYMO_E_FORMAT, "the ring has another number of programs");
	if (ring->is_shared) {
		/* The program that made it is as good as any other. */
		blob->pid = 0;
		blob->uid = options->read_only ? blob->uid : options->uid;
		memset(blob->exe, 0, sizeof(blob->exe));
		snprintf(blob->procname, sizeof(blob->procname), "user %u", blob->uid);
	}
	if (options->session_uuid &&
	    memcmp(blob->session_uuid, options->session_uuid, sizeof(blob->session_uuid)) != 0)
		return ky_error_set(err, KYMO_E_FORMAT, "the ring of another session");
	if (options->comm && !ring->is_shared &&
	    strncmp(options->comm, blob->procname, sizeof(blob->procname) - 1) != 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "a program of another name");
	if (options->description_max && ring->blob_bytes > options->description_max)
		return ky_error_set(
			err, KYMO_E_LIMIT,
			"the programs of its user have too many descriptions of events");
	ring->clock = options->clock ? *options->clock : blob->clock;
	return KYMO_OK;
}

int ky_user_ring_open(int fd, const char *name, const struct ky_user_ring_options *options,
		      struct ky_user_ring **out, struct kymo_error *err)
{
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
	ring->place = (struct ky_user_place){
		.store = options->store, .group = options->group, .is_late = options->is_late};
	ring->counts = options->counts;
	ret = ring->name ? check_head(ring, options, err) : ky_error_nomem(err);
	if (!ret)
		ret = open_reader(ring, err);
	if (!ret)
		ret = check_buffers(ring, options, err);
	if (!ret)
		ret = find_kind(ring, err);
	if (!ret)
		ret = ky_user_ring_read_blob(ring, err);
	if (!ret)
		ret = check_blob(ring, options, err);
	if (!ret)
		ring->n_buffers = kymo_ring_reader_buffers(ring->reader);
	if (!ret && !ring->is_flight)
		ret = ky_user_ring_make_trace(ring, &ring->trace, &ring->place, err);
	if (ret < 0) {
		ky_user_ring_free(ring);
		return ret;
	}
	if (ring->counts)
		atomic_fetch_add_explicit(&ring->counts->programs, 1, memory_order_relaxed);
	*out = ring;
	return KYMO_OK;
}

/* ---- packets -------------------------------------------------------------------------- */

/* Writing a sub-buffer that the program has cut off fails too, and is not the disk's fault. */
static bool user_ring_is_cut(const struct ky_user_ring *ring)
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

/* For others who ask while the recording goes on. */
void ky_user_ring_count(const struct ky_user_ring *ring, uint64_t events, uint64_t bytes,
			uint64_t lost)
{
	if (!ring->counts)
		return;
	atomic_fetch_add_explicit(&ring->counts->events, events, memory_order_relaxed);
	atomic_fetch_add_explicit(&ring->counts->bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&ring->counts->lost, lost, memory_order_relaxed);
}

/* Returns as ky_user_ring_read(), for one chunk; *bytes: its length is added. */
static int read_chunk(struct ky_user_ring *ring, uint32_t buffer, bool all, uint64_t *bytes,
		      struct kymo_error *err)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error local;
	uint64_t discarded;
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
	if (ring->trace.packets->bytes_written + chunk.body_bytes > ring->bytes_max) {
		ky_user_ring_set_broken(ring, "it claims more than the file has");
		return 0;
	}
	discarded = ring->trace.streams[buffer].discarded;
	ret = ky_user_trace_packet(&ring->trace, &chunk.packet, chunk.body, chunk.body_bytes,
				   &local);
	if (ret == KYMO_E_FORMAT || (ret < 0 && user_ring_is_cut(ring))) {
		ky_user_ring_set_broken(ring, "its file was cut short");
		return 0;
	}
	if (ret < 0) {
		if (err)
			*err = local;
		return ky_user_ring_excuse(ring, ret, &local);
	}
	ring->events += ky_user_ring_records(&chunk);
	*bytes += chunk.body_bytes;
	ky_user_ring_count(ring, ky_user_ring_records(&chunk), chunk.body_bytes,
			   ring->trace.streams[buffer].discarded - discarded);
	kymo_ring_reader_release(ring->reader, &chunk);
	return 1;
}

/* As ky_user_ring_read(), of so many bytes, and some more. */
int ky_user_ring_read_some(struct ky_user_ring *ring, bool all, uint64_t bytes_max,
			   struct kymo_error *err)
{
	uint64_t bytes = 0;
	int found = 0, ret;

	for (uint32_t i = 0; i < ring->n_buffers && !ring->is_flight; i++) {
		/* Where it ended last time, the others come first. */
		uint32_t buffer = (ring->next_buffer + i) % ring->n_buffers;

		for (int n = 0; !ring->is_broken && n < ROUND_CHUNKS; n++) {
			if (bytes >= bytes_max) {
				ring->next_buffer = (buffer + 1) % ring->n_buffers;
				return 2;
			}
			ret = read_chunk(ring, buffer, all, &bytes, err);
			if (ret < 0)
				return ret;
			if (!ret)
				break;
			found = 1;
		}
	}
	return found;
}

int ky_user_ring_read(struct ky_user_ring *ring, bool all, struct kymo_error *err)
{
	return ky_user_ring_read_some(ring, all, ROUND_BYTES, err);
}

bool ky_user_ring_is_left(const struct ky_user_ring *ring)
{
	if (ky_file_lease(ring->fd) < 0)
		return false;
	ky_file_unlease(ring->fd);
	return true;
}

/* ---- the state dump, the end --------------------------------------------------------- */

int ky_user_ring_write_dump(struct ky_user_ring *ring, uint64_t cycles, struct kymo_error *err)
{
	struct kymo_error local;
	int ret;

	if (ring->is_flight || ring->is_broken || !ring->dump.len)
		return KYMO_OK;
	if (cycles > ring->dump_cycles)
		ring->dump_cycles = cycles;
	ret = ky_user_trace_dump(&ring->trace, &ring->dump, ring->dump_cycles, &local);
	ky_strbuf_clear(&ring->dump);
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

void ky_user_ring_free(struct ky_user_ring *ring)
{
	if (!ring)
		return;
	(void)ky_user_trace_close(&ring->trace, NULL);
	ky_user_trace_fini(&ring->trace);
	ky_user_ring_close(ring);
	free(ring->blob);
	free(ring->name);
	free(ring);
}
