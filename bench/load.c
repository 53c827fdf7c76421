/* SPDX-License-Identifier: MIT */
/*
 * A workload for the recorders' benchmarks: `load syscalls N` makes N getppid() calls, `load
 * switches N` makes two processes on one CPU pass a byte to and fro N times. Prints ns per turn.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void syscalls(long n)
{
	for (long i = 0; i < n; i++)
		syscall(SYS_getppid);
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void echo(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
	_exit(0);
}

static void switches(long n)
{
	int there[2], back[2];
	cpu_set_t cpus;
	char byte = 0;
	pid_t pid;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	must(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
	must(pipe(there) == 0 && pipe(back) == 0, "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		close(there[1]);
		echo(there[0], back[1]);
	}
	close(there[0]);
	for (long i = 0; i < n; i++) {
		must(write(there[1], &byte, 1) == 1, "write");
		must(read(back[0], &byte, 1) == 1, "read");
	}
	close(there[1]);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	long n = argc == 3 ? atol(argv[2]) : 0;
	double begin = now_ns();

	if (n > 0 && strcmp(argv[1], "syscalls") == 0)
		syscalls(n);
	else if (n > 0 && strcmp(argv[1], "switches") == 0)
		switches(n);
	else
		return 2;
	printf("%.2f\n", (now_ns() - begin) / (double)n);
	return 0;
}
