/* SPDX-License-Identifier: MIT */
/*
 * jobs [SECONDS]: a program with trackers of its own, for 'kymo latency'. A thread puts jobs into a queue, and four others work
 * on them. Tracker job_wait is the time in the queue, from one thread to another one; job_work is the work itself.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <kymo/trace.h>

#define WORKERS 4
#define ROOM	256

struct job {
	long number; /* the key: BEGIN and END of a job have the same one */
	long work_us;
};

static struct job queue[ROOM];
static unsigned int n_put, n_taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void wait_us(long us)
{
	struct timespec time = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&time, NULL);
}

static void put(struct job job)
{
	KYMO_LATENCY_BEGIN(job_wait, job.number);
	pthread_mutex_lock(&lock);
	while (n_put - n_taken == ROOM)
		pthread_cond_wait(&changed, &lock);
	queue[n_put++ % ROOM] = job;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static struct job take(void)
{
	struct job job;

	pthread_mutex_lock(&lock);
	while (n_put == n_taken)
		pthread_cond_wait(&changed, &lock);
	job = queue[n_taken++ % ROOM];
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	KYMO_LATENCY_END(job_wait, job.number);
	return job;
}

static void *work(void *data)
{
	(void)data;
	for (;;) {
		struct job job = take();

		if (job.number < 0)
			return NULL;
		KYMO_LATENCY_BEGIN(job_work, job.number);
		wait_us(job.work_us);
		KYMO_LATENCY_END(job_work, job.number);
	}
}

int main(int argc, char **argv)
{
	long n = 1000 * (argc > 1 ? atol(argv[1]) : 10);
	pthread_t threads[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (long i = 0; i < n; i++) {
		/* One of a hundred takes long. */
		put((struct job){i, i % 100 ? 500 : 20000});
		wait_us(1000);
	}
	for (int i = 0; i < WORKERS; i++)
		put((struct job){-1 - i, 0});
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
