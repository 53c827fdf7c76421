/* SPDX-License-Identifier: MIT */
/*
 * A pool: threads that carry out tasks from one queue, and one caller who carries out tasks
 * too whenever it would have to wait for them. A pool of one job has no threads at all.
 *
 * Guarantees
 *  - Tasks begin in the order in which they were added; with one job they also end in it.
 *  - What a task wrote is visible to whoever takes the lock after it, and to the caller
 *    behind ky_thread_pool_wait(). What the caller wrote before ky_thread_pool_add() is visible to the task.
 *  - A task never waits for another one, so the pool cannot lock up.
 *  - Signals that end a program politely (SIGINT, SIGTERM ...) reach the caller's thread only.
 *
 * Who may run beside whom
 *
 *                      owner's calls   ky_thread_pool_lock()   task->run
 *	owner's calls   never           excluded         yes
 *	ky_thread_pool_lock()  excluded        excluded         yes
 *	task->run       yes             yes              yes, on other tasks
 *
 * "Owner's calls" are add, wait and free: one thread at a time, the one that made the pool.
 * "Excluded": the lock keeps them apart. What tasks share among them and with the owner is
 * theirs to guard with ky_thread_pool_lock().
 */
#ifndef KY_OS_THREAD_POOL_H
#define KY_OS_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

struct ky_thread_pool;

/* Embedded in what is to be done; may be added anew once ->run has returned. */
struct ky_task {
	void (*run)(struct ky_task *task);
	struct ky_task *next; /* the pool's */
};

/* How many CPUs this process may use: at least 1. */
unsigned int ky_cpus_usable(void);

/*
 * @jobs: how many tasks run at once, the owner's own included: @jobs - 1 threads are started.
 * Where the system gives fewer threads, the pool is smaller. Returns 0 or KYMO_E_MEMORY.
 */
int ky_thread_pool_new(unsigned int jobs, struct ky_thread_pool **pool, struct kymo_error *err);
/* Ends the threads. Every task that was added must have been waited for. NULL is fine. */
void ky_thread_pool_free(struct ky_thread_pool *pool);
/* How many tasks run at once. */
unsigned int ky_thread_pool_jobs(const struct ky_thread_pool *pool);

/* Queue @task (the caller's, until it has run). Owner only. */
void ky_thread_pool_add(struct ky_thread_pool *pool, struct ky_task *task);

/*
 * Carry out tasks, or sleep while there is none to begin, until @ready(@data) is true. It is
 * called under the lock: at first, and after each task or ky_thread_pool_tell(). Owner only.
 */
void ky_thread_pool_wait(struct ky_thread_pool *pool, bool (*ready)(void *data), void *data);

/* Guards what tasks share. Not to be held for long. */
void ky_thread_pool_lock(struct ky_thread_pool *pool);
void ky_thread_pool_unlock(struct ky_thread_pool *pool);
/* Under the lock: what the owner may be waiting for has changed, though the task goes on. */
void ky_thread_pool_tell(struct ky_thread_pool *pool);

#endif
