/* SPDX-License-Identifier: MIT */
/*
 * What test/cli/test_preload.py runs with libkymo-cyg-profile loaded before it: compiled with
 * -finstrument-functions. Says which of its functions is where; calls are main, tree (n), and from
 * a signal handler leaf.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many signals at least, however quick the rest was. */
#define LEAVES_MIN 10
#define NOINLINE   __attribute__((noinline))

static volatile int n_leaves;

static NOINLINE void leaf(void)
{
	n_leaves++;
}

/* 2^n - 1 calls. */
static NOINLINE void tree(int n)
{
	if (n > 1) {
		tree(n - 1);
		tree(n - 1);
	}
}

static NOINLINE void *thread(void *depth)
{
	tree(*(int *)depth);
	return NULL;
}

static __attribute__((no_instrument_function)) void on_alarm(int number)
{
	(void)number;
	leaf();
}

static __attribute__((no_instrument_function)) void alarms(long us)
{
	struct itimerval often = {{0, us}, {0, us}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 2;
	pthread_t started[4];
	pid_t pid;

	alarms(argc > 2 ? atoi(argv[2]) : 0);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&started[i], NULL, thread, &depth))
			return 1;
	}
	for (int i = 0; i < 4; i++)
		pthread_join(started[i], NULL);
	while (argc > 2 && n_leaves <= LEAVES_MIN)
		pause();
	alarms(0);
	pid = fork();
	if (!pid) {
		tree(3);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	printf("%d %p %p %p %p\n", n_leaves, (void *)main, (void *)thread, (void *)tree,
	       (void *)leaf);
	return 0;
}
