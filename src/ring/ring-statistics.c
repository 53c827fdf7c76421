/* SPDX-License-Identifier: MIT */
/* What a reader knows of the events that a ring had and lost. */
#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "ring/ring-reader.h"

const char *kymo_ring_loss_text(unsigned int loss)
{
	static const char *const texts[KYMO_RING_LOSSES_MAX] = {
		[KYMO_RING_LOST_FULL] = "no free sub-buffer",
		[KYMO_RING_LOST_TOO_LARGE] = "longer than a sub-buffer",
		[KYMO_RING_LOST_NO_MEMORY] = "no memory for the next sub-buffer",
		[KYMO_RING_LOST_BUSY] = "all buffers locked",
		[KYMO_RING_LOST_CLIENT] = "not written by the client",
	};

	return loss < KYMO_RING_LOSSES_MAX && texts[loss] ? texts[loss] : "unknown cause";
}

/* Writers may claim anything. */
static void ring_statistics_add(uint64_t *to, uint64_t count)
{
	if (__builtin_add_overflow(*to, count, to))
		*to = UINT64_MAX;
}

static void count_losses(const struct kymo_ring_reader *reader, const uint64_t *lost,
			 struct kymo_ring_stats *stats)
{
	for (unsigned int i = 0; i < KYMO_RING_LOSSES_MAX; i++) {
		uint64_t count = ky_rb_get(reader, lost + i);

		ring_statistics_add(&stats->lost[i], count);
		ring_statistics_add(&stats->lost_total, count);
	}
}

/* Records before the oldest sub-buffer that is left: it says itself how many. */
static uint64_t overwritten(const struct kymo_ring_reader *reader, uint32_t i, uint64_t records)
{
	const struct kymo_ring_control *control = ky_rb_reader_control(reader, i);
	struct kymo_ring_slot slot = {0};

	for (int k = 0; k < KY_RB_LOOKS_MAX; k++) {
		uint64_t claim = ky_rb_get(reader, &control->claim);

		ky_rb_reader_slot(reader, i, claim, &slot);
		if (slot.start == claim)
			break;
	}
	return slot.open.records < records ? slot.open.records : records;
}

static void ring_statistics_add_stats(const struct kymo_ring_reader *reader, uint32_t i,
				      struct kymo_ring_stats *stats)
{
	const struct ky_rb_buffer *buffer = &reader->buffers[i];
	struct ky_rb_view view;
	uint64_t gone = buffer->taken_point.records;

	ky_rb_look(reader, i, &view);
	count_losses(reader, ky_rb_reader_control(reader, i)->lost, stats);
	if (reader->head.flags & KYMO_RING_OVERWRITE) {
		gone = overwritten(reader, i, view.point.records);
		ring_statistics_add(&stats->overwritten, gone);
	}
	ring_statistics_add(&stats->records, view.point.records);
	ring_statistics_add(&stats->bytes, view.position);
	ring_statistics_add(&stats->unread_records,
			    view.point.records > gone ? view.point.records - gone : 0);
}

void kymo_ring_reader_stats(struct kymo_ring_reader *reader, uint32_t buffer,
			    struct kymo_ring_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (uint32_t i = 0; i < reader->n_buffers; i++)
		if (i == buffer || buffer == KYMO_RING_ALL)
			ring_statistics_add_stats(reader, i, stats);
	if (buffer == KYMO_RING_ALL)
		count_losses(reader, reader->file->lost, stats);
}
