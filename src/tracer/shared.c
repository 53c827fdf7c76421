/* SPDX-License-Identifier: MIT */
/*
 * One ring file for all programs of a user (KY_SESSION_SHARED). The first program creates it; the others map it. Its
 * blob has a registry (struct ky_shared_entry): event ids are indices there, one numbering for all programs.
 *
 * No lock: an entry is claimed by one atomic exchange, which also says how long it is, and is then filled. An entry
 * whose program died meanwhile stays claimed, and all others pass over it.
 *
 * What other programs wrote there is compared with what this process has, in a private copy, and not used otherwise.
 * The caller has the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/ring-config.h"
#include "tracer/tracer.h"

/* How often to look whether an equal entry is complete, before another one is made. */
#define READY_TRIES 256

/* Memory is had in such steps. */
#define STEP_BYTES 4096u

/* ---- the registry --------------------------------------------------------------------- */

/* Memory up to @end of the blob. */
static bool shared_have_memory(struct ky_slot *slot, uint32_t end)
{
	if (end <= slot->blob_bytes)
		return true;
	end = (end + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
	if (end > KY_BLOB_BYTES ||
	    kymo_ring_populate((uint8_t *)slot->ring.client_region + slot->blob_bytes,
			       end - slot->blob_bytes) < 0)
		return false;
	slot->blob_bytes = end;
	return true;
}

static bool shared_is_text(const struct ky_event_record *record, uint32_t bytes, uint32_t offset)
{
	return offset < bytes && memchr((const char *)record + offset, 0, bytes - offset);
}

static bool is_field(const struct ky_event_record *record, uint32_t bytes,
		     const struct ky_field_record *field)
{
	const struct ky_label_record *labels = (const void *)((const char *)record + field->labels);

	if (!shared_is_text(record, bytes, field->name))
		return false;
	if (!field->n_labels)
		return true;
	if (field->labels % 8 || field->labels > bytes ||
	    field->n_labels > (bytes - field->labels) / sizeof(*labels))
		return false;
	for (uint32_t i = 0; i < field->n_labels; i++) {
		if (!shared_is_text(record, bytes, labels[i].name))
			return false;
	}
	return true;
}

/* Can ky_record_same() read it? A private copy. */
static bool is_record(const struct ky_event_record *record, uint32_t bytes)
{
	if (record->n_fields > (bytes - sizeof(*record)) / sizeof(record->fields[0]) ||
	    !shared_is_text(record, bytes, record->provider) ||
	    !shared_is_text(record, bytes, record->name))
		return false;
	for (uint32_t i = 0; i < record->n_fields; i++) {
		if (!is_field(record, bytes, &record->fields[i]))
			return false;
	}
	return true;
}

/* Words, each read once; nobody may rely on what they are. */
static void shared_copy_words(void *to, const void *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes / 8; i++)
		((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

/* Is the entry, of @bytes, complete and of the same type as @record? */
static bool shared_is_same(const struct ky_shared_entry *entry, uint32_t bytes,
			   const struct ky_event_record *record)
{
	struct ky_event_record *copy = ky_trace.scratch;

	/* Partner: the release in shared_fill(). */
	for (int i = 0; !__atomic_load_n(&entry->ready, __ATOMIC_ACQUIRE); i++) {
		if (i == READY_TRIES)
			return false;
		ky_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	shared_copy_words(copy, entry + 1, bytes);
	return is_record(copy, bytes) && ky_record_same(copy, record);
}

static void shared_fill(struct ky_slot *slot, struct ky_shared_entry *entry,
			const struct ky_event_record *record, uint32_t id)
{
	struct ky_event_record *to = (struct ky_event_record *)(entry + 1);
	struct ky_blob *blob = slot->ring.client_region;

	memcpy(to, record, record->bytes);
	to->number = id;
	to->flags = 0;
	/* Partners: other programs; the recorder, which looks when @bytes has changed. */
	__atomic_store_n(&entry->ready, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&blob->bytes, record->bytes, __ATOMIC_RELEASE);
	kymo_ring_wake(&slot->ring, KYMO_RING_WAKE_SWITCH);
}

/*
 * The entry of @record's type, which may come to be there by this call. @record is private, and not in the scratch
 * memory. Returns its offset in the blob, 0: there is no room, or the registry makes no sense.
 */
static uint32_t shared_find(struct ky_slot *slot, const struct ky_event_record *record,
			    uint32_t hash, uint32_t *id)
{
	const uint32_t head = (uint32_t)sizeof(struct ky_shared_entry);
	uint64_t claim, ours = (uint64_t)record->bytes << 32 | hash;
	uint32_t at = sizeof(struct ky_blob), bytes;

	for (*id = 0; *id < KY_EVENTS_MAX; ++*id, at += head + bytes) {
		struct ky_shared_entry *entry = (void *)((uint8_t *)slot->ring.client_region + at);

		if (at > KY_BLOB_BYTES - head || !shared_have_memory(slot, at + head))
			return 0;
		claim = __atomic_load_n(&entry->claim, __ATOMIC_ACQUIRE);
		if (!claim) {
			if (record->bytes > KY_BLOB_BYTES - head - at ||
			    !shared_have_memory(slot, at + head + record->bytes))
				return 0;
			if (__atomic_compare_exchange_n(&entry->claim, &claim, ours, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
				shared_fill(slot, entry, record, *id);
				return at;
			}
		}
		bytes = (uint32_t)(claim >> 32);
		if (bytes % 8 || bytes < sizeof(*record) || bytes > KY_RECORD_BYTES_MAX ||
		    bytes > KY_BLOB_BYTES - head - at ||
		    !shared_have_memory(slot, at + head + bytes))
			return 0;
		if ((uint32_t)claim == hash && shared_is_same(entry, bytes, record))
			return at;
	}
	return 0;
}

int ky_shared_id(struct ky_slot *slot, const struct ky_event_record *record, uint64_t hash,
		 uint32_t *id)
{
	struct ky_blob *blob = slot->ring.client_region;

	if (shared_find(slot, record, (uint32_t)hash, id))
		return 0;
	__atomic_fetch_add(&blob->lost_no_id, 1, __ATOMIC_RELAXED);
	return KY_OFF_SPACE;
}

/* ---- joining -------------------------------------------------------------------------- */

/*
 * All programs' events have the context fields that the first program registered. A program with other fields cannot take
 * part: there, a counter or an application's context is missing.
 */
bool ky_shared_agree(struct ky_slot *slot)
{
	struct ky_blob *blob = slot->ring.client_region;
	struct ky_event_record *mine = ky_trace_alloc(KY_SHARED_CONTEXT_MAX);
	uint64_t layout = __atomic_load_n(&blob->layout, __ATOMIC_ACQUIRE), none = 0;
	const uint8_t *theirs;
	uint32_t bytes, id;

	bytes = mine ? ky_contexts_describe(slot, mine, KY_SHARED_CONTEXT_MAX) : 0;
	if (!bytes)
		return false;
	if (!layout) {
		layout = shared_find(slot, mine, (uint32_t)ky_record_hash(mine), &id);
		if (!layout)
			return false;
		/* Release: the entry is complete. */
		if (!__atomic_compare_exchange_n(&blob->layout, &none, layout, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			layout = none;
	}
	if (layout > KY_BLOB_BYTES - sizeof(struct ky_shared_entry) - bytes || layout % 8 ||
	    layout < sizeof(*blob) ||
	    !shared_have_memory(slot, (uint32_t)(layout + sizeof(struct ky_shared_entry) + bytes)))
		return false;
	theirs = (const uint8_t *)blob + layout + sizeof(struct ky_shared_entry);
	/* The number is the registry's. */
	((struct ky_event_record *)mine)->number = ((const struct ky_event_record *)theirs)->number;
	return memcmp(mine, theirs, bytes) == 0;
}

/* Is the ring that is mapped the session's? Its numbers are private by now. */
static bool is_sessions(const struct ky_slot *slot)
{
	const struct ky_blob *blob = slot->ring.client_region;
	const struct kymo_ring_writer *ring = &slot->ring;
	uint32_t overwrite = slot->file->flags & KY_SESSION_OVERWRITE ? KYMO_RING_OVERWRITE : 0;

	return ring->subbuf_bytes == slot->file->subbuf_bytes &&
	       ring->n_subbufs == slot->file->n_subbufs &&
	       (ring->flags & KYMO_RING_OVERWRITE) == overwrite &&
	       ring->data - (uint8_t *)blob >= (ptrdiff_t)(KY_BLOB_BYTES + KY_NOTES_BYTES) &&
	       __atomic_load_n(&blob->magic, __ATOMIC_ACQUIRE) == KY_BLOB_MAGIC &&
	       blob->version == KY_CONTROL_VERSION && (blob->flags & KY_BLOB_SHARED) &&
	       !memcmp(blob->session_uuid, slot->uuid, sizeof(slot->uuid));
}

static int shared_map(struct ky_slot *slot, int dir_fd)
{
	uint32_t uid = (uint32_t)ky_sys(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	struct stat st;
	int fd = (int)ky_sys(SYS_openat, dir_fd, (long)KY_SHARED_RING,
			     O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0, 0, 0);
	int result = fd;

	if (fd < 0)
		return fd;
	if (ky_fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid != uid && st.st_uid != 0))
		result = -EPERM;
	else
		result = kymo_ring_map(&slot->ring, fd, &ky_ring_monotonic, slot);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	if (result < 0)
		return result;
	slot->blob_bytes = 0;
	memcpy(slot->trace_uuid, ((struct ky_blob *)slot->ring.client_region)->trace_uuid,
	       sizeof(slot->trace_uuid));
	return is_sessions(slot) && ky_shared_agree(slot) ? 0 : -EINVAL;
}

bool ky_shared_join(struct ky_slot *slot, int dir_fd)
{
	int result = shared_map(slot, dir_fd);

	if (result == -ENOENT) {
		result = ky_shared_make(slot, dir_fd);
		/* Another program was first. */
		if (result == -EEXIST)
			result = shared_map(slot, dir_fd);
	}
	slot->pid = ky_trace_pid();
	if (result) {
		kymo_ring_unmap(&slot->ring);
		memset(&slot->ring, 0, sizeof(slot->ring));
		return false;
	}
	ky_rseq_area = slot->ring.rseq_area;
	slot->is_shared = true;
	ky_wait_set(slot);
	ky_notes_joined(slot, dir_fd);
	return true;
}
