/* SPDX-License-Identifier: MIT */
/*
 * A pool: threads that run tasks from one queue, and one owner, who runs tasks too whenever it
 * would otherwise wait. A pool of one job has no threads.
 *
 * Guarantees
 *  - Tasks begin in the order of their addition; with one job they also end in it.
 *  - The results of a task are visible to each thread that takes the lock after the task, and to the
 *    owner after ky_thread_pool_wait(). The owner's writes before ky_thread_pool_add() are visible to
 *    the task.
 *  - A task never waits for another task, so the pool cannot deadlock.
 *  - Signals that end a program (SIGINT, SIGTERM ...) reach the owner's thread only.
 *
 * Calls that may run at the same time
 *
 *                      owner's calls   ky_thread_pool_lock()   task->run
 *	owner's calls   never           excluded         yes
 *	ky_thread_pool_lock()  excluded        excluded         yes
 *	task->run       yes             yes              yes, on other tasks
 *
 * "Owner's calls" are add, wait and free: one thread at a time, the one that made the pool.
 * "Excluded": the lock keeps them apart. Tasks must use ky_thread_pool_lock() for data that they
 * share with each other and with the owner.
 */
#ifndef KY_OS_THREAD_POOL_H
#define KY_OS_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

struct ky_thread_pool;

/* A task. The owner of the work embeds it, and may add it again once ->run has returned. */
struct ky_task {
	void (*run)(struct ky_task *task);
	struct ky_task *next; /* for the pool */
};

/* The number of CPUs that this process may use: at least 1. */
unsigned int ky_cpus_usable(void);

/*
 * @jobs: the number of tasks that run at once, including the owner's: the pool starts @jobs - 1
 *	threads. When the system gives fewer threads, the pool is smaller. Returns 0 or
 *	KYMO_E_MEMORY.
 */
int ky_thread_pool_new(unsigned int jobs, struct ky_thread_pool **pool, struct kymo_error *err);
/* Ends the threads. The owner must have waited for all tasks. NULL is allowed. */
void ky_thread_pool_free(struct ky_thread_pool *pool);
/* The number of tasks that run at once. */
unsigned int ky_thread_pool_jobs(const struct ky_thread_pool *pool);

/*
 * Adds @task to the queue. The task belongs to the caller, who must keep it until it has run. Owner
 * only.
 */
void ky_thread_pool_add(struct ky_thread_pool *pool, struct ky_task *task);

/*
 * Run tasks, or sleep while no task is ready to begin, until @ready(@data) is true. The pool calls
 * @ready under the lock: at first, and after each task or ky_thread_pool_tell(). Owner only.
 */
void ky_thread_pool_wait(struct ky_thread_pool *pool, bool (*ready)(void *data), void *data);

/* Protects data that tasks share. Callers must hold it only for a short time. */
void ky_thread_pool_lock(struct ky_thread_pool *pool);
void ky_thread_pool_unlock(struct ky_thread_pool *pool);
/*
 * Under the lock: wakes the owner, whose condition may have changed although the task is not
 * finished.
 */
void ky_thread_pool_tell(struct ky_thread_pool *pool);

#endif
