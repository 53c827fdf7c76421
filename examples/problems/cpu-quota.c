/* SPDX-License-Identifier: MIT */
/* Problem: a thread stands still again and again, and a CPU is idle. Its control group may use a fifth of a CPU. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "control-group.h"

#define N_PAGES 40
#define PAGE_NS 4000000

static uint64_t ns_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void render(void)
{
	pthread_setname_np(pthread_self(), "renderer");
	for (int i = 0; i < N_PAGES; i++) {
		uint64_t until = ns_of(CLOCK_THREAD_CPUTIME_ID) + PAGE_NS;

		while (ns_of(CLOCK_THREAD_CPUTIME_ID) < until)
			;
	}
}

int main(void)
{
	/* The mistake: 20 ms of each 100 ms. */
	const struct limit limit = {"cpu", "cpu.max", "20000 100000", "cpu.cfs_quota_us", "20000"};

	return work_with_limit(&limit, render);
}
