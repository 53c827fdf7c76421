/* SPDX-License-Identifier: MIT */
/* The options that select events, for every command that reads them. */
#ifndef KY_CLI_READING_SELECT_OPTIONS_H
#define KY_CLI_READING_SELECT_OPTIONS_H

#include "cli/terminal/command.h"
#include "flow/graph/select.h"

struct ky_thread_pool;
struct ky_text_options;

struct ky_select_options {
	const char *filter;
	struct ky_text_list events, streams;
	const char *begin, *end, *timerange;
	bool intersection;
	uint64_t head, tail; /* UINT64_MAX: not given */
};

/* Rows for a table over struct @type, whose struct ky_select_options is member @select. */
/* clang-format off */
#define KY_SELECT_OPTION_DEFS(type, select)                                                      \
	{.name = "filter",                                                                       \
	 .letter = 'f',                                                                          \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "EXPR",                                                                          \
	 .help = "Only events that match, such as 'prev_tid == 42 && prev_comm =~ \"ngin*\"'; "  \
		 "docs/filter.md explains the language.",                                        \
	 .at = offsetof(type, select.filter)},                                                   \
	{.name = "event",                                                                        \
	 .letter = 'e',                                                                          \
	 .kind = KY_OPTION_LIST,                                                                 \
	 .arg = "GLOB",                                                                          \
	 .help = "Only events with a matching name, such as 'sched_*'; may be given again. '!' " \
		 "excludes events: '!lttng_*'.",                           \
	 .at = offsetof(type, select.events)},                                                   \
	{.name = "stream",                                                                       \
	 .kind = KY_OPTION_LIST,                                                                 \
	 .arg = "GLOB",                                                                          \
	 .help = "Only data streams with a matching file name, such as '*_0'; may be given again.",                                                              \
	 .at = offsetof(type, select.streams)},                                                  \
	{.name = "begin",                                                                        \
	 .letter = 'b',                                                                          \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "TIME",                                                                          \
	 .help = "Only events at or after TIME: hh:mm:ss.nnnnnnnnn (with yyyy-mm-dd and a "      \
		 "blank before it, or on the day of the first event), seconds since the "       \
		 "clock's origin, +2s after the first event, -500ms before the last one, or "    \
		 "50%.",                                                                         \
	 .at = offsetof(type, select.begin)},                                                    \
	{.name = "end",                                                                          \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "TIME",                                                                          \
	 .help = "Only events at or before TIME.",                                               \
	 .at = offsetof(type, select.end)},                                                      \
	{.name = "timerange",                                                                    \
	 .kind = KY_OPTION_TEXT,                                                                 \
	 .arg = "BEGIN,END",                                                                     \
	 .help = "Both --begin and --end; square brackets are allowed.",                                        \
	 .at = offsetof(type, select.timerange)},                                                \
	{.name = "stream-intersection",                                                          \
	 .kind = KY_OPTION_FLAG,                                                                 \
	 .help = "Only the time in which all data streams have events.",                         \
	 .at = offsetof(type, select.intersection)},                                             \
	{.name = "head",                                                                         \
	 .letter = 'n',                                                                          \
	 .kind = KY_OPTION_U64,                                                                  \
	 .arg = "N",                                                                             \
	 .help = "Only the first N of the selected events.",                                   \
	 .at = offsetof(type, select.head)},                                                     \
	{.name = "tail",                                                                         \
	 .kind = KY_OPTION_U64,                                                                  \
	 .arg = "N",                                                                             \
	 .help = "Only the last N of the selected events; kymo reads the trace twice.",             \
	 .at = offsetof(type, select.tail)}
/* clang-format on */

/* What a command's defaults() does for them. */
void ky_cli_select_defaults(struct ky_select_options *options);
/* Does any option select? When not, the whole trace is asked for. */
bool ky_cli_selects(const struct ky_select_options *options);
/* Can each stream be read on its own? Not where events are counted over all of them. */
bool ky_cli_streams_apart(const struct ky_select_options *options);

/*
 * What the options ask for; otherwise as ky_cli_select_open(), which opens the graph for it.
 * What opening says of a filter is to go through ky_cli_in_filter().
 */
int ky_cli_select_resolve(const struct ky_trace_set *set, const struct ky_select_options *options,
			  bool gmt, struct ky_thread_pool *pool, struct ky_selection *selection,
			  struct kymo_error *err);
/* Say that it is --filter that is wrong, where it is. Returns @ret. */
int ky_cli_in_filter(int ret, struct kymo_error *err);

/*
 * Open the graph that the options ask for. @gmt: dates and times are UTC. @pool (may be NULL) helps to count
 * what --tail leaves out. The options and @set are borrowed until the graph is closed.
 * Returns 0, KYMO_E_INVALID for options that make no sense (a usage error), or what
 * ky_flow_open_selected() gives.
 */
int ky_cli_select_open(const struct ky_trace_set *set, const struct ky_select_options *options,
		       bool gmt, struct ky_thread_pool *pool, struct ky_flow **flow,
		       struct kymo_error *err);

/*
 * The range that --begin, --end and --timerange name, both ends inclusive; INT64_MIN and INT64_MAX
 * where they name none. Errors as above.
 */
int ky_cli_select_times(const struct ky_trace_set *set, const struct ky_select_options *options,
			bool gmt, int64_t *begin_ns, int64_t *end_ns, struct kymo_error *err);

/*
 * Count the events that the options ask for. On damage *n_events holds those that can be
 * read, and the error is returned.
 */
int ky_cli_select_count(const struct ky_trace_set *set, const struct ky_select_options *options,
			bool gmt, struct ky_thread_pool *pool, uint64_t *n_events,
			struct kymo_error *err);

/*
 * Read everything that the options ask for, in no order (no --head, no --tail), and count it.
 * Losses go to the standard error, with times in the format of @times. Otherwise as above.
 */
int ky_cli_select_pass(const struct ky_trace_set *set, const struct ky_select_options *options,
		       const struct ky_text_options *times, struct ky_thread_pool *pool,
		       uint64_t *n_events, struct kymo_error *err);

#endif
