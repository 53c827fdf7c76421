/* SPDX-License-Identifier: MIT */
/*
 * The state model: what is told, and when. Every event builds the state; listeners hear of what
 * happens in the range, to the threads and on the CPUs that are asked for. At the boundaries
 * (the begin and the end of the range, and of each interval) what adds up over time is cut.
 */
#include "analysis/model-internal.h"

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

bool ky_model_in_focus(const struct ky_model *model, const struct ky_thread *thread)
{
	const struct ky_focus *focus = model->focus;

	if (!model->names_threads)
		return true;
	if (!thread)
		return false;
	ky_vec_foreach(&focus->tids, tid) {
		if (*tid == thread->tid)
			return true;
	}
	ky_vec_foreach(&focus->pids, pid) {
		if (*pid == thread->pid)
			return true;
	}
	ky_vec_foreach(&focus->comms, comm) {
		if (ky_glob_match(*comm, thread->comm))
			return true;
	}
	return ky_focus_holds_cgroup(focus, thread);
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

/* One past the last moment that is told of. */
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

/* From @ns on it is told. */
static void begin_telling(struct ky_model *model, int64_t ns)
{
	model->telling = true;
	model->begin_ns = model->end_ns = ns;
	set_boundary(model);
}

void ky_model_first(struct ky_model *model, int64_t ns)
{
	model->first_ns = ns;
	if (model->focus && ns > model->focus->end_ns) {
		/* Nothing is to be told, and nothing follows that is. */
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

/* ---- what is known too late ------------------------------------------------------------ */

int ky_model_late(struct ky_model *model, const struct ky_cpu *cpu, int64_t begin_ns, int64_t ns,
		  enum ky_cpu_state state, const struct ky_thread *thread)
{
	struct ky_late late = {
		.cpu = cpu->index,
		.begin_ns = begin_ns,
		.end_ns = ns,
		.state = state,
		.tid = thread ? thread->tid : 0,
	};

	/* No interval ended in it: whoever listens has heard nothing wrong. */
	if (!model->tick || !model->telling || begin_ns >= model->begin_ns || begin_ns == INT64_MIN)
		return 0;
	return ky_vec_push(&model->late, late);
}

bool ky_model_hindsight(const struct ky_model *model)
{
	return model->late.len > 0;
}

static int compare_late(const void *left, const void *right)
{
	const struct ky_late *a = left, *b = right;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

int ky_model_foresee(struct ky_model *model, const struct ky_model *before)
{
	ky_vec_foreach(&before->late, late) {
		if (ky_vec_push(&model->foreseen, *late) < 0)
			return KYMO_E_MEMORY;
	}
	qsort(model->foreseen.data, model->foreseen.len, sizeof(*model->foreseen.data),
	      compare_late);
	return 0;
}

/* What is known of CPU @cpu for @ns and some time before, or NULL. */
static const struct ky_late *foreseen(const struct ky_model *model, uint32_t cpu, int64_t ns)
{
	struct ky_late here = {.cpu = cpu, .begin_ns = ns};
	size_t low = 0, high = model->foreseen.len;
	const struct ky_late *late;

	/* The last one that begins before @ns. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_late(&model->foreseen.data[middle], &here) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	late = &model->foreseen.data[low - 1];
	return late->cpu == cpu && ns <= late->end_ns ? late : NULL;
}

static int cut_cpu(struct ky_model *model, struct ky_cpu *cpu, int64_t ns)
{
	const struct ky_late *late = foreseen(model, cpu->index, ns);
	struct ky_cpu now = *cpu;
	int status;

	if (!late)
		return ky_cpu_flush(model, cpu, ns);
	status = ky_cpu_flush(model, cpu, late->begin_ns);
	cpu->state = late->state;
	cpu->current = NULL;
	if (late->state == KY_CPU_BUSY) {
		cpu->current = ky_model_thread_get(model, cpu->host, late->tid);
		if (!cpu->current)
			status = KYMO_E_MEMORY;
	}
	if (status >= 0)
		status = ky_cpu_flush(model, cpu, ns);
	/* The event that tells it is still to come. */
	cpu->state = now.state;
	cpu->current = now.current;
	return status;
}

int ky_model_cut(struct ky_model *model, int64_t ns)
{
	int status = 0;

	ky_vec_foreach(&model->cpus, cpu) {
		if (status >= 0)
			status = cut_cpu(model, *cpu, ns);
	}
	if (!(model->subjects & KY_ABOUT_WAITS))
		return status;
	ky_vec_foreach(&model->threads, thread) {
		if (status >= 0)
			status = ky_wait_flush(model, *thread, ns);
	}
	return status;
}

/* The next interval has its own. */
static void forget_losses(struct ky_model *model)
{
	ky_vec_foreach(&model->hosts, host)
		(*host)->lost_events = (*host)->gaps = (*host)->nameless = 0;
}

int ky_model_boundary(struct ky_model *model, int64_t ns)
{
	int status = 0;

	while (ns >= model->boundary_ns && !model->over && status >= 0) {
		int64_t at = model->boundary_ns;

		if (!model->telling) {
			status = ky_model_cut(model, at);
			begin_telling(model, at);
		} else if (at == focus_end(model)) {
			model->end_ns = model->focus->end_ns;
			model->over = true;
		} else {
			model->end_ns = at;
			status = ky_model_cut(model, at);
			if (status >= 0)
				status = model->tick(model->tick_data);
			forget_losses(model);
			model->begin_ns = at;
			set_boundary(model);
		}
	}
	return status < 0 ? status : model->over;
}
