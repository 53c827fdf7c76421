/* SPDX-License-Identifier: MIT */
#include "os/crew.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/error.h"

struct ky_crew {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a task was queued, or the end has come */
	pthread_cond_t news; /* a task has ended, or ky_crew_tell() */
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

void ky_crew_lock(struct ky_crew *crew)
{
	pthread_mutex_lock(&crew->lock);
}

void ky_crew_unlock(struct ky_crew *crew)
{
	pthread_mutex_unlock(&crew->lock);
}

void ky_crew_tell(struct ky_crew *crew)
{
	if (crew->waiting)
		pthread_cond_signal(&crew->news);
}

/* Under the lock, which is given up while the task runs. False when none is queued. */
static bool run_one(struct ky_crew *crew)
{
	struct ky_task *task = crew->first;

	if (!task)
		return false;
	crew->first = task->next;
	if (!crew->first)
		crew->last = &crew->first;
	ky_crew_unlock(crew);
	task->run(task);
	ky_crew_lock(crew);
	ky_crew_tell(crew);
	return true;
}

static void *thread_main(void *data)
{
	struct ky_crew *crew = data;

	ky_crew_lock(crew);
	while (!crew->ending) {
		if (run_one(crew))
			continue;
		crew->n_sleeping++;
		pthread_cond_wait(&crew->work, &crew->lock);
		crew->n_sleeping--;
	}
	ky_crew_unlock(crew);
	return NULL;
}

/* Signals that another process or the terminal sends are for the owner's thread. */
static void block_signals(sigset_t *before)
{
	static const int polite[] = {SIGINT,  SIGTERM, SIGHUP,	SIGQUIT,  SIGALRM, SIGUSR1,
				     SIGUSR2, SIGCHLD, SIGTSTP, SIGWINCH, SIGCONT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(polite) / sizeof(polite[0]); i++)
		sigaddset(&set, polite[i]);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

int ky_crew_new(unsigned int jobs, struct ky_crew **crew, struct kymo_error *err)
{
	struct ky_crew *c = calloc(1, sizeof(*c) + jobs * sizeof(c->threads[0]));
	sigset_t before;

	if (!c)
		return ky_error_nomem(err);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->news, NULL);
	c->last = &c->first;
	block_signals(&before);
	while (c->n_threads + 1 < jobs &&
	       pthread_create(&c->threads[c->n_threads], NULL, thread_main, c) == 0)
		c->n_threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	*crew = c;
	return KYMO_OK;
}

void ky_crew_free(struct ky_crew *crew)
{
	if (!crew)
		return;
	ky_crew_lock(crew);
	crew->ending = true;
	pthread_cond_broadcast(&crew->work);
	ky_crew_unlock(crew);
	for (unsigned int i = 0; i < crew->n_threads; i++)
		pthread_join(crew->threads[i], NULL);
	pthread_cond_destroy(&crew->news);
	pthread_cond_destroy(&crew->work);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
}

unsigned int ky_crew_jobs(const struct ky_crew *crew)
{
	return crew->n_threads + 1;
}

void ky_crew_add(struct ky_crew *crew, struct ky_task *task)
{
	task->next = NULL;
	ky_crew_lock(crew);
	*crew->last = task;
	crew->last = &task->next;
	if (crew->n_sleeping)
		pthread_cond_signal(&crew->work);
	ky_crew_unlock(crew);
}

void ky_crew_wait(struct ky_crew *crew, bool (*ready)(void *data), void *data)
{
	ky_crew_lock(crew);
	while (!ready(data)) {
		if (run_one(crew))
			continue;
		crew->waiting = true;
		pthread_cond_wait(&crew->news, &crew->lock);
		crew->waiting = false;
	}
	ky_crew_unlock(crew);
}
