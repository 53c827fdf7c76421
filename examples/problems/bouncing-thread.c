/* SPDX-License-Identifier: MIT */
/* Problem: a thread has cold caches all the time. The first thread of the program moves it from CPU to CPU. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define N_MOVES 60

static bool over;

static void *compute(void *data)
{
	volatile uint64_t sum = 0;

	pthread_setname_np(pthread_self(), "solver");
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		sum += sum * 31 + 7;
	return data;
}

int main(void)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t solver;

	pthread_create(&solver, NULL, compute, NULL);
	for (int i = 0; i < N_MOVES; i++) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET((unsigned long)(i % n_cpus), &one);
		pthread_setaffinity_np(solver, sizeof(one), &one);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(solver, NULL);
	return 0;
}
