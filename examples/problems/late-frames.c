/* SPDX-License-Identifier: MIT */
/*
 * Problem: frames are late. "render" needs 4 ms for a frame every 16 ms, but "indexer" has a higher priority
 * on the same CPU.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define N_FRAMES 40

static bool over;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void compute_ms(int64_t ms)
{
	int64_t end = now_ns() + ms * 1000000;

	while (now_ns() < end)
		;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void begin(const char *name, int policy, int priority)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	pthread_setname_np(pthread_self(), name);
	pthread_setaffinity_np(pthread_self(), sizeof(first), &first);
	pthread_setschedparam(pthread_self(), policy,
			      &(struct sched_param){.sched_priority = priority});
}

static void *index_files(void *data)
{
	begin("indexer", SCHED_FIFO, 10);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		compute_ms(9);
		sleep_ms(11);
	}
	return data;
}

static void *render(void *data)
{
	begin("render", SCHED_FIFO, 1);
	for (int i = 0; i < N_FRAMES; i++) {
		compute_ms(4);
		sleep_ms(12);
	}
	return data;
}

int main(void)
{
	pthread_t indexer, renderer;

	pthread_create(&indexer, NULL, index_files, NULL);
	pthread_create(&renderer, NULL, render, NULL);
	pthread_join(renderer, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(indexer, NULL);
	return 0;
}
