/* SPDX-License-Identifier: MIT */
/* The state model's scheduler side: switches, wake-ups, and the lives of threads. */
#include "analysis/state/model-internal.h"

#include <string.h>

#define CLONE_THREAD 0x00010000

/* ---- threads --------------------------------------------------------------------------- */

static void take_comm(struct ky_thread *thread, const struct ky_event *event,
		      const struct ky_handle *handle)
{
	const char *comm = ky_get_plain_text(event, handle, KY_COMM_SIZE);
	size_t len;

	/* Nearly always the name that is known. */
	if (!handle->cls || (comm && memcmp(comm, thread->comm, KY_COMM_SIZE) == 0))
		return;
	comm = ky_get_text(event, handle, &len);
	ky_thread_name(thread, comm, len);
}

static void take_prio(struct ky_thread *thread, const struct ky_event *event,
		      const struct ky_class_info *info, int field)
{
	int32_t prio;

	if (!info->fields[field].cls)
		return;
	prio = (int32_t)ky_get_i64(event, &info->fields[field], 0) + info->prio_offset;
	/* A tracer that does not tell its version: LTTng's scale ends at 39, the kernel's at 139. */
	thread->prio = prio >= 100 ? prio - 100 : prio;
}

static int32_t get_tid(const struct ky_event *event, const struct ky_class_info *info, int field)
{
	return (int32_t)ky_get_i64(event, &info->fields[field], KY_UNKNOWN);
}

/* The thread that an event names; *@thread is NULL for none and for the idle threads. */
static int get_thread(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info, int field, struct ky_thread **thread)
{
	int32_t tid = get_tid(event, info, field);

	*thread = NULL;
	if (tid <= 0)
		return 0;
	*thread = ky_model_thread_get(feed->model, feed->host, tid);
	return *thread ? 0 : KYMO_E_MEMORY;
}

/* The thread that a switch takes off the CPU: nearly always the one that is known to run. */
static int get_prev(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info, struct ky_thread **thread)
{
	const struct ky_cpu *cpu = feed->cpu;

	if (cpu->state == KY_CPU_BUSY && cpu->current->tid == get_tid(event, info, 0)) {
		*thread = cpu->current;
		return 0;
	}
	return get_thread(feed, event, info, KY_SWITCH_PREV_TID, thread);
}

int ky_on_switch(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info)
{
	struct ky_cpu *cpu = feed->cpu;
	struct ky_thread *prev, *next;
	int status;

	if (!cpu)
		return 0;
	if (get_prev(feed, event, info, &prev) < 0 ||
	    get_thread(feed, event, info, KY_SWITCH_NEXT_TID, &next) < 0)
		return KYMO_E_MEMORY;
	if (prev) {
		take_comm(prev, event, &info->fields[KY_SWITCH_PREV_COMM]);
		take_prio(prev, event, info, KY_SWITCH_PREV_PRIO);
		if (prev->pid == KY_UNKNOWN && info->pid.cls)
			prev->pid = (int32_t)ky_get_i64(event, &info->pid, KY_UNKNOWN);
	}
	status = ky_cpu_settle(feed->model, cpu, prev, event->ns);
	if (prev && status >= 0)
		status = ky_thread_move(feed->model, prev, (int32_t)cpu->id, event->ns);
	if (prev && status >= 0 && feed->model->subjects & KY_ABOUT_WAITS)
		status = ky_wait_leave(feed, prev, next,
				       ky_get_u64(event, &info->fields[KY_SWITCH_PREV_STATE], 1),
				       event->ns);
	ky_cpu_set_state(cpu, next, event->ns);
	if (next && status >= 0)
		status = ky_wait_run(feed->model, next, cpu, event->ns, true);
	if (next && status >= 0) {
		take_comm(next, event, &info->fields[KY_SWITCH_NEXT_COMM]);
		take_prio(next, event, info, KY_SWITCH_NEXT_PRIO);
		status = ky_thread_move(feed->model, next, (int32_t)cpu->id, event->ns);
		if (status >= 0 && ky_model_tells(feed->model, next, cpu->id))
			status = ky_model_notify(feed->model, switched, next, event->ns);
	}
	return status;
}

/* @thread is on CPU @cpu, or on its way there. The CPU has no record, so the thread's state is unknown. */
static void see_cpu(struct ky_host *host, struct ky_thread *thread, int32_t cpu, int64_t ns)
{
	if (cpu < 0 || !host->knows_cpus || (cpu < 64 && host->recorded_cpus >> cpu & 1) ||
	    ky_map_get(&host->cpus, (uint32_t)cpu))
		return;
	thread->stray_ns = ns;
	host->lacks_cpus = true;
	if (cpu < 64)
		host->absent_cpus |= UINT64_C(1) << cpu;
}

static bool model_sched_is_in(const struct ky_model *model, const struct ky_thread *thread,
			      const char *call)
{
	return thread && thread->syscall.id != KY_NO_SYSCALL &&
	       strcmp(ky_model_syscall_name(model, thread->syscall.id), call) == 0;
}

/* The thread in a call that moves other threads: the stopper thread of a CPU does that for it. */
static struct ky_thread *find_caller(const struct ky_model *model, const struct ky_host *host)
{
	ky_vec_foreach(&model->threads, it) {
		if ((*it)->host == host && model_sched_is_in(model, *it, "sched_setaffinity"))
			return *it;
	}
	return NULL;
}

#define STOPPER "migration/"

/* Why the kernel moves a thread, by what the thread that runs there does. */
static struct ky_migration model_sched_why(struct ky_feed *feed, const struct ky_event *event,
					   const struct ky_class_info *info,
					   struct ky_thread *thread)
{
	struct ky_thread *by = ky_feed_thread(feed, event, info);
	struct ky_migration migration = {
		.thread = thread, .cause = KY_MIGRATION_BALANCER, .ns = event->ns};
	bool stopper = by && strncmp(by->comm, STOPPER, sizeof(STOPPER) - 1) == 0;

	if (model_sched_is_in(feed->model, by, "sched_setaffinity")) {
		migration.cause = KY_MIGRATION_AFFINITY;
		migration.by = by;
	} else if (model_sched_is_in(feed->model, thread, "sched_setaffinity")) {
		migration.cause = KY_MIGRATION_AFFINITY;
		migration.by = thread;
	} else if (stopper && (model_sched_is_in(feed->model, thread, "execve") ||
			       model_sched_is_in(feed->model, thread, "execveat"))) {
		migration.cause = KY_MIGRATION_EXEC;
		migration.by = thread;
	} else if (stopper) {
		migration.by = find_caller(feed->model, feed->host);
		if (migration.by)
			migration.cause = KY_MIGRATION_AFFINITY;
	} else if (thread->announced) {
		migration.cause = KY_MIGRATION_WAKEUP;
		migration.by = feed->cpu && ky_irq_current(feed->cpu) ? NULL : by;
	}
	return migration;
}

/* The thread that a wake-up or a migration names, and its CPU. 1; 0: it names none; KYMO_E_MEMORY. */
static int model_sched_task(struct ky_feed *feed, const struct ky_event *event,
			    const struct ky_class_info *info, struct ky_thread **thread,
			    int32_t *cpu)
{
	if (get_thread(feed, event, info, KY_TASK_TID, thread) < 0)
		return KYMO_E_MEMORY;
	if (!*thread)
		return 0;
	take_comm(*thread, event, &info->fields[KY_TASK_COMM]);
	take_prio(*thread, event, info, KY_TASK_PRIO);
	*cpu = (int32_t)ky_get_i64(event, &info->fields[KY_TASK_CPU], KY_UNKNOWN);
	see_cpu(feed->host, *thread, *cpu, event->ns);
	return 1;
}

int ky_on_migrate(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	struct ky_thread *thread;
	int32_t cpu;
	bool stays;
	int status;

	status = model_sched_task(feed, event, info, &thread, &cpu);
	if (status <= 0)
		return status;
	status = ky_wait_move(feed->model, thread, cpu, event->ns);
	/* The kernel says so before it knows whether the thread stays where it is. */
	stays = ky_get_i64(event, &info->fields[KY_TASK_FROM_CPU], -1) == cpu;
	if (status < 0 || stays || !ky_model_tells(feed->model, thread, (uint32_t)cpu))
		return status;
	status = ky_model_notify(feed->model, migrated, thread, event->ns);
	if (status >= 0 && feed->model->hooked[ky_hook_number(migration)].len) {
		const struct ky_migration why = model_sched_why(feed, event, info, thread);

		status = ky_model_notify(feed->model, migration, &why);
	}
	return status;
}

enum wake { WAKING, WAKEUP, WAKEUP_NEW };

/* Was the beginning of this waking seen? Where it was on a CPU without a record, or lost, it was not. */
static bool model_sched_is_whole(struct ky_host *host, struct ky_thread *thread, enum wake wake)
{
	bool announced = thread->announced;

	host->announces |= wake == WAKING;
	thread->announced = wake == WAKING;
	thread->unannounced = wake == WAKEUP && !announced;
	return wake != WAKEUP || announced || !host->announces;
}

static int on_wake(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info, enum wake wake)
{
	struct ky_thread *thread;
	int32_t cpu;
	int status;
	bool whole;

	status = model_sched_task(feed, event, info, &thread, &cpu);
	if (status <= 0)
		return status;
	/* Records of two CPUs: of the same time, what came first may stand second. */
	if (wake == WAKING && thread->unannounced && thread->left_ns == event->ns) {
		feed->host->announces = true;
		thread->unannounced = false;
		return ky_wait_complete(feed, event, info, thread);
	}
	whole = model_sched_is_whole(feed->host, thread, wake);
	if (!(feed->model->subjects & KY_ABOUT_WAITS))
		return 0;
	/* Woken anew while it waited for a CPU without a record: it ran there, and slept. */
	if (thread->stray_ns != INT64_MIN && (wake == WAKING || !whole) && thread->wait.kind &&
	    thread->wait.begin_ns <= thread->stray_ns &&
	    ky_wait_forget(feed->model, thread, event->ns) < 0)
		return KYMO_E_MEMORY;
	return ky_wait_wake(feed, event, info, thread, cpu, whole);
}

int ky_on_waking(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info)
{
	return on_wake(feed, event, info, WAKING);
}

int ky_on_wakeup(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info)
{
	return on_wake(feed, event, info, WAKEUP);
}

int ky_on_wakeup_new(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	return on_wake(feed, event, info, WAKEUP_NEW);
}

/* Tell of a new thread, once its names are known. */
static int tell_birth(struct ky_feed *feed, const struct ky_event *event, struct ky_thread *child)
{
	if (!child->fresh)
		return 0;
	child->fresh = false;
	if (!ky_model_tells(feed->model, child, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, thread_born, child, event->ns);
}

/* sched_process_fork and task_newtask both tell of a new thread; whichever comes first. */
static int get_child(struct ky_feed *feed, int32_t tid, struct ky_thread **child)
{
	struct ky_thread *old = ky_map_get(&feed->host->threads, (uint32_t)tid);

	if (old && old->born && !old->dead && old->cpu == KY_UNKNOWN) {
		*child = old;
		return 0;
	}
	*child = ky_model_thread_new(feed->model, feed->host, tid);
	if (!*child)
		return KYMO_E_MEMORY;
	(*child)->born = true;
	(*child)->fresh = true;
	if (!old)
		return 0;
	/* A life whose end was lost. */
	if (ky_wait_forget(feed->model, old, feed->model->end_ns) < 0)
		return KYMO_E_MEMORY;
	return ky_call_abandon(feed->model, old, KY_CALL_TORN, INT64_MIN);
}

int ky_on_fork(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info)
{
	int32_t tid = get_tid(event, info, KY_FORK_CHILD_TID);
	struct ky_thread *parent, *child;
	int status;

	if (tid <= 0)
		return 0;
	if (get_thread(feed, event, info, KY_FORK_PARENT_TID, &parent) < 0)
		return KYMO_E_MEMORY;
	status = get_child(feed, tid, &child);
	if (status < 0)
		return status;
	take_comm(child, event, &info->fields[KY_FORK_CHILD_COMM]);
	if (info->fields[KY_FORK_CHILD_PID].cls)
		child->pid = get_tid(event, info, KY_FORK_CHILD_PID);
	if (parent && info->fields[KY_FORK_PARENT_PID].cls)
		parent->pid = get_tid(event, info, KY_FORK_PARENT_PID);
	if (parent) {
		child->ppid = child->pid == parent->pid ? parent->ppid : parent->pid;
		child->cgroup = parent->cgroup;
	}
	if (parent && feed->model->subjects & KY_ABOUT_FILES)
		status = ky_files_fork(feed->model, parent, child);
	return status < 0 ? status : tell_birth(feed, event, child);
}

int ky_on_newtask(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	int32_t tid = get_tid(event, info, KY_NEWTASK_TID);
	uint64_t flags = ky_get_u64(event, &info->fields[KY_NEWTASK_FLAGS], 0);
	struct ky_thread *parent, *child;
	int status;

	if (tid <= 0)
		return 0;
	status = ky_model_current(feed, event, info, &parent);
	if (status >= 0)
		status = get_child(feed, tid, &child);
	if (status < 0)
		return status;
	take_comm(child, event, &info->fields[KY_NEWTASK_COMM]);
	if (!(flags & CLONE_THREAD))
		child->pid = tid;
	else if (parent)
		child->pid = parent->pid;
	if (parent)
		child->cgroup = parent->cgroup;
	if (parent && feed->model->subjects & KY_ABOUT_FILES)
		status = ky_files_fork(feed->model, parent, child);
	return status < 0 ? status : tell_birth(feed, event, child);
}

/* A thread that is not its process' first takes over that one's id when it calls exec. */
static int take_over_tid(struct ky_feed *feed, struct ky_thread *thread, int32_t tid)
{
	ky_map_del(&feed->host->threads, (uint32_t)thread->tid);
	thread->tid = tid;
	return ky_map_set(&feed->host->threads, (uint32_t)tid, thread);
}

/* It gets another name: so far it ran under the old one, which may be chosen, or the new one. */
static int before_rename(struct ky_feed *feed, const struct ky_thread *thread, int64_t ns)
{
	struct ky_cpu *cpu = feed->cpu;

	if (!feed->model->names_threads || !cpu || cpu->state != KY_CPU_BUSY ||
	    cpu->current != thread || !thread->comm[0])
		return 0;
	return ky_cpu_flush(feed->model, cpu, ns);
}

int ky_on_exec(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info)
{
	int32_t tid = get_tid(event, info, KY_EXEC_TID);
	int32_t old_tid = get_tid(event, info, KY_EXEC_OLD_TID);
	struct ky_thread *thread;
	const char *path, *slash, *comm;
	size_t len;
	int status;

	if (tid <= 0)
		return 0;
	if (old_tid > 0 && old_tid != tid) {
		thread = ky_map_get(&feed->host->threads, (uint32_t)old_tid);
		if (thread && take_over_tid(feed, thread, tid) < 0)
			return KYMO_E_MEMORY;
	}
	thread = ky_model_thread_get(feed->model, feed->host, tid);
	if (!thread)
		return KYMO_E_MEMORY;
	ky_files_exec(thread);
	status = before_rename(feed, thread, event->ns);
	if (status < 0)
		return status;
	comm = ky_get_text(event, &info->comm, &len);
	if (strnlen(comm, len)) {
		take_comm(thread, event, &info->comm);
		return 0;
	}
	path = ky_get_text(event, &info->fields[KY_EXEC_FILENAME], &len);
	slash = len ? memrchr(path, '/', len) : NULL;
	if (slash)
		ky_thread_name(thread, slash + 1, len - (size_t)(slash + 1 - path));
	else
		ky_thread_name(thread, path, len);
	return 0;
}

int ky_on_exit(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info)
{
	struct ky_thread *thread;
	int status;

	if (get_thread(feed, event, info, KY_TASK_TID, &thread) < 0)
		return KYMO_E_MEMORY;
	if (!thread)
		return 0;
	take_comm(thread, event, &info->fields[KY_TASK_COMM]);
	status = ky_call_abandon(feed->model, thread, KY_CALL_EXITED, event->ns);
	thread->dead = true;
	ky_files_exit(thread);
	if (status < 0 || !ky_model_tells(feed->model, thread, event->cpu_id))
		return status;
	return ky_model_notify(feed->model, thread_exit, thread, event->ns);
}

int ky_on_rename(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info)
{
	struct ky_thread *thread;
	int status;

	if (get_thread(feed, event, info, KY_RENAME_TID, &thread) < 0)
		return KYMO_E_MEMORY;
	if (!thread)
		return 0;
	status = before_rename(feed, thread, event->ns);
	take_comm(thread, event, &info->fields[KY_RENAME_COMM]);
	return status;
}

int ky_on_setprio(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	struct ky_thread *thread;

	if (get_thread(feed, event, info, KY_TASK_TID, &thread) < 0)
		return KYMO_E_MEMORY;
	if (thread)
		take_prio(thread, event, info, KY_TASK_PRIO);
	return 0;
}

int ky_on_statedump(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	struct ky_thread *thread;

	if (get_thread(feed, event, info, KY_STATEDUMP_TID, &thread) < 0)
		return KYMO_E_MEMORY;
	if (!thread)
		return 0;
	thread->pid = get_tid(event, info, KY_STATEDUMP_PID);
	thread->ppid = get_tid(event, info, KY_STATEDUMP_PPID);
	take_comm(thread, event, &info->fields[KY_STATEDUMP_COMM]);
	if (feed->model->subjects & KY_ABOUT_FILES)
		return ky_files_dump(feed->model, thread,
				     ky_get_u64(event, &info->fields[KY_STATEDUMP_FILES], 0));
	return 0;
}
