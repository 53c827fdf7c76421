/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#include "abi/user-packet.h"
#include "tracer/ring-config.h"
#include "tracer/tracer.h"

/* ---- packets ---- */

void ky_packet_open(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	ky_user_packet_open(((const struct ky_slot *)client)->trace_uuid, packet, header);
}

void ky_packet_close(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	ky_user_packet_close(packet, header);
}

/* ---- the blob ---- */

static void ring_file_put_string(char *to, size_t room, const char *from)
{
	size_t n = strnlen(from, room - 1);

	memcpy(to, from, n);
	memset(to + n, 0, room - n);
}

static void ring_file_fill_blob(struct ky_slot *slot, struct ky_blob *blob)
{
	const char *exe = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
	struct utsname names;

	blob->version = KY_CONTROL_VERSION;
	blob->head_bytes = sizeof(*blob);
	memcpy(blob->session_uuid, slot->uuid, sizeof(blob->session_uuid));
	memcpy(blob->trace_uuid, slot->trace_uuid, sizeof(blob->trace_uuid));
	blob->clock = slot->file->clock;
	blob->pid = ky_trace_pid();
	blob->uid = (uint32_t)ky_sys(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	blob->start_ns = ky_trace.start_ns;
	blob->start_realtime_ns = ky_trace.start_realtime_ns;
	ring_file_put_string(blob->procname, sizeof(blob->procname), ky_trace.procname);
	if (ky_sys(SYS_uname, (long)&names, 0, 0, 0, 0, 0) == 0)
		ring_file_put_string(blob->hostname, sizeof(blob->hostname), names.nodename);
	ring_file_put_string(blob->exe, sizeof(blob->exe), exe ? exe : "");
}

/* Where the next record goes: as this process knows, not as the blob says, which others may write to. */
static void *blob_end(const struct ky_slot *slot)
{
	return (uint8_t *)slot->blob + slot->blob_bytes;
}

/* Memory for @bytes more. */
static bool blob_room(const struct ky_slot *slot, uint32_t bytes)
{
	return bytes <= KY_BLOB_BYTES - slot->blob_bytes &&
	       kymo_ring_populate(blob_end(slot), bytes) == 0;
}

/* So many more are valid now. */
static void blob_grow(struct ky_slot *slot, struct ky_blob *blob, uint32_t bytes)
{
	slot->blob_bytes += bytes;
	/* Partner: the recorder, which reads this after packets. */
	__atomic_store_n(&blob->bytes, slot->blob_bytes, __ATOMIC_RELEASE);
	kymo_ring_wake(&slot->ring, KYMO_RING_WAKE_SWITCH);
}

static int blob_begin(struct ky_slot *slot)
{
	const uint32_t first = 16384;
	struct ky_blob *blob = slot->ring.client_region;
	uint32_t bytes;

	if (kymo_ring_populate(blob, first) < 0)
		return KY_OFF_SPACE;
	ring_file_fill_blob(slot, blob);
	if (slot->is_shared) {
		blob->flags = KY_BLOB_SHARED;
		slot->blob_bytes = first;
		__atomic_store_n(&blob->bytes, sizeof(*blob), __ATOMIC_RELEASE);
		__atomic_store_n(&blob->magic, KY_BLOB_MAGIC, __ATOMIC_RELEASE);
		return ky_shared_agree(slot) ? 0 : KY_OFF_CONTEXT;
	}
	bytes = ky_contexts_describe(slot, blob + 1, first - sizeof(*blob));
	if (!bytes)
		return KY_OFF_CONTEXT;
	slot->blob_bytes = 0;
	blob_grow(slot, blob, (uint32_t)sizeof(*blob) + bytes);
	slot->notes_bytes = 0;
	ky_note_maps(slot, blob);
	__atomic_store_n(&blob->magic, KY_BLOB_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Another event of @slot that is the same type. */
static const struct ky_event *same_type(const struct ky_slot *slot, const struct ky_event *event)
{
	for (const struct ky_event *other = ky_trace.events; other; other = other->next) {
		if (other != event && other->hash == event->hash &&
		    (other->has_id >> slot->number & 1) &&
		    ky_record_same(other->record, event->record))
			return other;
	}
	return NULL;
}

static void give_id(const struct ky_slot *slot, struct ky_event *event, uint32_t id)
{
	event->ids[slot->number] = id;
	event->has_id |= (uint8_t)(1u << slot->number);
}

int ky_ring_file_id(struct ky_slot *slot, struct ky_event *event)
{
	const struct ky_event *same = same_type(slot, event);
	uint32_t bytes = event->record->bytes;
	struct ky_event_record *record;

	if (same) {
		give_id(slot, event, same->ids[slot->number]);
		return 0;
	}
	if (slot->is_shared) {
		uint32_t id;
		int off = ky_shared_id(slot, event->record, event->hash, &id);

		if (!off)
			give_id(slot, event, id);
		return off;
	}
	if (!blob_room(slot, bytes)) {
		__atomic_fetch_add(&slot->blob->lost_no_id, 1, __ATOMIC_RELAXED);
		return KY_OFF_SPACE;
	}
	record = blob_end(slot);
	memcpy(record, event->record, bytes);
	record->number = slot->next_id;
	record->flags = 0;
	give_id(slot, event, slot->next_id++);
	blob_grow(slot, slot->blob, bytes);
	return 0;
}

/* ---- the file ---- */

char *ky_ring_file_number(char *to, uint64_t number, unsigned int base)
{
	char digits[20];
	int n = 0;

	do {
		digits[n++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	while (n)
		*to++ = digits[--n];
	return to;
}

char *ky_ring_file_name(char *to)
{
	const char *name = ky_trace.procname;

	*to++ = KY_RING_UNFINISHED[0];
	to = ky_ring_file_number(to, ky_trace_pid(), 10);
	*to++ = '-';
	to = ky_ring_file_number(to, ky_trace.start_ns, 16);
	*to++ = '-';
	for (; *name; name++) {
		bool is_plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
				(*name >= '0' && *name <= '9') || *name == '-' || *name == '.';

		*to++ = *name;
		if (!is_plain)
			to[-1] = '_';
	}
	return to;
}

/* Beyond the limit for file sizes, writing would be the program's end. */
static uint64_t note_room(void)
{
	struct rlimit limit;

	if (ky_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) < 0)
		return 0;
	return limit.rlim_cur < KY_NOTE_BYTES_MAX ? limit.rlim_cur : KY_NOTE_BYTES_MAX;
}

static void write_records(int fd, const struct ky_event *const *events, uint32_t n)
{
	struct iovec parts[KY_NOTE_EVENTS_MAX];
	uint64_t room = n ? note_room() : 0;
	uint32_t n_parts = 0;

	for (uint32_t i = 0; i < n && i < KY_NOTE_EVENTS_MAX; i++) {
		uint32_t bytes = events[i]->record->bytes;

		if (bytes > room)
			break;
		room -= bytes;
		parts[n_parts++] = (struct iovec){(void *)events[i]->record, bytes};
	}
	if (n_parts)
		ky_sys(SYS_writev, fd, (long)parts, n_parts, 0, 0, 0);
}

void ky_ring_file_note(int dir_fd, uint32_t reason, int os_error,
		       const struct ky_event *const *events, uint32_t n)
{
	char name[80], *end = ky_ring_file_name(name);
	long fd;

	memcpy(end, KY_NOTE_SUFFIX, sizeof(KY_NOTE_SUFFIX));
	end = ky_ring_file_number(end + sizeof(KY_NOTE_SUFFIX) - 1, reason, 10);
	*end++ = '-';
	end = ky_ring_file_number(end, (uint64_t)os_error, 10);
	*end = 0;
	fd = ky_sys(SYS_openat, dir_fd, (long)(name + 1),
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
	if (fd < 0)
		return;
	write_records((int)fd, events, n);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

static int off_of(int error, int *os_error)
{
	*os_error = -error;
	switch (-error) {
	case EFBIG:
		return KY_OFF_FILE_SIZE;
	case ENOSPC:
	case EDQUOT:
		return KY_OFF_SPACE;
	case ENOMEM:
		return KY_OFF_MEMORY;
	default:
		return KY_OFF_CREATE;
	}
}

/* All sub-buffers of the CPUs that the program may run on get memory now. */
static int preallocate(struct ky_slot *slot)
{
	uint8_t cpus[1024] = {0};
	long got = ky_sys(SYS_sched_getaffinity, 0, sizeof(cpus), (long)cpus, 0, 0, 0);
	struct kymo_ring_writer *ring = &slot->ring;

	for (uint32_t i = 0; i < ring->n_buffers; i++) {
		bool is_spare = i == ring->n_buffers - 1;

		if (!is_spare && (i / 8 >= got || !(cpus[i / 8] >> i % 8 & 1)))
			continue;
		if (kymo_ring_populate(ring->data + i * ring->buffer_bytes, ring->buffer_bytes) < 0)
			return KY_OFF_SPACE;
		__atomic_store_n(&ring->control[i].ready, ring->n_subbufs, __ATOMIC_RELEASE);
	}
	return 0;
}

static int ring_file_make_ring(struct ky_slot *slot, int fd, int *os_error)
{
	const struct kymo_ring_config *config =
		slot->clock == KY_CLOCK_RECORD_TSC ? &ky_ring_tsc : &ky_ring_monotonic;
	struct kymo_ring_options options = {
		.size_bytes = sizeof(options),
		.flags = (slot->file->flags & KY_SESSION_OVERWRITE ? KYMO_RING_OVERWRITE : 0) |
			 (slot->is_shared ? KYMO_RING_MIXED : 0),
		.subbuf_bytes = slot->file->subbuf_bytes,
		.n_subbufs = slot->file->n_subbufs,
		.client = (uint32_t)KY_BLOB_MAGIC,
		.clock = slot->clock,
		.client_bytes = KY_BLOB_BYTES + KY_NOTES_BYTES,
	};
	int result;

	if (ky_sys(SYS_getrandom, (long)slot->trace_uuid, sizeof(slot->trace_uuid), 1, 0, 0, 0) !=
	    (long)sizeof(slot->trace_uuid)) {
		memcpy(slot->trace_uuid, slot->uuid, sizeof(slot->trace_uuid));
		slot->trace_uuid[0] ^= (uint8_t)ky_trace.start_ns;
		slot->trace_uuid[1] ^= (uint8_t)ky_trace_pid();
	}
	result = kymo_ring_create(&slot->ring, fd, config, slot, &options);
	if (result < 0)
		return off_of(result, os_error);
	ky_rseq_area = slot->ring.rseq_area;
	ky_wait_set(slot);
	result = blob_begin(slot);
	if (!result && (slot->file->flags & KY_SESSION_PREALLOCATE))
		result = preallocate(slot);
	if (result) {
		kymo_ring_unmap(&slot->ring);
		memset(&slot->ring, 0, sizeof(slot->ring));
	}
	return result;
}

/*
 * Make the ring, and give it @final, or its name without the dot if that is NULL. 0 or an enum ky_off; @os_error: EEXIST
 * when @final is there already.
 */
static int ring_file_make_file(struct ky_slot *slot, int dir_fd, const char *final, int *os_error)
{
	char name[64];
	long fd, renamed;
	int result;

	memcpy(ky_ring_file_name(name), KY_RING_SUFFIX, sizeof(KY_RING_SUFFIX));
	fd = ky_sys(SYS_openat, dir_fd, (long)name,
		    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
	if (fd < 0)
		return off_of((int)fd, os_error);
	slot->pid = ky_trace_pid();
	result = ring_file_make_ring(slot, (int)fd, os_error);
	if (!result) {
		renamed = ky_sys(SYS_renameat2, dir_fd, (long)name, dir_fd,
				 (long)(final ? final : name + 1), final ? RENAME_NOREPLACE : 0, 0);
		if (renamed < 0) {
			kymo_ring_unmap(&slot->ring);
			memset(&slot->ring, 0, sizeof(slot->ring));
			result = off_of((int)renamed, os_error);
		}
	}
	/* On persistent memory the name is to outlive the machine as the contents do. */
	if (!result && slot->ring.is_synced)
		ky_sys(SYS_fsync, dir_fd, 0, 0, 0, 0, 0);
	if (result)
		ky_sys(SYS_unlinkat, dir_fd, (long)name, 0, 0, 0, 0);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return result;
}

int ky_shared_make(struct ky_slot *slot, int dir_fd)
{
	int os_error = 0, result;

	slot->is_shared = true;
	result = ring_file_make_file(slot, dir_fd, KY_SHARED_RING, &os_error);
	slot->is_shared = false;
	return !result ? 0 : os_error ? -os_error : -EINVAL;
}

int ky_ring_file_make(struct ky_slot *slot, int dir_fd, int *os_error)
{
	int result = 0;

	if (!(slot->file->flags & KY_SESSION_SHARED) || !ky_shared_join(slot, dir_fd))
		result = ring_file_make_file(slot, dir_fd, NULL, os_error);
	/* Partner: hits that count what they lose. */
	if (!result)
		__atomic_store_n(&slot->blob, slot->ring.client_region, __ATOMIC_RELEASE);
	return result;
}

/*
 * A hit that is on its way may still write to the ring, at any time: its thread may be stopped.
 * So the addresses stay, but the file's memory behind them goes.
 */
void ky_ring_file_leave(struct ky_slot *slot)
{
	if (slot->ring.file)
		ky_sys(SYS_mmap, (long)slot->ring.file, (long)slot->ring.map_bytes,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (slot->shared_file)
		ky_sys(SYS_mmap, (long)slot->shared_file, (long)sizeof(*slot->shared_file),
		       PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}
