/* SPDX-License-Identifier: MIT */
/* Causes: a pass over events for them alone. */
#include "analysis/causes/causes-pass.h"

#include "analysis/causes/causes-internal.h"
#include "base/error.h"

int ky_causes_pass_run(struct ky_causes_pass *pass, const struct ky_trace_set *set,
		       struct ky_flow *flow, int64_t end_ns, struct kymo_error *err)
{
	int status;

	*pass = (struct ky_causes_pass){.model = ky_model_new(set, err)};
	if (!pass->model)
		return ky_error_nomem(err);
	ky_focus_init(&pass->focus);
	pass->focus.end_ns = end_ns;
	pass->causes = ky_causes_new(pass->model);
	if (!pass->causes)
		return ky_error_nomem(err);
	ky_model_set_focus(pass->model, &pass->focus);
	status = ky_model_run(pass->model, flow, err);
	return status < 0 ? status : 0;
}

void ky_causes_pass_fini(struct ky_causes_pass *pass)
{
	ky_causes_free(pass->causes);
	ky_model_free(pass->model);
	ky_focus_fini(&pass->focus);
	*pass = (struct ky_causes_pass){.model = NULL};
}

static bool causes_pass_overlaps(const struct ky_causes *causes, const struct ky_thread *thread,
				 int64_t begin_ns, int64_t end_ns)
{
	const struct ky_track *track;
	size_t first;

	if (thread->index >= causes->tracks.len)
		return false;
	track = &causes->tracks.data[thread->index];
	first = ky_track_find(track, begin_ns);
	return first < track->stretches.len && track->stretches.data[first].begin_ns < end_ns;
}

/* The last thread with an id is found at once: ids come again seldom, and there may be many threads. */
const struct ky_thread *ky_causes_thread(const struct ky_causes *causes, size_t host, int32_t tid,
					 int64_t begin_ns, int64_t end_ns)
{
	const struct ky_thread *last =
		host < ky_model_n_hosts(causes->model)
			? ky_map_get(&ky_model_host(causes->model, host)->threads, (uint32_t)tid)
			: NULL;

	if (last && causes_pass_overlaps(causes, last, begin_ns, end_ns))
		return last;
	for (size_t i = 0; i < causes->tracks.len; i++) {
		const struct ky_thread *thread = ky_model_thread(causes->model, i);

		if (thread->tid == tid && thread->host->index == host &&
		    causes_pass_overlaps(causes, thread, begin_ns, end_ns))
			return thread;
	}
	return NULL;
}
