/* SPDX-License-Identifier: MIT */
/* The counts of a recording of programs: while it runs, and at its end. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/user/user-internal.h"

static void user_stats_add(uint64_t *to, uint64_t count)
{
	if (__builtin_add_overflow(*to, count, to))
		*to = UINT64_MAX;
}

/* What a flight recorder has put into chunks is overwritten later, and in a trace all the same. */
static uint64_t overwritten_of(const struct ky_user_ring *ring)
{
	uint64_t kept = ring->events + ring->taken_events;

	if (!ring->is_flight || !ring->taken_events)
		return ring->is_flight ? ring->stats.overwritten : 0;
	return ring->stats.records > kept ? ring->stats.records - kept : 0;
}

/* The counts of one program's ring. */
static struct ky_user_program_stats stats_of(const struct ky_user_ring *ring)
{
	struct ky_user_program_stats of = {
		.pid = ky_user_ring_blob(ring)->pid,
		.events = ring->events + ring->taken_events,
		.bytes = ring->trace.bytes + ring->taken_bytes,
		.lost = ky_user_ring_lost(ring),
		.lost_joining = ring->lost_joining,
		.lost_no_id = ring->lost_no_id,
		.cut_texts = ring->cut_texts,
		.lost_unread = ring->lost_unread,
		.lost_claimed = ring->lost_claimed,
		.overwritten = overwritten_of(ring),
		.path = ring->trace.path,
		.group = ring->place.group,
	};

	memcpy(of.procname, ky_user_ring_blob(ring)->procname, sizeof(of.procname));
	of.procname[sizeof(of.procname) - 1] = 0;
	memcpy(of.lost_by, ring->stats.lost, sizeof(of.lost_by));
	return of;
}

/* The totals of all programs. */
static void user_stats_add_totals(struct ky_user_stats *stats, const struct ky_user_ring *ring,
				  const struct ky_user_program_stats *of)
{
	stats->overwritten += of->overwritten;
	stats->events += of->events;
	stats->bytes += of->bytes;
	user_stats_add(&stats->lost, of->lost);
	user_stats_add(&stats->cut_texts, of->cut_texts);
	stats->dump_events += ring->trace.dump_events;
	stats->dump_missing += ring->dump_missing;
}

void ky_user_count_archived(struct ky_user *user, const struct ky_user_ring *ring)
{
	struct ky_user_program_stats of = stats_of(ring), *to = &user->stats.archived;

	user_stats_add_totals(&user->stats, ring, &of);
	user->stats.n_archived++;
	to->events += of.events;
	to->bytes += of.bytes;
	user_stats_add(&to->lost, of.lost);
	user_stats_add(&to->cut_texts, of.cut_texts);
	if (of.lost_claimed)
		return;
	for (unsigned int i = 0; i < KYMO_RING_LOSSES_MAX; i++)
		user_stats_add(&to->lost_by[i], of.lost_by[i]);
	user_stats_add(&to->lost_joining, of.lost_joining);
	user_stats_add(&to->lost_no_id, of.lost_no_id);
	user_stats_add(&to->lost_unread, of.lost_unread);
}

static void user_count_ring(struct ky_user *user, struct ky_user_stats *stats,
			    struct ky_user_ring_file *file)
{
	struct ky_user_program_stats *to;

	/* A task that does not end has it. */
	if (file->is_away)
		return;
	to = &user->program_stats[stats->n_programs++];
	*to = stats_of(file->ring);
	user_stats_add_totals(stats, file->ring, to);
}

int ky_user_count_rings(struct ky_user *user, struct kymo_error *err)
{
	struct ky_user_stats *stats = &user->stats;

	user->program_stats = calloc(user->rings.len + 1, sizeof(*user->program_stats));
	if (!user->program_stats)
		return ky_error_nomem(err);
	stats->programs = user->program_stats;
	ky_vec_foreach(&user->rings, it)
		user_count_ring(user, stats, *it);
	return KYMO_OK;
}

void ky_user_progress(const struct ky_user *user, struct ky_user_progress *progress)
{
	const struct ky_user_counts *counts = &user->counts;

	*progress = (struct ky_user_progress){
		.n_programs = atomic_load_explicit(&counts->programs, memory_order_relaxed),
		.events = atomic_load_explicit(&counts->events, memory_order_relaxed),
		.bytes = atomic_load_explicit(&counts->bytes, memory_order_relaxed),
		.lost = atomic_load_explicit(&counts->lost, memory_order_relaxed),
		.archived_dump_events =
			atomic_load_explicit(&counts->archived_dump_events, memory_order_relaxed),
	};
}

static void progress_of(const struct ky_user_ring *ring, struct ky_user_program_progress *to)
{
	struct kymo_ring_stats stats = ring->stats;

	if (ring->reader)
		kymo_ring_reader_stats(ring->reader, KYMO_RING_ALL, &stats);
	*to = (struct ky_user_program_progress){
		.pid = ky_user_ring_blob(ring)->pid,
		.events = ring->reader ? stats.records : ring->events,
		.lost = ring->reader ? stats.lost_total : ky_user_ring_lost(ring),
		.unread = ring->reader ? stats.unread_records : 0,
		.bytes = ring->trace.bytes,
		.group = ring->place.group,
		.has_ended = !ring->reader,
	};
	memcpy(to->procname, ky_user_ring_blob(ring)->procname, sizeof(to->procname));
	to->procname[sizeof(to->procname) - 1] = 0;
}

void ky_user_fill_list(const struct ky_user *user, struct ky_user_order *order)
{
	for (size_t i = 0; i < user->rings.len; i++) {
		const struct ky_user_ring_file *file = user->rings.data[i];

		if (file->is_away || !file->ring)
			continue;
		order->n_all++;
		if (order->n < order->max)
			progress_of(file->ring, &order->list[order->n++]);
	}
}

int ky_user_list(struct ky_user *user, struct ky_user_program_progress *list, size_t max, size_t *n,
		 size_t *n_all, struct kymo_error *err)
{
	struct ky_user_order order = {.list = list, .max = max};
	int ret = user->is_running ? ky_user_give_order(user, &order, NULL, err)
				   : ky_error_set(err, KYMO_E_STATE, "the recording is over");

	*n = order.n;
	*n_all = order.n_all;
	return ret;
}

const struct ky_user_stats *ky_user_stats(const struct ky_user *user)
{
	return &user->stats;
}
