/* SPDX-License-Identifier: MIT */
#include "record/runtime/user-work.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

/* ---- with the lock -------------------------------------------------------------------- */

/* At the end of the line of queues, if it has something to do that may begin. */
static void list_queue(struct ky_user_work *work, struct ky_user_queue *queue)
{
	if (queue->is_busy || queue->is_listed || !queue->first)
		return;
	queue->is_listed = true;
	queue->next = NULL;
	if (work->last)
		work->last->next = queue;
	else
		work->first = queue;
	work->last = queue;
	pthread_cond_signal(&work->wanted);
}

static struct ky_user_task *pop_task(struct ky_user_queue *queue)
{
	struct ky_user_task *task = queue->first;

	queue->first = task->next;
	if (!queue->first)
		queue->last = NULL;
	return task;
}

static struct ky_user_queue *pop_queue(struct ky_user_work *work)
{
	struct ky_user_queue *queue = work->first;

	work->first = queue->next;
	if (!work->first)
		work->last = NULL;
	queue->is_listed = false;
	return queue;
}

static void put_done(struct ky_user_work *work, struct ky_user_task *task)
{
	uint64_t one = 1;

	task->next = NULL;
	if (work->done_last)
		work->done_last->next = task;
	else
		work->done_first = task;
	work->done_last = task;
	pthread_cond_signal(&work->done);
	/* It cannot be full: the owner sets it to 0. */
	(void)!write(work->done_fd, &one, sizeof(one));
}

/* ---- the threads ---------------------------------------------------------------------- */

/* The lock is given up while the task runs. */
static void user_work_run_one(struct ky_user_work *work)
{
	struct ky_user_queue *queue = pop_queue(work);
	struct ky_user_task *task = pop_task(queue);

	queue->is_busy = true;
	work->n_busy++;
	pthread_mutex_unlock(&work->lock);
	task->run(task);
	pthread_mutex_lock(&work->lock);
	work->n_busy--;
	queue->is_busy = false;
	queue->n--;
	put_done(work, task);
	list_queue(work, queue);
}

static void *user_work_thread_main(void *data)
{
	struct ky_user_work *work = data;

	pthread_mutex_lock(&work->lock);
	work->tids[work->n_told++] = gettid();
	pthread_cond_signal(&work->done);
	while (!work->is_ending) {
		if (work->first)
			user_work_run_one(work);
		else
			pthread_cond_wait(&work->wanted, &work->lock);
	}
	pthread_mutex_unlock(&work->lock);
	return NULL;
}

int ky_user_work_begin(struct ky_user_work *work, struct kymo_error *err)
{
	pthread_condattr_t monotonic;
	int errnum = 0;

	*work = (struct ky_user_work){.is_begun = true};
	work->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->wanted, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&work->done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (work->done_fd < 0)
		return ky_error_errno(err, errno, "cannot set up threads");
	while (work->n_threads < KY_USER_WORK_THREADS && !errnum) {
		errnum = pthread_create(&work->threads[work->n_threads], NULL,
					user_work_thread_main, work);
		work->n_threads += !errnum;
	}
	pthread_mutex_lock(&work->lock);
	while (work->n_told < work->n_threads)
		pthread_cond_wait(&work->done, &work->lock);
	pthread_mutex_unlock(&work->lock);
	return work->n_threads ? KYMO_OK : ky_error_errno(err, errnum, "cannot start a thread");
}

/* ---- the owner's ---------------------------------------------------------------------- */

void ky_user_work_add(struct ky_user_work *work, struct ky_user_queue *queue,
		      struct ky_user_task *task)
{
	task->next = NULL;
	pthread_mutex_lock(&work->lock);
	if (queue->last)
		queue->last->next = task;
	else
		queue->first = task;
	queue->last = task;
	queue->n++;
	work->n_tasks++;
	list_queue(work, queue);
	pthread_mutex_unlock(&work->lock);
}

struct ky_user_task *ky_user_work_take(struct ky_user_work *work)
{
	struct ky_user_task *task;
	uint64_t count;

	pthread_mutex_lock(&work->lock);
	task = work->done_first;
	if (task) {
		work->done_first = task->next;
		if (!work->done_first)
			work->done_last = NULL;
		work->n_tasks--;
	} else {
		(void)!read(work->done_fd, &count, sizeof(count));
	}
	pthread_mutex_unlock(&work->lock);
	return task;
}

/* Out of the line. */
static void unlist_queue(struct ky_user_work *work, struct ky_user_queue *queue)
{
	struct ky_user_queue **at = &work->first, *before = NULL;

	while (*at != queue) {
		before = *at;
		at = &before->next;
	}
	*at = queue->next;
	if (work->last == queue)
		work->last = before;
	queue->is_listed = false;
}

struct ky_user_task *ky_user_work_take_back(struct ky_user_work *work, struct ky_user_queue *queue)
{
	struct ky_user_task *task = NULL;

	pthread_mutex_lock(&work->lock);
	if (queue->first) {
		task = pop_task(queue);
		queue->n--;
		work->n_tasks--;
		if (!queue->first && queue->is_listed)
			unlist_queue(work, queue);
	}
	pthread_mutex_unlock(&work->lock);
	return task;
}

bool ky_user_work_wait(struct ky_user_work *work, int timeout_ms)
{
	struct timespec until;
	bool any;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&work->lock);
	while (work->n_tasks && !work->done_first &&
	       pthread_cond_timedwait(&work->done, &work->lock, &until) != ETIMEDOUT)
		;
	any = work->n_tasks != 0;
	pthread_mutex_unlock(&work->lock);
	return any;
}

/* Whether nothing is under way now. */
static bool close_down(struct ky_user_work *work)
{
	bool is_idle;

	pthread_mutex_lock(&work->lock);
	work->is_ending = true;
	is_idle = !work->n_busy;
	pthread_cond_broadcast(&work->wanted);
	pthread_mutex_unlock(&work->lock);
	return is_idle;
}

bool ky_user_work_end(struct ky_user_work *work, int timeout_ms)
{
	if (!work->is_begun)
		return true;
	for (int waited_ms = 0; !close_down(work); waited_ms += 10) {
		if (waited_ms >= timeout_ms)
			return false;
		usleep(10000);
	}
	for (unsigned int i = 0; i < work->n_threads; i++)
		pthread_join(work->threads[i], NULL);
	if (work->done_fd >= 0)
		close(work->done_fd);
	pthread_cond_destroy(&work->done);
	pthread_cond_destroy(&work->wanted);
	pthread_mutex_destroy(&work->lock);
	work->is_begun = false;
	return true;
}
