/* SPDX-License-Identifier: MIT */
/*
 * The recordings of programs: one with the main buffers, and one for each group of events, with buffers of
 * its own. The main one leaves the events of groups out. A program takes part in each of them that wants its
 * events.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/recording/recording-internal.h"
#include "record/request/user-event.h"

/* ---- opening --------------------------------------------------------------------------- */

/* The patterns of all groups, in their order. */
static int collect_patterns(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_recording_options *options = &recording->options;

	for (size_t i = 0; i < options->n_user_groups; i++)
		for (size_t k = 0; k < options->user_groups[i].n_patterns; k++)
			if (ky_vec_push(&recording->programs.patterns,
					options->user_groups[i].patterns[k]) < 0)
				return ky_error_nomem(err);
	return KYMO_OK;
}

static int recording_programs_open_one(struct ky_recording *recording,
				       const struct ky_user_options *options,
				       struct kymo_error *err)
{
	struct ky_recording_programs *programs = &recording->programs;
	int ret = ky_user_open(options, &programs->users[programs->n], err);

	programs->n += ret == 0;
	return ret;
}

/* An event that several groups want is in the first of them: @n_reserved patterns are of those before. */
static int open_group(struct ky_recording *recording, const struct ky_recording_user_group *group,
		      size_t n_reserved, struct kymo_error *err)
{
	struct ky_user_options options = recording->options.user;

	options.group = group->name;
	options.patterns = group->patterns;
	options.n_patterns = group->n_patterns;
	options.filter = group->filter;
	options.level_min = 0;
	options.level_max = 14;
	options.buffer_bytes = group->buffer_bytes;
	options.is_late = group->overwrite && !options.overwrite;
	options.overwrite = group->overwrite || options.overwrite;
	options.n_reserved = n_reserved;
	/* A store has one descriptor that tells of readers; it is the main recording's. */
	options.polls_readers = options.store != NULL;
	return recording_programs_open_one(recording, &options, err);
}

int ky_recording_open_programs(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_recording_options *all = &recording->options;
	struct ky_user_options *options = &recording->options.user;
	size_t n_reserved = 0;
	int ret = collect_patterns(recording, err);

	if (all->n_user_groups > KY_RECORDING_USER_GROUPS_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "more than %d groups of programs' events",
				    KY_RECORDING_USER_GROUPS_MAX);
	options->reserved = recording->programs.patterns.data;
	options->n_reserved = recording->programs.patterns.len;
	options->n_sharing = 1 + (unsigned int)all->n_user_groups;
	if (!ret)
		ret = recording_programs_open_one(recording, options, err);
	for (size_t i = 0; i < all->n_user_groups && !ret; i++) {
		ret = open_group(recording, &all->user_groups[i], n_reserved, err);
		n_reserved += all->user_groups[i].n_patterns;
	}
	return ret;
}

int ky_recording_start_programs(struct ky_recording *recording, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < recording->programs.n && !ret; i++)
		ret = ky_user_start(recording->programs.users[i], err);
	return ret;
}

size_t ky_recording_program_threads(const struct ky_recording *recording,
				    int32_t tids[KY_RECORDING_USER_THREADS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < recording->programs.n; i++)
		n += ky_user_threads(recording->programs.users[i], tids + n);
	return n;
}

/* ---- changes --------------------------------------------------------------------------- */

int ky_recording_change_programs(struct ky_recording *recording,
				 const struct ky_user_change *change, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < recording->programs.n && !ret; i++)
		ret = ky_user_change(recording->programs.users[i], change, err);
	return ret;
}

/* Whether all events of pattern @part match @whole. False: not, or it is unknown. */
static bool recording_programs_covers(const char *whole, const char *part)
{
	return !strchr(whole, '\\') && ky_user_glob(whole, part);
}

/* Events of a group stay in it. Without a filter of its own, the change keeps the group's. */
static int enable_in_group(struct ky_recording *recording, size_t number,
			   const struct ky_user_change *change, bool *is_part,
			   struct kymo_error *err)
{
	const struct ky_recording_user_group *group = &recording->options.user_groups[number];
	struct ky_user_change of_group = *change;
	int ret = KYMO_OK;

	of_group.filter = change->filter ? change->filter : group->filter;
	for (size_t i = 0; i < group->n_patterns && !ret; i++) {
		bool is_within = recording_programs_covers(group->patterns[i], change->pattern);

		if (!is_within && !recording_programs_covers(change->pattern, group->patterns[i]))
			continue;
		*is_part = *is_part || is_within;
		of_group.pattern = is_within ? change->pattern : group->patterns[i];
		ret = ky_user_change(recording->programs.users[1 + number], &of_group, err);
	}
	return ret;
}

int ky_recording_change_rules(struct ky_recording *recording, const struct ky_user_change *change,
			      struct kymo_error *err)
{
	bool is_part = false;
	int ret = KYMO_OK;

	if (!change->enables)
		return ky_recording_change_programs(recording, change, err);
	for (size_t i = 0; i < recording->options.n_user_groups && !ret; i++)
		ret = enable_in_group(recording, i, change, &is_part, err);
	return ret < 0 || is_part ? ret : ky_user_change(recording->programs.users[0], change, err);
}

/* ---- progress -------------------------------------------------------------------------- */

void ky_recording_program_progress(const struct ky_recording *recording,
				   struct ky_user_progress *progress)
{
	struct ky_user_progress one;

	*progress = (struct ky_user_progress){0};
	for (size_t i = 0; i < recording->programs.n; i++) {
		ky_user_progress(recording->programs.users[i], &one);
		/* Most programs take part in all of them. */
		if (one.n_programs > progress->n_programs)
			progress->n_programs = one.n_programs;
		progress->events += one.events;
		progress->bytes += one.bytes;
		progress->lost += one.lost;
		progress->archived_dump_events += one.archived_dump_events;
	}
}

int ky_recording_list_programs(struct ky_recording *recording,
			       struct ky_user_program_progress *list, size_t max, size_t *n,
			       size_t *n_all, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*n = *n_all = 0;
	for (size_t i = 0; i < recording->programs.n && !ret; i++) {
		size_t here = 0, all_here = 0;

		ret = ky_user_list(recording->programs.users[i], list + *n, max - *n, &here,
				   &all_here, err);
		*n += here;
		*n_all += all_here;
	}
	return ret;
}

/* ---- snapshots, rotation, clearing ----------------------------------------------------- */

/* Whether number @i overwrites its oldest events. */
static bool is_flight(const struct ky_recording *recording, size_t i)
{
	return recording->options.user.overwrite ||
	       (i && recording->options.user_groups[i - 1].overwrite);
}

int ky_recording_snapshot_programs(struct ky_recording *recording, const char *output,
				   struct ky_user_snapshot *made, struct kymo_error *err)
{
	struct ky_user_snapshot one;
	int ret = KYMO_OK;

	*made = (struct ky_user_snapshot){0};
	for (size_t i = 0; i < recording->programs.n && !ret; i++) {
		if (!is_flight(recording, i))
			continue;
		ret = ky_user_snapshot(recording->programs.users[i], output,
				       ky_recording_clock(recording), &one, err);
		made->n_programs += one.n_programs;
		made->events += one.events;
		made->bytes += one.bytes;
	}
	return ret;
}

int ky_recording_rotate_programs(struct ky_recording *recording, const char *archive,
				 const struct ky_os_clock *ended, const struct ky_user_pause *pause,
				 struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < recording->programs.n && !ret; i++)
		ret = ky_user_rotate(recording->programs.users[i], archive, ended,
				     ky_recording_clock(recording), pause, err);
	return ret;
}

int ky_recording_clear_programs(struct ky_recording *recording, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < recording->programs.n && !ret; i++)
		if (is_flight(recording, i))
			ret = ky_user_clear(recording->programs.users[i], err);
	return ret;
}

/* ---- the end --------------------------------------------------------------------------- */

int ky_recording_stop_programs(struct ky_recording *recording, struct kymo_error *err)
{
	struct kymo_error next;
	int ret = KYMO_OK;

	for (size_t i = 0; i < recording->programs.n; i++)
		ret = ky_recording_keep_error(
			ret, ky_user_stop(recording->programs.users[i], &next), err, &next);
	return ret;
}

static void add_archived(struct ky_user_program_stats *to, const struct ky_user_program_stats *from)
{
	to->events += from->events;
	to->bytes += from->bytes;
	to->lost += from->lost;
	to->cut_texts += from->cut_texts;
	to->lost_joining += from->lost_joining;
	to->lost_no_id += from->lost_no_id;
	to->lost_unread += from->lost_unread;
	for (unsigned int i = 0; i < KYMO_RING_LOSSES_MAX; i++)
		to->lost_by[i] += from->lost_by[i];
}

static void recording_programs_add_stats(struct ky_user_stats *to, const struct ky_user_stats *from)
{
	to->n_archived += from->n_archived;
	add_archived(&to->archived, &from->archived);
	to->events += from->events;
	to->bytes += from->bytes;
	to->lost += from->lost;
	to->cut_texts += from->cut_texts;
	to->dump_events += from->dump_events;
	to->dump_missing += from->dump_missing;
	to->n_left_out += from->n_left_out;
	to->n_lacking += from->n_lacking;
	to->n_refused += from->n_refused;
	to->n_dropped += from->n_dropped;
	to->overwritten += from->overwritten;
}

/* The counts of all of them together. */
static int sum_stats(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_recording_programs *programs = &recording->programs;

	for (size_t i = 0; i < programs->n; i++) {
		const struct ky_user_stats *stats = ky_user_stats(programs->users[i]);

		recording_programs_add_stats(&programs->stats, stats);
		for (size_t k = 0; k < stats->n_programs; k++)
			if (ky_vec_push(&programs->list, stats->programs[k]) < 0)
				return ky_error_nomem(err);
	}
	programs->stats.programs = programs->list.data;
	programs->stats.n_programs = programs->list.len;
	return KYMO_OK;
}

int ky_recording_finish_programs(struct ky_recording *recording, const struct ky_os_clock *clock,
				 struct kymo_error *err)
{
	struct kymo_error next;
	int ret = KYMO_OK;

	for (size_t i = 0; i < recording->programs.n; i++)
		ret = ky_recording_keep_error(
			ret, ky_user_finish(recording->programs.users[i], clock, &next), err,
			&next);
	return ky_recording_keep_error(ret, sum_stats(recording, &next), err, &next);
}

void ky_recording_close_programs(struct ky_recording *recording)
{
	struct ky_recording_programs *programs = &recording->programs;

	for (size_t i = programs->n; i-- > 0;)
		ky_user_close(programs->users[i]);
	programs->n = 0;
	ky_vec_fini(&programs->patterns);
	ky_vec_fini(&programs->list);
}
