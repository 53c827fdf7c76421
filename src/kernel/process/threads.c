/* SPDX-License-Identifier: MIT */
#include "kernel/process/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FLAG_CLONE_PARENT 0x00008000u
#define FLAG_CLONE_THREAD 0x00010000u

int ky_threads_init(struct ky_threads *threads, struct kymo_error *err)
{
	memset(threads, 0, sizeof(*threads));
	ky_map_init(&threads->map);
	return ky_proc_open(&threads->proc, err);
}

void ky_threads_fini(struct ky_threads *threads)
{
	size_t pos = 0;
	uint64_t tid;
	void *thread;

	while (ky_map_next(&threads->map, &pos, &tid, &thread))
		free(thread);
	ky_map_fini(&threads->map);
	ky_proc_close(&threads->proc);
}

static struct ky_thread *threads_find(const struct ky_threads *threads, int32_t tid)
{
	return ky_map_get(&threads->map, (uint32_t)tid);
}

static struct ky_thread *threads_add(struct ky_threads *threads, int32_t tid)
{
	struct ky_thread *thread = threads_find(threads, tid);

	threads->generation++;
	if (thread) {
		thread->exiting = false;
		return thread;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = thread->pid = tid;
	if (ky_map_set(&threads->map, (uint32_t)tid, thread) < 0) {
		free(thread);
		return NULL;
	}
	return thread;
}

int ky_threads_put(struct ky_threads *threads, const struct ky_thread *thread)
{
	struct ky_thread *known = threads_add(threads, thread->tid);

	if (!known)
		return KYMO_E_MEMORY;
	*known = *thread;
	known->exiting = false;
	return KYMO_OK;
}

static int32_t to_kernel(const struct ky_threads *threads, int32_t own)
{
	return threads->view ? ky_pid_to_kernel(threads->view, own) : own;
}

/* 0, or negative: it is not there. */
static int read_ids(struct ky_threads *threads, const struct ky_thread *thread,
		    struct ky_thread_ids *ids)
{
	int32_t pid = thread->pid, tid = thread->tid;

	if (threads->view) {
		pid = ky_pid_to_own(threads->view, pid);
		tid = ky_pid_to_own(threads->view, tid);
	}
	return pid && tid ? ky_thread_ids_read(&threads->proc, pid, tid, ids) : KYMO_E_NOT_FOUND;
}

/* @pid and @tid as /proc has them. */
static int add_from_proc(struct ky_threads *threads, int32_t pid, int32_t tid)
{
	int32_t id = to_kernel(threads, tid);
	struct ky_proc_thread seen;
	struct ky_thread *thread;

	if (!id || threads_find(threads, id) ||
	    ky_proc_read_thread(&threads->proc, pid, tid, &seen) < 0)
		return KYMO_OK;
	thread = threads_add(threads, id);
	if (!thread)
		return KYMO_E_MEMORY;
	thread->pid = to_kernel(threads, pid);
	thread->ppid = to_kernel(threads, seen.ppid);
	thread->prio = seen.prio;
	thread->nice = seen.nice;
	memcpy(thread->comm, seen.comm, sizeof(thread->comm));
	if (threads->wants_ids)
		(void)ky_thread_ids_read(&threads->proc, pid, tid, &thread->ids);
	if (seen.flags & KY_PROC_KTHREAD)
		threads->kernel_ids = thread->ids;
	return KYMO_OK;
}

static int threads_scan_process(struct ky_threads *threads, int32_t pid)
{
	struct ky_proc_numbers tids;
	char path[32];
	int ret = KYMO_OK;
	int32_t tid;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (ky_proc_numbers_open(&threads->proc, path, &tids) < 0)
		return KYMO_OK; /* gone meanwhile */
	while (!ret && (tid = ky_proc_numbers_next(&tids)) >= 0)
		ret = add_from_proc(threads, pid, tid);
	ky_proc_numbers_close(&tids);
	return ret;
}

int ky_threads_scan(struct ky_threads *threads, struct kymo_error *err)
{
	struct ky_proc_numbers pids;
	int ret = ky_proc_numbers_open(&threads->proc, ".", &pids);
	int32_t pid;

	if (ret < 0)
		return ky_error_errno(err, errno, "cannot list the processes in /proc");
	while (!ret && (pid = ky_proc_numbers_next(&pids)) >= 0)
		ret = threads_scan_process(threads, pid);
	ky_proc_numbers_close(&pids);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

struct ky_thread *ky_threads_get(struct ky_threads *threads, int32_t tid)
{
	struct ky_thread *thread = threads_find(threads, tid);
	struct ky_proc_ids ids;

	if (thread || tid == 0)
		return thread ? thread : threads_add(threads, tid);
	/* All of another namespace's were taken in at the start, and others are not in /proc. */
	if (threads->view && threads->view->is_foreign)
		return threads_add(threads, tid);
	/* /proc/TID exists for every thread, though it is listed for leaders only. */
	if (ky_proc_read_ids(&threads->proc, tid, tid, &ids) == 0 && ids.n_levels &&
	    add_from_proc(threads, ids.nstgid[0], tid) == 0 &&
	    (thread = threads_find(threads, tid)))
		return thread;
	return threads_add(threads, tid);
}

/* In the first namespace, ids are the kernel's. In others, the return of its clone() has the thread's id. */
static void begin_in_namespace(struct ky_thread *thread, bool is_thread)
{
	bool is_first = thread->ids.ns[KY_NS_PID] == KY_NS_FIRST_PID;

	thread->ids.vtid = is_first ? thread->tid : 0;
	if (is_thread)
		return;
	thread->ids.vpid = is_first ? thread->pid : 0;
	thread->ids.vppid = is_first ? thread->ppid : 0;
}

int ky_threads_newtask(struct ky_threads *threads, int32_t parent_tid, int32_t tid,
		       const char *comm, uint64_t clone_flags)
{
	struct ky_thread *parent = ky_threads_get(threads, parent_tid);
	struct ky_thread *thread = threads_add(threads, tid);

	if (!parent || !thread)
		return KYMO_E_MEMORY;
	thread->prio = parent->prio;
	thread->nice = parent->nice;
	thread->ids = parent->ids;
	thread->pid = clone_flags & FLAG_CLONE_THREAD ? parent->pid : tid;
	thread->ppid =
		clone_flags & (FLAG_CLONE_THREAD | FLAG_CLONE_PARENT) ? parent->ppid : parent->pid;
	begin_in_namespace(thread, clone_flags & FLAG_CLONE_THREAD);
	ky_threads_rename(threads, tid, comm, KY_COMM_BYTES);
	return KYMO_OK;
}

void ky_threads_rename(struct ky_threads *threads, int32_t tid, const char *comm, size_t len)
{
	struct ky_thread *thread = ky_threads_get(threads, tid);
	char name[KY_COMM_BYTES] = {0};

	if (!thread)
		return;
	memcpy(name, comm, strnlen(comm, len < sizeof(name) ? len : sizeof(name)));
	if (memcmp(thread->comm, name, sizeof(name)) == 0)
		return;
	memcpy(thread->comm, name, sizeof(name));
	threads->generation++;
}

void ky_threads_set_prio(struct ky_threads *threads, int32_t tid, int32_t prio)
{
	struct ky_thread *thread = ky_threads_get(threads, tid);

	if (!thread || thread->prio == prio)
		return;
	thread->prio = prio;
	thread->nice = ky_thread_nice(prio, thread->nice);
	threads->generation++;
}

void ky_threads_set_ids(struct ky_threads *threads, int32_t tid, const struct ky_thread_ids *ids)
{
	struct ky_thread *thread = ky_threads_get(threads, tid);

	if (!thread || memcmp(&thread->ids, ids, sizeof(*ids)) == 0)
		return;
	thread->ids = *ids;
	threads->generation++;
}

static void threads_look_again(struct ky_threads *threads)
{
	/* A thread that is no longer in /proc keeps what it had. */
	if (threads->view)
		(void)ky_pid_view_refresh(threads->view, NULL);
}

void ky_threads_refresh_ids(struct ky_threads *threads, int32_t tid)
{
	struct ky_thread *thread = ky_threads_get(threads, tid);
	struct ky_thread_ids ids;

	/* Gone meanwhile: what was known of it stays. */
	if (!thread)
		return;
	ids = thread->ids;
	threads_look_again(threads);
	if (read_ids(threads, thread, &ids) < 0)
		return;
	ky_threads_set_ids(threads, tid, &ids);
}

/*
 * The event does not tell whether the whole process moved. Mostly it did: then /proc has the others there,
 * too.
 */
void ky_threads_set_cgroup(struct ky_threads *threads, int32_t tid, uint64_t cgroup)
{
	struct ky_thread *thread = ky_threads_get(threads, tid);
	struct ky_thread_ids ids = {0};
	size_t pos = 0;
	uint64_t key;
	void *value;

	if (!thread)
		return;
	thread->ids.cgroup = cgroup;
	threads->generation++;
	if (thread->pid != tid)
		return;
	threads_look_again(threads);
	while (ky_map_next(&threads->map, &pos, &key, &value)) {
		struct ky_thread *other = value;

		if (other->pid == tid && other != thread && !other->exiting &&
		    read_ids(threads, other, &ids) == 0)
			other->ids.cgroup = ids.cgroup;
	}
}

void ky_threads_exec(struct ky_threads *threads, int32_t tid, int32_t old_tid)
{
	struct ky_thread *thread = ky_threads_get(threads, tid);

	if (!thread)
		return;
	/* The leader died when one of its threads called exec; its id lives on. */
	thread->exiting = false;
	thread->pid = tid;
	if (tid != old_tid)
		ky_threads_exit(threads, old_tid);
	threads->generation++;
}

void ky_threads_exit(struct ky_threads *threads, int32_t tid)
{
	struct ky_thread *thread = threads_find(threads, tid), *oldest;
	int32_t *slot = &threads->exited[threads->n_exited % KY_THREADS_EXITED];

	if (!thread || thread->exiting || tid == 0)
		return;
	if (threads->n_exited >= KY_THREADS_EXITED) {
		oldest = threads_find(threads, *slot);
		/* The id may have been given to a new thread. */
		if (oldest && oldest->exiting) {
			free(ky_map_del(&threads->map, (uint32_t)*slot));
			threads->generation++;
		}
	}
	thread->exiting = true;
	*slot = tid;
	threads->n_exited++;
}
