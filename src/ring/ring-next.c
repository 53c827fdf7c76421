/* SPDX-License-Identifier: MIT */
/* Consuming: chunk after chunk of a buffer. */
#include <inttypes.h>

#include "base/error.h"
#include "ring/ring-reader.h"
#include "ring/ring-writer.h"

/* The header of a chunk: what the sub-buffer's holds, or a new one for a further part of it. */
static void make_header(struct kymo_ring_reader *reader, const uint8_t *data,
			struct kymo_ring_chunk *chunk)
{
	const struct kymo_ring_config *config = reader->options.config;
	const void *client = reader->options.client;

	chunk->header = reader->header;
	chunk->header_bytes = reader->head.subbuf_header_bytes;
	if (!chunk->is_continued)
		ky_rb_copy_racing(reader->header, data, chunk->header_bytes);
	if (chunk->is_closed && !chunk->is_continued)
		return;
	if (!config) {
		chunk->header_bytes = 0;
		return;
	}
	if (chunk->is_continued) {
		memset(reader->header, 0, sizeof(reader->header));
		config->subbuf_open(client, &chunk->packet, reader->header);
	}
	config->subbuf_close(client, &chunk->packet, reader->header);
}

void ky_rb_fill_chunk(struct kymo_ring_reader *reader, uint32_t buffer,
		      const struct kymo_ring_slot *slot, const uint8_t *data,
		      const struct ky_rb_view *from, const struct ky_rb_view *end, bool is_closed,
		      struct kymo_ring_chunk *chunk)
{
	uint64_t header_bytes = reader->head.subbuf_header_bytes;
	uint64_t body = from->position == slot->start ? slot->start + header_bytes : from->position;
	uint64_t body_at = body - slot->start;

	*chunk = (struct kymo_ring_chunk){
		.packet =
			{
				.sequence = slot->start / reader->head.subbuf_bytes,
				.begin_stamp = from->point.stamp,
				.end_stamp = end->point.stamp,
				.content_bytes = header_bytes + end->position - body,
				.subbuf_bytes = reader->head.subbuf_bytes,
				.lost = end->lost,
				.first_record = from->point.records,
				.records = end->point.records - from->point.records,
				.buffer = buffer,
				.is_foreign = reader->info.is_foreign,
			},
		.body = data + body_at,
		.body_bytes = end->position - body,
		.body_offset = reader->head.data_offset + buffer * reader->buffer_bytes +
			       (slot->start & (reader->buffer_bytes - 1)) + body_at,
		.is_closed = is_closed,
		.is_continued = from->position != slot->start,
		.end_position = end->position,
	};
	make_header(reader, data, chunk);
}

/* Past the sub-buffer that is read: to the beginning of the next. */
static void skip_subbuf(struct kymo_ring_reader *reader, uint32_t i,
			const struct kymo_ring_point *point, uint64_t lost)
{
	struct ky_rb_buffer *buffer = &reader->buffers[i];

	buffer->start += reader->head.subbuf_bytes;
	buffer->taken = buffer->start;
	buffer->taken_point = *point;
	buffer->taken_lost = lost;
}

/* For the writers, and for later readers. */
static void ring_next_publish(struct kymo_ring_reader *reader, uint32_t i)
{
	struct kymo_ring_control *control = ky_rb_reader_control(reader, i);
	const struct ky_rb_buffer *buffer = &reader->buffers[i];

	if (reader->options.flags & KYMO_RING_READ_ONLY)
		return;
	__atomic_store_n(&control->taken_point.stamp, buffer->taken_point.stamp, __ATOMIC_RELAXED);
	__atomic_store_n(&control->taken_point.records, buffer->taken_point.records,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&control->taken_lost, buffer->taken_lost, __ATOMIC_RELAXED);
	__atomic_store_n(&control->taken, buffer->taken, __ATOMIC_RELEASE);
	/* Partner: is_free() in writers. What we read comes before what they write there. */
	__atomic_store_n(&control->consumed, buffer->start, __ATOMIC_RELEASE);
	ky_rb_wake_writers(reader->file);
}

static int ring_next_give_up(struct kymo_ring_reader *reader, uint32_t i, uint64_t position,
			     struct kymo_error *err)
{
	struct ky_rb_buffer *buffer = &reader->buffers[i];

	buffer->is_broken = true;
	kymo_ring_reader_abandon(reader);
	return ky_error_set(err, KYMO_E_FORMAT,
			    "buffer %" PRIu32 ": position %" PRIu64 " is invalid after %" PRIu64
			    "; the recorder reads no more of it",
			    i, position, buffer->start);
}

/* The sub-buffer at buffer->start cannot be used: on to the next, if there is one. */
static int pass_over(struct kymo_ring_reader *reader, uint32_t i, const struct ky_rb_view *view,
		     bool is_closed, struct kymo_error *err)
{
	struct ky_rb_buffer *buffer = &reader->buffers[i];
	uint64_t start = buffer->start;

	if (is_closed) {
		skip_subbuf(reader, i, &buffer->taken_point, buffer->taken_lost);
	} else {
		buffer->is_broken = true;
		kymo_ring_reader_abandon(reader);
	}
	ring_next_publish(reader, i);
	return ky_error_set(err, KYMO_E_FORMAT,
			    "buffer %" PRIu32 ": the description of sub-buffer %" PRIu64
			    " is malformed; it is skipped",
			    i, start / reader->head.subbuf_bytes);
}

/* Whether the sub-buffer has something that was not handed out, and which part of it. */
static bool ring_next_choose(const struct ky_rb_buffer *buffer, const struct kymo_ring_slot *slot,
			     bool is_closed, struct ky_rb_view *from, struct ky_rb_view *end)
{
	*from = (struct ky_rb_view){buffer->taken, buffer->taken_point, buffer->taken_lost};
	if (buffer->taken == buffer->start)
		from->point = slot->open;
	if (is_closed)
		*end = (struct ky_rb_view){slot->start + slot->content_bytes, slot->close,
					   slot->close_lost};
	return end->position > from->position || (!is_closed && end->lost != from->lost);
}

/* 1: a chunk; 0: none; KYMO_E_AGAIN: went on to the next sub-buffer; KYMO_E_FORMAT. */
static int next_of(struct kymo_ring_reader *reader, uint32_t i, bool partial,
		   struct kymo_ring_chunk *chunk, struct kymo_error *err)
{
	struct ky_rb_buffer *buffer = &reader->buffers[i];
	struct ky_rb_view from, end;
	struct kymo_ring_slot slot;
	bool is_closed;

	if (buffer->is_broken || !ky_rb_look(reader, i, &end))
		return 0;
	if (end.position < buffer->taken || end.position - buffer->start > reader->buffer_bytes)
		return ring_next_give_up(reader, i, end.position, err);
	is_closed = end.position > buffer->start + reader->head.subbuf_bytes;
	/* Nothing, or nothing but a header; at its very end: opened by the next record only. */
	if (!is_closed && (!partial || end.position <= buffer->start))
		return 0;
	ky_rb_reader_slot(reader, i, buffer->start, &slot);
	if (!ky_rb_slot_ok(reader, &slot, buffer->start, is_closed))
		return pass_over(reader, i, &end, is_closed, err);
	if (!ring_next_choose(buffer, &slot, is_closed, &from, &end)) {
		if (!is_closed)
			return 0;
		skip_subbuf(reader, i, &end.point, end.lost);
		ring_next_publish(reader, i);
		return KYMO_E_AGAIN;
	}
	if (end.position < buffer->start + reader->head.subbuf_header_bytes ||
	    end.position < from.position || end.point.records < from.point.records)
		return pass_over(reader, i, &end, is_closed, err);
	if (!is_closed && end.point.records == from.point.records && end.lost == from.lost)
		return 0;
	ky_rb_fill_chunk(reader, i, &slot, ky_rb_reader_data(reader, i, buffer->start), &from, &end,
			 is_closed, chunk);
	return 1;
}

int kymo_ring_reader_next(struct kymo_ring_reader *reader, uint32_t buffer, uint32_t flags,
			  struct kymo_ring_chunk *chunk, struct kymo_error *err)
{
	int status, cut;

	if (buffer >= reader->n_buffers)
		return ky_error_set(err, KYMO_E_INVALID, "there is no buffer %" PRIu32, buffer);
	if (reader->head.flags & KYMO_RING_OVERWRITE &&
	    !(reader->options.flags & KYMO_RING_READ_ONLY))
		return ky_error_set(err, KYMO_E_STATE,
				    "an overwriting ring is read by snapshots only");
	do {
		status = next_of(reader, buffer, flags & KYMO_RING_PARTIAL, chunk, err);
	} while (status == KYMO_E_AGAIN);
	cut = ky_rb_check_cut(reader, err);
	return cut < 0 ? cut : status;
}

void kymo_ring_reader_release(struct kymo_ring_reader *reader, const struct kymo_ring_chunk *chunk)
{
	uint32_t i = chunk->packet.buffer;
	struct ky_rb_buffer *buffer = &reader->buffers[i];

	buffer->taken = chunk->end_position;
	buffer->taken_point.stamp = chunk->packet.end_stamp;
	buffer->taken_point.records = chunk->packet.first_record + chunk->packet.records;
	buffer->taken_lost = chunk->packet.lost;
	if (chunk->is_closed)
		skip_subbuf(reader, i, &buffer->taken_point, buffer->taken_lost);
	ring_next_publish(reader, i);
}
