/* SPDX-License-Identifier: MIT */
/*
 * Which process a thread belongs to, and what it is called: for the event contexts and for
 * sched_process_fork, since the kernel's records hold thread ids only. Filled from /proc once,
 * then kept up to date from the events.
 *
 * Threads: one at a time.
 */
#ifndef KY_KERNEL_PROCESS_THREADS_H
#define KY_KERNEL_PROCESS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "kernel/process/pid-view.h"
#include "kernel/process/proc.h"
#include "kernel/process/thread-ids.h"

struct ky_thread {
	int32_t tid, pid, ppid;
	int32_t prio; /* the kernel's prio - 100 */
	int32_t nice; /* from its prio, where that has it */
	bool exiting;
	struct ky_thread_ids ids; /* when they are wanted */
	char comm[KY_COMM_BYTES]; /* NUL-padded */
};

/* What @prio tells; of a real-time thread it stays what it @was. */
static inline int32_t ky_thread_nice(int32_t prio, int32_t was)
{
	return prio >= 0 ? prio - 20 : was;
}

/* How many exited threads are still known: their last events come after their exit. */
#define KY_THREADS_EXITED 4096

struct ky_threads {
	struct ky_map map; /* tid -> struct ky_thread */
	struct ky_proc proc;
	struct ky_pid_view
		*view; /* of /proc; all ids here are the kernel's. NULL: they are the same */
	int32_t exited[KY_THREADS_EXITED];
	uint32_t n_exited;   /* ever; the newest stands at (n - 1) % KY_THREADS_EXITED */
	uint32_t generation; /* changes with every change of any thread */
	bool wants_ids;
	struct ky_thread_ids kernel_ids; /* of the kernel's own threads */
};

/* 0, KYMO_E_NOT_FOUND (no /proc) or KYMO_E_MEMORY. */
int ky_threads_init(struct ky_threads *threads, struct kymo_error *err);
void ky_threads_fini(struct ky_threads *threads);

/* Take in every thread that runs now; threads known already stay as they are. */
int ky_threads_scan(struct ky_threads *threads, struct kymo_error *err);

/* Take in what is known of a thread. 0 or KYMO_E_MEMORY. */
int ky_threads_put(struct ky_threads *threads, const struct ky_thread *thread);

/*
 * The thread, never NULL except when out of memory. One that no event announced is looked up in
 * /proc, where that has the kernel's ids; when it is gone from there, it is taken for a process of one thread.
 */
struct ky_thread *ky_threads_get(struct ky_threads *threads, int32_t tid);

/* task_newtask: @parent made @tid. @comm: KY_COMM_BYTES. */
int ky_threads_newtask(struct ky_threads *threads, int32_t parent, int32_t tid, const char *comm,
		       uint64_t clone_flags);
/* A new name, of at most KY_COMM_BYTES bytes; and a new priority. */
void ky_threads_rename(struct ky_threads *threads, int32_t tid, const char *comm, size_t len);
void ky_threads_set_prio(struct ky_threads *threads, int32_t tid, int32_t prio);
/*
 * Its ids; and as /proc has them now. cgroup_attach_task: @tid, or the process that it leads, was put
 * into @cgroup.
 */
void ky_threads_set_ids(struct ky_threads *threads, int32_t tid, const struct ky_thread_ids *ids);
void ky_threads_refresh_ids(struct ky_threads *threads, int32_t tid);
void ky_threads_set_cgroup(struct ky_threads *threads, int32_t tid, uint64_t cgroup);
/* sched_process_exec: @old_tid goes on as @tid, its process' leader. */
void ky_threads_exec(struct ky_threads *threads, int32_t tid, int32_t old_tid);
/* sched_process_exit: forget it some time later. */
void ky_threads_exit(struct ky_threads *threads, int32_t tid);

#endif
