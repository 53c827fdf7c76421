/* SPDX-License-Identifier: MIT */
/*
 * A pass over events for causes alone, for callers without other reports:
 *
 *	status = ky_causes_pass_run(&pass, set, flow, end_ns, err);
 *	thread = ky_causes_thread(pass.causes, host, tid, begin_ns, end_ns);
 *	if (status >= 0 && thread)
 *		status = ky_causes_path(pass.causes, thread, begin_ns, end_ns, &path);
 *	... path.parts: segments, each with its thread; path.arrows: wake-ups
 *	ky_path_fini(&path);
 *	ky_causes_pass_fini(&pass);
 *
 * One pass answers any number of questions. Threads: one at a time per pass.
 */
#ifndef KY_ANALYSIS_CAUSES_CAUSES_PASS_H
#define KY_ANALYSIS_CAUSES_CAUSES_PASS_H

#include "analysis/causes/causes.h"

struct ky_causes_pass {
	struct ky_model *model;
	struct ky_causes *causes;
	struct ky_focus focus;
};

/*
 * All events of @flow, which come from @set, up to @end_ns (INT64_MAX: all). @pass must not move until
 * ky_causes_pass_fini(), which is due in any case. 0, or as ky_model_run(): after damage, what came before it is known.
 */
int ky_causes_pass_run(struct ky_causes_pass *pass, const struct ky_trace_set *set,
		       struct ky_flow *flow, int64_t end_ns, struct kymo_error *err);
void ky_causes_pass_fini(struct ky_causes_pass *pass);

/* The thread of host number @host that had this id in the range. NULL: none. */
const struct ky_thread *ky_causes_thread(const struct ky_causes *causes, size_t host, int32_t tid,
					 int64_t begin_ns, int64_t end_ns);

#endif
