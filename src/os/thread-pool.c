/* SPDX-License-Identifier: MIT */
#include "os/thread-pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/error.h"

struct ky_thread_pool {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a task was queued, or the end has come */
	pthread_cond_t news; /* a task has ended, or ky_thread_pool_tell() */
	struct ky_task *first, **last;
	unsigned int n_sleeping; /* threads that wait for work */
	bool waiting;		 /* the owner waits for news */
	bool ending;
	unsigned int n_threads;
	pthread_t threads[];
};

unsigned int ky_cpus_usable(void)
{
	cpu_set_t cpus;
	int n;

	CPU_ZERO(&cpus);
	/* More than 1024 CPUs do not fit; nor are so many of use here. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 1;
	n = CPU_COUNT(&cpus);
	return n > 0 ? (unsigned int)n : 1;
}

void ky_thread_pool_lock(struct ky_thread_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
}

void ky_thread_pool_unlock(struct ky_thread_pool *pool)
{
	pthread_mutex_unlock(&pool->lock);
}

void ky_thread_pool_tell(struct ky_thread_pool *pool)
{
	if (pool->waiting)
		pthread_cond_signal(&pool->news);
}

/* Under the lock, which is given up while the task runs. False when none is queued. */
static bool thread_pool_run_one(struct ky_thread_pool *pool)
{
	struct ky_task *task = pool->first;

	if (!task)
		return false;
	pool->first = task->next;
	if (!pool->first)
		pool->last = &pool->first;
	ky_thread_pool_unlock(pool);
	task->run(task);
	ky_thread_pool_lock(pool);
	ky_thread_pool_tell(pool);
	return true;
}

static void thread_pool_run_or_wait(struct ky_thread_pool *pool)
{
	if (thread_pool_run_one(pool))
		return;
	pool->n_sleeping++;
	pthread_cond_wait(&pool->work, &pool->lock);
	pool->n_sleeping--;
}

static void *thread_pool_thread_main(void *data)
{
	struct ky_thread_pool *pool = data;

	ky_thread_pool_lock(pool);
	while (!pool->ending)
		thread_pool_run_or_wait(pool);
	ky_thread_pool_unlock(pool);
	return NULL;
}

/* Signals that another process or the terminal sends are for the owner's thread. */
static void thread_pool_block_signals(sigset_t *before)
{
	static const int polite[] = {SIGINT,  SIGTERM, SIGHUP,	SIGQUIT,  SIGALRM, SIGUSR1,
				     SIGUSR2, SIGCHLD, SIGTSTP, SIGWINCH, SIGCONT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(polite) / sizeof(polite[0]); i++)
		sigaddset(&set, polite[i]);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

int ky_thread_pool_new(unsigned int jobs, struct ky_thread_pool **pool, struct kymo_error *err)
{
	struct ky_thread_pool *c = calloc(1, sizeof(*c) + jobs * sizeof(c->threads[0]));
	sigset_t before;

	if (!c)
		return ky_error_nomem(err);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->news, NULL);
	c->last = &c->first;
	thread_pool_block_signals(&before);
	while (c->n_threads + 1 < jobs &&
	       pthread_create(&c->threads[c->n_threads], NULL, thread_pool_thread_main, c) == 0)
		c->n_threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	*pool = c;
	return KYMO_OK;
}

void ky_thread_pool_free(struct ky_thread_pool *pool)
{
	if (!pool)
		return;
	ky_thread_pool_lock(pool);
	pool->ending = true;
	pthread_cond_broadcast(&pool->work);
	ky_thread_pool_unlock(pool);
	for (unsigned int i = 0; i < pool->n_threads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->news);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

unsigned int ky_thread_pool_jobs(const struct ky_thread_pool *pool)
{
	return pool->n_threads + 1;
}

void ky_thread_pool_add(struct ky_thread_pool *pool, struct ky_task *task)
{
	task->next = NULL;
	ky_thread_pool_lock(pool);
	*pool->last = task;
	pool->last = &task->next;
	if (pool->n_sleeping)
		pthread_cond_signal(&pool->work);
	ky_thread_pool_unlock(pool);
}

void ky_thread_pool_wait(struct ky_thread_pool *pool, bool (*ready)(void *data), void *data)
{
	ky_thread_pool_lock(pool);
	while (!ready(data)) {
		if (thread_pool_run_one(pool))
			continue;
		pool->waiting = true;
		pthread_cond_wait(&pool->news, &pool->lock);
		pool->waiting = false;
	}
	ky_thread_pool_unlock(pool);
}
