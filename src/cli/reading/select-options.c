/* SPDX-License-Identifier: MIT */
#include "cli/reading/select-options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/reading/damage.h"
#include "cli/reading/run-flow.h"
#include "cli/reading/filter-hint.h"
#include "flow/graph/parallel.h"
#include "flow/graph/range.h"

void ky_cli_select_defaults(struct ky_select_options *options)
{
	options->head = options->tail = UINT64_MAX;
}

static bool select_options_has_times(const struct ky_select_options *o)
{
	return o->begin || o->end || o->timerange || o->intersection;
}

bool ky_cli_selects(const struct ky_select_options *o)
{
	return o->filter || o->events.len || o->streams.len || select_options_has_times(o) ||
	       o->head != UINT64_MAX || o->tail != UINT64_MAX;
}

bool ky_cli_streams_apart(const struct ky_select_options *o)
{
	return o->head == UINT64_MAX && o->tail == UINT64_MAX;
}

/* ---- times -------------------------------------------------------------------------------- */

static int bad_time(struct kymo_error *err, const char *option, const char *text)
{
	ky_error_set(err, KYMO_E_INVALID, "--%s: '%s' is not a time", option, text);
	ky_error_hint(err, "give 08:30:00.5, '2026-11-21 08:30', 1795239038.5 (seconds), +2s, "
			   "-500ms or 50%%");
	return KYMO_E_INVALID;
}

struct range {
	int64_t begin_ns, end_ns;
};

static int parse_time(const char *option, const char *text, const struct range *trace, bool gmt,
		      int64_t *ns, struct kymo_error *err)
{
	if (!text)
		return KYMO_OK;
	return ky_parse_time(text, trace->begin_ns, trace->end_ns, gmt, ns) < 0
		       ? bad_time(err, option, text)
		       : KYMO_OK;
}

/* "BEGIN,END" or "[BEGIN,END]". */
static int parse_timerange(const char *text, const struct range *trace, bool gmt,
			   struct range *range, struct kymo_error *err)
{
	size_t len = strlen(text);
	bool brackets = len > 1 && text[0] == '[' && text[len - 1] == ']';
	char *copy = strndup(text + brackets, len - 2 * (size_t)brackets), *comma;
	int ret;

	if (!copy)
		return ky_error_nomem(err);
	comma = strchr(copy, ',');
	if (comma) {
		*comma = '\0';
		ret = parse_time("timerange", copy, trace, gmt, &range->begin_ns, err);
		if (ret == KYMO_OK)
			ret = parse_time("timerange", comma + 1, trace, gmt, &range->end_ns, err);
	} else {
		ret = ky_error_set(err, KYMO_E_INVALID, "--timerange needs BEGIN,END, not '%s'",
				   text);
	}
	free(copy);
	return ret;
}

/* What all streams share, as far as *range goes. Without such a time: an empty range. */
static void intersect(const struct ky_trace_set *set, struct range *range)
{
	struct range shared;

	if (!ky_set_intersection(set, &shared.begin_ns, &shared.end_ns)) {
		*range = (struct range){INT64_MAX, INT64_MIN};
		return;
	}
	if (shared.begin_ns > range->begin_ns)
		range->begin_ns = shared.begin_ns;
	if (shared.end_ns < range->end_ns)
		range->end_ns = shared.end_ns;
}

static int resolve_times(const struct ky_trace_set *set, const struct ky_select_options *o,
			 bool gmt, struct ky_selection *selection, struct kymo_error *err)
{
	struct range trace, range = {INT64_MIN, INT64_MAX};
	int ret;

	if (!select_options_has_times(o))
		return KYMO_OK;
	if (o->timerange && (o->begin || o->end))
		return ky_error_set(err, KYMO_E_INVALID,
				    "--timerange and --begin or --end exclude each other");
	ret = ky_set_range(set, &trace.begin_ns, &trace.end_ns, err);
	if (ret == KYMO_OK)
		ret = parse_time("begin", o->begin, &trace, gmt, &range.begin_ns, err);
	if (ret == KYMO_OK)
		ret = parse_time("end", o->end, &trace, gmt, &range.end_ns, err);
	if (ret == KYMO_OK && o->timerange)
		ret = parse_timerange(o->timerange, &trace, gmt, &range, err);
	if (ret == KYMO_OK && range.begin_ns > range.end_ns)
		ret = ky_error_set(err, KYMO_E_INVALID, "the end is before the begin");
	if (ret == KYMO_OK && o->intersection)
		intersect(set, &range);
	selection->begin_ns = range.begin_ns;
	selection->end_ns = range.end_ns;
	return ret;
}

int ky_cli_select_times(const struct ky_trace_set *set, const struct ky_select_options *o, bool gmt,
			int64_t *begin_ns, int64_t *end_ns, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret;

	ky_selection_init(&selection);
	ret = resolve_times(set, o, gmt, &selection, err);
	*begin_ns = selection.begin_ns;
	*end_ns = selection.end_ns;
	return ret;
}

/* ---- the selection ------------------------------------------------------------------------ */

/* Everything but --head and --tail. */
static int select_options_resolve(const struct ky_trace_set *set, const struct ky_select_options *o,
				  bool gmt, struct ky_selection *selection, struct kymo_error *err)
{
	if (o->head != UINT64_MAX && o->tail != UINT64_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "--head and --tail exclude each other");
	ky_selection_init(selection);
	ky_cli_hint_filter(o->filter);
	selection->filter = o->filter;
	selection->events = (const char *const *)o->events.items;
	selection->n_events = o->events.len;
	selection->streams = (const char *const *)o->streams.items;
	selection->n_streams = o->streams.len;
	return resolve_times(set, o, gmt, selection, err);
}

/* Where in the expression it is wrong. */
int ky_cli_in_filter(int ret, struct kymo_error *err)
{
	if (ret == KYMO_E_INVALID && err && err->line && !err->path[0])
		ky_error_path(err, "--filter");
	return ret;
}

static int open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			 struct ky_flow **flow, struct kymo_error *err)
{
	return ky_cli_in_filter(ky_flow_open_selected(set, selection, flow, err), err);
}

static int select_options_run_pass(struct ky_pass *pass, struct ky_thread_pool *pool,
				   const struct ky_trace_set *set,
				   const struct ky_selection *selection, struct kymo_error *err)
{
	return ky_cli_in_filter(ky_pass_run(pass, pool, set, selection, err), err);
}

/* ---- counting ----------------------------------------------------------------------------- */

static void on_damage(void *data, const struct ky_loss *loss)
{
	(void)data;
	ky_cli_damage(loss);
}

/* @selection is resolved: the events before --head and --tail. @tell: warn of damage. */
static int select_options_count(const struct ky_trace_set *set,
				const struct ky_selection *selection, struct ky_thread_pool *pool,
				bool tell, uint64_t *n_events, struct kymo_error *err)
{
	struct ky_pass pass = {.loss = tell ? on_damage : NULL, .stop = ky_cli_interrupted};
	int ret = ky_cli_in_filter(ky_count_run(&pass, pool, set, selection, err), err);

	*n_events = pass.n_events;
	return ret;
}

int ky_cli_select_count(const struct ky_trace_set *set, const struct ky_select_options *o, bool gmt,
			struct ky_thread_pool *pool, uint64_t *n_events, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret = select_options_resolve(set, o, gmt, &selection, err);

	*n_events = 0;
	if (ret < 0)
		return ret;
	ret = select_options_count(set, &selection, pool, true, n_events, err);
	if (*n_events > o->head)
		*n_events = o->head;
	if (*n_events > o->tail)
		*n_events = o->tail;
	return ret;
}

int ky_cli_select_resolve(const struct ky_trace_set *set, const struct ky_select_options *o,
			  bool gmt, struct ky_thread_pool *pool, struct ky_selection *selection,
			  struct kymo_error *err)
{
	struct kymo_error damage;
	uint64_t n_events;
	int ret = select_options_resolve(set, o, gmt, selection, err);

	if (ret < 0)
		return ret;
	selection->head = o->head;
	/* Of two jobs the second has enough to do. */
	if (pool && ky_thread_pool_jobs(pool) > 2)
		selection->pool = pool;
	if (o->tail == UINT64_MAX)
		return KYMO_OK;
	ky_error_clear(&damage);
	ret = select_options_count(set, selection, pool, false, &n_events, &damage);
	/* Damage is met again when the events are read. */
	if (ret < 0 && ret != KYMO_E_FORMAT && ret != KYMO_E_LIMIT) {
		if (err)
			*err = damage;
		return ret;
	}
	selection->skip = n_events > o->tail ? n_events - o->tail : 0;
	return KYMO_OK;
}

int ky_cli_select_open(const struct ky_trace_set *set, const struct ky_select_options *o, bool gmt,
		       struct ky_thread_pool *pool, struct ky_flow **flow, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret = ky_cli_select_resolve(set, o, gmt, pool, &selection, err);

	return ret == KYMO_OK ? open_selected(set, &selection, flow, err) : ret;
}

static void on_loss(void *data, const struct ky_loss *loss)
{
	ky_cli_warn_loss(loss, data);
}

int ky_cli_select_pass(const struct ky_trace_set *set, const struct ky_select_options *o,
		       const struct ky_text_options *times, struct ky_thread_pool *pool,
		       uint64_t *n_events, struct kymo_error *err)
{
	struct ky_pass pass = {
		.loss = on_loss,
		.data = (void *)(uintptr_t)times,
		.stop = ky_cli_interrupted,
	};
	struct ky_selection selection;
	int ret = select_options_resolve(set, o, times->clock_gmt, &selection, err);

	if (ret < 0)
		return ret;
	ret = select_options_run_pass(&pass, pool, set, &selection, err);
	*n_events = pass.n_events;
	return ret;
}
