/* SPDX-License-Identifier: MIT */
/*
 * The state model: the notifications of listeners. Every event builds the state. Listeners get the
 * occurrences in the range, of the selected threads and CPUs. The model cuts sums over time at the
 * boundaries: the begin and the end of the range, and of each interval.
 */
#include "analysis/state/model-internal.h"

#include <stdlib.h>

#include "base/text.h"

void ky_focus_init(struct ky_focus *focus)
{
	*focus =
		(struct ky_focus){.begin_ns = INT64_MIN, .end_ns = INT64_MAX, .max_ns = UINT64_MAX};
}

void ky_focus_fini(struct ky_focus *focus)
{
	ky_vec_fini(&focus->tids);
	ky_vec_fini(&focus->pids);
	ky_vec_fini(&focus->comms);
	ky_vec_fini(&focus->cgroups);
	ky_vec_fini(&focus->cgroup_paths);
	ky_vec_fini(&focus->cpus);
}

void ky_model_set_focus(struct ky_model *model, const struct ky_focus *focus)
{
	bool names_cgroups = focus->cgroups.len || focus->cgroup_paths.len;

	model->follows_cgroups = focus->by_cgroup || names_cgroups;
	model->names_threads =
		focus->tids.len || focus->pids.len || focus->comms.len || names_cgroups;
	model->chooses = model->names_threads || focus->cpus.len;
	model->focus = focus;
}

bool ky_model_names_threads(const struct ky_model *model)
{
	return model->names_threads;
}

bool ky_focus_names_threads(const struct ky_focus *focus)
{
	return focus->tids.len || focus->pids.len || focus->comms.len || focus->cgroups.len ||
	       focus->cgroup_paths.len;
}

bool ky_focus_has_thread(const struct ky_focus *focus, const struct ky_thread *thread)
{
	const struct ky_thread *first = NULL;

	if (!ky_focus_names_threads(focus))
		return true;
	if (!thread)
		return false;
	/* The first thread has the process' name. */
	if (focus->comms.len && thread->pid != KY_UNKNOWN && thread->pid != thread->tid)
		first = ky_map_get(&thread->host->threads, (uint32_t)thread->pid);
	ky_vec_foreach(&focus->tids, tid) {
		if (*tid == thread->tid)
			return true;
	}
	ky_vec_foreach(&focus->pids, pid) {
		if (*pid == thread->pid)
			return true;
	}
	ky_vec_foreach(&focus->comms, comm) {
		if (ky_glob_match(*comm, thread->comm) ||
		    (first && ky_glob_match(*comm, first->comm)))
			return true;
	}
	return ky_focus_holds_cgroup(focus, thread);
}

bool ky_model_in_focus(const struct ky_model *model, const struct ky_thread *thread)
{
	return !model->names_threads || ky_focus_has_thread(model->focus, thread);
}

bool ky_focus_holds_cpu(const struct ky_model *model, uint32_t cpu_id)
{
	if (!model->focus->cpus.len)
		return true;
	ky_vec_foreach(&model->focus->cpus, cpu) {
		if (*cpu == cpu_id)
			return true;
	}
	return false;
}

bool ky_focus_holds(const struct ky_model *model, const struct ky_thread *thread, uint32_t cpu_id)
{
	return ky_focus_holds_cpu(model, cpu_id) && ky_model_in_focus(model, thread);
}

/* ---- boundaries ------------------------------------------------------------------------ */

void ky_model_every(struct ky_model *model, int64_t interval_ns, int (*tick)(void *data),
		    void *data)
{
	model->interval_ns = interval_ns;
	model->tick = tick;
	model->tick_data = data;
}

static int64_t add_ns(int64_t ns, int64_t more)
{
	return ns > INT64_MAX - more ? INT64_MAX : ns + more;
}

/* One past the last moment of the range. */
static int64_t focus_end(const struct ky_model *model)
{
	return model->focus ? add_ns(model->focus->end_ns, 1) : INT64_MAX;
}

static void set_boundary(struct ky_model *model)
{
	model->boundary_ns = focus_end(model);
	if (model->tick && add_ns(model->begin_ns, model->interval_ns) < model->boundary_ns)
		model->boundary_ns = model->begin_ns + model->interval_ns;
}

/* Listeners get notifications from @ns on. */
static void begin_telling(struct ky_model *model, int64_t ns)
{
	model->telling = true;
	model->range_ns = model->begin_ns = model->end_ns = ns;
	set_boundary(model);
}

void ky_model_first(struct ky_model *model, int64_t ns)
{
	model->first_ns = ns;
	model->earliest_ns = ky_near_ns(ns, INT64_MIN);
	model->latest_ns = ky_near_ns(ns, INT64_MAX);
	if (model->focus && ns > model->focus->end_ns) {
		/* The range is empty: no notification now, or later. */
		model->telling = false;
		model->over = true;
		model->boundary_ns = ns;
		return;
	}
	if (model->focus && ns < model->focus->begin_ns) {
		model->telling = false;
		model->boundary_ns = model->focus->begin_ns;
		return;
	}
	begin_telling(model, ns);
}

int ky_model_cut(struct ky_model *model, int64_t ns)
{
	int status = 0;

	ky_vec_foreach(&model->cpus, cpu) {
		if (status >= 0)
			status = ky_cpu_cut(model, *cpu, ns);
	}
	if (!(model->subjects & KY_ABOUT_WAITS))
		return status;
	ky_vec_foreach(&model->threads, thread) {
		if (status >= 0)
			status = ky_wait_flush(model, *thread, ns);
	}
	return status;
}

static void forget_missing(struct ky_model *model)
{
	ky_vec_foreach(&model->cpus, cpu)
		(*cpu)->missing_before = (*cpu)->missing;
	model->waits = (struct ky_waits_known){0};
}

/* The next interval has its own. */
static void forget_losses(struct ky_model *model)
{
	ky_vec_foreach(&model->hosts, host) {
		(*host)->lost_events = (*host)->gaps = (*host)->nameless = 0;
		(*host)->pauses = (*host)->paused_ns = 0;
	}
	forget_missing(model);
}

/* How many wait already where the range, or an interval, begins. */
static int tell_queues(struct ky_model *model, int64_t ns)
{
	int status = 0;

	ky_vec_foreach(&model->cpus, cpu) {
		if (status >= 0 && (*cpu)->n_waiting && ky_model_tells_cpu(model, (*cpu)->id))
			status = ky_model_notify(model, queued, *cpu, ns);
	}
	/* So do requests that devices already have. */
	ky_vec_foreach(&model->disks, disk) {
		if (status >= 0 && (*disk)->n_issued)
			status = ky_model_notify(model, issued, *disk, ns);
	}
	return status;
}

int ky_model_boundary(struct ky_model *model, int64_t ns)
{
	int status = 0;

	/* The last moment of all is no boundary: clocks that run over stop there. */
	while (ns >= model->boundary_ns && model->boundary_ns != INT64_MAX && !model->over &&
	       status >= 0) {
		int64_t at = model->boundary_ns;

		if (!model->telling) {
			status = ky_model_cut(model, at);
			begin_telling(model, at);
			forget_missing(model);
			if (status >= 0)
				status = tell_queues(model, at);
		} else if (at == focus_end(model)) {
			model->end_ns = model->focus->end_ns;
			model->over = true;
		} else {
			model->end_ns = at;
			if (model->n_first_cpus == SIZE_MAX)
				model->n_first_cpus = model->cpus.len;
			status = ky_model_cut(model, at);
			if (status >= 0)
				status = model->tick(model->tick_data);
			if (status >= 0)
				status = tell_queues(model, at);
			forget_losses(model);
			model->begin_ns = at;
			set_boundary(model);
		}
	}
	return status < 0 ? status : model->over;
}

int ky_model_reach(struct ky_model *model, int64_t ns)
{
	int status = 0;

	/* No notification comes before the first event. */
	if (model->first_ns != INT64_MIN && ns >= model->boundary_ns)
		status = ky_model_boundary(model, ky_near_ns(model->first_ns, ns));
	return status < 0 ? status : 0;
}
