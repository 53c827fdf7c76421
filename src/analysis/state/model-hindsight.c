/* SPDX-License-Identifier: MIT */
/*
 * The state model: state that events reveal after the end of its interval. The model keeps this state for
 * a second model, which reads the same events and has it from the begin.
 */
#include "analysis/state/model-internal.h"

#include <stdlib.h>
#include <string.h>

/* Whether an interval ended since @begin_ns: only then do listeners have wrong figures. */
static bool was_told(const struct ky_model *model, int64_t begin_ns)
{
	return model->tick && model->telling && begin_ns < model->begin_ns && begin_ns != INT64_MIN;
}

int ky_model_late(struct ky_model *model, const struct ky_cpu *cpu, int64_t begin_ns, int64_t ns,
		  enum ky_cpu_state state, const struct ky_thread *thread)
{
	struct ky_late late = {
		.cpu = cpu->index,
		.begin_ns = begin_ns,
		.end_ns = ns,
		.state = state,
	};

	if (!was_told(model, begin_ns))
		return 0;
	if (thread) {
		late.tid = thread->tid;
		late.pid = thread->pid;
		late.cgroup = thread->cgroup;
		memcpy(late.comm, thread->comm, sizeof(late.comm));
	}
	return ky_vec_push(&model->late, late);
}

int ky_model_doubt(struct ky_model *model, const struct ky_thread *thread)
{
	struct ky_doubt doubt = {thread->host->index, thread->tid, thread->left_ns};

	return was_told(model, thread->left_ns) ? ky_vec_push(&model->doubts, doubt) : 0;
}

bool ky_model_hindsight(const struct ky_model *model)
{
	if (model->late.len || model->doubts.len || model->late_files.len ||
	    model->cpus.len > model->n_first_cpus)
		return true;
	/* Intervals behind the end of a record are to say so. */
	ky_vec_foreach(&model->cpus, cpu) {
		if (was_told(model, (*cpu)->cut_ns))
			return true;
	}
	return false;
}

/* ---- the second time ------------------------------------------------------------------- */

static int compare_late(const void *left, const void *right)
{
	const struct ky_late *a = left, *b = right;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static int compare_doubts(const void *left, const void *right)
{
	const struct ky_doubt *a = left, *b = right;

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->left_ns < b->left_ns ? -1 : a->left_ns > b->left_ns;
}

/* All CPUs, in the same order, and where damage ends their records. */
static int foresee_cpus(struct ky_model *model, const struct ky_model *before)
{
	ky_vec_foreach(&before->cpus, old) {
		struct ky_host *host = model->hosts.data[(*old)->host->index];
		struct ky_cpu *cpu = ky_model_cpu_get(model, host, (*old)->id);

		if (!cpu)
			return KYMO_E_MEMORY;
		cpu->cut_ns = (*old)->cut_ns;
	}
	return 0;
}

int ky_model_foresee(struct ky_model *model, const struct ky_model *before)
{
	if (foresee_cpus(model, before) < 0 || ky_files_foresee(model, before) < 0)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&before->late, late) {
		if (ky_vec_push(&model->foreseen, *late) < 0)
			return KYMO_E_MEMORY;
	}
	ky_vec_foreach(&before->doubts, doubt) {
		if (ky_vec_push(&model->doubted, *doubt) < 0)
			return KYMO_E_MEMORY;
	}
	if (model->foreseen.len)
		qsort(model->foreseen.data, model->foreseen.len, sizeof(*model->foreseen.data),
		      compare_late);
	if (model->doubted.len)
		qsort(model->doubted.data, model->doubted.len, sizeof(*model->doubted.data),
		      compare_doubts);
	return 0;
}

bool ky_model_doubted(const struct ky_model *model, const struct ky_thread *thread)
{
	struct ky_doubt key = {thread->host->index, thread->tid, thread->left_ns};

	return model->doubted.len &&
	       bsearch(&key, model->doubted.data, model->doubted.len, sizeof(key), compare_doubts);
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

/* The thread that ran, by what was known of it when that was found. NULL: out of memory. */
static struct ky_thread *late_thread(struct ky_model *model, const struct ky_cpu *cpu,
				     const struct ky_late *late)
{
	struct ky_thread *thread = ky_model_thread_get(model, cpu->host, late->tid);

	if (!thread)
		return NULL;
	if (thread->pid == KY_UNKNOWN)
		thread->pid = late->pid;
	if (!thread->cgroup)
		thread->cgroup = late->cgroup;
	if (!thread->comm[0])
		memcpy(thread->comm, late->comm, sizeof(thread->comm));
	return thread;
}

int ky_cpu_cut(struct ky_model *model, struct ky_cpu *cpu, int64_t ns)
{
	const struct ky_late *late = foreseen(model, cpu->index, ns);
	struct ky_cpu now = *cpu;
	int status;

	if (!late)
		return ky_cpu_flush(model, cpu, ns);
	status = ky_cpu_flush(model, cpu, late->begin_ns);
	/* Its first event is still to come, and will tell what it did before. */
	if (cpu->since_ns == INT64_MIN)
		cpu->since_ns = late->begin_ns;
	cpu->state = late->state;
	cpu->current = NULL;
	if (late->state == KY_CPU_BUSY) {
		cpu->current = late_thread(model, cpu, late);
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
