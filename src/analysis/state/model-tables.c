/* SPDX-License-Identifier: MIT */
/* The state model: its threads and CPUs, and its listeners. */
#include "analysis/state/model-internal.h"

#include <string.h>

#include "base/error.h"

/* ---- threads and CPUs ------------------------------------------------------------------ */

struct ky_thread *ky_model_thread_blank(struct ky_model *model)
{
	struct ky_thread *thread = ky_arena_new(&model->arena, struct ky_thread);

	if (!thread)
		return NULL;
	*thread = (struct ky_thread){
		.index = (uint32_t)model->threads.len,
		.pid = KY_UNKNOWN,
		.ppid = KY_UNKNOWN,
		.prio = KY_UNKNOWN,
		.cpu = KY_UNKNOWN,
		.off_ns = INT64_MIN,
		.left_ns = INT64_MIN,
		.stray_ns = INT64_MIN,
		.syscall = {.id = KY_NO_SYSCALL},
	};
	return ky_vec_push(&model->threads, thread) < 0 ? NULL : thread;
}

struct ky_thread *ky_model_thread_new(struct ky_model *model, struct ky_host *host, int32_t tid)
{
	struct ky_thread *thread = ky_model_thread_blank(model);

	if (!thread)
		return NULL;
	thread->tid = tid;
	thread->host = host;
	return ky_map_set(&host->threads, (uint32_t)tid, thread) < 0 ? NULL : thread;
}

struct ky_thread *ky_model_thread_get(struct ky_model *model, struct ky_host *host, int32_t tid)
{
	struct ky_thread *thread = ky_map_get(&host->threads, (uint32_t)tid);

	return thread ? thread : ky_model_thread_new(model, host, tid);
}

void ky_thread_name(struct ky_thread *thread, const char *comm, size_t len_bytes)
{
	if (!len_bytes)
		return;
	if (len_bytes > KY_COMM_SIZE - 1)
		len_bytes = KY_COMM_SIZE - 1;
	if (strncmp(thread->comm, comm, len_bytes) != 0 || thread->comm[len_bytes])
		memcpy(thread->before, thread->comm, KY_COMM_SIZE);
	memcpy(thread->comm, comm, len_bytes);
	/* All of it: a kernel's name is as long, and compared as a whole. */
	memset(thread->comm + len_bytes, 0, KY_COMM_SIZE - len_bytes);
}

struct ky_cpu *ky_model_cpu_get(struct ky_model *model, struct ky_host *host, uint32_t id)
{
	struct ky_cpu *cpu = ky_map_get(&host->cpus, id);

	if (cpu)
		return cpu;
	cpu = ky_arena_new(&model->arena, struct ky_cpu);
	if (!cpu)
		return NULL;
	*cpu = (struct ky_cpu){
		.index = (uint32_t)model->cpus.len,
		.id = id,
		.host = host,
		.since_ns = INT64_MIN,
		.begin_ns = INT64_MIN,
		.lost_until_ns = INT64_MIN,
		.cut_ns = INT64_MIN,
		.event_ns = INT64_MIN,
	};
	if (ky_vec_push(&model->cpus, cpu) < 0 || ky_map_set(&host->cpus, id, cpu) < 0)
		return NULL;
	return cpu;
}

/* ---- listeners ------------------------------------------------------------------------- */

/* Does the listener, or what the model does for it, need to know the calls that threads are in? */
static bool model_tables_needs_calls(const struct ky_listener *listener)
{
	return listener->calls || listener->call || listener->call_begin || listener->io ||
	       listener->files || listener->arguments || listener->futex || listener->lock_wait ||
	       listener->lock_hold || listener->migration || listener->tcp;
}

static unsigned int subjects_of(const struct ky_listener *listener)
{
	unsigned int subjects = model_tables_needs_calls(listener) ? KY_ABOUT_CALLS : 0;

	if (listener->waited || listener->wait_bounded || listener->queued || listener->off ||
	    listener->switched)
		subjects |= KY_ABOUT_WAITS;
	if (listener->runs)
		subjects |= KY_ABOUT_RUNS;
	if (listener->did)
		subjects |= KY_ABOUT_DID;
	if (listener->quiet)
		subjects |= KY_ABOUT_QUIET;
	if (listener->irq || listener->migration) /* who moves a thread is an interrupt, at times */
		subjects |= KY_ABOUT_IRQS;
	if (listener->waited || listener->futex) /* who wakes is an interrupt, at times */
		subjects |= KY_ABOUT_WAITS | KY_ABOUT_IRQS;
	if (listener->io || listener->files)
		subjects |= KY_ABOUT_FILES;
	if (listener->futex)
		subjects |= KY_ABOUT_FUTEX;
	if (listener->lock_wait || listener->lock_hold)
		subjects |= KY_ABOUT_LOCKS | KY_ABOUT_FUTEX | KY_ABOUT_WAITS | KY_ABOUT_IRQS;
	if (listener->request || listener->issued || listener->flush)
		subjects |= KY_ABOUT_BLOCK;
	if (listener->timer)
		subjects |= KY_ABOUT_TIMERS | KY_ABOUT_IRQS;
	if (listener->cached)
		subjects |= KY_ABOUT_CACHE;
	if (listener->contention)
		subjects |= KY_ABOUT_CONTENTION;
	if (listener->vcpu)
		subjects |= KY_ABOUT_GUESTS;
	if (listener->signal)
		subjects |= KY_ABOUT_SIGNALS;
	if (listener->arguments)
		subjects |= KY_ABOUT_ARGS;
	if (listener->fs)
		subjects |= KY_ABOUT_FS;
	if (listener->tcp)
		subjects |= KY_ABOUT_TCP;
	if (listener->packet)
		subjects |= KY_ABOUT_NET;
	if (listener->period)
		subjects |= KY_ABOUT_PERIODS;
	if (listener->memory)
		subjects |= KY_ABOUT_MEMORY;
	if (listener->stack)
		subjects |= KY_ABOUT_STACKS;
	if (listener->function_path || listener->function_call)
		subjects |= KY_ABOUT_FUNCTIONS;
	return subjects;
}

int ky_model_listen(struct ky_model *model, const struct ky_listener *listener)
{
	unsigned int subjects = model->subjects | subjects_of(listener);
	void *hooks[KY_HOOKS];

	if (subjects != model->subjects)
		ky_model_ask(model, subjects);
	/* Each occurrence goes to the listeners that have its hook, not through all of them. */
	memcpy(hooks, listener, sizeof(hooks));
	for (size_t i = ky_hook_number(ran); i < KY_HOOKS; i++) {
		struct ky_hooked hooked = {hooks[i], listener->data};

		if (hooks[i] && ky_vec_push(&model->hooked[i], hooked) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

void ky_model_unlisten(struct ky_model *model)
{
	for (size_t i = 0; i < KY_HOOKS; i++)
		ky_vec_clear(&model->hooked[i]);
}
