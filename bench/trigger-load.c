/* SPDX-License-Identifier: MIT */
/*
 * trigger-load calls|hits N ROUNDS: N system calls (getppid) or N events (bench:hit) a round. Prints the best
 * round's ns for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <kymo/trace.h>

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double round_of(int is_calls, long n)
{
	double begin = now_ns();

	for (long i = 0; i < n; i++) {
		if (is_calls)
			(void)syscall(SYS_getppid);
		else
			KYMO_EVENT(bench, hit, i);
	}
	return (now_ns() - begin) / (double)n;
}

int main(int argc, char **argv)
{
	int is_calls = argc > 1 && strcmp(argv[1], "calls") == 0;
	long n = argc > 2 ? atol(argv[2]) : 1000000;
	double best = 1e18;

	for (int i = argc > 3 ? atoi(argv[3]) : 5; i > 0; i--) {
		double ns = round_of(is_calls, n);

		best = ns < best ? ns : best;
	}
	printf("%.1f\n", best);
	return 0;
}
