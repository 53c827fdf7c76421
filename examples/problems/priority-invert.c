/* SPDX-License-Identifier: MIT */
/*
 * Problem: the tail latency of "worker" is bad, though nobody holds the lock for long by itself. The
 * thread "logger" holds it on a CPU that it shares with "batch", which takes that CPU away from it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define N_ROUNDS 60

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool over;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void compute_us(int64_t us)
{
	int64_t end = now_ns() + us * 1000;

	while (now_ns() < end)
		;
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void begin(const char *name, int priority)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	pthread_setname_np(pthread_self(), name);
	if (priority < 0)
		return;
	pthread_setaffinity_np(pthread_self(), sizeof(first), &first);
	pthread_setschedparam(pthread_self(), priority ? SCHED_FIFO : SCHED_OTHER,
			      &(struct sched_param){.sched_priority = priority});
}

/* 10 ms of work in each 20 ms, with a higher priority. */
static void *batch(void *data)
{
	begin("batch", 5);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		compute_us(10000);
		sleep_us(10000);
	}
	return data;
}

/* It holds the lock for a fifth of a millisecond of work. */
static void *logger(void *data)
{
	begin("logger", 0);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&lock);
		compute_us(200);
		pthread_mutex_unlock(&lock);
		sleep_us(20);
	}
	return data;
}

static void *work(void *data)
{
	begin("worker", -1);
	for (int i = 0; i < N_ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		sleep_us(15300);
	}
	return data;
}

int main(void)
{
	pthread_t threads[2], worker;

	pthread_create(&threads[0], NULL, batch, NULL);
	pthread_create(&threads[1], NULL, logger, NULL);
	pthread_create(&worker, NULL, work, NULL);
	pthread_join(worker, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
