/* SPDX-License-Identifier: MIT */
/* kymo timeline: what CPUs and threads did at every time, as a picture, from the state history. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/view/timeline.h"
#include "cli/reading/damage.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/reading/select-options.h"
#include "os/thread-pool.h"

#define LABEL_COLUMNS 30
#define WIDTH_MIN     20
#define WIDTH_MAX     100000
#define THREADS_SHOWN 20

struct timeline_options {
	bool json;
	uint64_t width, limit, jobs;
	struct ky_text_list rows;
	struct ky_select_options select; /* times only */
	struct ky_input_options input;
};

static void timeline_defaults(void *data)
{
	struct timeline_options *options = data;

	options->limit = THREADS_SHOWN;
	ky_cli_select_defaults(&options->select);
}

static const struct ky_option_def timeline_option_defs[] = {
	{.name = "json",
	 .letter = 'j',
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one JSON object with all rows: runs of pixels of the same state, and numbers "
		 "of events for streams; times in nanoseconds.",
	 .at = offsetof(struct timeline_options, json)},
	{.name = "rows",
	 .kind = KY_OPTION_LIST,
	 .arg = "GLOB",
	 .help = "Show only rows of which the kind (cpu, irq, queue, process, thread, disk, requests, "
		 "stream, spans, counter), the name or the number matches, such as 'cpu' or 'postg*'; may be "
		 "given again. '!' excludes rows. Default: CPUs, disks, the busiest threads and "
		 "their spans; streams if there are no CPUs.",
	 .at = offsetof(struct timeline_options, rows)},
	{.name = "width",
	 .letter = 'w',
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "Divide the range into N pixels. Default: as many as the terminal is wide; 50 without "
		 "a terminal, 1000 with --json.",
	 .at = offsetof(struct timeline_options, width)},
	{.name = "limit",
	 .letter = 'n',
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "Without --rows, show the N threads that run most in the range; 0 shows all. "
		 "Default: 20.",
	 .at = offsetof(struct timeline_options, limit)},
	{.name = "begin",
	 .letter = 'b',
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "Begin at TIME: hh:mm:ss.nnnnnnnnn (with yyyy-mm-dd and a blank before it, or on "
		 "the day of the first event), seconds since the clock's origin, +2s after the "
		 "first event, -500ms before the last one, or 50%.",
	 .at = offsetof(struct timeline_options, select.begin)},
	{.name = "end",
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "End at TIME.",
	 .at = offsetof(struct timeline_options, select.end)},
	{.name = "timerange",
	 .kind = KY_OPTION_TEXT,
	 .arg = "BEGIN,END",
	 .help = "Both --begin and --end; square brackets are allowed.",
	 .at = offsetof(struct timeline_options, select.timerange)},
	KY_JOBS_OPTION_DEF(struct timeline_options, jobs),
	KY_INPUT_OPTION_DEFS(struct timeline_options, input),
	KY_CORRELATE_OPTION_DEF(struct timeline_options, input),
	{0},
};

/* ---- the index ----------------------------------------------------------------------------------- */

static int cmd_timeline_open_events(void *data, const struct ky_trace_set *set,
				    struct ky_flow **flow, struct kymo_error *err)
{
	struct ky_thread_pool *pool = data;
	struct ky_selection selection;
	int status;

	ky_selection_init(&selection);
	selection.pool = ky_thread_pool_jobs(pool) > 1 ? pool : NULL;
	selection.whole_ahead = true;
	status = ky_flow_open_selected(set, &selection, flow, err);
	return status < 0 ? status : ky_cli_damage_stage(*flow, flow, err);
}

static int show_events(void *data, uint64_t n_events)
{
	(void)data;
	if (n_events)
		ky_cli_progress("building the state history: events", n_events, 0);
	return 0;
}

/* ---- the rows ------------------------------------------------------------------------------------- */

static bool cmd_timeline_matches(const struct timeline_options *options,
				 const struct ky_history_row *row)
{
	const char *kind = ky_row_kind_text(row->kind);
	bool chosen = options->rows.items[0][0] == '!';
	char label[300], number[24];

	timeline_label(row, label, sizeof(label));
	snprintf(number, sizeof(number), "%lld", (long long)row->number);
	for (size_t i = 0; i < options->rows.len; i++) {
		const char *glob = options->rows.items[i];
		bool excludes = *glob == '!';

		glob += excludes;
		if (ky_glob_match(glob, kind) || ky_glob_match(glob, row->name) ||
		    ky_glob_match(glob, label) ||
		    (row->kind == KY_ROW_THREAD && ky_glob_match(glob, number)))
			chosen = !excludes;
	}
	return chosen;
}

/* Add the rows below @parent. A row's kind is greater than its parent's: the depth is limited. */
static void add_below(struct timeline *timeline, const uint32_t *sorted, size_t n, uint32_t parent,
		      unsigned int depth)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ky_history_row(timeline->history, sorted[middle])->parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n; low++) {
		const struct ky_history_row *row = ky_history_row(timeline->history, sorted[low]);

		if (row->parent != parent)
			return;
		timeline->rows[timeline->n_rows++] =
			(struct timeline_row){.row = row, .depth = depth};
		add_below(timeline, sorted, n, row->id, depth + 1);
	}
}

static int cmd_timeline_list_rows(struct timeline *timeline, struct kymo_error *err)
{
	size_t n = ky_history_n_rows(timeline->history);
	uint32_t *sorted = calloc(n + 1, sizeof(*sorted));

	timeline->rows = calloc(n + 1, sizeof(*timeline->rows));
	if (!sorted || !timeline->rows) {
		free(sorted);
		return ky_error_nomem(err);
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = (uint32_t)i;
	ky_history_sort_rows(timeline->history, sorted, n);
	add_below(timeline, sorted, n, KY_HISTORY_NO_ROW, 0);
	free(sorted);
	return 0;
}

static bool cmd_timeline_runs(enum ky_state_kind kind)
{
	return kind == KY_STATE_USER || kind == KY_STATE_SYSCALL || kind == KY_STATE_RUNNING ||
	       kind == KY_STATE_IRQ || kind == KY_STATE_SOFTIRQ;
}

static int query(struct timeline *timeline, struct timeline_row *row, struct kymo_error *err)
{
	size_t n = timeline->width;
	int status;

	if (row->row->begin_ns == INT64_MIN)
		return 0;
	if (row->row->kind == KY_ROW_STREAM) {
		row->events = calloc(n, sizeof(*row->events));
		if (!row->events)
			return ky_error_nomem(err);
		return ky_history_density(timeline->history, row->row->id, timeline->begin_ns,
					  timeline->end_ns, n, row->events, err);
	}
	row->pixels = calloc(n, sizeof(*row->pixels));
	if (!row->pixels)
		return ky_error_nomem(err);
	status = ky_history_pixels(timeline->history, row->row->id, timeline->begin_ns,
				   timeline->end_ns, n, row->pixels, err);
	for (size_t x = 0; x < n && status >= 0; x++) {
		if (cmd_timeline_runs(ky_state_kind(row->pixels[x].state)))
			row->active += row->pixels[x].share / 255.0;
		else if (row->pixels[x].more)
			row->active += 1e-3; /* it runs for less than most of the pixel */
	}
	return status;
}

static bool is_likely(const struct timeline *timeline, const struct timeline_row *row,
		      bool has_cpus)
{
	switch (row->row->kind) {
	case KY_ROW_MACHINE:
	case KY_ROW_CPU:
	case KY_ROW_DISK:
	case KY_ROW_THREAD:
	case KY_ROW_SPANS:
		return row->row->kind == KY_ROW_MACHINE || row->row->end_ns > timeline->begin_ns;
	case KY_ROW_STREAM:
		return !has_cpus;
	default:
		return false;
	}
}

static int cmd_timeline_by_activity(const void *left, const void *right)
{
	const struct timeline_row *a = *(struct timeline_row *const *)left;
	const struct timeline_row *b = *(struct timeline_row *const *)right;

	if (a->active != b->active)
		return a->active > b->active ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Only the @limit threads that run most, and what is below them. */
static int cmd_timeline_hide_threads(struct timeline *timeline, uint64_t limit,
				     struct kymo_error *err)
{
	struct timeline_row **threads = calloc(timeline->n_rows + 1, sizeof(struct timeline_row *));
	bool hidden = false;
	size_t n = 0;

	if (!threads)
		return ky_error_nomem(err);
	for (size_t i = 0; i < timeline->n_rows; i++) {
		if (timeline->rows[i].row->kind == KY_ROW_THREAD && !timeline->rows[i].hidden)
			threads[n++] = &timeline->rows[i];
	}
	qsort(threads, n, sizeof(struct timeline_row *), cmd_timeline_by_activity);
	for (size_t i = 0; i < n; i++) {
		bool has_spans = threads[i] + 1 < timeline->rows + timeline->n_rows &&
				 threads[i][1].row->kind == KY_ROW_SPANS;

		threads[i]->hidden = i >= limit || (threads[i]->active <= 0 && !has_spans);
	}
	for (size_t i = 0; i < timeline->n_rows; i++) {
		if (timeline->rows[i].row->kind == KY_ROW_THREAD)
			hidden = timeline->rows[i].hidden;
		else if (timeline->rows[i].row->kind != KY_ROW_SPANS)
			hidden = false;
		timeline->rows[i].hidden |= hidden;
	}
	free(threads);
	return 0;
}

static bool cmd_timeline_is_of_thread(const struct timeline_row *row)
{
	return row->row->kind == KY_ROW_THREAD || row->row->kind == KY_ROW_SPANS;
}

static void cmd_timeline_forget(struct timeline_row *row)
{
	free(row->pixels);
	row->pixels = NULL;
}

/* Threads may be so many that their pictures do not fit into memory: those that are shown are painted again. */
static int cmd_timeline_limit_threads(struct timeline *timeline, uint64_t limit,
				      struct kymo_error *err)
{
	int status = cmd_timeline_hide_threads(timeline, limit, err);

	for (size_t i = 0; i < timeline->n_rows && status >= 0; i++)
		if (!timeline->rows[i].hidden && cmd_timeline_is_of_thread(&timeline->rows[i]))
			status = query(timeline, &timeline->rows[i], err);
	return status;
}

static int choose_rows(struct timeline *timeline, const struct timeline_options *options,
		       struct kymo_error *err)
{
	bool has_cpus = false, all = options->json && !options->rows.len;
	bool is_limited = !all && !options->rows.len && options->limit;
	int status = cmd_timeline_list_rows(timeline, err);

	for (size_t i = 0; i < timeline->n_rows && status >= 0; i++)
		has_cpus |= timeline->rows[i].row->kind == KY_ROW_CPU &&
			    timeline->rows[i].row->begin_ns != INT64_MIN;
	for (size_t i = 0; i < timeline->n_rows && status >= 0; i++) {
		struct timeline_row *row = &timeline->rows[i];

		row->hidden = options->rows.len ? !cmd_timeline_matches(options, row->row)
						: !all && !is_likely(timeline, row, has_cpus);
		if (!row->hidden)
			status = query(timeline, row, err);
		if (is_limited && cmd_timeline_is_of_thread(row))
			cmd_timeline_forget(row);
	}
	return status >= 0 && is_limited ? cmd_timeline_limit_threads(timeline, options->limit, err)
					 : status;
}

static void free_rows(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->n_rows; i++) {
		free(timeline->rows[i].pixels);
		free(timeline->rows[i].events);
	}
	free(timeline->rows);
}

/* ---- running --------------------------------------------------------------------------------------- */

static size_t default_width(const struct timeline_options *options)
{
	int columns = ky_cli_columns(stdout);

	if (options->json)
		return 1000;
	return columns > LABEL_COLUMNS + WIDTH_MIN ? (size_t)(columns - LABEL_COLUMNS) : WIDTH_MIN;
}

/* The range that is asked for, as far as there are events. */
static int set_range(struct timeline *timeline, const struct ky_trace_set *set,
		     const struct timeline_options *options, struct kymo_error *err)
{
	int64_t begin_ns, end_ns;
	int status = ky_cli_select_times(set, &options->select, false, &begin_ns, &end_ns, err);

	if (status < 0)
		return status;
	timeline->begin_ns =
		begin_ns != INT64_MIN ? begin_ns : ky_history_begin_ns(timeline->history);
	timeline->end_ns = end_ns != INT64_MAX ? end_ns : ky_history_end_ns(timeline->history);
	if (timeline->end_ns < INT64_MAX)
		timeline->end_ns++; /* inclusive */
	timeline->width = options->width ? options->width : default_width(options);
	if (timeline->end_ns <= timeline->begin_ns)
		return ky_error_set(err, KYMO_E_INVALID, "the range contains no time");
	if ((uint64_t)timeline->end_ns - (uint64_t)timeline->begin_ns < timeline->width)
		timeline->width =
			(size_t)((uint64_t)timeline->end_ns - (uint64_t)timeline->begin_ns);
	return 0;
}

static int cmd_timeline_show(struct timeline *timeline, const struct ky_trace_set *set,
			     const struct timeline_options *options, struct kymo_error *err)
{
	int status;

	if (ky_history_begin_ns(timeline->history) == INT64_MIN)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "no event of the trace has a time");
	status = set_range(timeline, set, options, err);
	if (status >= 0)
		status = choose_rows(timeline, options, err);
	if (status >= 0)
		status = options->json ? timeline_put_json(timeline, err)
				       : timeline_put_text(timeline, ky_cli_colour(stdout), err);
	free_rows(timeline);
	return status;
}

/* @again: the history on disk was damaged; it is no longer there. */
static int cmd_timeline_run_once(const struct ky_trace_set *set,
				 const struct timeline_options *options, bool *again,
				 struct kymo_error *err)
{
	struct ky_history_source source = {
		.open = cmd_timeline_open_events, .progress = show_events, .log = &ky_cli_log};
	struct timeline timeline = {0};
	struct ky_thread_pool *pool;
	struct kymo_error damage;
	int status = ky_thread_pool_new(ky_cli_jobs(options->jobs, set), &pool, err);

	if (status < 0)
		return status;
	source.data = pool;
	status = ky_history_get(set, &source, &timeline.history, &timeline.built, &damage, err);
	ky_cli_progress_end();
	ky_thread_pool_free(pool);
	if (status >= 0)
		status = cmd_timeline_show(&timeline, set, options, err);
	*again = status == KYMO_E_FORMAT && timeline.history && !timeline.built &&
		 ky_history_is_damaged(timeline.history);
	ky_history_close(timeline.history);
	if (status >= 0 && damage.code) {
		*err = damage;
		return damage.code;
	}
	return status;
}

static int cmd_timeline_run_on_set(const struct ky_trace_set *set,
				   const struct timeline_options *options, struct kymo_error *err)
{
	bool again = false;
	int status = cmd_timeline_run_once(set, options, &again, err);

	if (!again)
		return status;
	ky_error_clear(err);
	return cmd_timeline_run_once(set, options, &again, err);
}

static int run_timeline(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct timeline_options *options = data;
	struct ky_trace_set set = {0};
	struct kymo_error err;
	int status;

	if (options->width > WIDTH_MAX)
		return ky_cli_usage(command, "--width: at most %d", WIDTH_MAX);
	ky_error_clear(&err);
	status = ky_cli_open(&set, args, n_args, &options->input, true, &err);
	if (status >= 0) {
		status = ky_cli_damage_end(cmd_timeline_run_on_set(&set, options, &err), &err);
		ky_trace_set_close(&set);
	}
	if (status >= 0)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return status == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

const struct ky_command ky_command_timeline = {
	.name = "timeline",
	.is_rare = true,
	.summary = "show CPUs, threads and spans over time, as a picture in text",
	.usage = "[OPTIONS] TRACE...",
	.description =
		"Draws a line for each CPU, thread, block device and thread's spans, with one character "
		"for each part of the time (a pixel). A character stands for the state that fills most "
		"of its pixel; the legend below the picture explains the characters.\n"
		"\n"
		"The lines of CPUs have a letter for each thread. The lines of threads show whether the "
		"thread runs in user space or in a system call, is interrupted, waits for a CPU, or "
		"waits for something: a disk, a lock, a socket, a time. The lines of spans have a "
		"letter for each pair of events with names that end in _begin and _end (KYMO_SPAN), "
		"or _entry and _exit. A stream has the number of its events. A blank is a time of which "
		"nothing is known: events were lost, or the thread did not exist.\n"
		"\n"
		"The first run reads the whole trace and writes an index of its states to "
		"$XDG_CACHE_HOME/kymo (or ~/.cache/kymo). Later runs read only that index, so that "
		"any range of a large trace takes milliseconds. An index of a trace that has changed "
		"is built again.",
	.examples = "# the whole trace\nkymo timeline my-trace\n\n"
		    "# its second second, in 200 parts\n"
		    "kymo timeline --begin +1s --end +2s --width 200 my-trace\n\n"
		    "# CPUs with their interrupts\n"
		    "kymo timeline --rows cpu --rows irq my-trace\n\n"
		    "# the threads of one program\nkymo timeline --rows 'postgres*' my-trace\n\n"
		    "# everything, for a program\nkymo timeline --json my-trace",
	.see_also = "report print info",
	.first_trace = 1,
	.options = timeline_option_defs,
	.options_size = sizeof(struct timeline_options),
	.defaults = timeline_defaults,
	.min_args = 1,
	.max_args = -1,
	.run = run_timeline,
};
