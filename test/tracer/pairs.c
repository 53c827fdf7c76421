/* SPDX-License-Identifier: MIT */
/*
 * pairs: a program with trackers of its own, for test/cli/test_latency_programs.py. Each line of its input is a step; it
 * answers with a line: what it has measured itself.
 *
 *	sleep THREADS N NS	each thread sleeps N times; answer: count, sum and longest in ns
 *	busy THREADS N		each thread has N pairs, some hundreds open at a time; answer: count
 *	hand N			begins here, ends in other threads; answer: count, sum
 *	signals N		a signal's handler has pairs within pairs; answer: count of both
 *	fork N			a child has N pairs, and this process too; answer: N of each
 *	full N			N begins, all of which are ended; answer: nothing
 *	trackers		more trackers than there is room for
 *	lie			numbers that are wrong, in its own file
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/trace.h>

#include "abi/latency-file.h"

#define THREADS_MAX 16

static long n_each, sleep_ns;

static long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

struct thread {
	pthread_t id;
	long number, sum_ns, max_ns;
};

static void *do_sleep(void *data)
{
	struct thread *thread = data;
	struct timespec time = {sleep_ns / 1000000000, sleep_ns % 1000000000};

	for (long i = 0; i < n_each; i++) {
		long begin = now_ns(), ns;

		KYMO_LATENCY_BEGIN(nap, thread->number);
		nanosleep(&time, NULL);
		KYMO_LATENCY_END(nap, thread->number);
		ns = now_ns() - begin;
		thread->sum_ns += ns;
		thread->max_ns = ns > thread->max_ns ? ns : thread->max_ns;
	}
	return NULL;
}

static void *do_busy(void *data)
{
	struct thread *thread = data;
	const long window = 300;

	for (long i = 0; i < n_each + window; i++) {
		if (i < n_each)
			KYMO_LATENCY_BEGIN(busy, thread->number << 32 | i);
		if (i >= window)
			KYMO_LATENCY_END(busy, thread->number << 32 | (i - window));
	}
	return NULL;
}

static void run_threads(long n, void *(*work)(void *), struct thread *sum)
{
	struct thread threads[THREADS_MAX] = {0};

	for (long i = 0; i < n && i < THREADS_MAX; i++) {
		threads[i].number = i;
		pthread_create(&threads[i].id, NULL, work, &threads[i]);
	}
	for (long i = 0; i < n && i < THREADS_MAX; i++) {
		pthread_join(threads[i].id, NULL);
		sum->sum_ns += threads[i].sum_ns;
		sum->max_ns = threads[i].max_ns > sum->max_ns ? threads[i].max_ns : sum->max_ns;
	}
}

/* The key is an address, as of a request. */
static void *end_it(void *request)
{
	KYMO_LATENCY_END(hand, request);
	return NULL;
}

static void hand(long n)
{
	long sum_ns = 0;

	for (long i = 0; i < n; i++) {
		pthread_t thread;
		long request;
		long begin = now_ns();

		KYMO_LATENCY_BEGIN(hand, &request);
		pthread_create(&thread, NULL, end_it, &request);
		pthread_join(thread, NULL);
		sum_ns += now_ns() - begin;
	}
	printf("%ld %ld\n", n, sum_ns);
}

static volatile sig_atomic_t n_signals;

static void on_signal(int number)
{
	(void)number;
	KYMO_LATENCY_BEGIN(handler, 1);
	KYMO_LATENCY_END(handler, 1);
	n_signals++;
}

static void signals(long n)
{
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	long done = 0;

	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; n_signals < n; done++) {
		KYMO_LATENCY_BEGIN(interrupted, done);
		KYMO_LATENCY_END(interrupted, done);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%ld %ld\n", done, (long)n_signals);
}

static void pairs_of(long n, long key)
{
	for (long i = 0; i < n; i++) {
		KYMO_LATENCY_BEGIN(forked, key);
		KYMO_LATENCY_END(forked, key);
	}
}

/* One more begins before the fork, and ends in both. */
static void fork_it(long n)
{
	pid_t child;

	KYMO_LATENCY_BEGIN(across, 7);
	child = fork();
	pairs_of(n, getpid());
	KYMO_LATENCY_END(across, 7);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	printf("%d\n", (int)child);
}

static void full(long n)
{
	for (long i = 0; i < n; i++)
		KYMO_LATENCY_BEGIN(full, i);
	for (long i = 0; i < n; i++)
		KYMO_LATENCY_END(full, i);
	printf("ok\n");
}

static void trackers(void)
{
	for (int i = 0; i < 100; i++) {
		struct kymo_latency_site site = {0};
		char name[16];

		snprintf(name, sizeof(name), "many_%d", i);
		kymo_latency_begin(&site, name, 1);
		kymo_latency_end(&site, name, 1);
	}
	printf("ok\n");
}

/* Anybody can find the file in its memory. */
static struct ky_latency_file *own_file(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, KY_LATENCY_MEMFD))
			begin = strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	return (struct ky_latency_file *)begin; // NOLINT(performance-no-int-to-ptr)
}

static void lie(void)
{
	struct ky_latency_file *file;

	pairs_of(1, 1);
	file = own_file();
	file->head.n_trackers = UINT32_MAX;
	file->head.n_full = file->head.n_refused = UINT32_MAX;
	for (int i = 0; i < KY_LATENCY_TRACKERS_MAX; i++) {
		struct ky_latency_tracker *tracker = &file->trackers[i];

		memset(tracker, i % 4 == 0 ? 0xff : 0, sizeof(*tracker));
		snprintf(tracker->name, sizeof(tracker->name), i % 3 ? "lie_%d" : "\033[31m%d<b>",
			 i);
		if (i == 5)
			memset(tracker->name, 'a', sizeof(tracker->name));
		/* 1000 of a second, which took no time, or all time; or far too many. */
		tracker->stripes[1].buckets[i % 4 == 1 ? 200 : 3] =
			i % 4 == 1 ? 1000 : UINT64_MAX / 3;
		tracker->stripes[1].sum_ns = i % 2 ? UINT64_MAX : 0;
		tracker->stripes[1].max_ns = UINT64_MAX;
	}
	printf("ok\n");
}

static void step(const char *word, const long *numbers)
{
	struct thread sum = {0};

	n_each = numbers[1];
	sleep_ns = numbers[2];
	if (strcmp(word, "sleep") == 0) {
		run_threads(numbers[0], do_sleep, &sum);
		printf("%ld %ld %ld\n", numbers[0] * n_each, sum.sum_ns, sum.max_ns);
	} else if (strcmp(word, "busy") == 0) {
		run_threads(numbers[0], do_busy, &sum);
		printf("%ld\n", numbers[0] * n_each);
	} else if (strcmp(word, "hand") == 0) {
		hand(numbers[0]);
	} else if (strcmp(word, "signals") == 0) {
		signals(numbers[0]);
	} else if (strcmp(word, "fork") == 0) {
		fork_it(numbers[0]);
	} else if (strcmp(word, "full") == 0) {
		full(numbers[0]);
	} else if (strcmp(word, "trackers") == 0) {
		trackers();
	} else if (strcmp(word, "lie") == 0) {
		lie();
	}
	fflush(stdout);
}

int main(void)
{
	char line[256], word[32];
	long numbers[3];

	while (fgets(line, sizeof(line), stdin)) {
		memset(numbers, 0, sizeof(numbers));
		if (sscanf(line, "%31s %ld %ld %ld", word, &numbers[0], &numbers[1], &numbers[2]) >
		    0)
			step(word, numbers);
	}
	return 0;
}
