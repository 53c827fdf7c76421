/* SPDX-License-Identifier: MIT */
/* One graph for a selection: streams, merge, limits; it owns what its stages borrow. */
#include <stdlib.h>

#include "base/error.h"
#include "flow/graph/prefetch.h"
#include "flow/graph/select-internal.h"
#include "flow/graph/stages.h"

/* Of more streams than these the batches ahead would take too much memory. */
#define AHEAD_STREAMS_MAX 1024

/*
 * The outermost stage passes everything through. It keeps the sources' warnings until the end, and then
 * returns them in the streams' order: prefetch makes the order of reads random.
 */
struct graph {
	struct ky_stage base;
	struct ky_selected tables;
	struct ky_log_keep *warnings; /* by picked stream */
	bool whole;		      /* the end of it is the end of all streams */
	bool asked; /* for a batch; warnings of batches that were only prefetched do not count */
};

static void select_graph_tell_warnings(struct graph *g)
{
	for (size_t i = 0; g->warnings && i < g->tables.picked.len; i++)
		ky_log_keep_tell(&g->warnings[i], g->tables.picked.data[i]->trace->log);
}

void ky_flow_selected_tell(struct ky_flow *flow)
{
	struct graph *g = (struct graph *)flow;

	/* Else streams may be read ahead at this moment. */
	if (g->whole)
		select_graph_tell_warnings(g);
}

static int graph_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct graph *g = (struct graph *)flow;

	g->asked = true;
	return ky_flow_next(g->base.input, batch, err);
}

static void graph_close(struct ky_flow *flow)
{
	struct graph *g = (struct graph *)flow;

	ky_flow_close(g->base.input);
	if (g->asked)
		select_graph_tell_warnings(g);
	for (size_t i = 0; g->warnings && i < g->tables.picked.len; i++)
		ky_log_keep_fini(&g->warnings[i]);
	free(g->warnings);
	ky_selected_fini(&g->tables);
	free(g);
}

static const struct ky_flow_ops graph_ops = {
	.next = graph_next,
	.seek = ky_stage_seek,
	.broken = ky_stage_broken,
	.close = graph_close,
};

/* Picked stream @i behind a stage that reads ahead. */
static int open_ahead(struct graph *g, const struct ky_trace_set *set, struct ky_thread_pool *pool,
		      size_t i, struct ky_flow **flow, struct kymo_error *err)
{
	struct ky_log_keep *log = ky_prefetch_log_new();
	struct ky_flow *input;
	int ret;

	if (!log)
		return ky_error_nomem(err);
	ret = ky_selected_stream(&g->tables, set, i, g->tables.picked.len, &log->log, &input, NULL,
				 err);
	if (ret == KYMO_OK)
		return ky_prefetch_open(pool, input, log, &g->warnings[i].log, flow, err);
	free(log);
	return ret;
}

static int open_merge(struct graph *g, const struct ky_trace_set *set,
		      const struct ky_selection *selection, struct ky_flow **merged,
		      struct kymo_error *err)
{
	size_t n_streams = g->tables.picked.len, n = 0;
	bool each_ahead =
		selection->pool && !selection->whole_ahead && n_streams <= AHEAD_STREAMS_MAX;
	struct ky_flow **flows = calloc(n_streams + set->traces.len + 1, sizeof(*flows));
	int ret = flows ? KYMO_OK : ky_error_nomem(err);

	while (ret == KYMO_OK && n < n_streams) {
		if (each_ahead)
			ret = open_ahead(g, set, selection->pool, n, &flows[n], err);
		else
			ret = ky_selected_stream(&g->tables, set, n, n_streams, &g->warnings[n].log,
						 &flows[n], NULL, err);
		n += ret == KYMO_OK;
	}
	for (size_t i = 0; ret == KYMO_OK && i < set->traces.len; i++) {
		if (!set->traces.data[i]->live.is_written)
			continue;
		ret = ky_bound_open(set->traces.data[i], &flows[n], err);
		n += ret == KYMO_OK;
	}
	return ky_selected_merge(flows, n, ret, merged, err);
}

/* All of it behind one stage that reads ahead. */
static int open_merge_ahead(struct graph *g, const struct ky_trace_set *set,
			    const struct ky_selection *selection, struct ky_flow **merged,
			    struct kymo_error *err)
{
	struct ky_flow *input;
	int ret = open_merge(g, set, selection, &input, err);

	if (ret == KYMO_OK)
		ret = ky_prefetch_open(selection->pool, input, NULL, NULL, merged, err);
	if (ret == KYMO_OK && selection->begin_ns == INT64_MIN)
		ky_prefetch_start(*merged);
	return ret;
}

static int open_input(struct graph *g, const struct ky_trace_set *set,
		      const struct ky_selection *selection, struct ky_flow **merged,
		      struct kymo_error *err)
{
	int ret = ky_selected_init(&g->tables, set, selection, err);

	if (ret < 0)
		return ret;
	g->warnings = calloc(g->tables.picked.len + 1, sizeof(*g->warnings));
	if (!g->warnings)
		return ky_error_nomem(err);
	for (size_t i = 0; i < g->tables.picked.len; i++)
		ky_log_keep_init(&g->warnings[i]);
	return selection->pool && selection->whole_ahead
		       ? open_merge_ahead(g, set, selection, merged, err)
		       : open_merge(g, set, selection, merged, err);
}

int ky_flow_open_selected(const struct ky_trace_set *set, const struct ky_selection *selection,
			  struct ky_flow **flow, struct kymo_error *err)
{
	struct graph *g = calloc(1, sizeof(*g));
	struct ky_flow *merged;
	int ret;

	if (!g)
		return ky_error_nomem(err);
	g->base.flow.ops = &graph_ops;
	g->whole = selection->head == UINT64_MAX;
	ret = open_input(g, set, selection, &merged, err);
	if (ret == KYMO_OK)
		ret = ky_selected_limit(merged, selection, &g->base.input, err);
	if (ret < 0) {
		graph_close(&g->base.flow);
		return ret;
	}
	*flow = &g->base.flow;
	return KYMO_OK;
}
