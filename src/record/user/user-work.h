/* SPDX-License-Identifier: MIT */
/*
 * What takes long is done by other threads than the one that reads rings: opening programs' files, describing their
 * events, looking at their libraries, ending their traces.
 *
 * Each user has a queue, and of each queue one task at a time is under way. So whatever a user's programs make
 * us do, be it for ever, costs that user's programs, and one of the threads.
 *
 * Threads: the owner, one at a time, calls everything; task->run is called by others. What the owner wrote before
 * ky_user_work_add() is visible to the task, what the task wrote to the owner behind ky_user_work_take().
 */
#ifndef KY_RECORD_USER_USER_WORK_H
#define KY_RECORD_USER_USER_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

/* More users than that can keep all threads busy, if they are in league. */
#define KY_USER_WORK_THREADS 4

/* Embedded in what is to be done; the owner's again when it was taken. */
struct ky_user_task {
	void (*run)(struct ky_user_task *task);
	struct ky_user_task *next; /* the queue's, or the list's of what is done */
};

/* Zeroed: empty. */
struct ky_user_queue {
	struct ky_user_task *first, *last; /* that wait */
	bool is_busy;			   /* one of it is under way */
	bool is_listed;			   /* it waits for a thread */
	struct ky_user_queue *next;
	unsigned int n; /* of tasks that wait or are under way */
};

struct ky_user_work {
	pthread_mutex_t lock;
	pthread_cond_t wanted, done;
	struct ky_user_queue *first, *last;	     /* queues that wait for a thread */
	struct ky_user_task *done_first, *done_last; /* not taken yet */
	unsigned int n_tasks, n_busy;		     /* added and not taken; under way */
	int done_fd;				     /* readable: there is something to be taken */
	bool is_begun, is_ending;
	unsigned int n_threads;
	unsigned int n_told; /* of threads that have said their ids */
	pthread_t threads[KY_USER_WORK_THREADS];
	int32_t tids[KY_USER_WORK_THREADS]; /* once begin has returned */
};

/* @work: zeroed. 0; KYMO_E_IO: no thread or descriptor is to be had. end is due in any case, also without this. */
int ky_user_work_begin(struct ky_user_work *work, struct kymo_error *err);

void ky_user_work_add(struct ky_user_work *work, struct ky_user_queue *queue,
		      struct ky_user_task *task);

/* One that is done; NULL: none is. */
struct ky_user_task *ky_user_work_take(struct ky_user_work *work);
/* Take one of @queue back that nobody has begun; NULL: there is none. */
struct ky_user_task *ky_user_work_take_back(struct ky_user_work *work, struct ky_user_queue *queue);

/* Sleep until something is done, @timeout_ms at most. Returns whether anything is under way or to be taken. */
bool ky_user_work_wait(struct ky_user_work *work, int timeout_ms);

/*
 * Nothing waits any more, and what is under way must end by itself. False: it does not, within @timeout_ms: then
 * @work, and what its tasks use, must stay for ever.
 */
bool ky_user_work_end(struct ky_user_work *work, int timeout_ms);

#endif
