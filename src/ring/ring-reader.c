/* SPDX-License-Identifier: MIT */
/* Opening a ring for reading; looking at it; sleeping. */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "ring/ring-reader.h"
#include "ring/ring-writer.h"

static uint64_t ours(const struct kymo_ring_reader *reader, uint64_t word)
{
	return reader->info.is_foreign ? __builtin_bswap64(word) : word;
}

uint64_t ky_rb_get(const struct kymo_ring_reader *reader, const uint64_t *word)
{
	return ours(reader, __atomic_load_n(word, __ATOMIC_RELAXED));
}

struct kymo_ring_control *ky_rb_reader_control(const struct kymo_ring_reader *reader,
					       uint32_t buffer)
{
	uint8_t *controls = (uint8_t *)reader->file + reader->head.control_offset;

	return (struct kymo_ring_control *)controls + buffer;
}

void ky_rb_reader_slot(const struct kymo_ring_reader *reader, uint32_t buffer, uint64_t start,
		       struct kymo_ring_slot *slot)
{
	const uint8_t *slots = (uint8_t *)reader->file + reader->head.slots_offset;
	uint64_t number = start / reader->head.subbuf_bytes & (reader->head.n_subbufs - 1);
	const uint64_t *from =
		(const uint64_t *)((const struct kymo_ring_slot *)slots +
				   (uint64_t)buffer * reader->head.n_subbufs + number);
	uint64_t words[sizeof(*slot) / 8];

	for (unsigned int i = 0; i < sizeof(*slot) / 8; i++)
		words[i] = ky_rb_get(reader, from + i);
	memcpy(slot, words, sizeof(*slot));
}

const uint8_t *ky_rb_reader_data(const struct kymo_ring_reader *reader, uint32_t buffer,
				 uint64_t start)
{
	return (const uint8_t *)reader->file + reader->head.data_offset +
	       buffer * reader->buffer_bytes + (start & (reader->buffer_bytes - 1));
}

static uint64_t lost_of(const struct kymo_ring_reader *reader,
			const struct kymo_ring_control *control)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < KYMO_RING_LOSSES_MAX; i++)
		total += ky_rb_get(reader, &control->lost[i]);
	return total;
}

bool ky_rb_look(const struct kymo_ring_reader *reader, uint32_t buffer, struct ky_rb_view *view)
{
	const struct kymo_ring_control *control = ky_rb_reader_control(reader, buffer);
	uint64_t head, again;

	/* First: the next call reports later losses. */
	view->lost = lost_of(reader, control);
	for (int i = 0; i < KY_RB_LOOKS_MAX; i++) {
		/* Partner: the release of the head in writers; all below it is there. */
		head = ours(reader, __atomic_load_n(&control->head, __ATOMIC_ACQUIRE));
		view->position = kymo_ring_position(head);
		/* Acquire: these are not read after the head is read again. */
		view->point.stamp =
			ours(reader, __atomic_load_n(&kymo_ring_point_of(control, head)->stamp,
						     __ATOMIC_ACQUIRE));
		view->point.records =
			ours(reader, __atomic_load_n(&kymo_ring_point_of(control, head)->records,
						     __ATOMIC_ACQUIRE));
		again = ours(reader, __atomic_load_n(&control->head, __ATOMIC_RELAXED));
		if (head == again)
			return true;
	}
	return false;
}

bool ky_rb_slot_ok(const struct kymo_ring_reader *reader, const struct kymo_ring_slot *slot,
		   uint64_t start, bool closed)
{
	if (slot->start != start)
		return false;
	return !closed || (slot->content_bytes >= reader->head.subbuf_header_bytes &&
			   slot->content_bytes <= reader->head.subbuf_bytes &&
			   slot->close.records >= slot->open.records);
}

int ky_rb_check_cut(const struct kymo_ring_reader *reader, struct kymo_error *err)
{
	if (!ky_rb_guard_was_hit(&reader->guard))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_IO, "the ring's file was cut short while it was read");
}

/* ---- opening ---- */

static void swap_head(struct kymo_ring_file *head)
{
	uint32_t *words32[] = {&head->version,
			       &head->flags,
			       &head->n_buffers,
			       &head->n_subbufs,
			       &head->subbuf_header_bytes,
			       &head->clock,
			       &head->client,
			       &head->page_bytes};
	uint64_t *words64[] = {&head->magic,	    &head->subbuf_bytes,  &head->control_offset,
			       &head->slots_offset, &head->client_offset, &head->client_bytes,
			       &head->data_offset,  &head->file_bytes};

	for (unsigned int i = 0; i < sizeof(words32) / sizeof(words32[0]); i++)
		*words32[i] = __builtin_bswap32(*words32[i]);
	for (unsigned int i = 0; i < sizeof(words64) / sizeof(words64[0]); i++)
		*words64[i] = __builtin_bswap64(*words64[i]);
}

/* The head of the file, in our byte order. */
static int ring_reader_read_head(int fd, struct kymo_ring_file *head, bool *is_foreign,
				 struct kymo_error *err)
{
	ssize_t got = pread(fd, head, sizeof(*head), 0);
	struct stat status;

	if (got < 0 || fstat(fd, &status) < 0)
		return ky_error_errno(err, errno, "cannot read the ring's head");
	*is_foreign = got == sizeof(*head) && head->magic == __builtin_bswap64(KYMO_RING_MAGIC);
	if (*is_foreign)
		swap_head(head);
	if (got != sizeof(*head) || head->magic != KYMO_RING_MAGIC) {
		ky_error_set(err, KYMO_E_FORMAT, "not a ring: no magic number at its start");
		ky_error_offset(err, 0);
		return KYMO_E_FORMAT;
	}
	if (head->version != KYMO_RING_VERSION)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a ring of version %" PRIu32
				    ", and this program knows version %u",
				    head->version, KYMO_RING_VERSION);
	if (!ky_rb_head_ok(head))
		return ky_error_set(err, KYMO_E_FORMAT, "the ring's head is malformed");
	if (status.st_size < 0 || (uint64_t)status.st_size < head->file_bytes)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "cut short: %" PRIu64
				    " bytes, and the ring's head says %" PRIu64,
				    (uint64_t)status.st_size, head->file_bytes);
	return KYMO_OK;
}

static int ring_reader_map_ring(struct kymo_ring_reader *reader, struct kymo_error *err)
{
	bool read_only = reader->options.flags & KYMO_RING_READ_ONLY;
	void *map;

	if (!read_only && reader->info.is_foreign)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "the ring is of a machine of another byte order: read only");
	/* The lock goes with the last descriptor: a reader that dies leaves none. */
	if (!read_only && flock(reader->fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? ky_error_set(err, KYMO_E_STATE, "another reader consumes the ring")
			       : ky_error_errno(err, errno, "cannot lock the ring");
	map = mmap(NULL, reader->head.file_bytes, PROT_READ | (read_only ? 0 : PROT_WRITE),
		   MAP_SHARED | MAP_NORESERVE, reader->fd, 0);
	if (map == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map the ring");
	reader->file = map;
	ky_rb_guard_add(&reader->guard, map, reader->head.file_bytes);
	return KYMO_OK;
}

/* Where a former reader of this buffer stopped; or the oldest that is left. */
static void resume(struct kymo_ring_reader *reader, uint32_t i)
{
	const struct kymo_ring_control *control = ky_rb_reader_control(reader, i);
	struct ky_rb_buffer *buffer = &reader->buffers[i];
	uint64_t subbuf = reader->head.subbuf_bytes;

	if (reader->head.flags & KYMO_RING_OVERWRITE) {
		buffer->start = buffer->taken = ky_rb_get(reader, &control->claim);
	} else {
		buffer->start = ky_rb_get(reader, &control->consumed);
		buffer->taken = ky_rb_get(reader, &control->taken);
		buffer->taken_point.stamp = ky_rb_get(reader, &control->taken_point.stamp);
		buffer->taken_point.records = ky_rb_get(reader, &control->taken_point.records);
		buffer->taken_lost = ky_rb_get(reader, &control->taken_lost);
	}
	/* A reader that died between the two words. */
	if (buffer->taken < buffer->start)
		buffer->taken = buffer->start;
	buffer->is_broken = buffer->start % subbuf || buffer->taken - buffer->start > subbuf;
}

static struct kymo_ring_reader *reader_new(const struct kymo_ring_file *head, bool is_foreign)
{
	uint32_t n = head->n_buffers + 1;
	struct kymo_ring_reader *reader =
		calloc(1, sizeof(*reader) + n * sizeof(reader->buffers[0]));

	if (!reader)
		return NULL;
	reader->head = *head;
	reader->n_buffers = n;
	reader->buffer_bytes = head->subbuf_bytes * head->n_subbufs;
	reader->info = (struct kymo_ring_info){
		.flags = head->flags,
		.n_buffers = head->n_buffers,
		.n_subbufs = head->n_subbufs,
		.subbuf_bytes = head->subbuf_bytes,
		.subbuf_header_bytes = head->subbuf_header_bytes,
		.client = head->client,
		.clock = head->clock,
		.is_foreign = is_foreign,
		.client_bytes = head->client_bytes,
	};
	return reader;
}

/* For writers that wait. */
static void attend(struct kymo_ring_reader *reader, enum kymo_ring_attended attended)
{
	if (!(reader->options.flags & KYMO_RING_READ_ONLY))
		__atomic_store_n(&reader->file->attended, attended, __ATOMIC_RELAXED);
}

int kymo_ring_reader_open(struct kymo_ring_reader **out, int fd,
			  const struct kymo_ring_reader_options *options, struct kymo_error *err)
{
	struct kymo_ring_reader *reader;
	struct kymo_ring_file head;
	bool is_foreign = false;
	int status = ring_reader_read_head(fd, &head, &is_foreign, err);

	*out = NULL;
	if (status < 0)
		return status;
	reader = reader_new(&head, is_foreign);
	if (!reader)
		return ky_error_nomem(err);
	reader->fd = fd;
	if (options)
		memcpy(&reader->options, options,
		       options->size_bytes < sizeof(*options) ? options->size_bytes
							      : sizeof(*options));
	status = ring_reader_map_ring(reader, err);
	if (status < 0) {
		free(reader);
		return status;
	}
	reader->info.client_region = (uint8_t *)reader->file + head.client_offset;
	for (uint32_t i = 0; i < reader->n_buffers; i++)
		resume(reader, i);
	attend(reader, KYMO_RING_ATTENDED);
	*out = reader;
	return KYMO_OK;
}

void kymo_ring_reader_abandon(struct kymo_ring_reader *reader)
{
	attend(reader, KYMO_RING_ABANDONED);
	if (!(reader->options.flags & KYMO_RING_READ_ONLY))
		ky_rb_wake_writers(reader->file);
}

void kymo_ring_reader_close(struct kymo_ring_reader *reader)
{
	if (!reader)
		return;
	kymo_ring_reader_abandon(reader);
	ky_rb_guard_remove(&reader->guard);
	munmap(reader->file, reader->head.file_bytes);
	if (!(reader->options.flags & KYMO_RING_READ_ONLY))
		flock(reader->fd, LOCK_UN);
	free(reader->copy);
	free(reader);
}

const struct kymo_ring_info *kymo_ring_reader_info(const struct kymo_ring_reader *reader)
{
	return &reader->info;
}

uint32_t kymo_ring_reader_buffers(const struct kymo_ring_reader *reader)
{
	return reader->n_buffers;
}

/* ---- sleeping ---- */

/* Whether a sub-buffer was closed that the caller has not seen yet. */
static bool anything_new(struct kymo_ring_reader *reader)
{
	bool is_new = false;

	for (uint32_t i = 0; i < reader->n_buffers; i++) {
		const struct kymo_ring_control *control = ky_rb_reader_control(reader, i);
		struct ky_rb_buffer *buffer = &reader->buffers[i];
		uint64_t position = kymo_ring_position(ky_rb_get(reader, &control->head));
		uint64_t subbuf = position / reader->head.subbuf_bytes;

		if (buffer->is_broken)
			continue;
		if (reader->head.flags & KYMO_RING_OVERWRITE)
			is_new |= subbuf > buffer->seen;
		else
			is_new |= position > buffer->start + reader->head.subbuf_bytes;
		buffer->seen = subbuf;
	}
	return is_new;
}

/* Whether a record was written that the caller has not taken. */
static bool has_record(const struct kymo_ring_reader *reader, uint32_t i)
{
	const struct ky_rb_buffer *buffer = &reader->buffers[i];
	struct ky_rb_view view;

	if (buffer->is_broken)
		return false;
	return !ky_rb_look(reader, i, &view) ||
	       (view.position > buffer->taken && view.point.records != buffer->taken_point.records);
}

static bool has_any_record(const struct kymo_ring_reader *reader)
{
	for (uint32_t i = 0; i < reader->n_buffers; i++)
		if (has_record(reader, i))
			return true;
	return false;
}

int kymo_ring_reader_arm(struct kymo_ring_reader *reader, uint32_t events,
			 struct kymo_ring_futex *futex)
{
	struct kymo_ring_file *file = reader->file;

	if (reader->options.flags & KYMO_RING_READ_ONLY || reader->info.is_foreign)
		return KYMO_E_STATE;
	futex->word = &file->wakes;
	futex->value = __atomic_load_n(&file->wakes, __ATOMIC_ACQUIRE);
	__atomic_store_n(&file->waiting, ++reader->n_requests << 2 | (events & KYMO_RING_WAKES),
			 __ATOMIC_RELAXED);
	/* Partner: the fence in kymo_ring_wake(). Either we see the head, or it sees our request. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!anything_new(reader) && (!(events & KYMO_RING_WAKE_RECORD) || !has_any_record(reader)))
		return 0;
	kymo_ring_reader_disarm(reader);
	return 1;
}

void kymo_ring_reader_disarm(struct kymo_ring_reader *reader)
{
	if (!(reader->options.flags & KYMO_RING_READ_ONLY))
		__atomic_store_n(&reader->file->waiting, 0, __ATOMIC_RELAXED);
}

int kymo_ring_reader_wait(struct kymo_ring_reader *reader, int64_t timeout_ns)
{
	struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
	struct kymo_ring_futex futex;
	int ret = timeout_ns < 0 ? KYMO_E_STATE
				 : kymo_ring_reader_arm(reader, KYMO_RING_WAKE_SWITCH, &futex);

	if (ret)
		return ret;
	if (ky_rb_syscall(SYS_futex, (long)futex.word, FUTEX_WAIT, futex.value, (long)&timeout, 0,
			  0) < 0 &&
	    __atomic_load_n(futex.word, __ATOMIC_ACQUIRE) == futex.value)
		return 0;
	anything_new(reader);
	return 1;
}
