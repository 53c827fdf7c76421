/* SPDX-License-Identifier: MIT */
/*
 * counting MODE: a program whose events are recorded with perf counters. Prints how many descriptors of
 * perf events it has in the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/trace.h>

#include "program.h"

static void run_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void work(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	char *pages =
		mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile unsigned long x = 0;

	KYMO_EVENT(counting, before, getpid());
	KYMO_EVENT(counting, begin, getpid());
	madvise(pages, 100 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 100; i++)
		pages[i * 4096] = 1;
	for (int i = 0; i < 20; i++) {
		nanosleep(&pause, NULL);
		run_on(i % 2);
	}
	for (int i = 0; i < 10000000; i++)
		x += (unsigned long)i;
	KYMO_EVENT(counting, end, getpid());
	munmap(pages, 100 * 4096);
}

static void *in_thread(void *data)
{
	KYMO_EVENT(counting, thread, *(int *)data);
	KYMO_EVENT(counting, thread, *(int *)data);
	return NULL;
}

/* So many threads, one after the other. */
static void run_threads(int n, void *(*run)(void *))
{
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, run, &i) == 0, "thread");
		pthread_join(thread, NULL);
	}
}

static void ending(void *data)
{
	KYMO_EVENT(counting, ending, *(int *)data);
}

static pthread_key_t late_key;

static void *end_late(void *data)
{
	run_on(0);
	KYMO_EVENT(counting, before, *(int *)data);
	run_on(1);
	pthread_setspecific(late_key, data);
	KYMO_EVENT(counting, thread, *(int *)data);
	return NULL;
}

/* Threads whose destructors trace, after those of the counters: keys go by age. */
static void run_endings(void)
{
	check(pthread_key_create(&late_key, ending) == 0, "key");
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		check(pthread_create(&thread, NULL, end_late, &i) == 0, "thread");
		pthread_join(thread, NULL);
	}
}

static void *wait_long(void *data)
{
	KYMO_EVENT(counting, thread, 0);
	check(write(*(int *)data, "x", 1) == 1, "pipe");
	for (;;)
		pause();
	return NULL;
}

/* A child has none of its parent's threads' counters. */
static void run_fork(void)
{
	int pipe_fds[2], status = 0;
	pthread_t thread;
	char byte;
	pid_t pid;

	check(pipe(pipe_fds) == 0, "pipe");
	KYMO_EVENT(counting, parent, 0);
	for (int i = 0; i < 5; i++) {
		check(pthread_create(&thread, NULL, wait_long, &pipe_fds[1]) == 0, "thread");
		check(read(pipe_fds[0], &byte, 1) == 1, "pipe");
	}
	pid = fork();
	if (pid == 0) {
		KYMO_EVENT(counting, child, 1);
		work();
		printf("child %d\n", count_files("perf_event"));
		fflush(stdout);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, "child");
	KYMO_EVENT(counting, parent, 1);
	pid = vfork();
	if (pid == 0) {
		KYMO_EVENT(counting, vfork_child, 1);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, "vfork");
	KYMO_EVENT(counting, parent, 2);
}

/* Children that have our memory, and close what they have before they run something else. */
static void run_guests(void)
{
	KYMO_EVENT(counting, before, 0);
	for (int i = 0; i < 20; i++) {
		int status = 0;
		pid_t pid = vfork();

		if (pid == 0) {
			for (int fd = 200; fd < 400; fd++)
				close(fd);
			KYMO_EVENT(counting, guest, i);
			KYMO_EVENT(counting, guest, i);
			_exit(0);
		}
		check(waitpid(pid, &status, 0) == pid && status == 0, "vfork");
		KYMO_EVENT(counting, after, i);
	}
}

/* Its descriptors become other files, whose contents nobody else may take. */
static void run_reuse(void)
{
	int pipe_fds[2], left = 0;
	char byte;

	KYMO_EVENT(counting, before, 0);
	check(pipe(pipe_fds) == 0, "pipe");
	for (int fd = 200; fd < 210; fd++)
		check(dup2(pipe_fds[0], fd) == fd, "dup2");
	check(write(pipe_fds[1], "0123456789", 10) == 10, "write");
	fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 100; i++)
		KYMO_EVENT(counting, after, i);
	while (read(pipe_fds[0], &byte, 1) == 1)
		left++;
	printf("left %d\n", left);
}

static void handle(int signal)
{
	static int n;

	(void)signal;
	KYMO_EVENT(counting, handler, __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED));
}

/* Its first events, with a signal at some instant of each. */
static void *in_thread_with_signals(void *data)
{
	struct sigevent how = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	const struct itimerspec soon = {.it_value.tv_nsec = 1000 + *(int *)data % 100 * 200};
	timer_t timer;

	how._sigev_un._tid = gettid();
	check(timer_create(CLOCK_MONOTONIC, &how, &timer) == 0, "timer");
	check(timer_settime(timer, 0, &soon, NULL) == 0, "timer");
	in_thread(data);
	timer_delete(timer);
	return NULL;
}

static void run_signals(void)
{
	const struct itimerval timer = {{0, 200}, {0, 200}};

	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &timer, NULL);
	run_threads(2000, in_thread_with_signals);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "work") == 0)
		work();
	else if (strcmp(mode, "threads") == 0)
		run_threads(50, in_thread);
	else if (strcmp(mode, "fork") == 0)
		run_fork();
	else if (strcmp(mode, "guests") == 0)
		run_guests();
	else if (strcmp(mode, "reuse") == 0)
		run_reuse();
	else if (strcmp(mode, "signals") == 0)
		run_signals();
	else if (strcmp(mode, "endings") == 0)
		run_endings();
	else
		return 2;
	printf("files %d\n", count_files("perf_event"));
	return 0;
}
