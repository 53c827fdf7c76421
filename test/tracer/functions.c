/* SPDX-License-Identifier: MIT */
/*
 * What test/cli/test_calls.py records the calls of, compiled in several ways: with a known number of calls of each
 * function, in several threads, by recursion, from a signal handler, and left by longjmp(). The argument is how often.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define THREADS	 3

static volatile long n_leaves;
static jmp_buf place;

NOINLINE long leaf(long a, long b, double c)
{
	n_leaves++;
	return a + b + (long)c;
}

NOINLINE double middle(long n)
{
	double sum = 0;

	for (long i = 0; i < n; i++)
		sum += (double)leaf(i, 1, 2.5);
	return sum / 2;
}

/* 2 F(n + 1) - 1 calls, with F the numbers of Fibonacci. */
NOINLINE long fibonacci(long n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

NOINLINE void jumper(long depth)
{
	if (depth == 0)
		longjmp(place, 1);
	jumper(depth - 1);
	n_leaves++;
}

NOINLINE void catcher(void)
{
	if (!setjmp(place))
		jumper(3);
	leaf(0, 0, 0);
}

NOINLINE void handler(int number)
{
	leaf(number, 0, 0);
}

/* By the value: the callee writes to where the caller wants it. */
struct large {
	long values[8];
};

NOINLINE struct large larger(struct large from, long by)
{
	for (int i = 0; i < 8; i++)
		from.values[i] += by;
	return from;
}

NOINLINE void *worker(void *times)
{
	struct large large = {{0}};

	for (long i = 0; i < (long)times; i++) {
		if (middle(4) != 9)
			abort();
		large = larger(large, 2);
	}
	if (large.values[7] != 2 * (long)times)
		abort();
	return NULL;
}

int main(int argc, char **argv)
{
	long times = argc > 1 ? atol(argv[1]) : 10;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)times))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (fibonacci(10) != 55)
		return 2;
	for (int i = 0; i < 5; i++)
		catcher();
	signal(SIGUSR1, handler);
	for (int i = 0; i < 7; i++)
		raise(SIGUSR1);
	printf("%ld\n", n_leaves);
	return 0;
}
