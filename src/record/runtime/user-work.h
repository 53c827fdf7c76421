/* SPDX-License-Identifier: MIT */
/*
 * Work that takes long, in other threads than the one that reads rings: opening programs' files,
 * describing their events, examining their libraries, ending their traces.
 *
 * Each user has a queue, and one task per queue runs at a time. So a user whose programs cause long
 * work, even endless work, blocks only that user's programs, and one of the threads.
 *
 * Threads: the owner, one thread at a time, calls all functions; other threads call task->run. The
 * owner's writes before ky_user_work_add() are visible to the task; the task's writes are visible
 * to the owner after ky_user_work_take().
 */
#ifndef KY_RECORD_RUNTIME_USER_WORK_H
#define KY_RECORD_RUNTIME_USER_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

/* More users than this number could occupy all threads, if they cooperate. */
#define KY_USER_WORK_THREADS 4

/* Part of the work's object. It belongs to the owner again after take. */
struct ky_user_task {
	void (*run)(struct ky_user_task *task);
	struct ky_user_task *next; /* for the queue, or for the list of finished tasks */
};

/* A zeroed struct is empty. */
struct ky_user_queue {
	struct ky_user_task *first, *last; /* waiting tasks */
	bool is_busy;			   /* one of its tasks is running */
	bool is_listed;			   /* the queue waits for a thread */
	struct ky_user_queue *next;
	unsigned int n; /* number of waiting and running tasks */
};

struct ky_user_work {
	pthread_mutex_t lock;
	pthread_cond_t wanted, done;
	struct ky_user_queue *first, *last;	     /* queues that wait for a thread */
	struct ky_user_task *done_first, *done_last; /* finished, not taken yet */
	unsigned int n_tasks, n_busy;		     /* added and not taken; running */
	int done_fd; /* readable when a finished task can be taken */
	bool is_begun, is_ending;
	unsigned int n_threads;
	unsigned int n_told; /* number of threads that have stored their ids */
	pthread_t threads[KY_USER_WORK_THREADS];
	int32_t tids[KY_USER_WORK_THREADS]; /* valid after begin */
};

/*
 * @work: zeroed. Returns 0; KYMO_E_IO: no thread or descriptor is available. The caller must call
 *	end in any case.
 */
int ky_user_work_begin(struct ky_user_work *work, struct kymo_error *err);

void ky_user_work_add(struct ky_user_work *work, struct ky_user_queue *queue,
		      struct ky_user_task *task);

/* A finished task, or NULL. */
struct ky_user_task *ky_user_work_take(struct ky_user_work *work);
/* Takes a task of @queue back that has not begun; NULL: none. */
struct ky_user_task *ky_user_work_take_back(struct ky_user_work *work, struct ky_user_queue *queue);

/*
 * Sleeps until a task is finished, @timeout_ms at most. Returns whether a task is running or can be
 * taken.
 */
bool ky_user_work_wait(struct ky_user_work *work, int timeout_ms);

/*
 * Drops waiting tasks; running tasks must end by themselves. Returns false when they do not, within
 * @timeout_ms: then @work, and all data of its tasks, must never be freed.
 */
bool ky_user_work_end(struct ky_user_work *work, int timeout_ms);

#endif
