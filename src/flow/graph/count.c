/* SPDX-License-Identifier: MIT */
/* Counting the events of a selection: parallel.h. */
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/graph/parallel.h"

struct summed {
	struct ky_stream **streams; /* those selected */
	struct ky_stream_summary *summaries;
	uint64_t **counts; /* by stream, but one array per trace */
	size_t n;
};

static bool count_new_trace(const struct summed *s, size_t i)
{
	return !i || s->streams[i]->trace != s->streams[i - 1]->trace;
}

static int count_add_stream(struct summed *s, struct ky_stream *stream)
{
	size_t i = s->n;

	s->streams[i] = stream;
	if (count_new_trace(s, i))
		s->counts[i] = calloc(stream->trace->cls->events.len + 1, sizeof(*s->counts[i]));
	else
		s->counts[i] = s->counts[i - 1];
	s->n += s->counts[i] != NULL;
	return s->counts[i] ? KYMO_OK : KYMO_E_MEMORY;
}

static int summed_init(struct summed *s, const struct ky_trace_set *set,
		       const struct ky_selection *selection)
{
	int ret = KYMO_OK;

	s->streams = calloc(set->streams.len + 1, sizeof(*s->streams));
	s->summaries = calloc(set->streams.len + 1, sizeof(*s->summaries));
	s->counts = calloc(set->streams.len + 1, sizeof(*s->counts));
	if (!s->streams || !s->summaries || !s->counts)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&set->streams, it) {
		if (ret == KYMO_OK && (*it)->file.data &&
		    ky_glob_choose(selection->streams, selection->n_streams, (*it)->name))
			ret = count_add_stream(s, *it);
	}
	return ret;
}

static void summed_fini(struct summed *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (count_new_trace(s, i))
			free(s->counts[i]);
		ky_stream_summary_fini(&s->summaries[i]);
	}
	free(s->streams);
	free(s->summaries);
	free(s->counts);
}

static void count_add_up(const struct summed *s, const struct ky_selection *selection,
			 struct ky_pass *pass)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct ky_trace_class *cls = s->streams[i]->trace->cls;

		ky_vec_foreach(&s->summaries[i].losses, loss) {
			if (pass->loss)
				pass->loss(pass->data, loss);
		}
		for (size_t c = 0; c < cls->events.len && count_new_trace(s, i); c++) {
			if (ky_glob_choose(selection->events, selection->n_events,
					   cls->events.data[c]->name))
				pass->n_events += s->counts[i][c];
		}
	}
}

static int count_by_class(struct ky_pass *pass, struct ky_thread_pool *pool,
			  const struct ky_trace_set *set, const struct ky_selection *selection,
			  struct kymo_error *err)
{
	struct summed s = {.n = 0};
	int ret = summed_init(&s, set, selection);

	if (ret == KYMO_OK)
		ret = ky_parallel_summarize(pool, s.streams, s.n, s.summaries, s.counts, pass->stop,
					    err);
	else
		ky_error_nomem(err);
	count_add_up(&s, selection, pass);
	summed_fini(&s);
	return ret;
}

int ky_count_run(struct ky_pass *pass, struct ky_thread_pool *pool, const struct ky_trace_set *set,
		 const struct ky_selection *selection, struct kymo_error *err)
{
	struct ky_flow *flow;
	int ret;

	if (selection->filter || selection->begin_ns != INT64_MIN || selection->end_ns != INT64_MAX)
		return ky_pass_run(pass, pool, set, selection, err);
	pass->n_events = 0;
	/* Opening tells about names that do not exist. */
	ret = ky_flow_open_selected(set, selection, &flow, err);
	if (ret < 0)
		return ret;
	ky_flow_close(flow);
	return count_by_class(pass, pool, set, selection, err);
}
