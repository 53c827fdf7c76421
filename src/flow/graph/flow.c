/* SPDX-License-Identifier: MIT */
#include "flow/graph/flow.h"

#include <stdlib.h>

#include "base/error.h"
#include "flow/graph/sink.h"

int ky_flow_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	if (!flow->ops->seek)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "this stage cannot seek");
	return flow->ops->seek(flow, ns, err);
}

int ky_flow_broken(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err)
{
	return flow->ops->broken ? flow->ops->broken(flow, i, ns, err) : 0;
}

void ky_flow_close(struct ky_flow *flow)
{
	if (flow)
		flow->ops->close(flow);
}

int ky_stage_seek(struct ky_flow *stage, int64_t ns, struct kymo_error *err)
{
	return ky_flow_seek(((struct ky_stage *)stage)->input, ns, err);
}

int ky_stage_broken(struct ky_flow *stage, size_t i, int64_t *ns, struct kymo_error *err)
{
	return ky_flow_broken(((struct ky_stage *)stage)->input, i, ns, err);
}

void ky_stage_close(struct ky_flow *stage)
{
	ky_flow_close(((struct ky_stage *)stage)->input);
	free(stage);
}

int ky_sink_runs(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_batch rest = *batch, run;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && ky_batch_run(&rest, &run))
		ret = sink->ops->batch(sink, &run, err);
	return ret;
}

int ky_flow_open_set(const struct ky_trace_set *set, struct ky_flow **flow, struct kymo_error *err)
{
	KY_VEC(struct ky_flow *) sources = KY_VEC_INIT;
	struct ky_flow *source;
	int ret = ky_vec_reserve(&sources, set->streams.len) < 0 ? ky_error_nomem(err) : KYMO_OK;

	for (size_t i = 0; i < set->streams.len && ret == KYMO_OK; i++) {
		if (!set->streams.data[i]->file.data)
			continue;
		ret = ky_source_open(set->streams.data[i], &source, err);
		if (ret == KYMO_OK)
			sources.data[sources.len++] = source;
	}
	ky_vec_foreach(&sources, it)
		ky_source_share(*it, sources.len);
	if (ret == KYMO_OK && sources.len == 1) {
		*flow = sources.data[0];
	} else if (ret == KYMO_OK) {
		ret = ky_merge_open(sources.data, sources.len, flow, err);
	} else {
		ky_vec_foreach(&sources, s)
			ky_flow_close(*s);
	}
	ky_vec_fini(&sources);
	return ret;
}
