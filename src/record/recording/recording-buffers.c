/* SPDX-License-Identifier: MIT */
/* The buffers of a recording, the main ones and those of groups, and what they had no room for. */
#include <string.h>

#include "record/recording/recording-internal.h"

static uint64_t lost_in_group(const struct ky_session_stats *stats, const char *group)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < stats->n_cpus; i++)
		if (stats->cpus[i].group && strcmp(stats->cpus[i].group, group) == 0)
			lost += stats->cpus[i].lost;
	return lost;
}

static void recording_buffers_add_kernel_group(struct ky_recording_stats *stats,
					       const struct ky_session_options *options,
					       struct ky_recording_buffers *main,
					       const struct ky_session_group *group)
{
	uint64_t lost = lost_in_group(stats->kernel, group->name);

	main->lost -= lost < main->lost ? lost : main->lost;
	stats->kernel_buffers[stats->n_kernel_buffers++] =
		(struct ky_recording_buffers){.group = group->name,
					      .bytes = group->buffer_bytes,
					      .lost = lost,
					      .overwrite = group->overwrite || options->overwrite};
}

/* What the tables of CPUs do not give to a group was lost in the main buffers. */
static void recording_buffers_add_kernel(const struct ky_recording *recording,
					 struct ky_recording_stats *stats)
{
	const struct ky_session_options *options = &recording->options.kernel;
	struct ky_recording_buffers *main = &stats->kernel_buffers[stats->n_kernel_buffers++];

	*main = (struct ky_recording_buffers){.bytes = options->buffer_bytes,
					      .lost = stats->kernel->lost,
					      .overwrite = options->overwrite};
	for (size_t i = 0; i < options->n_groups; i++)
		recording_buffers_add_kernel_group(stats, options, main, &options->groups[i]);
}

static uint64_t lost_when_full(const struct ky_user_stats *stats)
{
	uint64_t lost = stats->archived.lost_by[KYMO_RING_LOST_FULL];

	for (size_t i = 0; i < stats->n_programs; i++)
		if (!stats->programs[i].lost_claimed)
			lost += stats->programs[i].lost_by[KYMO_RING_LOST_FULL];
	return lost;
}

static void recording_buffers_add_user_group(const struct ky_recording *recording,
					     struct ky_recording_stats *stats,
					     const struct ky_user_options *options, size_t i)
{
	const struct ky_recording_user_group *group =
		i ? &recording->options.user_groups[i - 1] : NULL;

	stats->user_buffers[stats->n_user_buffers++] = (struct ky_recording_buffers){
		.group = group ? group->name : NULL,
		.bytes = group ? group->buffer_bytes : options->buffer_bytes,
		.lost = lost_when_full(ky_user_stats(recording->programs.users[i])),
		.overwrite = options->overwrite || (group && group->overwrite)};
}

/* The recordings of programs are in the order of the groups, behind the main one. */
static void recording_buffers_add_user(const struct ky_recording *recording,
				       struct ky_recording_stats *stats)
{
	const struct ky_user_options *options = &recording->options.user;

	for (size_t i = 0; i < recording->programs.n; i++)
		recording_buffers_add_user_group(recording, stats, options, i);
}

void ky_recording_count_buffers(const struct ky_recording *recording,
				struct ky_recording_stats *stats)
{
	if (stats->kernel)
		recording_buffers_add_kernel(recording, stats);
	if (stats->user)
		recording_buffers_add_user(recording, stats);
}
