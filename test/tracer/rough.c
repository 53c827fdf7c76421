/* SPDX-License-Identifier: MIT */
/*
 * rough MODE [ARGS]: the surroundings that programs live in: sandboxes, limits, children that share
 * their memory. Each exits with 0, and prints what tracing is off for, or "on".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/trace.h>

#include "program.h"

extern char **environ;

static void wait_for(pid_t pid)
{
	int status = 0;

	check(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

/* ---- what is described ---- */

/* A field that is called as the length of another one is. */
static int mode_names(char **args)
{
	int x[2] = {1, 2}, _x_length = 3;

	(void)args;
	KYMO_EVENT(rough, names, KYMO_SEQUENCE(x, 2), _x_length);
	KYMO_EVENT(rough, names_too, _x_length, KYMO_SEQUENCE(x, 2));
	return 0;
}

/* As many mappings as a process may have, nearly. */
static int mode_mappings(char **args)
{
	size_t n = (size_t)atol(args[0]), page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);

	check(at != MAP_FAILED, "mmap");
	for (size_t i = 0; i < n; i++)
		check(mprotect(at + 2 * i * page, page, PROT_READ) == 0, "mprotect");
	for (int i = 0; i < 100; i++) {
		KYMO_EVENT(rough, mapped, i);
		usleep(1000);
	}
	return 0;
}

/* ---- killed ---- */

/*
 * N numbered events; how many there are so far stands in FILE, as a u64, whenever we are killed: then there
 * is one more at the most. It waits for that in the end.
 */
static int mode_told(char **args)
{
	int fd = open(args[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile unsigned long *told;

	check(fd >= 0 && ftruncate(fd, sizeof(*told)) == 0, args[0]);
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(told != MAP_FAILED, "mmap");
	for (unsigned long i = 0; i < strtoul(args[1], NULL, 10); i++) {
		KYMO_EVENT(rough, told, i);
		*told = i + 1;
		if (i % 1000 == 0)
			usleep(1000);
	}
	for (;;)
		pause();
	return 0;
}

/* ---- children ---- */

static char stack[65536] __attribute__((aligned(16)));

static int cloned(void *data)
{
	KYMO_EVENT(rough, in_clone_vfork, (int)syscall(SYS_getpid));
	execv(((char **)data)[0], data);
	return 1;
}

static int cloned_beside(void *data)
{
	(void)data;
	for (int i = 0; i < 100; i++)
		KYMO_EVENT(rough, in_clone, (int)syscall(SYS_getpid));
	return 0;
}

/* All ways to have PROGRAM run; each is preceded by an event of ours. */
static int mode_children(char **args)
{
	struct clone_args how = {.exit_signal = SIGCHLD};
	char command[4200];
	pid_t pid;

	KYMO_EVENT(rough, step, KYMO_AS(n, 0));
	check(posix_spawn(&pid, args[0], NULL, NULL, args, environ) == 0, "posix_spawn");
	wait_for(pid);
	KYMO_EVENT(rough, step, KYMO_AS(n, 1));
	snprintf(command, sizeof(command), "%s %s", args[0], args[1]);
	check(system(command) == 0, "system");
	KYMO_EVENT(rough, step, KYMO_AS(n, 2));
	pid = clone(cloned, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, args);
	check(pid > 0, "clone");
	wait_for(pid);
	KYMO_EVENT(rough, step, KYMO_AS(n, 3));
	pid = (pid_t)syscall(SYS_clone3, &how, sizeof(how));
	if (pid == 0) {
		KYMO_EVENT(rough, in_clone3, getpid());
		_exit(0);
	}
	wait_for(pid);
	pid = vfork();
	if (pid == 0) {
		KYMO_EVENT(rough, in_vfork, (int)syscall(SYS_getpid));
		execv(args[0], args);
		_exit(1);
	}
	wait_for(pid);
	KYMO_EVENT(rough, step, KYMO_AS(n, 4));
	pid = clone(cloned_beside, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	check(pid > 0, "clone");
	for (int i = 0; i < 100; i++)
		KYMO_EVENT(rough, beside, i);
	wait_for(pid);
	KYMO_EVENT(rough, step, KYMO_AS(n, 5));
	return 0;
}

/* ---- sandboxes ---- */

/* All but what @numbers has; or, with @allow, these only. */
static void filter(const int *numbers, int n, int allow, unsigned int action)
{
	struct sock_filter code[128] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	unsigned short len = 1;

	for (int i = 0; i < n; i++) {
		code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned int)numbers[i], 0, 1);
		code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							   allow ? SECCOMP_RET_ALLOW : action);
	}
	code[len++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, allow ? action : SECCOMP_RET_ALLOW);
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){len, code}) ==
			      0,
	      "seccomp");
}

/* The system calls that the library makes, by name. */
static const struct {
	const char *name;
	int number;
} calls[] = {
	{"memfd_create", SYS_memfd_create},
	{"ftruncate", SYS_ftruncate},
	{"fcntl", SYS_fcntl},
	{"madvise", SYS_madvise},
	{"prlimit64", SYS_prlimit64},
	{"getdents64", SYS_getdents64},
	{"futex", SYS_futex},
	{"getrandom", SYS_getrandom},
	{"renameat2", SYS_renameat2},
	{"rseq", SYS_rseq},
	{"uname", SYS_uname},
	{"prctl", SYS_prctl},
	{"readlinkat", SYS_readlinkat},
	{"geteuid", SYS_geteuid},
	{"unlinkat", SYS_unlinkat},
	{"sched_getaffinity", SYS_sched_getaffinity},
};

/* What it is exec()ed for has this call refused. CALL ERRNO PROGRAM ... */
static int mode_refuse(char **args)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, args[0]) != 0)
			continue;
		filter(&calls[i].number, 1, 0, SECCOMP_RET_ERRNO | (unsigned int)atoi(args[1]));
		execv(args[2], args + 2);
	}
	return 3;
}

/*
 * What it is exec()ed for is killed by any system call but those of libc's start and end, and those that
 * docs/tracing.md says the library makes: at start; with a session, too. start|session PROGRAM ...
 */
static int mode_only(char **args)
{
	static const int allowed[] = {
		/* libc */
		SYS_execve, SYS_brk, SYS_openat, SYS_read, SYS_pread64, SYS_newfstatat, SYS_mmap,
		SYS_mprotect, SYS_munmap, SYS_close, SYS_set_tid_address, SYS_set_robust_list,
		SYS_rseq, SYS_prlimit64, SYS_getrandom, SYS_write, SYS_exit_group,
#ifdef SYS_arch_prctl
		SYS_arch_prctl, SYS_access, SYS_readlink,
#endif
		/* the library, at start */
		SYS_clock_gettime, SYS_close, SYS_fcntl, SYS_fstat, SYS_ftruncate, SYS_geteuid,
		SYS_getpid, SYS_madvise, SYS_memfd_create, SYS_mmap, SYS_openat, SYS_prctl,
		SYS_prlimit64, SYS_rt_sigprocmask,
		/* with a session: the last of all, for they are left out otherwise */
		SYS_futex, SYS_getdents64, SYS_getrandom, SYS_munmap, SYS_pread64, SYS_read,
		SYS_readlinkat, SYS_renameat2, SYS_uname, SYS_unlinkat};
	int n = sizeof(allowed) / sizeof(allowed[0]);

	filter(allowed, strcmp(args[0], "session") == 0 ? n : n - 10, 1, SECCOMP_RET_KILL_PROCESS);
	execv(args[1], args + 1);
	return 3;
}

/*
 * Traced from its start; then in a sandbox in which nothing but futex() and the end is allowed, until
 * the session is over.
 */
static int mode_strict(char **args)
{
	static const int allowed[] = {SYS_futex, SYS_exit_group};
	struct timespec start, now;

	(void)args;
	KYMO_EVENT(rough, free, getpid());
	clock_gettime(CLOCK_MONOTONIC, &start);
	printf("strict\n");
	fflush(stdout);
	filter(allowed, 2, 1, SECCOMP_RET_KILL_PROCESS);
	for (unsigned long i = 0; kymo_enabled(rough, caught); i++) {
		if (i % 65536 == 0)
			KYMO_EVENT(rough, caught, i);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > start.tv_sec + 60)
			_exit(4);
	}
	_exit(0);
}

/* ---- places and limits ---- */

static int say_off(void)
{
	const char *off = kymo_trace_off();

	KYMO_EVENT(rough, once, getpid());
	off = off ? off : kymo_trace_off();
	printf("%s\n", off ? off : "on");
	fflush(stdout);
	return 0;
}

static int mode_once(char **args)
{
	(void)args;
	return say_off();
}

/* In a directory with nothing in it, not even /proc; then as nobody. */
static int mode_chroot(char **args)
{
	check(chroot(args[0]) == 0 && chdir("/") == 0, "chroot");
	for (int i = 0; i < 1000; i++)
		KYMO_EVENT(rough, enclosed, i);
	check(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setuid");
	for (int i = 0; i < 1000; i++)
		KYMO_EVENT(rough, enclosed, i);
	return say_off();
}

/* Closes all files at once, and gives the numbers to others; until it is killed. */
static int mode_taken(char **args)
{
	int fd = open(args[0], O_RDWR | O_CREAT, 0600);

	check(fd >= 0 && syscall(SYS_close_range, fd + 1, ~0U, 0) == 0, "close_range");
	for (int i = fd + 1; i < 300; i++)
		check(dup2(fd, i) == i, "dup2");
	for (;;) {
		KYMO_EVENT(rough, taken);
		usleep(1000);
	}
	return 0;
}

/* Says why it is off, and goes on until it is killed. */
static int mode_off(char **args)
{
	(void)args;
	say_off();
	for (;;) {
		KYMO_EVENT(rough, tried);
		usleep(1000);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **args);
	int n_args;
} modes[] = {
	{"names", mode_names, 0},   {"mappings", mode_mappings, 1}, {"children", mode_children, 2},
	{"refuse", mode_refuse, 3}, {"strict", mode_strict, 0},	    {"once", mode_once, 0},
	{"chroot", mode_chroot, 1}, {"taken", mode_taken, 1},	    {"off", mode_off, 0},
	{"told", mode_told, 2},	    {"only", mode_only, 2},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name) && argc >= 2 + modes[i].n_args)
			return modes[i].run(argv + 2);
	}
	fprintf(stderr, "usage: rough MODE [ARGS]\n");
	return 2;
}
