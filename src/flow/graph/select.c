/* SPDX-License-Identifier: MIT */
/* What a selection decides before anything is read; and the stages of one stream. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "flow/graph/select-internal.h"
#include "flow/graph/source.h"
#include "flow/graph/stages.h"

void ky_selection_init(struct ky_selection *selection)
{
	memset(selection, 0, sizeof(*selection));
	selection->begin_ns = INT64_MIN;
	selection->end_ns = INT64_MAX;
	selection->head = UINT64_MAX;
}

/* ---- what is decided by class ------------------------------------------------------------------ */

static int build_filter(struct ky_selected *s, const struct ky_trace_set *set, const char *text,
			struct kymo_error *err)
{
	const struct ky_trace_class **classes;
	int ret;

	classes = calloc(set->traces.len + 1, sizeof(*classes));
	if (!classes)
		return ky_error_nomem(err);
	for (size_t i = 0; i < set->traces.len; i++)
		classes[i] = set->traces.data[i]->cls;
	ret = ky_filter_compile(text, classes, set->traces.len, &s->filter, err);
	free(classes);
	return ret;
}

static int build_wanted(struct ky_selected *s, const struct ky_trace_set *set,
			const struct ky_selection *selection, struct kymo_error *err)
{
	s->wanted = calloc(set->traces.len + 1, sizeof(*s->wanted));
	if (!s->wanted)
		return ky_error_nomem(err);
	if (!s->filter && !selection->n_events)
		return KYMO_OK;
	for (size_t t = 0; t < set->traces.len; t++) {
		const struct ky_trace_class *cls = set->traces.data[t]->cls;
		uint8_t *wanted = s->wanted[t] = calloc(cls->events.len + 1, 1);

		if (!wanted)
			return ky_error_nomem(err);
		for (size_t e = 0; e < cls->events.len; e++)
			wanted[e] =
				ky_glob_choose(selection->events, selection->n_events,
					       cls->events.data[e]->name) &&
				(!s->filter ||
				 ky_filter_verdict(s->filter, t, cls->events.data[e]) != KY_NEVER);
	}
	return KYMO_OK;
}

/* A wildcard that matches nothing is a mistake, not a selection of nothing. */
static int select_check_events(const struct ky_trace_set *set, const struct ky_selection *selection,
			       struct kymo_error *err)
{
	for (size_t i = 0; i < selection->n_events; i++) {
		const char *glob = selection->events[i] + (selection->events[i][0] == '!');
		const char *nearest = NULL;
		size_t distance = SIZE_MAX;
		bool found = false;

		for (size_t t = 0; t < set->traces.len && !found; t++) {
			const struct ky_trace_class *cls = set->traces.data[t]->cls;

			for (size_t e = 0; e < cls->events.len && !found; e++) {
				const char *name = cls->events.data[e]->name;
				size_t here = ky_edit_distance(glob, name);

				found = ky_glob_match(glob, name);
				if (here < distance) {
					distance = here;
					nearest = name;
				}
			}
		}
		if (found)
			continue;
		ky_error_set(err, KYMO_E_INVALID, "no event of the trace is named '%s'", glob);
		if (strpbrk(glob, "*?"))
			ky_error_hint(err, "the metadata lists the events that there are");
		else if (nearest)
			ky_error_hint(err, "the nearest is %s", nearest);
		return KYMO_E_INVALID;
	}
	return KYMO_OK;
}

/* ---- which streams ------------------------------------------------------------------------------ */

#define STREAMS_TOLD 8

static void hint_streams(const struct ky_trace_set *set, struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;
	size_t n = set->streams.len;

	for (size_t i = 0; i < n && i < STREAMS_TOLD; i++)
		ky_strbuf_addf(&names, "%s%s", i ? ", " : "", set->streams.data[i]->name);
	if (n > STREAMS_TOLD)
		ky_strbuf_adds(&names, ", ...");
	if (n)
		ky_error_hint(err, "there are %s", ky_strbuf_text(&names));
	ky_strbuf_fini(&names);
}

/* Every stream that is selected and has packets, in their order. */
static int pick_streams(struct ky_selected *s, const struct ky_trace_set *set,
			const struct ky_selection *selection, struct kymo_error *err)
{
	bool matched = !selection->n_streams;

	ky_vec_foreach(&set->streams, stream) {
		if (!ky_glob_choose(selection->streams, selection->n_streams, (*stream)->name))
			continue;
		matched = true;
		if (selection->only && !selection->only[(*stream)->index])
			continue;
		if ((*stream)->file.data && ky_vec_push(&s->picked, *stream) < 0)
			return ky_error_nomem(err);
	}
	if (matched)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "no stream of the trace is named '%s'",
		     selection->streams[0]);
	hint_streams(set, err);
	return KYMO_E_INVALID;
}

int ky_selected_init(struct ky_selected *s, const struct ky_trace_set *set,
		     const struct ky_selection *selection, struct kymo_error *err)
{
	int ret = select_check_events(set, selection, err);

	s->n_traces = set->traces.len;
	s->end_ns = selection->end_ns;
	s->places = selection->places;
	s->is_over = selection->is_over;
	s->over_data = selection->over_data;
	if (ret == KYMO_OK && selection->filter)
		ret = build_filter(s, set, selection->filter, err);
	if (ret == KYMO_OK)
		ret = build_wanted(s, set, selection, err);
	return ret == KYMO_OK ? pick_streams(s, set, selection, err) : ret;
}

void ky_selected_fini(struct ky_selected *s)
{
	ky_filter_free(s->filter);
	for (size_t i = 0; s->wanted && i < s->n_traces; i++)
		free(s->wanted[i]);
	free(s->wanted);
	ky_vec_fini(&s->picked);
}

/* ---- one stream --------------------------------------------------------------------------------- */

static size_t select_trace_number(const struct ky_trace_set *set, const struct ky_trace *trace)
{
	size_t i = 0;

	while (set->traces.data[i] != trace)
		i++;
	return i;
}

int ky_selected_stream(const struct ky_selected *s, const struct ky_trace_set *set, size_t i,
		       size_t n_streams, const struct ky_log *log, struct ky_flow **flow,
		       struct ky_flow **bottom, struct kymo_error *err)
{
	const struct ky_stream *stream = s->picked.data[i];
	size_t trace = select_trace_number(set, stream->trace);
	struct ky_flow *source;
	int ret = ky_source_open(stream, &source, err);

	if (ret < 0)
		return ret;
	if (bottom)
		*bottom = source;
	ky_source_want(source, s->wanted[trace]);
	if (s->end_ns != INT64_MAX)
		ky_source_limit(source, s->end_ns + 1);
	ky_source_share(source, n_streams);
	ky_source_stop(source, s->is_over, s->over_data);
	if (log)
		ky_source_log(source, log);
	if (s->places && s->places[stream->index].is_known)
		ky_source_resume(source, s->places[stream->index].packet_bytes,
				 s->places[stream->index].end_bits);
	if (s->filter)
		return ky_filter_stage_open(source, s->filter, trace, flow, err);
	*flow = source;
	return KYMO_OK;
}

int ky_selected_merge(struct ky_flow **flows, size_t n, int ret, struct ky_flow **merged,
		      struct kymo_error *err)
{
	if (ret == KYMO_OK)
		ret = ky_merge_open(flows, n, merged, err);
	else
		for (size_t i = 0; i < n; i++)
			ky_flow_close(flows[i]);
	free(flows);
	return ret;
}

int ky_selected_limit(struct ky_flow *flow, const struct ky_selection *selection,
		      struct ky_flow **limited, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*limited = flow;
	if (selection->skip || selection->head != UINT64_MAX)
		ret = ky_limit_open(flow, selection->skip, selection->head, limited, err);
	if (ret < 0)
		*limited = NULL;
	if (ret == KYMO_OK && selection->begin_ns != INT64_MIN)
		ret = ky_flow_seek(*limited, selection->begin_ns, err);
	return ret;
}
