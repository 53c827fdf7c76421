/* SPDX-License-Identifier: MIT */
#include "cli/select-options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/range.h"
#include "query/filter.h"

void ky_cli_select_defaults(struct ky_select_options *options)
{
	options->head = options->tail = UINT64_MAX;
}

static bool has_times(const struct ky_select_options *o)
{
	return o->begin || o->end || o->timerange || o->intersection;
}

bool ky_cli_selects(const struct ky_select_options *o)
{
	return o->filter || o->events.len || o->streams.len || has_times(o) ||
	       o->head != UINT64_MAX || o->tail != UINT64_MAX;
}

/* ---- times -------------------------------------------------------------------------------- */

static int bad_time(struct kymo_error *err, const char *option, const char *text)
{
	ky_error_set(err, KYMO_E_INVALID, "--%s: '%s' is no time", option, text);
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
		ret = ky_error_set(err, KYMO_E_INVALID, "--timerange wants BEGIN,END, not '%s'",
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

	if (!has_times(o))
		return KYMO_OK;
	if (o->timerange && (o->begin || o->end))
		return ky_error_set(err, KYMO_E_INVALID,
				    "--timerange says what --begin and --end say: give one only");
	ret = ky_set_range(set, &trace.begin_ns, &trace.end_ns, err);
	if (ret == KYMO_OK)
		ret = parse_time("begin", o->begin, &trace, gmt, &range.begin_ns, err);
	if (ret == KYMO_OK)
		ret = parse_time("end", o->end, &trace, gmt, &range.end_ns, err);
	if (ret == KYMO_OK && o->timerange)
		ret = parse_timerange(o->timerange, &trace, gmt, &range, err);
	if (ret == KYMO_OK && range.begin_ns > range.end_ns)
		ret = ky_error_set(err, KYMO_E_INVALID, "the end lies before the begin");
	if (ret == KYMO_OK && o->intersection)
		intersect(set, &range);
	selection->begin_ns = range.begin_ns;
	selection->end_ns = range.end_ns;
	return ret;
}

/* ---- the selection ------------------------------------------------------------------------ */

/* Everything but --head and --tail. */
static int resolve(const struct ky_trace_set *set, const struct ky_select_options *o, bool gmt,
		   struct ky_selection *selection, struct kymo_error *err)
{
	if (o->head != UINT64_MAX && o->tail != UINT64_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "--head and --tail exclude each other");
	ky_selection_init(selection);
	selection->filter = o->filter;
	selection->events = (const char *const *)o->events.items;
	selection->n_events = o->events.len;
	selection->streams = (const char *const *)o->streams.items;
	selection->n_streams = o->streams.len;
	return resolve_times(set, o, gmt, selection, err);
}

static int open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			 struct ky_flow **flow, struct kymo_error *err)
{
	int ret = ky_flow_open_selected(set, selection, flow, err);

	/* Where in the expression it is wrong. */
	if (ret == KYMO_E_INVALID && err && err->line && !err->path[0])
		ky_error_path(err, "--filter");
	return ret;
}

/* ---- counting ----------------------------------------------------------------------------- */

static bool matches_any(const struct ky_text_list *globs, const char *name)
{
	for (size_t i = 0; i < globs->len; i++) {
		if (ky_glob_match(globs->items[i], name))
			return true;
	}
	return !globs->len;
}

/* Count what every class has in @stream, and add up those that are asked for. */
static int count_stream(const struct ky_stream *stream, const struct ky_select_options *o,
			uint64_t *n_events, struct kymo_error *err)
{
	const struct ky_trace_class *cls = stream->trace->cls;
	struct ky_decoder *decoder = ky_decoder_new(cls);
	uint64_t *counts = calloc(cls->events.len + 1, sizeof(*counts)), at = 0;
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
	int ret = decoder && counts ? KYMO_OK : ky_error_nomem(err);

	while (ret == KYMO_OK && at < stream->file.size_bytes) {
		const struct ky_packet *packet;

		ret = ky_decoder_packet(decoder, stream->file.data + at,
					stream->file.size_bytes - at, at, &packet, err);
		if (ret < 0) {
			ky_packet_error(stream, at, err);
			break;
		}
		ret = ky_decoder_count(decoder, counts, &begin_ns, &end_ns, err);
		if (ret < 0)
			ky_error_path(err, stream->file.path);
		else
			ret = ky_packet_check_cut(stream, packet, err);
		at += packet->packet_bits / 8;
	}
	for (size_t i = 0; counts && i < cls->events.len; i++) {
		if (matches_any(&o->events, cls->events.data[i]->name))
			*n_events += counts[i];
	}
	free(counts);
	ky_decoder_free(decoder);
	return ret;
}

/* Where only classes and streams are selected, nothing has to be decoded. */
static int count_by_class(const struct ky_trace_set *set, const struct ky_select_options *o,
			  uint64_t *n_events, struct kymo_error *err)
{
	struct kymo_error later;
	int ret = KYMO_OK, here;

	ky_vec_foreach(&set->streams, stream) {
		if (!(*stream)->file.data || !matches_any(&o->streams, (*stream)->name))
			continue;
		here = count_stream(*stream, o, n_events, ret == KYMO_OK ? err : &later);
		if (ret == KYMO_OK)
			ret = here;
	}
	return ret;
}

static int count_one_by_one(struct ky_flow *flow, uint64_t *n_events, struct kymo_error *err)
{
	struct ky_batch batch;
	int ret;

	while ((ret = ky_flow_next(flow, &batch, err)) > 0)
		*n_events += batch.n_events;
	return ret;
}

/* @selection is resolved: the events before --head and --tail. */
static int count(const struct ky_trace_set *set, const struct ky_select_options *o,
		 const struct ky_selection *selection, uint64_t *n_events, struct kymo_error *err)
{
	struct ky_flow *flow;
	/* Opening tells about names that do not exist, whichever way is taken then. */
	int ret = open_selected(set, selection, &flow, err);

	*n_events = 0;
	if (ret < 0)
		return ret;
	if (o->filter || has_times(o))
		ret = count_one_by_one(flow, n_events, err);
	else
		ret = count_by_class(set, o, n_events, err);
	ky_flow_close(flow);
	return ret;
}

int ky_cli_select_count(const struct ky_trace_set *set, const struct ky_select_options *o, bool gmt,
			uint64_t *n_events, struct kymo_error *err)
{
	struct ky_selection selection;
	int ret = resolve(set, o, gmt, &selection, err);

	*n_events = 0;
	if (ret < 0)
		return ret;
	ret = count(set, o, &selection, n_events, err);
	if (*n_events > o->head)
		*n_events = o->head;
	if (*n_events > o->tail)
		*n_events = o->tail;
	return ret;
}

int ky_cli_select_open(const struct ky_trace_set *set, const struct ky_select_options *o, bool gmt,
		       struct ky_flow **flow, struct kymo_error *err)
{
	struct ky_selection selection;
	struct kymo_error damage;
	uint64_t n_events;
	int ret = resolve(set, o, gmt, &selection, err);

	if (ret < 0)
		return ret;
	selection.head = o->head;
	if (o->tail != UINT64_MAX) {
		ky_error_clear(&damage);
		ret = count(set, o, &selection, &n_events, &damage);
		/* Damage is met again when the events are read. */
		if (ret < 0 && ret != KYMO_E_FORMAT && ret != KYMO_E_LIMIT) {
			if (err)
				*err = damage;
			return ret;
		}
		selection.skip = n_events > o->tail ? n_events - o->tail : 0;
	}
	return open_selected(set, &selection, flow, err);
}
