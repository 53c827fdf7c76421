/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: copies of what a ring holds, taken while it is written. Like reading under a seqlock: copy,
 * then ask whether a writer claimed that place meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "ring/ring-reader.h"
#include "ring/ring-writer.h"

int kymo_ring_snapshot_forget(struct kymo_ring_reader *reader, struct kymo_error *err)
{
	if (!(reader->head.flags & KYMO_RING_OVERWRITE))
		return ky_error_set(err, KYMO_E_STATE, "the ring does not overwrite its records");
	for (uint32_t i = 0; i < reader->n_buffers; i++) {
		struct ky_rb_view now;

		if (ky_rb_look(reader, i, &now))
			reader->buffers[i].forgotten = now;
	}
	return ky_rb_check_cut(reader, err);
}

void ky_rb_forget_snapshot(struct kymo_ring_reader *reader)
{
	for (uint32_t i = 0; i < reader->n_buffers; i++) {
		struct ky_rb_buffer *buffer = &reader->buffers[i];

		/* Of a buffer that could not be looked at, there is no end. */
		if (buffer->snapshot_end.position > buffer->forgotten.position)
			buffer->forgotten = buffer->snapshot_end;
	}
}

int kymo_ring_snapshot_begin(struct kymo_ring_reader *reader, struct kymo_error *err)
{
	if (!reader->copy)
		reader->copy = malloc(reader->head.subbuf_bytes);
	if (!reader->copy)
		return ky_error_nomem(err);
	for (uint32_t i = 0; i < reader->n_buffers; i++) {
		struct ky_rb_buffer *buffer = &reader->buffers[i];

		buffer->snapshot_at = 0;
		if (!ky_rb_look(reader, i, &buffer->snapshot_end))
			buffer->snapshot_end = (struct ky_rb_view){0};
		if (!(reader->head.flags & KYMO_RING_OVERWRITE))
			buffer->snapshot_at = buffer->start;
		else
			buffer->snapshot_at = buffer->forgotten.position &
					      ~(uint64_t)(reader->head.subbuf_bytes - 1);
	}
	return ky_rb_check_cut(reader, err);
}

/* Copy the sub-buffer at @start and its slot. False: it was overwritten meanwhile. */
static bool copy_subbuf(struct kymo_ring_reader *reader, uint32_t i, uint64_t start,
			struct kymo_ring_slot *slot, const struct ky_rb_view *end)
{
	const struct kymo_ring_control *control = ky_rb_reader_control(reader, i);
	bool is_last = end->position <= start + reader->head.subbuf_bytes;
	uint64_t bytes;

	ky_rb_reader_slot(reader, i, start, slot);
	bytes = is_last ? end->position - start : slot->content_bytes;
	if (bytes > reader->head.subbuf_bytes)
		bytes = reader->head.subbuf_bytes;
	ky_rb_copy_racing(reader->copy, ky_rb_reader_data(reader, i, start), bytes);
	/* Partner: the fence of writers between the claim and the first byte. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ky_rb_get(reader, &control->claim) <= start;
}

/* The copied sub-buffer as a chunk. 1, or 0: it makes no sense. */
static int chunk_of(struct kymo_ring_reader *reader, uint32_t i, const struct kymo_ring_slot *slot,
		    uint64_t start, const struct ky_rb_view *last, struct kymo_ring_chunk *chunk)
{
	const struct ky_rb_buffer *buffer = &reader->buffers[i];
	bool is_closed = last->position > start + reader->head.subbuf_bytes;
	struct ky_rb_view from = {start, slot->open, slot->open_lost}, end = *last;

	if (!ky_rb_slot_ok(reader, slot, start, is_closed))
		return 0;
	/* A snapshot of a discarding ring has no losses that a consumer has reported. */
	if (!(reader->head.flags & KYMO_RING_OVERWRITE) && start == buffer->start &&
	    buffer->taken > start)
		from = (struct ky_rb_view){buffer->taken, buffer->taken_point, buffer->taken_lost};
	if (buffer->forgotten.position > start &&
	    buffer->forgotten.position - start <= reader->head.subbuf_bytes)
		from = buffer->forgotten;
	if (is_closed)
		end = (struct ky_rb_view){start + slot->content_bytes, slot->close,
					  slot->close_lost};
	if (end.position < start + reader->head.subbuf_header_bytes ||
	    end.position < from.position || end.point.records < from.point.records)
		return 0;
	ky_rb_fill_chunk(reader, i, slot, reader->copy, &from, &end, is_closed, chunk);
	chunk->body_offset = UINT64_MAX;
	return 1;
}

int kymo_ring_snapshot_next(struct kymo_ring_reader *reader, uint32_t i,
			    struct kymo_ring_chunk *chunk, struct kymo_error *err)
{
	struct ky_rb_buffer *buffer = &reader->buffers[i];
	const struct kymo_ring_control *control = ky_rb_reader_control(reader, i);
	const struct ky_rb_view *end = &buffer->snapshot_end;
	struct kymo_ring_slot slot;

	if (i >= reader->n_buffers || !reader->copy)
		return ky_error_set(err, KYMO_E_INVALID, "no snapshot of buffer %" PRIu32, i);
	for (;;) {
		uint64_t claim = ky_rb_get(reader, &control->claim), start = buffer->snapshot_at;
		uint64_t oldest = end->position > reader->buffer_bytes
					  ? end->position - reader->buffer_bytes
					  : 0;
		int cut = ky_rb_check_cut(reader, err);

		if (cut < 0)
			return cut;
		if (start < claim)
			start = claim;
		/* However wrong the claim is: a sub-buffer's start, one round at the most. */
		if (start < oldest)
			start = oldest;
		start = (start + reader->head.subbuf_bytes - 1) & ~(reader->head.subbuf_bytes - 1);
		if (start < claim || start >= end->position || buffer->is_broken)
			return 0;
		buffer->snapshot_at = start + reader->head.subbuf_bytes;
		if (!copy_subbuf(reader, i, start, &slot, end))
			continue;
		if (chunk_of(reader, i, &slot, start, end, chunk)) {
			if (chunk->packet.records || chunk->is_closed)
				return 1;
			continue;
		}
		return ky_error_set(err, KYMO_E_FORMAT,
				    "buffer %" PRIu32 ": the description of sub-buffer %" PRIu64
				    " is malformed; it is skipped",
				    i, start / reader->head.subbuf_bytes);
	}
}
