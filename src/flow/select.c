/* SPDX-License-Identifier: MIT */
/* Putting a graph together for a selection, and owning what its stages borrow. */
#include "flow/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "flow/ahead.h"
#include "flow/source.h"
#include "flow/stages.h"

/* Of more streams than these the batches ahead would take too much memory. */
#define AHEAD_STREAMS_MAX 1024

KY_VEC_TYPE(ky_stream_list, const struct ky_stream *);

/* The outermost stage: passes everything through, owns filter and tables. Parts have none. */
struct selected {
	struct ky_flow flow;
	struct ky_flow *input;
	struct ky_filter *filter;
	uint8_t **wanted; /* [trace][event class index], or NULL entries: all */
	size_t n_traces;
	int64_t end_ns;
};

void ky_selection_init(struct ky_selection *selection)
{
	memset(selection, 0, sizeof(*selection));
	selection->begin_ns = INT64_MIN;
	selection->end_ns = INT64_MAX;
	selection->head = UINT64_MAX;
}

static int selected_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	return ky_flow_next(((struct selected *)flow)->input, batch, err);
}

static int selected_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	return ky_flow_seek(((struct selected *)flow)->input, ns, err);
}

static void selected_fini(struct selected *s)
{
	ky_flow_close(s->input);
	ky_filter_free(s->filter);
	for (size_t i = 0; s->wanted && i < s->n_traces; i++)
		free(s->wanted[i]);
	free(s->wanted);
}

static void selected_close(struct ky_flow *flow)
{
	selected_fini((struct selected *)flow);
	free(flow);
}

static const struct ky_flow_ops selected_ops = {
	.next = selected_next,
	.seek = selected_seek,
	.close = selected_close,
};

/* ---- what is decided by class ------------------------------------------------------------------ */

static bool matches_any(const char *const *globs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (ky_glob_match(globs[i], name))
			return true;
	}
	return !n;
}

static int build_filter(struct selected *s, const struct ky_trace_set *set, const char *text,
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

static int build_wanted(struct selected *s, const struct ky_trace_set *set,
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
				matches_any(selection->events, selection->n_events,
					    cls->events.data[e]->name) &&
				(!s->filter ||
				 ky_filter_verdict(s->filter, t, cls->events.data[e]) != KY_NEVER);
	}
	return KYMO_OK;
}

/* A wildcard that matches nothing is a slip of the pen, not a wish for nothing. */
static int check_events(const struct ky_trace_set *set, const struct ky_selection *selection,
			struct kymo_error *err)
{
	for (size_t i = 0; i < selection->n_events; i++) {
		const char *nearest = NULL;
		size_t distance = SIZE_MAX;
		bool found = false;

		for (size_t t = 0; t < set->traces.len && !found; t++) {
			const struct ky_trace_class *cls = set->traces.data[t]->cls;

			for (size_t e = 0; e < cls->events.len && !found; e++) {
				const char *name = cls->events.data[e]->name;
				size_t here = ky_edit_distance(selection->events[i], name);

				found = ky_glob_match(selection->events[i], name);
				if (here < distance) {
					distance = here;
					nearest = name;
				}
			}
		}
		if (found)
			continue;
		ky_error_set(err, KYMO_E_INVALID, "no event of the trace is named '%s'",
			     selection->events[i]);
		if (nearest)
			ky_error_hint(err, "the nearest is %s", nearest);
		return KYMO_E_INVALID;
	}
	return KYMO_OK;
}

/* ---- putting together ----------------------------------------------------------------------------- */

static size_t trace_number(const struct ky_trace_set *set, const struct ky_trace *trace)
{
	size_t i = 0;

	while (set->traces.data[i] != trace)
		i++;
	return i;
}

/* *bottom (may be NULL) is what is below the other stages. */
static int open_stream(struct selected *s, const struct ky_trace_set *set,
		       const struct ky_stream *stream, size_t n_streams, const struct ky_log *log,
		       struct ky_flow **flow, struct ky_flow **bottom, struct kymo_error *err)
{
	size_t trace = trace_number(set, stream->trace);
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
	if (log)
		ky_source_log(source, log);
	if (s->filter)
		return ky_filter_stage_open(source, s->filter, trace, flow, err);
	*flow = source;
	return KYMO_OK;
}

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
static int pick_streams(const struct ky_trace_set *set, const struct ky_selection *selection,
			struct ky_stream_list *picked, struct kymo_error *err)
{
	bool matched = !selection->n_streams;

	ky_vec_foreach(&set->streams, stream) {
		if (!matches_any(selection->streams, selection->n_streams, (*stream)->name))
			continue;
		matched = true;
		if ((*stream)->file.data && ky_vec_push(picked, *stream) < 0)
			return ky_error_nomem(err);
	}
	if (matched)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "no stream of the trace is named '%s'",
		     selection->streams[0]);
	hint_streams(set, err);
	return KYMO_E_INVALID;
}

/* The stream behind a stage that reads ahead. */
static int open_ahead(struct selected *s, const struct ky_trace_set *set, struct ky_crew *crew,
		      const struct ky_stream *stream, size_t n_streams, struct ky_flow **flow,
		      struct kymo_error *err)
{
	struct ky_log_keep *log = ky_ahead_log_new();
	struct ky_flow *input;
	int ret;

	if (!log)
		return ky_error_nomem(err);
	ret = open_stream(s, set, stream, n_streams, &log->log, &input, NULL, err);
	if (ret == KYMO_OK)
		return ky_ahead_open(crew, input, log, stream->trace->log, flow, err);
	free(log);
	return ret;
}

/* @log (may be NULL): what all sources warn through. */
static int open_merge(struct selected *s, const struct ky_trace_set *set,
		      const struct ky_selection *selection, const struct ky_stream_list *picked,
		      const struct ky_log *log, struct ky_flow **merged, struct kymo_error *err)
{
	bool each_ahead =
		selection->crew && !selection->whole_ahead && picked->len <= AHEAD_STREAMS_MAX;
	struct ky_flow **flows = calloc(picked->len + 1, sizeof(*flows));
	int ret = flows ? KYMO_OK : ky_error_nomem(err);
	size_t n = 0;

	while (ret == KYMO_OK && n < picked->len) {
		if (each_ahead)
			ret = open_ahead(s, set, selection->crew, picked->data[n], picked->len,
					 &flows[n], err);
		else
			ret = open_stream(s, set, picked->data[n], picked->len, log, &flows[n],
					  NULL, err);
		n += ret == KYMO_OK;
	}
	if (ret == KYMO_OK)
		ret = ky_merge_open(flows, n, merged, err);
	else
		for (size_t i = 0; i < n; i++)
			ky_flow_close(flows[i]);
	free(flows);
	return ret;
}

/* All of it behind one stage that reads ahead. */
static int open_merge_ahead(struct selected *s, const struct ky_trace_set *set,
			    const struct ky_selection *selection,
			    const struct ky_stream_list *picked, struct ky_flow **merged,
			    struct kymo_error *err)
{
	struct ky_log_keep *log = ky_ahead_log_new();
	const struct ky_log *to = picked->len ? picked->data[0]->trace->log : NULL;
	struct ky_flow *input;
	int ret;

	if (!log)
		return ky_error_nomem(err);
	ret = open_merge(s, set, selection, picked, &log->log, &input, err);
	if (ret < 0) {
		ky_log_keep_fini(log);
		free(log);
		return ret;
	}
	ret = ky_ahead_open(selection->crew, input, log, to, merged, err);
	if (ret == KYMO_OK && selection->begin_ns == INT64_MIN)
		ky_ahead_start(*merged);
	return ret;
}

static int open_streams(struct selected *s, const struct ky_trace_set *set,
			const struct ky_selection *selection, struct ky_flow **merged,
			struct kymo_error *err)
{
	struct ky_stream_list picked = KY_VEC_INIT;
	int ret = pick_streams(set, selection, &picked, err);

	if (ret == KYMO_OK && selection->crew && selection->whole_ahead)
		ret = open_merge_ahead(s, set, selection, &picked, merged, err);
	else if (ret == KYMO_OK)
		ret = open_merge(s, set, selection, &picked, NULL, merged, err);
	ky_vec_fini(&picked);
	return ret;
}

static int prepare(struct selected *s, const struct ky_trace_set *set,
		   const struct ky_selection *selection, struct kymo_error *err)
{
	int ret = check_events(set, selection, err);

	s->n_traces = set->traces.len;
	s->end_ns = selection->end_ns;
	if (ret == KYMO_OK && selection->filter)
		ret = build_filter(s, set, selection->filter, err);
	if (ret == KYMO_OK)
		ret = build_wanted(s, set, selection, err);
	return ret;
}

/* Leave out what lies outside the time range. Takes @flow over. */
static int limit(struct ky_flow *flow, const struct ky_selection *selection,
		 struct ky_flow **limited, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*limited = flow;
	if (selection->skip || selection->head != UINT64_MAX)
		ret = ky_limit_open(flow, selection->skip, selection->head, limited, err);
	if (ret == KYMO_OK && selection->begin_ns != INT64_MIN)
		ret = ky_flow_seek(*limited, selection->begin_ns, err);
	return ret;
}

static int build(struct selected *s, const struct ky_trace_set *set,
		 const struct ky_selection *selection, struct kymo_error *err)
{
	struct ky_flow *merged;
	int ret = prepare(s, set, selection, err);

	if (ret == KYMO_OK)
		ret = open_streams(s, set, selection, &merged, err);
	return ret == KYMO_OK ? limit(merged, selection, &s->input, err) : ret;
}

int ky_flow_open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			  struct ky_flow **flow, struct kymo_error *err)
{
	struct selected *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return ky_error_nomem(err);
	s->flow.ops = &selected_ops;
	ret = build(s, set, selection, err);
	if (ret < 0) {
		selected_close(&s->flow);
		return ret;
	}
	*flow = &s->flow;
	return KYMO_OK;
}

/* ---- copies ----------------------------------------------------------------------------------------- */

struct owned_copies {
	struct ky_copies copies;
	struct selected tables; /* its flow is not used */
	struct ky_stream_list picked;
};

void ky_copies_close(struct ky_copies *copies)
{
	struct owned_copies *owned = (struct owned_copies *)copies;

	if (!copies)
		return;
	for (size_t i = 0; i < copies->n; i++) {
		ky_flow_close(copies->copies[i].flow);
		free(copies->copies[i].sources);
	}
	free(copies->copies);
	ky_vec_fini(&owned->picked);
	selected_fini(&owned->tables);
	free(owned);
}

static int open_copy(struct owned_copies *owned, const struct ky_trace_set *set,
		     struct ky_copy *copy, struct kymo_error *err)
{
	const struct ky_stream_list *picked = &owned->picked;
	struct ky_flow **flows = calloc(picked->len + 1, sizeof(*flows));
	int ret = KYMO_OK;
	size_t n = 0;

	copy->sources = calloc(picked->len + 1, sizeof(*copy->sources));
	if (!flows || !copy->sources)
		ret = ky_error_nomem(err);
	while (ret == KYMO_OK && n < picked->len) {
		ret = open_stream(&owned->tables, set, picked->data[n], picked->len, NULL,
				  &flows[n], &copy->sources[n], err);
		n += ret == KYMO_OK;
	}
	if (ret == KYMO_OK)
		ret = ky_merge_open(flows, n, &copy->flow, err);
	else
		for (size_t i = 0; i < n; i++)
			ky_flow_close(flows[i]);
	free(flows);
	return ret;
}

static int open_copies(struct owned_copies *owned, const struct ky_trace_set *set,
		       const struct ky_selection *selection, size_t n, struct kymo_error *err)
{
	struct ky_copies *copies = &owned->copies;
	int ret = prepare(&owned->tables, set, selection, err);

	if (ret == KYMO_OK)
		ret = pick_streams(set, selection, &owned->picked, err);
	copies->copies = calloc(n, sizeof(*copies->copies));
	if (!copies->copies)
		ret = ky_error_nomem(err);
	while (ret == KYMO_OK && copies->n < n)
		ret = open_copy(owned, set, &copies->copies[copies->n++], err);
	copies->streams = owned->picked.data;
	copies->n_streams = owned->picked.len;
	return ret;
}

int ky_copies_open(const struct ky_trace_set *set, const struct ky_selection *selection, size_t n,
		   struct ky_copies **copies, struct kymo_error *err)
{
	struct owned_copies *owned = calloc(1, sizeof(*owned));
	int ret;

	if (!owned)
		return ky_error_nomem(err);
	ret = open_copies(owned, set, selection, n, err);
	if (ret < 0) {
		ky_copies_close(&owned->copies);
		return ret;
	}
	*copies = &owned->copies;
	return KYMO_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------ */

struct owned_parts {
	struct ky_parts parts;
	struct selected tables; /* its flow is not used */
};

void ky_parts_close(struct ky_parts *parts)
{
	struct owned_parts *owned = (struct owned_parts *)parts;

	if (!parts)
		return;
	for (size_t i = 0; i < parts->n; i++) {
		ky_flow_close(parts->parts[i].flow);
		ky_log_keep_fini(&parts->parts[i].log);
	}
	free(parts->parts);
	selected_fini(&owned->tables);
	free(owned);
}

static int open_part(struct owned_parts *owned, const struct ky_trace_set *set,
		     const struct ky_selection *selection, const struct ky_stream *stream,
		     struct kymo_error *err)
{
	struct ky_part *part = &owned->parts.parts[owned->parts.n++];
	struct ky_flow *flow;
	int ret;

	part->stream = stream;
	ky_log_keep_init(&part->log);
	ret = open_stream(&owned->tables, set, stream, 1, &part->log.log, &flow, NULL, err);
	return ret == KYMO_OK ? limit(flow, selection, &part->flow, err) : ret;
}

static int open_parts(struct owned_parts *owned, const struct ky_trace_set *set,
		      const struct ky_selection *selection, struct kymo_error *err)
{
	struct ky_stream_list picked = KY_VEC_INIT;
	int ret = prepare(&owned->tables, set, selection, err);

	if (ret == KYMO_OK)
		ret = pick_streams(set, selection, &picked, err);
	owned->parts.parts = calloc(picked.len + 1, sizeof(*owned->parts.parts));
	if (!owned->parts.parts)
		ret = ky_error_nomem(err);
	for (size_t i = 0; i < picked.len && ret == KYMO_OK; i++)
		ret = open_part(owned, set, selection, picked.data[i], err);
	ky_vec_fini(&picked);
	return ret;
}

int ky_parts_open(const struct ky_trace_set *set, const struct ky_selection *selection,
		  struct ky_parts **parts, struct kymo_error *err)
{
	struct owned_parts *owned = calloc(1, sizeof(*owned));
	int ret;

	if (!owned)
		return ky_error_nomem(err);
	ret = open_parts(owned, set, selection, err);
	if (ret < 0) {
		ky_parts_close(&owned->parts);
		return ret;
	}
	*parts = &owned->parts;
	return KYMO_OK;
}
