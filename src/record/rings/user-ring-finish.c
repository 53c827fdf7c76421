/* SPDX-License-Identifier: MIT */
/* The end of a ring: what was lost, what is left to read and to tell. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#include "os/now.h"
#include "record/rings/user-dump.h"
#include "record/rings/user-states.h"
#include "record/rings/user-ring-internal.h"

/* ---- losses: programs count them ------------------------------------------------------ */

/* In each nanosecond, each CPU may have come by an event and lost it: more is not to be believed. */
static uint64_t most_losses(const struct ky_user_ring *ring)
{
	uint64_t ns = (uint64_t)ky_os_now_ns();

	if (!ring->since_ns || ns <= ring->since_ns)
		return KY_USER_LOST_MAX;
	ns = (ns - ring->since_ns) * (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	return ns < KY_USER_LOST_MAX ? ns : KY_USER_LOST_MAX;
}

static uint64_t total_lost(const struct ky_user_ring *ring)
{
	uint64_t lost = ring->stats.lost_total;

	if (__builtin_add_overflow(lost, ring->lost_joining, &lost) ||
	    __builtin_add_overflow(lost, ring->lost_no_id, &lost) ||
	    __builtin_add_overflow(lost, ring->lost_unread, &lost))
		return UINT64_MAX;
	return lost;
}

/* ---- finishing ------------------------------------------------------------------------ */

uint64_t ky_user_ring_lost(const struct ky_user_ring *ring)
{
	return ring->lost_claimed ? 0 : total_lost(ring);
}

/* Losses that no packet has yet: those of each buffer, and once those without a buffer. */
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
		ret = ky_user_ring_read_some(ring, true, UINT64_MAX, err);
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
	if (!ring->is_broken && ky_user_ring_read_blob(ring, NULL) < 0)
		ky_user_ring_set_broken(ring, ky_user_ring_nonsense);
	blob = ky_user_ring_blob(ring);
	ring->lost_joining = blob->lost_joining;
	ring->lost_no_id = blob->lost_no_id;
	ring->cut_texts = blob->cut_texts;
	/* Who recovers tells of these apart. */
	ring->lost_unread = ring->is_broken && !ring->read_only ? ring->unread : 0;
	ring->lost_claimed = total_lost(ring) > most_losses(ring) ? total_lost(ring) : 0;
}

void ky_user_ring_close(struct ky_user_ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	ring->reader = NULL;
	if (ring->fd >= 0)
		close(ring->fd);
	ring->fd = -1;
	ky_strbuf_fini(&ring->dump);
	ky_user_dumped_free(ring->dumped);
	ring->dumped = NULL;
	ky_user_states_free(ring->states);
	ring->states = NULL;
}

/* What is left to tell when all is read. */
static int finish_trace(struct ky_user_ring *ring, struct kymo_error *err)
{
	struct kymo_error local;
	int ret = ky_user_ring_tell_losses(ring, &ring->trace, &local);

	if (ret < 0 && err)
		*err = local;
	ret = ky_user_ring_excuse(ring, ret, &local);
	return ret < 0 || ring->blob_bytes == ring->metadata_bytes
		       ? ret
		       : ky_user_ring_describe(ring, &ring->trace, err);
}

/* A flight recorder's trace is made only now. */
static int finish_copy(struct ky_user_ring *ring, struct kymo_error *err)
{
	struct kymo_error local;
	int ret;

	if (ring->is_broken)
		return KYMO_OK;
	ret = ky_user_ring_copy(ring, &ring->trace, &ring->place, &ring->events, &local);
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

int ky_user_ring_finish(struct ky_user_ring *ring, struct kymo_error *err)
{
	struct kymo_error local;
	int ret = KYMO_OK, closed;

	if (!ring->reader)
		return KYMO_OK;
	if (ring->is_flight) {
		ret = finish_copy(ring, err);
		ky_user_ring_take_counts(ring);
	} else {
		ret = ring->is_broken ? KYMO_OK : read_rest(ring, err);
		ky_user_ring_take_counts(ring);
		if (!ret)
			ret = finish_trace(ring, err);
	}
	closed = ky_user_trace_end(&ring->trace, &local);
	if (closed < 0 && !ret && err)
		*err = local;
	closed = ky_user_ring_excuse(ring, closed, &local);
	ky_user_ring_close(ring);
	return ret < 0 ? ret : closed;
}

void ky_user_ring_abandon(struct ky_user_ring *ring)
{
	if (!ring->reader)
		return;
	ky_user_ring_take_counts(ring);
	(void)ky_user_trace_end(&ring->trace, NULL);
	ky_user_ring_close(ring);
}

void ky_user_ring_forget_events(struct ky_user_ring *ring)
{
	uint64_t *head = realloc(ring->blob, sizeof(struct ky_blob));

	if (head)
		ring->blob = head;
	ring->blob_bytes = sizeof(struct ky_blob);
}

int ky_user_ring_set_clock(struct ky_user_ring *ring, const struct ky_clock_record *clock,
			   struct kymo_error *err)
{
	struct kymo_error local;
	int ret;

	if (!ring->trace.path || memcmp(&ring->clock, clock, sizeof(*clock)) == 0)
		return KYMO_OK;
	ring->clock = *clock;
	ret = ky_user_trace_set_clock(&ring->trace, clock, &local);
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}

/* ---- rotation ------------------------------------------------------------------------- */

static int rotate_finished(struct ky_user_ring *ring, const char *archive,
			   const struct ky_clock_record *ended, struct kymo_error *err)
{
	int ret = ky_user_ring_set_clock(ring, ended, err), closed;

	if (!ret)
		ret = ky_user_trace_rotate(&ring->trace, archive, err);
	closed = ky_user_trace_close(&ring->trace, ret < 0 ? NULL : err);
	return ret < 0 ? ret : closed;
}

/* Everything up to now, with the losses until then, in metadata that is complete. */
static int user_ring_finish_complete_trace(struct ky_user_ring *ring,
					   const struct ky_clock_record *ended,
					   struct kymo_error *err)
{
	int ret = ring->is_broken ? KYMO_OK : read_rest(ring, err);

	if (!ret && !ring->is_broken) {
		ky_user_ring_take_counts(ring);
		ret = ky_user_ring_tell_losses(ring, &ring->trace, err);
	}
	ring->clock = *ended;
	return ret < 0 ? ret : ky_user_ring_describe(ring, &ring->trace, err);
}

/* 2 ns */
static uint64_t step_cycles(const struct ky_clock_record *clock)
{
	return clock->kind == KY_CLOCK_RECORD_TSC ? clock->frequency_hz / 500000000 + 1 : 2;
}

static int user_ring_finish_rotate(struct ky_user_ring *ring, const char *archive,
				   const struct ky_clock_record *ended,
				   const struct ky_clock_record *next, struct kymo_error *err)
{
	int ret;

	/* All events of those that have ended by now are in the trace that ends. */
	ky_user_states_forget_ended(ring);
	ret = user_ring_finish_complete_trace(ring, ended, err);
	if (!ret)
		ret = ky_user_trace_rotate(&ring->trace, archive, err);
	if (ret < 0)
		return ret;
	ring->clock = *next;
	ky_user_dump_renew(ring);
	ret = ky_user_ring_describe(ring, &ring->trace, err);
	return ret < 0 ? ret : ky_user_trace_begin_streams(&ring->trace, step_cycles(next), err);
}

int ky_user_ring_rotate(struct ky_user_ring *ring, const char *archive,
			const struct ky_clock_record *ended, const struct ky_clock_record *next,
			struct kymo_error *err)
{
	struct kymo_error local;
	int ret;

	if (!ring->trace.packets || ring->is_flight)
		return KYMO_OK;
	ret = ring->reader ? user_ring_finish_rotate(ring, archive, ended, next, &local)
			   : rotate_finished(ring, archive, ended, &local);
	if (ring->counts)
		atomic_fetch_add_explicit(&ring->counts->archived_dump_events,
					  ring->trace.dump_events - ring->archived_dump_events,
					  memory_order_relaxed);
	ring->archived_dump_events = ring->trace.dump_events;
	if (ret < 0 && err)
		*err = local;
	return ky_user_ring_excuse(ring, ret, &local);
}
