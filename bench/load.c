/* SPDX-License-Identifier: MIT */
/*
 * A workload for the recorders' benchmarks: `load syscalls N` makes N getppid() calls; `load both N` the
 * same on each of two CPUs at once; `load switches N` makes two processes on one CPU pass a byte to
 * and fro N times; `load disk N` writes and syncs 4 KiB N times, in the current directory. Prints ns per turn,
 * and CPU time in ns per turn. Of the disk's turns, it is the median: a disk makes some of them wait long, for reasons of
 * its own.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

static double cpu_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) * 1e9 +
	       ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e3;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void syscalls(long n)
{
	for (long i = 0; i < n; i++)
		syscall(SYS_getppid);
}

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	must(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
}

static void both(long n)
{
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "fork");
		if (pids[i] == 0) {
			pin(i);
			syscalls(n);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		waitpid(pids[i], NULL, 0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the median turn's ns. */
static double disk(long n)
{
	static const char block[4096];
	char path[] = "load-XXXXXX";
	double *turns = malloc((size_t)n * sizeof(*turns)), median;
	int fd = mkstemp(path);

	must(turns != NULL, "memory");
	must(fd >= 0 && unlink(path) == 0, "a file");
	for (long i = 0; i < n; i++) {
		double begin = now_ns();

		must(pwrite(fd, block, sizeof(block), i % 256 * 4096) == sizeof(block), "write");
		must(fdatasync(fd) == 0, "fdatasync");
		turns[i] = now_ns() - begin;
	}
	close(fd);
	qsort(turns, (size_t)n, sizeof(*turns), compare);
	median = turns[n / 2];
	free(turns);
	return median;
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
	char byte = 0;
	pid_t pid;

	pin(0);
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
	double begin = now_ns(), median = 0, ns;

	if (n > 0 && strcmp(argv[1], "syscalls") == 0)
		syscalls(n);
	else if (n > 0 && strcmp(argv[1], "switches") == 0)
		switches(n);
	else if (n > 0 && strcmp(argv[1], "both") == 0)
		both(n);
	else if (n > 0 && strcmp(argv[1], "disk") == 0)
		median = disk(n);
	else
		return 2;
	ns = median > 0 ? median : (now_ns() - begin) / (double)n;
	printf("%.2f %.2f\n", ns, (cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN)) / (double)n);
	return 0;
}
