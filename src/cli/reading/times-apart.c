/* SPDX-License-Identifier: MIT */
#include "cli/reading/times-apart.h"

#include <stdint.h>

#include "base/log.h"
#include "cli/terminal/command.h"
#include "store/read/walk.h"

#define NS_PER_YEAR (366 * 24 * INT64_C(3600000000000))
/* No machine runs for so long, and times that are earlier than 2000 are not wall times. */
#define LONGEST_UPTIME_NS (20 * NS_PER_YEAR)
#define NEAR_ZERO_NS	  INT64_C(1000000000)
#define EARLIEST_WALL_NS  (30 * NS_PER_YEAR)

enum times_kind { TIMES_UNKNOWN, TIMES_SINCE_START, TIMES_WALL };

/* The first packet decides: one early line of a log does not make its times those of an uptime. */
static enum times_kind times_apart_kind(const struct ky_stream *stream)
{
	enum times_kind kind = TIMES_UNKNOWN;
	struct ky_walk walk;

	if (!stream->cls || !stream->cls->clock || !stream->cls->clock->is_unix_epoch ||
	    ky_walk_init(&walk, stream, NULL) < 0)
		return kind;
	if (ky_walk_next(&walk, NULL) > 0 && walk.packet->has_begin && walk.packet->has_end) {
		/* Times that stay near 0 are those of files without times. */
		if (walk.packet->begin_ns >= 0 && walk.packet->end_ns > NEAR_ZERO_NS &&
		    walk.packet->end_ns < LONGEST_UPTIME_NS)
			kind = TIMES_SINCE_START;
		else if (walk.packet->begin_ns > EARLIEST_WALL_NS)
			kind = TIMES_WALL;
	}
	ky_walk_fini(&walk);
	return kind;
}

void ky_cli_warn_of_times_apart(const struct ky_trace_set *set)
{
	const struct ky_trace *started = NULL, *wall = NULL;

	if (set->traces.len < 2)
		return;
	ky_vec_foreach(&set->traces, trace) {
		enum times_kind kind = TIMES_UNKNOWN;

		for (size_t i = 0; i < (*trace)->streams.len && !kind; i++)
			kind = times_apart_kind((*trace)->streams.data[i]);
		if (kind == TIMES_SINCE_START && !started)
			started = *trace;
		if (kind == TIMES_WALL && !wall)
			wall = *trace;
	}
	if (started && wall)
		ky_log_warning(
			&ky_cli_log,
			"the times of %s count from the start of a machine or program, and %s has wall times, so all events of the first "
			"stand before those of the second; try 'dmesg --time-format iso' for the kernel's log, --clock-offset TRACE:NS with the "
			"wall time of that start, or --clock-offset TRACE:mark with a mark (kymo mark --help)",
			started->path, wall->path);
}
