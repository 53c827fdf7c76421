/* SPDX-License-Identifier: MIT */
/* From one sub-buffer to the next; what of it needs memory or the reader. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "ring/ring-writer.h"

/* Where it cannot be noted that a sub-buffer has memory, it is asked for once more. */
#define READY_TRIES 64

static uint64_t lost_total(const struct kymo_ring_control *control)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < KYMO_RING_LOSSES_MAX; i++)
		total += __atomic_load_n(&control->lost[i], __ATOMIC_RELAXED);
	return total;
}

static struct kymo_ring_slot *ring_switch_slot_of(const struct kymo_ring_writer *writer,
						  uint32_t buffer, uint64_t start)
{
	uint64_t number = start / writer->subbuf_bytes & (writer->n_subbufs - 1);

	return writer->slots + (uint64_t)buffer * writer->n_subbufs + number;
}

/*
 * In the first round through a buffer, each sub-buffer gets its memory when a record reaches it. When the
 * file system is full, the writer tries again only now and then: the next records are lost, too.
 */
static bool ring_switch_have_memory(struct kymo_ring_writer *writer, uint32_t buffer,
				    uint64_t start)
{
	struct kymo_ring_control *control = kymo_ring_control_of(writer, buffer);
	uint64_t number = start / writer->subbuf_bytes;
	uint64_t ready = __atomic_load_n(&control->ready, __ATOMIC_RELAXED);

	if (number < ready || number >= writer->n_subbufs)
		return true;
	if (__atomic_load_n(&control->lost[KYMO_RING_LOST_NO_MEMORY], __ATOMIC_RELAXED) % 1024)
		return false;
	if (ky_rb_populate(ring_switch_slot_of(writer, buffer, start),
			   sizeof(struct kymo_ring_slot)) < 0 ||
	    ky_rb_populate(kymo_ring_address(writer, buffer, start), writer->subbuf_bytes) < 0)
		return false;
	for (int tries = 0; tries < READY_TRIES && ready <= number; tries++) {
		if (__atomic_compare_exchange_n(&control->ready, &ready, number + 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
	}
	return true;
}

/* Whether the sub-buffer at @start may be used: the reader is done with what was there. */
static bool ring_switch_is_free(const struct kymo_ring_writer *writer, uint32_t buffer,
				uint64_t start)
{
	const struct kymo_ring_control *control = kymo_ring_control_of(writer, buffer);

	if (writer->flags & KYMO_RING_OVERWRITE)
		return true;
	/* Partner: the release in kymo_ring_reader_release(): its reads come before our stores. */
	return start + writer->subbuf_bytes -
		       __atomic_load_n(&control->consumed, __ATOMIC_ACQUIRE) <=
	       writer->buffer_bytes;
}

static void ring_switch_move(struct ky_rb_switch *plan, void *to, const void *from, uint64_t bytes)
{
	struct kymo_ring_move *next = plan->moves + (plan->commit.moves_end - plan->commit.moves);

	next->to = to;
	next->from = from;
	next->bytes = bytes;
	plan->commit.moves_end++;
}

/* The end of the sub-buffer at @start: complete its slot and its header. */
static void plan_close(const struct kymo_ring_config *config, struct kymo_ring_writer *writer,
		       const struct kymo_ring_spot *spot, uint64_t start, struct ky_rb_switch *plan)
{
	struct kymo_ring_slot *slot = ring_switch_slot_of(writer, spot->buffer, start);
	uint8_t *header = kymo_ring_address(writer, spot->buffer, start);
	struct kymo_ring_packet packet = {
		.sequence = start / writer->subbuf_bytes,
		.begin_stamp = slot->open.stamp,
		.end_stamp = spot->now,
		.content_bytes = (kymo_ring_position(spot->head)) - start,
		.subbuf_bytes = writer->subbuf_bytes,
		.lost = lost_total(kymo_ring_control_of(writer, spot->buffer)),
		.first_record = slot->open.records,
		.records = spot->records - slot->open.records,
		.buffer = (uint32_t)spot->buffer,
	};

	plan->old_slot = *slot;
	plan->old_slot.content_bytes = packet.content_bytes;
	plan->old_slot.close.stamp = spot->now;
	plan->old_slot.close.records = spot->records;
	plan->old_slot.close_lost = packet.lost;
	ring_switch_move(plan, slot, &plan->old_slot, sizeof(*slot));
	ky_rb_copy_racing(plan->old_header, header, config->subbuf_header_bytes);
	config->subbuf_close(writer->client, &packet, plan->old_header);
	ring_switch_move(plan, header, plan->old_header, config->subbuf_header_bytes);
}

static void plan_open(const struct kymo_ring_config *config, struct kymo_ring_writer *writer,
		      const struct kymo_ring_spot *spot, uint64_t start, struct ky_rb_switch *plan)
{
	struct kymo_ring_packet packet = {
		.sequence = start / writer->subbuf_bytes,
		.begin_stamp = spot->now,
		.end_stamp = spot->now,
		.content_bytes = config->subbuf_header_bytes,
		.subbuf_bytes = writer->subbuf_bytes,
		.lost = lost_total(kymo_ring_control_of(writer, spot->buffer)),
		.first_record = spot->records,
		.buffer = (uint32_t)spot->buffer,
	};

	plan->new_slot = (struct kymo_ring_slot){
		.start = start,
		.open = {spot->now, spot->records},
		.open_lost = packet.lost,
	};
	memset(plan->new_header, 0, config->subbuf_header_bytes);
	config->subbuf_open(writer->client, &packet, plan->new_header);
	ring_switch_move(plan, ring_switch_slot_of(writer, spot->buffer, start), &plan->new_slot,
			 sizeof(plan->new_slot));
	ring_switch_move(plan, kymo_ring_address(writer, spot->buffer, start), plan->new_header,
			 config->subbuf_header_bytes);
}

int ky_rb_plan_switch(const struct kymo_ring_config *config, struct kymo_ring_writer *writer,
		      const struct kymo_ring_spot *spot, struct ky_rb_switch *plan)
{
	struct kymo_ring_control *control = kymo_ring_control_of(writer, spot->buffer);
	uint64_t position = kymo_ring_position(spot->head);
	/* The sub-buffer that is full ends where the new one starts; at 0 none exists. */
	uint64_t start = (position + writer->subbuf_mask) & ~writer->subbuf_mask;

	if (!ring_switch_is_free(writer, spot->buffer, start))
		return 1 + KYMO_RING_LOST_FULL;
	if (!ring_switch_have_memory(writer, spot->buffer, start))
		return 1 + KYMO_RING_LOST_NO_MEMORY;
	plan->commit.moves = plan->commit.moves_end = plan->moves;
	if (position)
		plan_close(config, writer, spot, start - writer->subbuf_bytes, plan);
	plan_open(config, writer, spot, start, plan);
	plan->commit.head = &control->head;
	plan->commit.expected = spot->head;
	plan->commit.next =
		kymo_ring_next_head(spot->head, start - position + config->subbuf_header_bytes);
	plan->commit.point = kymo_ring_point_of(control, ~spot->head);
	plan->commit.point_value.stamp = spot->now;
	plan->commit.point_value.records = spot->records;
	plan->commit.claim = &control->claim;
	plan->commit.claim_value = 0;
	if (start + writer->subbuf_bytes > writer->buffer_bytes)
		plan->commit.claim_value = start + writer->subbuf_bytes - writer->buffer_bytes;
	plan->commit.cpu = (uint32_t)spot->buffer;
	return 0;
}

void kymo_ring_wake(struct kymo_ring_writer *writer, uint32_t events)
{
	struct kymo_ring_file *file = writer->file;
	uint32_t waiting;

	/* Partner: the fence in kymo_ring_reader_arm(). Either we see its request, or it sees our
	 * head. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	waiting = __atomic_load_n(&file->waiting, __ATOMIC_RELAXED);
	if (!(waiting & events & KYMO_RING_WAKES))
		return;
	__atomic_fetch_add(&file->wakes, 1, __ATOMIC_RELEASE);
	ky_rb_syscall(SYS_futex, (long)&file->wakes, FUTEX_WAKE, INT_MAX, 0, 0, 0);
	/*
	 * Last: the request of a writer that is killed before stays for the next one. A newer request has another
	 * number, and stays, too.
	 */
	__atomic_compare_exchange_n(&file->waiting, &waiting, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}
